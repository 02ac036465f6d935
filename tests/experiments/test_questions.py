"""What a model is asked and how its answers are judged, against a loop over questions."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from harmonium.estimators import CooccurrenceTagger
from harmonium.evaluation import auc_per_tag
from harmonium.experiments.recipe import ONE
from harmonium.experiments.run import judge, questions, validation_score

NAN = np.nan
Y = np.array([[1, 1, 0, 0, NAN], [1, 0, 0, 0, 0], [1, 1, 1, 0, 0]], np.float32)


def test_each_true_tag_is_told_in_turn_where_there_are_two():
    asked = questions(Y, ONE, (0,))
    assert asked.clips.tolist() == [0, 0, 2, 2, 2]
    assert (np.nansum(asked.given, axis=1) == 1).all()
    assert (np.sum(~np.isnan(asked.given), axis=1) == 1).all()
    np.testing.assert_array_equal(asked.asked[0], [NAN, 1, 0, 0, NAN])
    np.testing.assert_array_equal(asked.asked[4], [1, 1, NAN, 0, 0])


def test_a_share_is_told_or_asked_but_never_both():
    asked = questions(Y, 0.5, (0, 1))
    told, rest = ~np.isnan(asked.given), ~np.isnan(asked.asked)
    assert told.any()
    assert not (told & rest).any()
    np.testing.assert_array_equal(told | rest, ~np.isnan(Y))


def test_the_measures_within_clips_are_means_over_a_clips_questions_and_then_over_clips():
    rng = np.random.default_rng(0)
    train = (rng.random((500, 6)) < np.linspace(0.2, 0.7, 6)).astype(float)
    labels = (rng.random((20, 6)) < 0.4).astype(np.float32)
    X = np.zeros((20, 1))
    model = CooccurrenceTagger().fit(np.zeros((500, 1)), train)
    aucs, precisions = [], []
    for y in labels:
        of_clip = []
        for tag in np.flatnonzero(y == 1) if y.sum() >= 2 else []:
            told = np.full(6, NAN)
            told[tag] = 1
            rest = np.arange(6) != tag
            s = model.complete([[0.0]], told[None])[0]
            assert len(np.unique(s[rest])) == 5  # no ties, which argsort would break
            best = np.argsort(-s[rest])[:3]
            auc = roc_auc_score(y[rest], s[rest]) if y[rest].min() == 0 else NAN
            of_clip.append((auc, y[rest][best].mean()))
        if of_clip:
            aucs.append(np.mean([auc for auc, _ in of_clip]))
            precisions.append(np.mean([precision for _, precision in of_clip]))
    found = judge(model, X, labels, ONE, (0,))
    assert found["clip_auc"] == pytest.approx(np.nanmean(aucs))
    assert found["clip_precision_at_3"] == pytest.approx(np.mean(precisions))
    alone = auc_per_tag(labels, model.predict_proba(X)).mean
    assert validation_score(model, X, labels, (0.0,), (0,)) == pytest.approx(alone)
    both = validation_score(model, X, labels, (0.0, ONE), (0,))
    assert both == pytest.approx((alone + found["clip_auc"]) / 2)
