"""Loopy belief propagation: exact on trees, in all forms, and honest about convergence."""

from functools import partial

import enumeration as en
import jax
import numpy as np
import pytest

from harmonium.rbm import belief
from harmonium.rbm.model import condition

FORMS = [pytest.param(belief.RATIO, id="ratio"), pytest.param(belief.LOG, id="log")]
TREES = [pytest.param(1, 6, id="one hidden unit"), pytest.param(6, 1, id="one tag")]
B = 6  # clips, in every test: programs are compiled once per shape
NAN = np.nan


@partial(jax.jit, static_argnames=("form",))
def propagate(form, field, y, damping, steps):
    """One form, chosen by the test and not by the size of the weights."""
    return belief._propagate(form, field, y, steps, damping, 0.0, True)


@jax.jit
def lbp(field, y, damping, steps, tolerance):
    return belief.belief_propagation(
        field, y, steps=steps, damping=damping, tolerance=tolerance, pairs=True
    )


def case(rng, n, C, scale, *, unknown=1.0):
    """U, c (B, n), d (B, C) and y (B, C), of which the first row is wholly unknown."""
    model = en.random_model(rng, n, C, scale=scale)
    c, d = en.single(rng.normal(0, scale, (B, n))), en.single(rng.normal(0, scale, (B, C)))
    y = en.random_tags(rng, B, C, unknown=unknown)
    y[0] = NAN
    return np.clip(model.U, -belief.RATIO_LIMIT, belief.RATIO_LIMIT), c, d, y


def assert_exact(beliefs, U, c, d, y, tolerance):
    for b in range(B):
        truth = en.enumerate_clip(U, c[b], d[b], y[b])
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
            field = en.as_field(U, c, d)
            beliefs = propagate(form, field, np.float32(y), np.float32(0.5), 100)
            assert_exact(beliefs, U, c, d, y, 1e-5)


@pytest.mark.parametrize(("n", "C"), TREES)
def test_exact_on_trees_with_weights_of_50_in_float64(n, C):
    """In float64, so that the comparison is of the maths and not of the rounding of 300 - 300."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        model = en.extreme_model(rng, n, C)
        c, d = 50.0 * rng.choice([-1.0, 0.0, 1.0], (B, n)), 50.0 * rng.normal(size=(B, C))
        y = en.random_tags(rng, B, C, unknown=0.7)
        with jax.enable_x64(True):
            beliefs = lbp(en.as_field(model.U, c, d, float), y, 0.0, 50, 0.0)
        assert_exact(beliefs, model.U, c, d, y, 1e-10)


def test_both_forms_share_their_fixed_points():
    rng = np.random.default_rng(3)
    for scale in (0.3, 1.0):
        U, c, d, y = case(rng, 5, 6, scale, unknown=0.7)
        field = en.as_field(U, c, d)
        one, other = (
            propagate(form, field, np.float32(y), np.float32(0.5), 200)
            for form in (belief.RATIO, belief.LOG)
        )
        np.testing.assert_allclose(one.y, other.y, rtol=0, atol=2e-6)
        np.testing.assert_allclose(one.h, other.h, rtol=0, atol=2e-6)
        np.testing.assert_allclose(one.pairs, other.pairs, rtol=0, atol=2e-6)


def paper_messages(U, c, d, damping, steps):
    """Algorithm 3 of the paper, message by message, for one clip; gives p(y_j = 1), p(h_k = 1)."""
    n, C = U.shape
    up, down = np.zeros((n, C)), np.zeros((n, C))
    for _ in range(steps):
        old = up.copy()
        for k in range(n):
            for j in range(C):
                cavity = c[k] + sum(old[k, i] for i in range(C) if i != j)
                new = np.log(1 + (np.exp(U[k, j]) - 1) * en.sigmoid(cavity))
                down[k, j] = damping * down[k, j] + (1 - damping) * new
        for k in range(n):
            for j in range(C):
                cavity = d[j] + sum(down[i, j] for i in range(n) if i != k)
                new = np.log(1 + (np.exp(U[k, j]) - 1) * en.sigmoid(cavity))
                up[k, j] = damping * up[k, j] + (1 - damping) * new
    return en.sigmoid(d + down.sum(0)), en.sigmoid(c + up.sum(1))


PAPERS = [
    pytest.param(belief.LOG, id="log"),
    pytest.param(belief.RATIO_IN_LOGS, id="ratio, damped in logs"),
]


@pytest.mark.parametrize("form", PAPERS)
def test_damping_in_logs_takes_the_papers_path(form):
    """Algorithm 3 step by step, not only its fixed point."""
    U, c, d, y = case(np.random.default_rng(5), 5, 6, 1.0)
    with jax.enable_x64(True):
        for steps in (1, 2, 7):
            field = en.as_field(U, c, d, float)
            beliefs = propagate(form, field, np.full_like(y, NAN), 0.4, steps)
            for b in range(B):
                p_y, p_h = paper_messages(U, c[b], d[b], 0.4, steps)
                np.testing.assert_allclose(beliefs.y[b], p_y, rtol=0, atol=1e-12)
                np.testing.assert_allclose(beliefs.h[b], p_h, rtol=0, atol=1e-12)


def test_ratios_damped_as_they_are_take_another_path():
    U, c, d, y = case(np.random.default_rng(5), 5, 6, 1.0)
    field, clips = en.as_field(U, c, d), np.full_like(y, NAN, np.float32)
    options = {"steps": 7, "damping": 0.9, "pairs": True}
    plain, logs, in_logs = (
        belief.belief_propagation(field, clips, **options, **chosen)
        for chosen in ({}, {"logs": True}, {"damp_logs": True})
    )
    assert np.abs(plain.y - logs.y).max() > 0.01
    np.testing.assert_allclose(in_logs.y, logs.y, atol=2e-6)
    np.testing.assert_allclose(in_logs.pairs, logs.pairs, atol=2e-6)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_both_forms_at_the_limit_where_products_are_largest(sign):
    """Whole groups of the largest weight of one sign, and biases that saturate every unit."""
    n, C = 2 * belief.GROUP, belief.GROUP
    U = np.full((n, C), sign * belief.RATIO_LIMIT)
    levels = np.array([-200.0, -20.0, -1.0, 0.0, 20.0, 200.0])[:, None]
    c, d = np.tile(levels, (1, n)), np.tile(levels[::-1], (1, C))
    field, y = en.as_field(U, c, d), np.full((B, C), NAN, np.float32)
    one, other = (
        propagate(form, field, y, np.float32(0.9), 400) for form in (belief.RATIO, belief.LOG)
    )
    for beliefs in (one, other):
        assert all(np.isfinite(array).all() for array in beliefs[:4])
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
    beliefs = lbp(en.as_field(U, c, d), np.float32(y), np.float32(0.5), 500, np.float32(1e-3))
    assert (beliefs.residual <= 1e-3).all()
    assert_exact(beliefs, U, c, d, y, 2e-3)


N_HIDDEN, N_TAGS, N_FEATURES, N_CLIPS = 5, 7, 3, 4


def problem(scale, known):
    """A random model given its clips, and the tags that are known."""
    rng = np.random.default_rng(1)
    params = en.as_params(en.random_model(rng, N_HIDDEN, N_TAGS, N_FEATURES, scale=scale))
    u = rng.normal(size=(N_CLIPS, N_FEATURES)).astype(np.float32)
    y = np.full((N_CLIPS, N_TAGS), np.nan, np.float32)
    if known:
        y[0, 2], y[1, :3], y[2] = 1, 0, 1
    return condition(params, u, np.zeros((N_CLIPS, 0), np.int32)), y


@pytest.mark.parametrize("scale", [0.3, 2.0])
@pytest.mark.parametrize("known", [False, True])
def test_the_kernel_agrees_after_each_number_of_steps(scale, known):
    field, y = problem(scale, known)
    for steps in (3, 60):
        expected = belief.belief_propagation(field, y, steps=steps, damping=0.5, tolerance=1e-6)
        found = belief.fused(field, y, steps, 0.5, 1e-6, interpret=True)
        np.testing.assert_allclose(found.y, expected.y, atol=1e-6)
        np.testing.assert_allclose(found.h, expected.h, atol=1e-6)
        np.testing.assert_allclose(found.residual, expected.residual, atol=1e-5)
        assert found.pairs is None


@pytest.mark.parametrize("scale", [0.3, 2.0])
@pytest.mark.parametrize("known", [False, True])
def test_the_kernel_of_large_models_agrees_once_converged(monkeypatch, scale, known):
    field, y = problem(scale, known)
    expected = belief.belief_propagation(field, y, steps=400, damping=0.5, tolerance=1e-6)
    monkeypatch.setattr("harmonium.rbm.belief.EDGES_WITH_BOTH", 0)
    found = belief.fused(field, y, 400, 0.5, 1e-6, interpret=True)
    assert (found.residual <= 1e-6).all()
    np.testing.assert_allclose(found.y, expected.y, atol=2e-6)
    np.testing.assert_allclose(found.h, expected.h, atol=2e-6)
    first = belief.fused(field, y, 1, 0.5, 1e-6, interpret=True)
    assert np.abs(first.y - expected.y).max() > 1e-3  # it was not there from the beginning


def test_weights_of_any_size_give_probabilities():
    params = en.as_params(en.random_model(np.random.default_rng(2), N_HIDDEN, N_TAGS, N_FEATURES))
    params = params._replace(U=params.U * 1000)
    field = condition(params, np.ones((2, N_FEATURES), np.float32), np.zeros((2, 0), np.int32))
    y = np.full((2, N_TAGS), np.nan, np.float32)
    found = belief.fused(field, y, 40, 0.5, 1e-6, interpret=True)
    assert np.isfinite(found.y).all()
    assert ((found.y >= 0) & (found.y <= 1)).all()
