"""Exact inference against the sum over all states of tags and hidden units."""

import jax
import numpy as np
import pytest
from enumeration import (
    as_field,
    as_params,
    enumerate_clip,
    enumerate_clips,
    enumerated_log_likelihood,
    extreme_model,
    random_model,
    random_tags,
)

from harmonium.rbm.inference import InferenceOptions, exact, infer, log_likelihood

EXACT = InferenceOptions(method="exact")
jitted, jitted_log_likelihood = jax.jit(exact), jax.jit(log_likelihood)
# (hidden units, tags): enumerated over the hidden units, over the tags, and at the smallest sizes
SHAPES = [(10, 12), (10, 8), (1, 12), (10, 1), (1, 1)]


def models(rng, n, C):
    yield from (random_model(rng, n, C, D=3, A=4, scale=scale) for scale in (0.3, 1.0, 3.0))
    yield extreme_model(rng, n, C, D=3, A=4)


def clips(rng, C):
    """One clip without known tags, two with a random half known, one with all known."""
    u = np.float32(rng.normal(size=(4, 3))).astype(np.float64)
    a = rng.integers(-1, 4, (4, 2)).astype(np.int32)
    y = random_tags(rng, 4, C, unknown=0.5)
    y[0] = np.nan
    y[3] = random_tags(rng, 1, C)[0]
    return u, a, y


@pytest.mark.parametrize(("n", "C"), SHAPES)
def test_marginals_are_right_to_1e_6_with_any_tags_known(n, C):
    rng = np.random.default_rng(n * C)
    for model in models(rng, n, C):
        u, a, y = clips(rng, C)
        result = infer(as_params(model), np.float32(u), a, np.float32(y), EXACT)
        assert result.y.dtype == result.h.dtype == np.float32
        truth = enumerate_clips(model, u, a, y)
        np.testing.assert_allclose(result.y, [t.y for t in truth], rtol=0, atol=1e-6)
        np.testing.assert_allclose(result.h, [t.h for t in truth], rtol=0, atol=1e-6)
        known = ~np.isnan(y)
        np.testing.assert_array_equal(result.y[known], y[known])
        assert (result.diagnostics.method == "exact").all()
        assert result.diagnostics.converged.all()


@pytest.mark.parametrize(("n", "C"), [(6, 8), (8, 6)])
def test_log_z_and_log_likelihood_in_float64(n, C):
    rng = np.random.default_rng(7)
    for model in models(rng, n, C):
        c, d = np.tile(model.c, (4, 1)), np.tile(model.d, (4, 1))
        y = clips(rng, C)[2]
        full = random_tags(rng, 4, C)
        with jax.enable_x64(True):
            field = as_field(model.U, c, d, float)
            log_z = jitted(field, y).log_z
            log_p = jitted_log_likelihood(field, full)
        truth = [enumerate_clip(model.U, model.c, model.d, row).log_z for row in y]
        np.testing.assert_allclose(log_z, truth, rtol=1e-12, atol=1e-12)
        truth = [enumerated_log_likelihood(model.U, model.c, model.d, row) for row in full]
        np.testing.assert_allclose(log_p, truth, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_more_states_than_one_block(scale):
    """2^11 states of the smaller side stream in two blocks, whatever their order of magnitude."""
    rng = np.random.default_rng(11)
    model = random_model(rng, 11, 11, scale=scale)
    c, d = np.tile(model.c, (2, 1)), np.tile(model.d, (2, 1))
    # the last tag tells the blocks apart: make the first block the heavier, and then the second
    y = np.full((2, 11), np.nan)
    off, on = (np.append(y[0, :10], last) for last in (0.0, 1.0))
    log_z_off, log_z_on = (enumerate_clip(model.U, c[0], d[0], row).log_z for row in (off, on))
    d[:, 10] += np.array([-1.0, 1.0]) + log_z_off - log_z_on
    y[1, :3] = 1.0
    with jax.enable_x64(True):
        result = jitted(as_field(model.U, c, d, float), y)
    for b in range(2):
        truth = enumerate_clip(model.U, c[b], d[b], y[b])
        np.testing.assert_allclose(result.y[b], truth.y, rtol=0, atol=1e-10)
        np.testing.assert_allclose(result.h[b], truth.h, rtol=0, atol=1e-10)
        np.testing.assert_allclose(result.log_z[b], truth.log_z, rtol=1e-12)
