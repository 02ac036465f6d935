"""Sparse features give the model that the same features give as an array, in less memory."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from tagging_data import quick

from harmonium.errors import DataError
from harmonium.estimators import (
    ChainTagger,
    CooccurrenceTagger,
    DiscriminativeRBM,
    GenerativeRBM,
    LogisticTagger,
    MLPTagger,
    NaiveBayesTagger,
    SVMTagger,
)
from harmonium.estimators.scaling import scaling_of, standardising

N, D, C = 90, 30, 3
EPOCHS = {"max_epochs": 4, "random_state": 0}
MODELS = [
    DiscriminativeRBM(6, n_models=2, **EPOCHS),
    DiscriminativeRBM(6, n_models=1, scale_features="standard", **EPOCHS),
    DiscriminativeRBM(6, n_models=1, scale_features="quantile", unit_norm=True, **EPOCHS),
    GenerativeRBM(6, scale_features="idf", **EPOCHS),
    MLPTagger(6, n_models=2, **EPOCHS),
    LogisticTagger(scale_features="none", **EPOCHS),
    LogisticTagger(solver="newton"),
    ChainTagger(2, random_state=0),
    SVMTagger(random_state=0),
    CooccurrenceTagger(),
    NaiveBayesTagger(),
]


@pytest.fixture(scope="module")
def words():
    rng = np.random.default_rng(0)
    X = (rng.random((N, D)) < 0.15) * rng.integers(1, 4, (N, D)).astype(float)
    X[:, 7] = 0
    Y = (X[:, :C] + rng.random((N, C)) > 0.8).astype(float)
    Y[::9, 1] = np.nan
    return X, Y


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("harmonium.estimators.tables.SPARSE_BLOCK", 20 * D)


@pytest.mark.filterwarnings("ignore:Training ended")
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_model_is_that_of_the_array(model, form, words):
    X, Y = words
    of_array = model.fit(X, Y, sample_weight=np.arange(N) % 3)
    scores = of_array.decision_function(X)
    decisions = of_array.predict(X)
    of_sparse = model.fit(form(X), Y, sample_weight=np.arange(N) % 3)
    samples = isinstance(model, GenerativeRBM)  # a draw may change with the last bit
    tolerance = 0.05 if samples else 1e-3
    np.testing.assert_allclose(of_sparse.decision_function(form(X)), scores, atol=tolerance)
    np.testing.assert_allclose(of_sparse.decision_function(X), scores, atol=tolerance)
    assert np.mean(of_sparse.predict(form(X)) == decisions) > (0.9 if samples else 0.99)
    assert of_sparse.score(form(X), Y) == pytest.approx(of_sparse.score(X, Y), abs=tolerance)


@pytest.fixture(scope="module")
def fitted_to_sparse(words):
    X, Y = words
    return quick(max_epochs=3, n_models=2).fit(sparse.csr_matrix(X), Y)


@pytest.mark.filterwarnings("ignore:Training ended")
def test_completion_of_sparse_clips(words, fitted_to_sparse):
    X, _ = words
    np.testing.assert_allclose(
        fitted_to_sparse.complete(sparse.csr_matrix(X), {0: 1}),
        fitted_to_sparse.complete(X, {0: 1}),
        atol=1e-5,
    )


@pytest.mark.filterwarnings("ignore:Training ended")
def test_marginals_of_sparse_clips(words, fitted_to_sparse):
    X, Y = words
    of_sparse = fitted_to_sparse.infer(sparse.csr_matrix(X), Y)
    of_array = fitted_to_sparse.infer(X, Y)
    np.testing.assert_allclose(of_sparse.h, of_array.h, atol=1e-5)
    assert (of_sparse.diagnostics.method == of_array.diagnostics.method).all()


@pytest.mark.filterwarnings("ignore:Training ended")
def test_joint_decisions_about_sparse_clips(words, fitted_to_sparse):
    X, _ = words
    joint = fitted_to_sparse.predict_joint(sparse.csr_matrix(X))
    np.testing.assert_array_equal(joint, fitted_to_sparse.predict_joint(X))


@pytest.mark.filterwarnings("ignore:Training ended")
def test_sparse_validation_clips(words):
    X, Y = words
    model = LogisticTagger(**EPOCHS).fit(X, Y, (X, np.nan_to_num(Y)))
    P = model.predict_proba(X)
    table = sparse.csr_matrix(X)
    again = model.fit(table, Y, (table, np.nan_to_num(Y)))
    np.testing.assert_allclose(again.predict_proba(X), P, atol=1e-4)


@pytest.mark.filterwarnings("ignore:Training ended")
def test_partial_fit_to_sparse_clips(words):
    X, Y = words
    table = sparse.csr_matrix(X)
    one_pass = LogisticTagger(random_state=0).partial_fit(table, Y).predict_proba(X)
    expected = LogisticTagger(random_state=0).partial_fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(one_pass, expected, atol=1e-4)


@pytest.mark.parametrize("kind", ["auto", "standard", "quantile", "idf", "none"])
@pytest.mark.parametrize("shift", [0.0, -1.0])
def test_the_scaling_is_that_of_the_array(kind, shift, words):
    X = words[0] + shift * (words[0] > 1)
    weights = np.arange(N) % 4.0
    of_array = scaling_of(X, kind, weights)
    of_sparse = scaling_of(sparse.csr_matrix(X), kind, weights)
    for expected, actual in zip(of_array, of_sparse, strict=True):
        if expected is not None:
            np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


def test_the_variance_of_sparse_features_does_not_cancel():
    X = np.zeros((50, 2))
    X[:, 0] = 1e6 + np.arange(50) * 1e-3
    X[:5, 1] = 1e-20
    expected = standardising(X)
    actual = standardising(sparse.csr_matrix(X))
    np.testing.assert_allclose(actual.scale, expected.scale, rtol=1e-4)
    np.testing.assert_allclose(actual.mean, expected.mean, rtol=1e-12)


@pytest.mark.parametrize(
    "model", [LogisticTagger(solver="newton", scale_features="none"), NaiveBayesTagger()]
)
def test_a_model_that_needs_all_clips_refuses_a_table_too_large_to_be_an_array(model):
    X = sparse.csr_matrix((100_000, 10_000))
    Y = np.zeros((100_000, 2))
    with pytest.raises(DataError, match=r"3\.7 GiB.*solver='gradient'"):
        clone(model).fit(X, Y)


LARGE_FIT = """
import resource, sys
import numpy as np
from scipy import sparse
from harmonium import DiscriminativeRBM

n, d, kind = 20_000, 5_000, sys.argv[1]
rng = np.random.default_rng(0)
X = sparse.random(n, d, 0.001, "csr", rng=rng)
X.data[:] = 1
Y = (X[:, :3].toarray() + (rng.random((n, 3)) < 0.1) > 0).astype(np.float32)
model = DiscriminativeRBM(
    8, max_epochs=1, batch_size=500, n_models=2, random_state=0, scale_features=kind
)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
P = model.fit(X, Y).predict_proba(X)
assert P.shape == (n, 3) and np.isfinite(P).all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before)
"""


@pytest.mark.parametrize("kind", ["auto", "standard"])
@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units")
def test_a_sparse_table_is_never_an_array(kind):
    """20,000 x 5,000 numbers would take 381 MiB in single precision, and 763 in double."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LARGE_FIT, kind],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 380 * 2**20


# NaN in X


@pytest.mark.parametrize("model", [quick(max_epochs=2), SVMTagger(), NaiveBayesTagger()])
def test_missing_features_are_refused_with_a_way_out(model, words):
    X, Y = words
    holed = X.copy()
    holed[3, 4] = holed[5, 6] = np.nan
    way_out = (
        rf"X contains NaN in 2 of 2,700.*make_pipeline\(SimpleImputer\(\), {type(model).__name__}"
    )
    with pytest.raises(DataError, match=way_out):
        model.fit(holed, Y)
    with pytest.raises(DataError, match=way_out):
        model.fit(sparse.csr_matrix(holed), Y)
    model.fit(X, Y)
    with pytest.raises(DataError, match=way_out):
        model.predict(holed)


@pytest.mark.filterwarnings("ignore:Training ended")
def test_the_way_out_of_missing_features_works(words):
    X, Y = words
    holed = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    pipe = make_pipeline(SimpleImputer(), quick(max_epochs=2)).fit(holed, Y)
    assert np.isfinite(pipe.predict_proba(holed)).all()
