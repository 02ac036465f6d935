"""Loopy belief propagation: exact on trees, in both forms, and honest about convergence."""

from functools import partial

import jax
import numpy as np
import pytest
from enumeration import (
    as_field,
    enumerate_clip,
    extreme_model,
    random_model,
    random_tags,
    single,
)

from harmonium.rbm.belief import (
    GROUP,
    LOG,
    RATIO,
    RATIO_LIMIT,
    _propagate,
    belief_propagation,
    odds,
    sum_logs,
)
from harmonium.rbm.inference import mean_field

FORMS = [pytest.param(RATIO, id="ratio"), pytest.param(LOG, id="log")]
TREES = [pytest.param(1, 6, id="one hidden unit"), pytest.param(6, 1, id="one tag")]
B = 6  # clips, in every test: programs are compiled once per shape
NAN = np.nan


@partial(jax.jit, static_argnames=("form",))
def propagate(form, field, y, damping, steps):
    """One form, chosen by the test and not by the size of the weights."""
    return _propagate(form, field, y, steps, damping, 0.0, True)


@jax.jit
def lbp(field, y, damping, steps, tolerance):
    return belief_propagation(
        field, y, steps=steps, damping=damping, tolerance=tolerance, pairs=True
    )


def case(rng, n, C, scale, *, unknown=1.0):
    """U, c (B, n), d (B, C) and y (B, C), of which the first row is wholly unknown."""
    model = random_model(rng, n, C, scale=scale)
    c, d = single(rng.normal(0, scale, (B, n))), single(rng.normal(0, scale, (B, C)))
    y = random_tags(rng, B, C, unknown=unknown)
    y[0] = NAN
    return np.clip(model.U, -RATIO_LIMIT, RATIO_LIMIT), c, d, y


def assert_exact(beliefs, U, c, d, y, tolerance):
    for b in range(B):
        truth = enumerate_clip(U, c[b], d[b], y[b])
        np.testing.assert_allclose(beliefs.y[b], truth.y, rtol=0, atol=tolerance)
        np.testing.assert_allclose(beliefs.h[b], truth.h, rtol=0, atol=tolerance)
        np.testing.assert_allclose(beliefs.pairs[:, :, b], truth.pairs, rtol=0, atol=tolerance)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("n", "C"), TREES)
def test_exact_on_trees_in_float32(form, n, C):
    rng = np.random.default_rng(0)
    for scale in (0.3, 1.0, 3.0):
        for unknown in (1.0, 0.5):
            U, c, d, y = case(rng, n, C, scale, unknown=unknown)
            field = as_field(U, c, d)
            beliefs = propagate(form, field, np.float32(y), np.float32(0.5), 100)
            assert_exact(beliefs, U, c, d, y, 1e-5)


@pytest.mark.parametrize(("n", "C"), TREES)
def test_exact_on_trees_with_weights_of_50_in_float64(n, C):
    """In float64, so that the comparison is of the maths and not of the rounding of 300 - 300."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        model = extreme_model(rng, n, C)
        c, d = 50.0 * rng.choice([-1.0, 0.0, 1.0], (B, n)), 50.0 * rng.normal(size=(B, C))
        y = random_tags(rng, B, C, unknown=0.7)
        with jax.enable_x64(True):
            beliefs = lbp(as_field(model.U, c, d, float), y, 0.0, 50, 0.0)
        assert_exact(beliefs, model.U, c, d, y, 1e-10)


def test_known_tags_come_back_and_their_pairs_are_those_of_the_hidden_units():
    rng = np.random.default_rng(2)
    U, c, d, y = case(rng, 5, 6, 1.0, unknown=0.5)
    beliefs = lbp(as_field(U, c, d), np.float32(y), np.float32(0.5), 50, np.float32(0))
    known = ~np.isnan(y)
    np.testing.assert_array_equal(np.asarray(beliefs.y)[known], y[known])
    for b, j in np.argwhere(known):
        np.testing.assert_allclose(beliefs.pairs[:, j, b], y[b, j] * beliefs.h[b], atol=1e-7)


def test_both_forms_share_their_fixed_points():
    rng = np.random.default_rng(3)
    for scale in (0.3, 1.0):
        U, c, d, y = case(rng, 5, 6, scale, unknown=0.7)
        field = as_field(U, c, d)
        one, other = (
            propagate(form, field, np.float32(y), np.float32(0.5), 200) for form in (RATIO, LOG)
        )
        np.testing.assert_allclose(one.y, other.y, rtol=0, atol=2e-6)
        np.testing.assert_allclose(one.h, other.h, rtol=0, atol=2e-6)
        np.testing.assert_allclose(one.pairs, other.pairs, rtol=0, atol=2e-6)


def test_fixed_points_do_not_depend_on_damping():
    rng = np.random.default_rng(4)
    with jax.enable_x64(True):
        for _ in range(5):
            U, c, d, y = case(rng, 5, 6, 0.7)
            field = as_field(U, c, d, float)
            ends = [lbp(field, y, damping, 1000, 1e-13) for damping in (0.0, 0.3, 0.8)]
            for end in ends:
                np.testing.assert_allclose(end.residual, 0, atol=1e-12)
                np.testing.assert_allclose(end.y, ends[0].y, rtol=0, atol=1e-10)
                np.testing.assert_allclose(end.h, ends[0].h, rtol=0, atol=1e-10)


def paper_messages(U, c, d, damping, steps):
    """Algorithm 3 of the paper, message by message, for one clip; gives p(y_j = 1), p(h_k = 1)."""
    n, C = U.shape
    up, down = np.zeros((n, C)), np.zeros((n, C))

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    for _ in range(steps):
        old = up.copy()
        for k in range(n):
            for j in range(C):
                cavity = c[k] + sum(old[k, i] for i in range(C) if i != j)
                new = np.log(1 + (np.exp(U[k, j]) - 1) * sigmoid(cavity))
                down[k, j] = damping * down[k, j] + (1 - damping) * new
        for k in range(n):
            for j in range(C):
                cavity = d[j] + sum(down[i, j] for i in range(n) if i != k)
                new = np.log(1 + (np.exp(U[k, j]) - 1) * sigmoid(cavity))
                up[k, j] = damping * up[k, j] + (1 - damping) * new
    return sigmoid(d + down.sum(0)), sigmoid(c + up.sum(1))


def test_the_log_form_takes_the_papers_path():
    """Algorithm 3 step by step, not only its fixed point."""
    U, c, d, y = case(np.random.default_rng(5), 5, 6, 1.0)
    with jax.enable_x64(True):
        for steps in (1, 2, 7):
            beliefs = propagate(LOG, as_field(U, c, d, float), np.full_like(y, NAN), 0.4, steps)
            for b in range(B):
                p_y, p_h = paper_messages(U, c[b], d[b], 0.4, steps)
                np.testing.assert_allclose(beliefs.y[b], p_y, rtol=0, atol=1e-12)
                np.testing.assert_allclose(beliefs.h[b], p_h, rtol=0, atol=1e-12)


def test_closer_to_the_truth_than_mean_field():
    rng = np.random.default_rng(6)
    by_mean_field = jax.jit(partial(mean_field, steps=200))
    for scale in (0.5, 1.0, 2.0):
        errors = []
        for _ in range(20):
            U, c, d, y = case(rng, 5, 6, scale)
            truth = np.array([enumerate_clip(U, c[b], d[b], y[b]).y for b in range(B)])
            field, y = as_field(U, c, d), np.float32(y)
            lbp_y = lbp(field, y, np.float32(0.5), 200, np.float32(0)).y
            errors.append([np.abs(p - truth).mean() for p in (lbp_y, by_mean_field(field, y).y)])
        by_lbp, by_field = np.mean(errors, axis=0)
        assert by_lbp < 0.25 * by_field


@pytest.mark.parametrize("factor", [1 - 1e-6, 1 + 1e-6], ids=["below", "above"])
@pytest.mark.parametrize(("n", "C"), TREES)
def test_exact_on_both_sides_of_the_ratio_limit(factor, n, C):
    rng = np.random.default_rng(7)
    for _ in range(5):
        U, c, d, y = case(rng, n, C, 3.0, unknown=0.7)
        U = single(U * (RATIO_LIMIT * factor / np.abs(U).max()))
        assert (np.abs(U).max() > RATIO_LIMIT) == (factor > 1)
        beliefs = lbp(as_field(U, c, d), np.float32(y), np.float32(0.5), 200, np.float32(0))
        assert_exact(beliefs, U, c, d, y, 1e-5)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_both_forms_at_the_limit_where_products_are_largest(sign):
    """Whole groups of the largest weight of one sign, and biases that saturate every unit."""
    n, C = 2 * GROUP, GROUP
    U = np.full((n, C), sign * RATIO_LIMIT)
    levels = np.array([-200.0, -20.0, -1.0, 0.0, 20.0, 200.0])[:, None]
    c, d = np.tile(levels, (1, n)), np.tile(levels[::-1], (1, C))
    field, y = as_field(U, c, d), np.full((B, C), NAN, np.float32)
    one, other = (propagate(form, field, y, np.float32(0.9), 400) for form in (RATIO, LOG))
    for beliefs in (one, other):
        assert all(np.isfinite(array).all() for array in beliefs)
    converged = (one.residual < 1e-6) & (other.residual < 1e-6)
    assert converged.sum() >= 4
    np.testing.assert_allclose(one.y[converged], other.y[converged], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("weight", "n_tags", "hidden", "tags"),
    [
        pytest.param(10.0, 3, -20.0, 3.0, id="the hidden unit moves first"),
        pytest.param(-9.9, 1, 9.9, 9.9, id="damping hides a saturated tag"),
        pytest.param(-19.0, 1, 19.0, 19.0, id="the same in log form"),
    ],
)
def test_a_unit_that_still_moves_is_not_converged(weight, n_tags, hidden, tags):
    """Marginals that hardly change at first, because a unit is saturated, far from the truth.

    One hidden unit tied to ``n_tags`` of six tags; the others are not tied to anything.
    """
    tied = np.arange(6) < n_tags
    U, d = np.where(tied, weight, 0.0)[None], np.where(tied, tags, 0.0)
    c, d, y = np.full((B, 1), hidden), np.tile(d, (B, 1)), np.full((B, 6), NAN)
    beliefs = lbp(as_field(U, c, d), np.float32(y), np.float32(0.5), 500, np.float32(1e-3))
    assert (beliefs.residual <= 1e-3).all()
    assert_exact(beliefs, U, c, d, y, 2e-3)


def test_a_converged_clip_stops_whatever_its_neighbours_do():
    rng = np.random.default_rng(8)
    U, c, d, y = case(rng, 5, 6, 1.0)
    y, tolerance = np.float32(y), np.float32(1e-3)
    together = lbp(as_field(U, c, d), y, np.float32(0.5), 100, tolerance)
    assert (together.residual <= 1e-3).all()
    for b in range(B):
        same = [b] * B
        alone = lbp(as_field(U, c[same], d[same]), y[same], np.float32(0.5), 100, tolerance)
        np.testing.assert_array_equal(alone.y[0], together.y[b])
        np.testing.assert_array_equal(alone.residual[0], together.residual[b])


def test_log_of_a_product_of_groups_and_odds():
    r = np.exp(np.random.default_rng(9).uniform(-10, 10, (3, 2 * GROUP, 4)))
    expected = np.log(r).sum(axis=1)
    np.testing.assert_allclose(sum_logs(np.float32(r), 1), expected, rtol=1e-5, atol=1e-4)
    x = np.array([-200.0, -3.0, 0.0, 3.0, 200.0], np.float32)
    t, s = odds(x)
    np.testing.assert_allclose(t / (t + s), 1 / (1 + np.exp(-x.astype(float))), atol=1e-7)
    assert np.maximum(t, s).max() <= 1
