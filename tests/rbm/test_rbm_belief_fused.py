"""The GPU's kernel of belief propagation, run in Python, has the results of the other forms."""

import numpy as np
import pytest
from enumeration import as_params, random_model

from harmonium.rbm.belief import MAX_EDGES, belief_propagation, fits, fused
from harmonium.rbm.model import condition

N_HIDDEN, N_TAGS, N_FEATURES, N_CLIPS = 5, 7, 3, 4


def problem(scale, known):
    """A random model given its clips, and the tags that are known."""
    rng = np.random.default_rng(1)
    params = as_params(random_model(rng, N_HIDDEN, N_TAGS, N_FEATURES, scale=scale))
    u = rng.normal(size=(N_CLIPS, N_FEATURES)).astype(np.float32)
    y = np.full((N_CLIPS, N_TAGS), np.nan, np.float32)
    if known:
        y[0, 2], y[1, :3], y[2] = 1, 0, 1
    return condition(params, u, np.zeros((N_CLIPS, 0), np.int32)), y


@pytest.mark.parametrize("scale", [0.3, 2.0])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("steps", [3, 60])
def test_the_kernel_agrees(scale, known, steps):
    field, y = problem(scale, known)
    expected = belief_propagation(field, y, steps=steps, damping=0.5, tolerance=1e-6)
    found = fused(field, y, steps, 0.5, 1e-6, interpret=True)
    np.testing.assert_allclose(found.y, expected.y, atol=1e-6)
    np.testing.assert_allclose(found.h, expected.h, atol=1e-6)
    np.testing.assert_allclose(found.residual, expected.residual, atol=1e-5)
    assert found.pairs is None


@pytest.mark.parametrize("scale", [0.3, 2.0])
@pytest.mark.parametrize("known", [False, True])
def test_the_kernel_of_large_models_agrees_once_converged(monkeypatch, scale, known):
    field, y = problem(scale, known)
    expected = belief_propagation(field, y, steps=400, damping=0.5, tolerance=1e-6)
    monkeypatch.setattr("harmonium.rbm.belief.EDGES_WITH_BOTH", 0)
    found = fused(field, y, 400, 0.5, 1e-6, interpret=True)
    assert (found.residual <= 1e-6).all()
    np.testing.assert_allclose(found.y, expected.y, atol=2e-6)
    np.testing.assert_allclose(found.h, expected.h, atol=2e-6)
    first = fused(field, y, 1, 0.5, 1e-6, interpret=True)
    assert np.abs(first.y - expected.y).max() > 1e-3  # it was not there from the beginning


def test_weights_of_any_size_give_probabilities():
    params = as_params(random_model(np.random.default_rng(2), N_HIDDEN, N_TAGS, N_FEATURES))
    params = params._replace(U=params.U * 1000)
    field = condition(params, np.ones((2, N_FEATURES), np.float32), np.zeros((2, 0), np.int32))
    y = np.full((2, N_TAGS), np.nan, np.float32)
    found = fused(field, y, 40, 0.5, 1e-6, interpret=True)
    assert np.isfinite(found.y).all()
    assert ((found.y >= 0) & (found.y <= 1)).all()


def test_it_is_for_models_that_fit_a_gpu(monkeypatch):
    assert not fits(2, 2)
    monkeypatch.setattr("harmonium.rbm.belief.platform", lambda: "gpu")
    assert fits(100, 104)
    assert fits(200, 50)
    assert fits(200, 104)
    assert not fits(200, 174)
    assert MAX_EDGES == 256 * 128
