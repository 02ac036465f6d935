"""Energy, free energy, conditionals, conditioning and clamping against sums over every state."""

import enumeration as en
import jax
import numpy as np
import pytest

from harmonium.rbm import model as rbm

N_HIDDEN, N_TAGS, N_CLIPS = 3, 4, 5
NAN = np.nan


@pytest.fixture(params=[0.3, 3.0])
def clips(request):
    """U, c (B, n), d (B, C) in float64, and random y and h."""
    rng = np.random.default_rng(1)
    model = en.random_model(rng, N_HIDDEN, N_TAGS, scale=request.param)
    c = model.c + rng.normal(size=(N_CLIPS, N_HIDDEN))
    d = model.d + rng.normal(size=(N_CLIPS, N_TAGS))
    y = en.random_tags(rng, N_CLIPS, N_TAGS)
    h = rng.integers(0, 2, (N_CLIPS, N_HIDDEN)).astype(np.float64)
    return model.U, c, d, y, h


def energy_by_loops(U, c, d, y, h):
    total = 0.0
    for k in range(len(h)):
        total -= c[k] * h[k]
        for j in range(len(y)):
            total -= h[k] * U[k, j] * y[j]
    return total - sum(d[j] * y[j] for j in range(len(y)))


def test_energy_is_the_double_sum(clips):
    U, c, d, y, h = clips
    expected = [energy_by_loops(U, c[b], d[b], y[b], h[b]) for b in range(N_CLIPS)]
    with jax.enable_x64(True):
        field = en.as_field(U, c, d, float)
        np.testing.assert_allclose(rbm.energy(field, y, h), expected, rtol=1e-12)


def test_free_energy_sums_the_hidden_units_out(clips):
    U, c, d, y, _ = clips
    expected = [-en.log_sum(-en.energies(U, c[b], d[b], y[b : b + 1])) for b in range(N_CLIPS)]
    with jax.enable_x64(True):
        field = en.as_field(U, c, d, float)
        np.testing.assert_allclose(rbm.free_energy(field, y), expected, rtol=1e-12)


def test_conditionals_are_ratios_of_sums_over_states(clips):
    U, c, d, y, h = clips
    with jax.enable_x64(True):
        field = en.as_field(U, c, d, float)
        hidden, tags = rbm.hidden_given_tags(field, y), rbm.tags_given_hidden(field, h)
    every = en.states(N_TAGS)
    for b in range(N_CLIPS):
        p_h = en.enumerate_clip(U, c[b], d[b], y[b]).h  # every tag known: p(h | y)
        np.testing.assert_allclose(hidden[b], p_h, atol=1e-12)
        row = np.flatnonzero((en.states(N_HIDDEN) == h[b]).all(axis=1))[0]
        weights = np.exp(-en.energies(U, c[b], d[b], every)[row])
        np.testing.assert_allclose(tags[b], weights @ every / weights.sum(), atol=1e-12)


def test_one_hot_parts_look_up_what_the_dense_product_computes():
    rng = np.random.default_rng(2)
    model = en.random_model(rng, N_HIDDEN, N_TAGS, D=6, A=9)
    u = rng.normal(size=(N_CLIPS, 6))
    a = rng.integers(0, 9, (N_CLIPS, 3))
    a[0] = [4, 4, 1]  # a row twice counts twice
    a[1] = [-1, 2, -7]  # negative: an empty part
    a[2] = -1
    field = rbm.condition(en.as_params(model), u.astype(np.float32), a.astype(np.int32))
    for b in range(N_CLIPS):
        c, d = en.biases(model, u[b], a[b])
        np.testing.assert_allclose(field.c[b], c, atol=1e-5)
        np.testing.assert_allclose(field.d[b], d, atol=1e-5)
    np.testing.assert_array_equal(field.d[2], en.as_params(model).d)


def test_clamping_gives_the_rbm_of_the_unknown_tags(clips):
    """exp(-F) of the clamped RBM is proportional to p(y_unknown | y_known), and 0 elsewhere."""
    U, c, d, y, _ = clips
    y[:, 1:3] = NAN
    with jax.enable_x64(True):
        free = rbm.clamp(en.as_field(U, c, d, float), y)
        for b in range(N_CLIPS):
            rest = en.states(N_TAGS)
            one = en.as_field(U, np.tile(free.c[b], (16, 1)), np.tile(free.d[b], (16, 1)), float)
            weights = np.exp(-rbm.free_energy(one, rest))
            assert (weights[(rest[:, [0, 3]] == 1).any(axis=1)] == 0).all()
            marginals = rbm.unclamp((weights @ rest / weights.sum())[None], y[b : b + 1])
            np.testing.assert_allclose(marginals[0], en.enumerate_clip(U, c[b], d[b], y[b]).y)
