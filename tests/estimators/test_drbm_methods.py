"""Every way to train and to infer, completion, and unknown labels, on data of known models."""

import numpy as np
import pytest
from scipy.special import expit
from tagging_data import N_TAGS, altered, draw, easy_model, quick, tag_distribution

from harmonium import DiscriminativeRBM, GenerativeRBM, TagSmoother
from harmonium.estimators.calibration import half_observed
from harmonium.estimators.inference import stored_inference
from harmonium.evaluation import auc_per_tag

TRAINING = ["cd", "pcd", "mean_field", "lbp", "pl", "exact", "multi_prediction"]
INFERENCE = ["lbp", "mean_field", "gibbs", "exact"]


@pytest.fixture(scope="module")
def by_training(train, held_out):
    models = {way: quick(training=way, max_epochs=30) for way in TRAINING}
    return {way: model.fit(*train, eval_set=held_out) for way, model in models.items()}


@pytest.fixture(scope="module")
def paired(paired_train, paired_test):
    """A model of tags that go in pairs; inference="exact"."""
    model = quick(training="pl", max_epochs=30).fit(*paired_train, eval_set=paired_test)
    return model.set_params(inference="exact")


@pytest.mark.parametrize("inference", INFERENCE)
@pytest.mark.parametrize("training", TRAINING)
def test_every_way_to_train_with_every_way_to_infer(by_training, training, inference):
    new = draw(easy_model(), 200, seed=3)
    model = altered(by_training[training], inference=inference)
    P = model.predict_proba(new.X)
    assert P.dtype == np.float32
    assert ((P >= 0) & (P <= 1)).all()
    assert model.score(*new) > 0.9


@pytest.mark.parametrize("training", TRAINING)
def test_all_ways_to_train_learn_the_same_model(by_training, training):
    new = draw(easy_model(), 200, seed=3)
    P = altered(by_training[training], inference="exact").predict_proba(new.X)
    reference = altered(by_training["pl"], inference="exact").predict_proba(new.X)
    assert np.corrcoef(P.ravel(), reference.ravel())[0, 1] > 0.9


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_multi_prediction_learns_from_tags_of_one_another(paired_train, paired_test, weight):
    model = quick(training="multi_prediction", likelihood_weight=weight, max_epochs=60)
    model.fit(*paired_train, eval_set=paired_test)
    observed = paired_test.Y.copy()
    observed[:, ::2] = np.nan  # one of each pair
    answers = model.predict_proba(paired_test.X), model.complete(paired_test.X, observed)
    alone, helped = (auc_per_tag(paired_test.Y[:, ::2], P[:, ::2]).mean for P in answers)
    assert helped > alone + 0.1


def test_multi_prediction_stops_on_two_questions(train, held_out):
    """Without observed tags, and with half of them."""
    model = quick(training="multi_prediction", tolerance=1e-2, max_epochs=4)
    model.fit(*train, eval_set=held_out)
    observed = half_observed(held_out.Y)
    asked = np.where(np.isnan(observed), held_out.Y, np.nan)
    alone = auc_per_tag(held_out.Y, model.predict_proba(held_out.X)).mean
    helped = auc_per_tag(asked, model.complete(held_out.X, observed)).mean
    assert max(model.history_["auc"]) == pytest.approx((alone + helped) / 2, abs=1e-6)


def test_exact_completion_is_the_enumeration_given_the_known_tags(paired, paired_test):
    known = paired_test.Y.copy()
    known[:, 0] = known[:, 3] = np.nan
    states, p = tag_distribution(paired.params_, paired_test.X)
    agrees = (states[None, :, 1:3] == known[:, None, 1:3]).all(axis=2)  # (N, 2^C)
    p = p * agrees
    expected = (p / p.sum(axis=1, keepdims=True)) @ states
    np.testing.assert_allclose(paired.complete(paired_test.X, known), expected, rtol=0, atol=2e-6)


def every_other_known(Y):
    known = Y.copy()
    known[:, ::2] = np.nan
    return known


@pytest.mark.parametrize("inference", INFERENCE)
def test_completion_gives_known_tags_back(paired, paired_test, inference):
    X, Y = paired_test
    completed = altered(paired, inference=inference).complete(X, every_other_known(Y))
    np.testing.assert_array_equal(completed[:, 1::2], Y[:, 1::2])


@pytest.mark.parametrize("inference", INFERENCE)
def test_known_tags_tell_of_the_others(paired, paired_test, inference):
    model = altered(paired, inference=inference)
    X, Y = paired_test
    without = model.predict_proba(X)
    with_known = model.complete(X, every_other_known(Y))
    aucs = [auc_per_tag(Y[:, ::2], P[:, ::2]).mean for P in (without, with_known)]
    assert aucs[1] > aucs[0] + 0.1


@pytest.mark.parametrize("inference", INFERENCE)
def test_completion_without_known_tags_is_prediction(paired, paired_test, inference):
    model = altered(paired, inference=inference)
    X, Y = paired_test
    predicted = model.predict_proba(X)
    np.testing.assert_array_equal(model.complete(X, np.full_like(Y, np.nan)), predicted)
    np.testing.assert_array_equal(model.infer(X).y, predicted)


@pytest.mark.parametrize("inference", INFERENCE)
def test_with_all_tags_known_the_hidden_units_follow_from_raw_features(paired, train, inference):
    """params_ undoes the scaling: σ(c + Wx + Uy) with x as given, whatever its units."""
    units, offsets = np.array([1e6, 1e-6, 1, 1, 30, 0.1]), np.array([0, 0, 1e4, -1e4, 5, 1])
    X = train.X * units + offsets
    model = quick(max_epochs=3, inference=inference).fit(X, train.Y)
    X, Y = X[:200], train.Y[:200]
    inferred = model.infer(X, Y)
    U, W, _, c, _ = model.params_
    expected = expit(c + X @ W.T + Y @ U.T)
    np.testing.assert_allclose(inferred.h, expected, rtol=0, atol=5e-6)
    np.testing.assert_array_equal(inferred.y, Y)


@pytest.mark.parametrize("training", TRAINING)
def test_unknown_labels_are_not_absent_labels(train, held_out, training):
    """Labels go missing the more, the larger feature 0 is, which speaks for tag 0."""
    rng = np.random.default_rng(0)
    unknown = rng.random((300, N_TAGS)) < expit(4 * train.X[:, :1])
    assert 0.4 < unknown.mean() < 0.6
    Y = np.where(unknown, np.nan, train.Y)
    left_out, as_zeros = (
        quick(training=training, max_epochs=30).fit(train.X, labels, eval_set=held_out)
        for labels in (Y, np.nan_to_num(Y))
    )
    assert left_out.score(*held_out) > as_zeros.score(*held_out) + 0.1


@pytest.mark.parametrize(
    ("settings", "chosen"),
    [
        ({}, ("mean_field", 3)),
        ({"training_steps": 7}, ("mean_field", 7)),
        ({"training_steps": 7, "inference_steps": 4}, ("mean_field", 4)),
        ({"inference": "lbp"}, ("lbp", 20)),
        ({"training": "cd"}, ("lbp", 20)),
        ({"training": "exact"}, ("exact", 20)),
        ({"training": "exact", "inference": "lbp"}, ("lbp", 20)),
        ({"training": "cd", "training_steps": 10, "inference": "mean_field"}, ("mean_field", 20)),
    ],
)
def test_mean_field_with_the_steps_of_training_where_these_were_trained(settings, chosen):
    assert stored_inference(DiscriminativeRBM(**settings).get_params()) == chosen


@pytest.mark.parametrize("model", [GenerativeRBM(), TagSmoother()])
def test_other_models_propagate_beliefs(model):
    assert stored_inference(model.get_params()) == ("lbp", 20)


def test_predictions_are_those_of_as_many_mean_field_steps(train):
    model = DiscriminativeRBM(5, max_epochs=5, random_state=0).fit(*train)
    named = model.predict_proba(train.X)
    model.set_params(inference="mean_field", inference_steps=3)
    np.testing.assert_array_equal(model.predict_proba(train.X), named)
    model.set_params(inference_steps=1)
    assert np.abs(model.predict_proba(train.X) - named).max() > 1e-4


class TestThePenaltyOnU:
    @staticmethod
    def params(train, l2_tags):
        settings = {"max_epochs": 20, "validation_fraction": 0.0, "random_state": 0, "l2": 0.1}
        return DiscriminativeRBM(5, l2_tags=l2_tags, **settings).fit(*train).params_

    def test_shrinks_u(self, train):
        weak, strong = (self.params(train, l2).U for l2 in (0.0, 3.0))
        assert np.linalg.norm(strong) < 0.5 * np.linalg.norm(weak)

    def test_does_not_shrink_w(self, train):
        weak, strong = (self.params(train, l2).W for l2 in (0.0, 3.0))
        assert np.linalg.norm(strong) > 0.8 * np.linalg.norm(weak)

    def test_is_that_of_w_by_default(self, train):
        same, none = (self.params(train, l2).U for l2 in (0.1, None))
        np.testing.assert_array_equal(same, none)
