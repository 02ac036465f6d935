"""Importances: the gradient through the unrolled steps, against finite differences."""

import numpy as np
import pytest
from scipy import sparse
from tagging_data import quick

from harmonium.errors import DataError
from harmonium.estimators import GenerativeRBM, LogisticTagger, MLPTagger

FEW = {"max_epochs": 5, "random_state": 0}
MODELS = [
    quick(training="multi_prediction", n_models=2, max_epochs=8, learning_rate=0.1),
    quick(training="multi_prediction", training_steps=1, max_epochs=8, scale_features="quantile"),
    quick(inference_steps=6, max_epochs=8, unit_norm=True),
    GenerativeRBM(6, inference="mean_field", calibrate=False, **FEW),
    MLPTagger(6, n_models=2, calibrate=False, learning_rate=0.1, **FEW),
    LogisticTagger(calibrate=False, learning_rate=0.1, **FEW),
]


def log_odds(model, X, known, tag):
    """Of scaled features, in double precision."""
    architecture = model._architecture()
    of_members = []
    for params in model._member_params():
        p = architecture.probabilities(params, X, known)[:, tag].astype(np.float64)
        of_members.append(np.log(p) - np.log1p(-p))
    return np.mean(of_members, axis=0)


@pytest.mark.filterwarnings("ignore:Training ended")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_they_are_the_slopes_times_the_differences(model, train):
    model.fit(*train)
    raw = train.X[:5]
    X = model._features(raw)
    completes = hasattr(model, "complete")
    known = np.full((5, 4), np.nan, np.float32)
    if completes:
        known[:, 1] = [0, 1, 1, 0, np.nan]
        known[:, 3] = 1
    tag = model.tags_[0]
    found = model.importances(raw, tag, known if completes else None)
    assert found.features.shape == X.shape
    assert found.tags.shape == known.shape

    def slope(change, by):
        up, down = (log_odds(model, *change(sign * by), 0) for sign in (1, -1))
        return (up - down) / (2 * by)

    for j in range(X.shape[1]):
        direction = np.eye(X.shape[1], dtype=np.float32)[j]
        expected = slope(lambda by, d=direction: (X + np.float32(by) * d, known), 0.02) * X[:, j]
        np.testing.assert_allclose(found.features[:, j], expected, atol=5e-3)
    assert np.abs(found.features).max() > 0.02
    if not completes:
        assert not found.tags.any()
        return
    alone = model._probabilities(model._member_params(), X)
    for k in (1, 3):
        direction = np.eye(4, dtype=np.float32)[k]
        expected = slope(lambda by, d=direction: (X, known + np.float32(by) * d), 0.02)
        expected = np.nan_to_num(expected * (known - alone)[:, k])
        np.testing.assert_allclose(found.tags[:, k], expected, atol=5e-3)
    assert (found.tags[:, [0, 2]] == 0).all()
    assert found.tags[4, 1] == 0


@pytest.fixture
def of_tag_1(train):
    """A model, clips whose tag 2 is known, and the importances for tag 1."""
    model = quick(training="multi_prediction", max_epochs=5).fit(*train)
    X = train.X[:6]
    told = np.full((6, 4), np.nan)
    told[:, 2] = 1
    return model, X, told, model.importances(X, 1, told)


@pytest.mark.filterwarnings("ignore:Training ended")
def test_the_tag_itself_does_not_count(of_tag_1):
    model, X, told, expected = of_tag_1
    told[:, 1] = 0
    found = model.importances(X, 1, told)
    np.testing.assert_allclose(found.features, expected.features, atol=1e-6)
    np.testing.assert_allclose(found.tags, expected.tags, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Training ended")
def test_sparse_clips_have_the_same_importances(of_tag_1):
    model, X, told, expected = of_tag_1
    found = model.importances(sparse.csr_matrix(X), 1, told)
    np.testing.assert_allclose(found.features, expected.features, atol=1e-6)
    np.testing.assert_allclose(found.tags, expected.tags, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Training ended")
def test_a_feature_that_makes_a_tag_is_its_most_important(train):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    Y = (X[:, [4, 1]] + 0.3 * rng.normal(size=(400, 2)) > 0).astype(float)
    Y = np.column_stack([Y, np.where(rng.random(400) < 0.9, Y[:, 0], 1 - Y[:, 0])])
    model = quick(training="multi_prediction", max_epochs=60, learning_rate=0.05).fit(X, Y)
    mean = np.abs(model.importances(X, 0).features).mean(axis=0)
    assert mean.argmax() == 4
    known = np.full(Y.shape, np.nan)
    known[:, 1:] = Y[:, 1:]
    by_tag = np.abs(model.importances(X, 0, known).tags).mean(axis=0)
    assert by_tag.argmax() == 2


def test_importances_by_other_ways_to_predict_are_refused(train):
    model = quick(inference="lbp", max_epochs=1, validation_fraction=0).fit(*train)
    with pytest.raises(DataError, match="inference='mean_field'"):
        model.importances(train.X, 0)


def test_importances_for_an_unknown_tag_are_refused(train):
    model = quick(inference="lbp", max_epochs=1, validation_fraction=0).fit(*train)
    with pytest.raises(DataError, match="no tag 'sad'"):
        model.importances(train.X, "sad")
