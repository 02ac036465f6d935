"""What a model is asked and how its answers are judged, against a loop over questions."""

import numpy as np
import pytest
from sklearn.metrics import label_ranking_average_precision_score, roc_auc_score

from harmonium.estimators import CooccurrenceTagger
from harmonium.evaluation import auc_per_tag, evaluate_decisions
from harmonium.experiments.judging import judge, questions, validation_score
from harmonium.experiments.recipe import ONE

NAN = np.nan
Y = np.array([[1, 1, 0, 0, NAN], [1, 0, 0, 0, 0], [1, 1, 1, 0, 0]], np.float32)


def test_each_true_tag_is_given_in_turn():
    asked = questions(Y, ONE, (0,))
    assert asked.clips.tolist() == [0, 0, 2, 2, 2]
    assert (np.nansum(asked.given, axis=1) == 1).all()
    assert (np.sum(~np.isnan(asked.given), axis=1) == 1).all()
    np.testing.assert_array_equal(asked.asked[0], [NAN, 1, 0, 0, NAN])
    np.testing.assert_array_equal(asked.asked[4], [1, 1, NAN, 0, 0])


def test_a_known_tag_is_either_given_or_asked():
    asked = questions(Y, 0.5, (0, 1))
    is_given = ~np.isnan(asked.given)
    is_asked = ~np.isnan(asked.asked)
    assert is_given.any()
    assert not (is_given & is_asked).any()
    np.testing.assert_array_equal(is_given | is_asked, ~np.isnan(Y))


@pytest.fixture(scope="module")
def completer():
    """A model that completes tags, with clips to judge it on: X, labels."""
    rng = np.random.default_rng(0)
    train = (rng.random((500, 6)) < np.linspace(0.2, 0.7, 6)).astype(float)
    labels = (rng.random((20, 6)) < 0.4).astype(np.float32)
    model = CooccurrenceTagger().fit(np.zeros((500, 1)), train)
    return model, np.zeros((20, 1)), labels


def test_measures_within_clips_are_means_over_questions_then_over_clips(completer):
    model, X, labels = completer
    aucs = []
    precisions = []
    for y in labels:
        aucs_of_clip = []
        precisions_of_clip = []
        for tag in np.flatnonzero(y == 1) if y.sum() >= 2 else []:
            given = np.full(6, NAN)
            given[tag] = 1
            rest = np.arange(6) != tag
            scores = model.complete([[0.0]], given[None])[0]
            assert len(np.unique(scores[rest])) == 5  # no ties, which argsort would break
            best = np.argsort(-scores[rest])[:3]
            has_both = y[rest].min() == 0
            aucs_of_clip.append(roc_auc_score(y[rest], scores[rest]) if has_both else NAN)
            precisions_of_clip.append(y[rest][best].mean())
        if aucs_of_clip:
            aucs.append(np.mean(aucs_of_clip))
            precisions.append(np.mean(precisions_of_clip))
    measures = judge(model, X, labels, ONE, (0,))
    assert measures["clip_auc"] == pytest.approx(np.nanmean(aucs))
    assert measures["clip_precision_at_3"] == pytest.approx(np.mean(precisions))


def test_decisions_are_those_of_the_model_s_own_thresholds(completer):
    model, X, labels = completer
    measures = judge(model, X, labels, 0.0, (0,))
    expected = evaluate_decisions(labels, model.predict(X))
    assert measures["micro_f1"] == pytest.approx(expected.micro_f1)
    assert measures["subset_accuracy"] == pytest.approx(expected.subset_accuracy)
    P = model.predict_proba(X)
    lrap = label_ranking_average_precision_score(labels, P)
    assert measures["ranking_precision"] == pytest.approx(lrap)


def test_the_validation_score_is_the_mean_over_the_ways_of_asking(completer):
    model, X, labels = completer
    by_sound = auc_per_tag(labels, model.predict_proba(X)).mean
    assert validation_score(model, X, labels, (0.0,), (0,)) == pytest.approx(by_sound)
    both = validation_score(model, X, labels, (0.0, ONE), (0,))
    of_one_tag = judge(model, X, labels, ONE, (0,))["clip_auc"]
    assert both == pytest.approx((by_sound + of_one_tag) / 2)
