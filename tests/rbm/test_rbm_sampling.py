"""Mean field: its equations and its bound. Block Gibbs: its transitions and its limit."""

from functools import partial

import enumeration as en
import jax
import numpy as np
import pytest

from harmonium.rbm.inference import fill_unknown, gibbs, gibbs_sweep, mean_field

N_HIDDEN, N_TAGS, B = 4, 5, 8
NAN = np.nan

jitted_mean_field = jax.jit(mean_field)


def case(seed, scale, *, unknown=1.0):
    rng = np.random.default_rng(seed)
    U = en.random_model(rng, N_HIDDEN, N_TAGS, scale=scale).U
    c = en.single(rng.normal(0, scale, (B, N_HIDDEN)))
    d = en.single(rng.normal(0, scale, (B, N_TAGS)))
    return U, c, d, en.random_tags(rng, B, N_TAGS, unknown=unknown)


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
def test_the_fixed_point_of_mean_field_satisfies_its_equations(scale):
    U, c, d, y = case(1, scale, unknown=0.7)
    with jax.enable_x64(True):
        estimate = jitted_mean_field(en.as_field(U, c, d, float), y, steps=5000)
    np.testing.assert_allclose(estimate.residual, 0, atol=1e-10)
    tags, hidden = np.asarray(estimate.y), np.asarray(estimate.h)
    np.testing.assert_allclose(hidden, en.sigmoid(c + tags @ U.T), atol=1e-8)
    known = ~np.isnan(y)
    np.testing.assert_allclose(tags[~known], en.sigmoid(d + hidden @ U)[~known], atol=1e-8)
    np.testing.assert_array_equal(tags[known], y[known])


def test_a_gibbs_sweep_compares_its_noise_with_the_conditionals():
    U, c, d, y = case(4, 1.0, unknown=0.0)
    noise = np.random.default_rng(4).random((B, N_HIDDEN + N_TAGS))
    with jax.enable_x64(True):
        new, h = map(np.asarray, gibbs_sweep(en.as_field(U, c, d, float), y, noise))
    np.testing.assert_array_equal(h, noise[:, :N_HIDDEN] < en.sigmoid(c + y @ U.T))
    np.testing.assert_array_equal(new, noise[:, N_HIDDEN:] < en.sigmoid(d + h @ U))


def test_unknown_tags_are_drawn_from_their_conditional_distribution():
    """After many sweeps every completion has its probability given the known tags, to 5 σ."""
    n_draws, known = 20_000, np.array([1.0, NAN, 0.0, NAN, NAN])
    U, c, d, _ = case(5, 1.0)
    noise = np.random.default_rng(5).random((12, n_draws, N_HIDDEN + N_TAGS), np.float32)
    rows = np.zeros(n_draws, int)
    y = np.tile(known, (n_draws, 1))
    drawn = np.asarray(fill_unknown(en.as_field(U, c[rows], d[rows]), np.float32(y), noise))
    np.testing.assert_array_equal(drawn[:, [0, 2]], y[:, [0, 2]])
    completions = en.agreeing(known)
    weights = np.exp(-en.energies(U, c[0], d[0], completions)).sum(axis=0)
    p = weights / weights.sum()
    counts = np.array([(drawn == row).all(axis=1).sum() for row in completions])
    assert counts.sum() == n_draws
    assert (np.abs(counts / n_draws - p) <= 5 * np.sqrt(p * (1 - p) / n_draws)).all()


def test_long_gibbs_runs_converge_to_the_truth():
    U, c, d, y = case(6, 1.0, unknown=0.8)
    y[0] = NAN
    field, y = en.as_field(U, c, d), np.float32(y)
    truth = [en.enumerate_clip(U, c[b], d[b], y[b].astype(float)) for b in range(B)]
    p_y, p_h = np.array([t.y for t in truth]), np.array([t.h for t in truth])
    errors = {}
    for steps in (16, 4096):
        run = jax.jit(partial(gibbs, steps=steps))
        estimate = run(jax.random.key(0), field, y)
        errors[steps] = [np.abs(estimate.y - p_y).mean(), np.abs(estimate.h - p_h).mean()]
    # 256 times the sweeps: 16 times the precision, and less of the start
    assert (np.array(errors[4096]) < np.array(errors[16]) / 6).all()
    assert max(errors[4096]) < 0.005


def test_the_residual_of_gibbs_is_its_standard_error():
    """The spread of the estimates of independent runs, for the tag with the largest."""
    U, c, d, y = case(8, 1.0)
    run = jax.jit(partial(gibbs, steps=16))
    keys = jax.random.split(jax.random.key(8), 100)
    estimates = [run(key, en.as_field(U, c, d), np.float32(y)) for key in keys]
    spread = np.std([e.y for e in estimates], axis=0, ddof=1).max(axis=1)  # (B,)
    reported = np.mean([e.residual for e in estimates], axis=0)
    # the largest of five estimated errors is a little above the largest error
    ratio = reported / spread
    assert ((ratio > 0.8) & (ratio < 1.7)).all()


@pytest.mark.parametrize("steps", [1, 4, 5, 11])
def test_every_sweep_that_gibbs_counts_counts_once(steps):
    """Without weights each sweep gives the exact probabilities, and so must their mean."""
    U, c, d, y = case(7, 1.0)
    estimate = gibbs(jax.random.key(0), en.as_field(0 * U, c, d), y, steps=steps)
    np.testing.assert_allclose(estimate.y, en.sigmoid(d), rtol=1e-6)
    np.testing.assert_allclose(estimate.h, en.sigmoid(c), rtol=1e-6)
    np.testing.assert_allclose(estimate.residual, 0, atol=1e-6)
