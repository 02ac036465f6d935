"""What researchers expect of an estimator: callbacks, spread, and scikit-learn's tools."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from tagging_data import quick

import harmonium
from harmonium import GenerativeRBM, LogisticTagger, MLPTagger, TagRBM
from harmonium.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore:Training ended")
FEW = {"max_epochs": 3, "random_state": 0}


def multi(**changes):
    return quick(training="multi_prediction", **changes)


# Callbacks


@pytest.mark.parametrize("n_models", [1, 2])
def test_a_callback_sees_every_epoch(n_models, train):
    seen = []
    model = quick(max_epochs=4, n_models=n_models, callback=seen.append).fit(*train)
    assert [epoch.number for epoch in seen] == [1, 2, 3, 4]
    assert [epoch.log_likelihood for epoch in seen] == model.history_["log_likelihood"]
    np.testing.assert_allclose([epoch.score for epoch in seen], model.history_["auc"], atol=1e-6)
    assert all(epoch.seconds > 0 for epoch in seen)


def test_a_callback_ends_the_training_without_a_warning(train):
    model = quick(max_epochs=50, callback=lambda epoch: epoch.number == 3).fit(*train)
    assert model.n_iter_ == 3
    same = quick(max_epochs=3).fit(*train)
    np.testing.assert_array_equal(model.predict_proba(train.X), same.predict_proba(train.X))


def test_a_clone_calls_its_callback(train):
    seen = []

    def note(epoch):
        seen.append(epoch.number)

    clone(quick(max_epochs=2, callback=note)).fit(*train).partial_fit(*train)
    assert seen == [1, 2, 1]


def test_a_saved_model_leaves_its_callback_out(train, tmp_path):
    model = quick(max_epochs=2, callback=lambda _: None).fit(*train)
    model.save(tmp_path / "model.safetensors")
    loaded = harmonium.load(tmp_path / "model.safetensors")
    assert loaded.callback is None


def test_the_rbm_of_tags_calls_its_callback(train):
    seen = []

    def note(epoch):
        seen.append(epoch.number)

    tags = TagRBM(n_hidden=3, max_epochs=2, callback=note).fit(train.Y)
    assert tags.n_iter_ == 2
    assert seen == [1, 2]


# The spread of the members


def test_the_spread_is_that_of_the_members(train):
    model = quick(max_epochs=4, n_models=3, calibrate=True).fit(*train)
    members = [member.predict_proba(train.X) for member in model._members()]
    expected = np.std(members, axis=0, ddof=1)
    np.testing.assert_allclose(model.predict_std(train.X), expected, atol=1e-6)
    assert model.predict_std(train.X).max() > 0.01
    with pytest.raises(DataError, match="n_models"):
        quick(max_epochs=1).fit(*train).predict_std(train.X)


def test_fewer_clips_leave_a_larger_spread(train):
    settings = {"max_epochs": 30, "n_models": 4, "l2": 0.01}
    few = MLPTagger(8, learning_rate=0.02, random_state=0, **settings)
    many = clone(few).fit(*train).predict_std(train.X).mean()
    assert few.fit(train.X[:60], train.Y[:60]).predict_std(train.X).mean() > 1.2 * many


# scikit-learn's tools, with all of these


def test_a_grid_search_in_a_pipeline_of_sparse_words(train):
    words = sparse.csr_matrix(np.maximum(train.X.round(), 0))
    Y = train.Y.copy()
    Y[::7, 0] = np.nan
    pipe = make_pipeline(TfidfTransformer(), multi(max_epochs=3))
    settings = {
        "discriminativerbm__class_weight": [None, {0: 1, 1: 3}],
        "discriminativerbm__decisions": ["prevalence", "f1"],
    }
    search = GridSearchCV(pipe, settings, cv=KFold(2))
    weight = np.arange(len(Y)) % 3
    search.fit(words, Y, discriminativerbm__sample_weight=weight)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(words).shape == Y.shape
    best = search.best_estimator_[-1]
    assert best.importances(search.best_estimator_[:-1].transform(words), 0).features.any()


def test_metadata_routing_passes_groups_beside_weights(train):
    groups = np.arange(len(train.X)) // 5
    weight = np.ones(len(train.X))
    weight[::2] = 0
    with sklearn.config_context(enable_metadata_routing=True):
        model = quick(max_epochs=2, n_models=2)
        model.set_fit_request(sample_weight=True, groups=True)
        model.set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"l2": [0.0, 0.1]}, cv=KFold(2))
        search.fit(*train, sample_weight=weight, groups=groups)
    folds = search.best_estimator_.folds_
    assert all(len(np.unique(folds[groups == group])) == 1 for group in np.unique(groups))


@pytest.mark.parametrize("model", [multi(max_epochs=2), LogisticTagger(**FEW)])
def test_warm_start_goes_on_with_weighted_sparse_clips(model, train):
    table = sparse.csr_matrix(train.X)
    weight = np.arange(len(train.X)) % 2
    warm = clone(model).set_params(warm_start=True, class_weight={1: 2}, decisions="f1")
    warm.fit(table, train.Y, sample_weight=weight)
    epochs = warm.n_iter_
    first = warm.predict_proba(table)
    warm.fit(table, train.Y, sample_weight=weight)
    assert warm.n_iter_ == 2 * epochs
    assert np.abs(warm.predict_proba(table) - first).max() > 1e-4
    warm.partial_fit(train.X, train.Y, sample_weight=weight)
    assert warm.n_iter_ == 2 * epochs + 1
    fresh = clone(warm).fit(table, train.Y, sample_weight=weight)
    np.testing.assert_array_equal(fresh.predict_proba(table), first)


def test_set_output_names_hidden_units(train):
    model = GenerativeRBM(4, inference="mean_field", **FEW).set_output(transform="pandas")
    frame = model.fit(train.X, train.Y, sample_weight=np.ones(len(train.X))).transform(train.X)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == [f"generativerbm{k}" for k in range(4)]
    of_sparse = model.set_output(transform="default").transform(sparse.csr_matrix(train.X))
    np.testing.assert_allclose(of_sparse, frame, atol=1e-6)
