"""A stored model at work, by NumPy and by the estimator."""

import dataclasses

import numpy as np
import polars as pl
import pytest
import small_library

from harmonium import DiscriminativeRBM
from harmonium.errors import DataError, ModelFileError
from harmonium.estimators.model_files import from_bytes, to_bytes
from harmonium.library import tagger as module
from harmonium.library.tagger import Tagger, TagRBM, mean_field, tag_probabilities, unpack
from harmonium.rbm.inference import InferenceOptions, infer
from harmonium.rbm.model import Params


@pytest.fixture(scope="module")
def tagger():
    return Tagger(small_library.quick_model())


def random_rbm(rng, n_hidden, n_tags, size):
    return TagRBM(
        size * rng.normal(size=(n_hidden, n_tags)),
        rng.normal(size=n_hidden),
        rng.normal(size=n_tags),
    )


def by_jax(rbm, y):
    U, c, d = (array.astype(np.float32) for array in rbm)
    params = Params(U, np.zeros((len(c), 0), np.float32), np.zeros((0, len(d)), np.float32), c, d)
    none = np.zeros((1, 0), np.float32), np.zeros((1, 0), np.int32)
    return infer(params, *none, y[None].astype(np.float32), InferenceOptions())


def test_numpy_and_jax_agree():
    """Also where more damping is needed."""
    rng = np.random.default_rng(5)
    methods = set()
    for k in range(34):
        m = random_rbm(rng, 8, 8, 1.0 if k < 4 else 2.0)
        y = np.where(rng.random(8) < (0.3 if k < 4 else 0), rng.integers(0, 2, 8), np.nan)
        expected = by_jax(m, y)
        methods.add(str(expected.diagnostics.method[0]))
        np.testing.assert_allclose(
            tag_probabilities(m, y), expected.y[0], atol=2e-5 if k < 4 else 1e-4
        )
    assert methods == {"lbp", "lbp, damping 0.75"}


def test_what_never_converges_is_left_to_mean_field(monkeypatch):
    m = random_rbm(np.random.default_rng(7), 5, 4, 1.0)
    tried = []
    monkeypatch.setattr(module, "beliefs", lambda *args: tried.append(args))
    y = np.array([1.0, np.nan, np.nan, 0.0])
    found = tag_probabilities(m, y)
    assert [damping for _, _, damping, _ in tried] == [0.5, 0.75]
    np.testing.assert_array_equal(found[[0, 3]], [1, 0])
    expected = mean_field(m, np.zeros((1, 1)), y[None], 1000)[0]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_weights_of_any_size_give_probabilities():
    rng = np.random.default_rng(6)
    for size in (20.0, 100.0):
        p = tag_probabilities(random_rbm(rng, 6, 5, size), np.full(5, np.nan))
        assert np.all((p >= 0) & (p <= 1))


def test_one_hidden_unit_is_exact():
    m = TagRBM(np.array([[2.0, -1.0]]), np.array([0.3]), np.array([-0.5, 0.1]))
    y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    weight = np.exp(y @ m.d) * (1 + np.exp(y @ m.U[0] + m.c[0]))  # Σ over h
    fine = {"steps": 200, "tolerance": 1e-9}
    found = tag_probabilities(m, np.full(2, np.nan), **fine)
    np.testing.assert_allclose(found, weight @ y / weight.sum(), atol=1e-7)
    found = tag_probabilities(m, np.array([1.0, np.nan]), **fine)
    np.testing.assert_allclose(found, [1, weight[3] / weight[2:].sum()], atol=1e-7)


def test_mean_field_of_untied_units_is_exact():
    m = TagRBM(np.zeros((2, 3)), np.zeros(2), np.array([-1.0, 0.0, 2.0]))
    found = mean_field(m, np.zeros((1, 1)), np.full((1, 3), np.nan), 3)[0]
    np.testing.assert_allclose(found, 1 / (1 + np.exp([1.0, 0.0, -2.0])))


def test_numpy_takes_features_of_unit_norm_as_the_model_does():
    X, truth = small_library.world()
    model = DiscriminativeRBM(n_hidden=3, max_epochs=3, unit_norm=True, random_state=0)
    model.fit(X, pl.DataFrame(truth.astype(np.float32), schema=small_library.TAGS))
    stored = dataclasses.replace(
        small_library.quick_model(), bytes=model.to_bytes(), vocabulary=small_library.TAGS
    )
    X = X[:20].copy()
    X[0] = model._scaling.mean  # all zeros when scaled
    few = Tagger(stored).probabilities(X)
    np.testing.assert_allclose(few, model.predict_proba(X), atol=1e-4)


def test_features_of_another_kind_are_refused(tagger):
    with pytest.raises(DataError, match=r"must have 6 features, got the shape \(1, 7\)"):
        tagger.probabilities(np.zeros((1, 7), np.float32))


@pytest.mark.parametrize("name", ["params.U", "params.W", "params.c", "scaling.scale"])
@pytest.mark.parametrize("value", [np.nan, np.inf, None], ids=["NaN", "infinite", "missing"])
def test_a_model_with_numbers_that_are_none_is_refused(name, value):
    arrays, about = from_bytes(small_library.quick_model().bytes)
    array = arrays.pop(name)
    more = {} if value is None else {name: np.full_like(array, value)}
    with pytest.raises(ModelFileError, match=name):
        unpack(to_bytes(arrays | more, about))


@pytest.mark.parametrize("data", [b"", b"nonsense" * 10])
def test_a_damaged_model_says_so(data):
    with pytest.raises(ModelFileError, match="is damaged"):
        unpack(data)
