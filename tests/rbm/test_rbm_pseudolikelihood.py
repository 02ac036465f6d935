"""Pseudo-likelihood: its logits, and its gradient by two other derivations."""

import enumeration as en
import jax
import numpy as np
import pytest

from harmonium.rbm import gradients
from harmonium.rbm.belief import GROUP, RATIO_LIMIT
from harmonium.rbm.model import Params, condition

N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS, B = 4, 5, 3, 6, 7
BOTH_FORMS = [pytest.param(1.0, id="ratio form"), pytest.param(8.0, id="log form")]

jitted = jax.jit(gradients.PseudoLikelihood())


def case(seed, scale):
    rng = np.random.default_rng(seed)
    model = en.random_model(rng, N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS, scale=scale)
    model.U[0, 0] = 1.5 * scale  # at scale 8 beyond the limit of the ratio form
    return model, en.random_batch(rng, B, N_TAGS, N_FEATURES, N_ROWS)


def no_noise(dtype=np.float32):
    return np.zeros((0, B, N_HIDDEN + N_TAGS), dtype)


def mean_loss(model, batch):
    losses = [
        -en.pseudo_likelihood_terms(model, u, a, y).sum()
        for u, a, y in zip(*batch[:3], strict=True)
    ]
    return np.average(losses, weights=batch.w)


@pytest.mark.parametrize("scale", BOTH_FORMS)
def test_the_gradient_is_that_of_finite_differences(scale):
    model, batch = case(0, scale)
    with jax.enable_x64(True):
        gradient, logits = jitted(Params(*model), batch, no_noise(float))
        proxy = gradients.log_probabilities(logits, batch)
    expected = en.gradient_by_differences(lambda m: mean_loss(m, batch), model)
    en.assert_close(gradient, expected, 1e-7)
    by_tag = sum(
        w * en.pseudo_likelihood_terms(model, u, a, y)
        for u, a, y, w in zip(*batch[:4], strict=True)
    )
    np.testing.assert_allclose(proxy, by_tag, rtol=1e-10)


def test_logits_are_those_of_the_two_states_of_a_tag():
    model, batch = case(3, 1.0)
    with jax.enable_x64(True):
        field = condition(Params(*model), batch.u, batch.a)
        logits = gradients.conditional_logits(field, batch.y)
        by_flips = gradients.flips_by_ratios(field, batch.y)
    for b in range(B):
        terms = en.pseudo_likelihood_terms(model, batch.u[b], batch.a[b], batch.y[b])
        p_on = np.where(batch.y[b] == 1, np.exp(terms), 1 - np.exp(terms))
        expected = np.log(p_on) - np.log1p(-p_on)
        np.testing.assert_allclose(logits[b], expected, atol=1e-9)
        np.testing.assert_allclose(by_flips[0][b], expected, atol=1e-9)
        c, _ = en.biases(model, batch.u[b], batch.a[b])
        for j in range(N_TAGS):
            y = batch.y[b].copy()
            y[j] = 1 - y[j]
            hidden = 1 / (1 + np.exp(-(c + model.U @ y)))
            np.testing.assert_allclose(by_flips[2][b, :, j], hidden, atol=1e-12)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_both_forms_at_the_limit_where_products_are_largest(sign):
    """Whole groups of the largest weight of one sign, and biases that saturate every unit."""
    n, C = 2 * GROUP, 3
    levels = np.array([-300.0, -30.0, -5.0, 0.0, 5.0, 30.0, 300.0])[:, None]
    y = en.random_tags(np.random.default_rng(4), len(levels), C)
    U = np.full((n, C), sign * RATIO_LIMIT)
    field = en.as_field(U, np.tile(levels, (1, n)), np.zeros((len(levels), C)))
    forms = gradients.flips_by_ratios, gradients.flips_by_logs
    one, other = (form(field, np.float32(y)) for form in forms)
    # logits of 16 units are sums of up to 160, whose float32 is 1.5e-5 wide
    np.testing.assert_allclose(one[0], other[0], rtol=1e-6, atol=2e-4)
    for hidden, expected in zip(one[1:], other[1:], strict=True):
        np.testing.assert_allclose(hidden, expected, rtol=0, atol=1e-6)


def test_the_gradient_is_right_for_weights_of_50():
    rng = np.random.default_rng(6)
    model = en.extreme_model(rng, N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS)
    _, batch = case(6, 1.0)
    terms = np.array(
        [en.pseudo_likelihood_terms(model, u, a, y) for u, a, y in zip(*batch[:3], strict=True)]
    )
    errors = -np.expm1(terms) * (1 - 2 * batch.y)  # p(y_j = 1 | y_\j) - y_j without cancellation
    with jax.enable_x64(True):
        gradient, _ = jitted(Params(*model), batch, no_noise(float))
    expected = np.average(errors, axis=0, weights=batch.w)
    np.testing.assert_allclose(gradient.d, expected, rtol=0, atol=1e-10)
    assert all(np.isfinite(array).all() for array in gradient)


def test_the_expected_pseudo_likelihood_gradient_with_unknown_tags():
    """The known tags' terms, averaged over completions drawn by clamped Gibbs sweeps."""
    rng = np.random.default_rng(8)
    model = en.random_model(rng, 2, 3, 2, 2)
    u, a, y = rng.normal(size=2), np.array([1], np.int32), np.array([1.0, np.nan, 0.0])
    noise, w = en.paths(model, u, a, y, 0, fill=1)  # one sweep, forced to all of its ends
    filled = 1 - noise[0, :, 2:]

    def loss(m):
        terms = (en.pseudo_likelihood_terms(m, u, a, tags)[[0, 2]].sum() for tags in filled)
        return -sum(weight * term for weight, term in zip(w, terms, strict=True))

    batch = gradients.Batch(*(np.tile(row, (len(w), 1)) for row in (u, a, y)), w)
    with jax.enable_x64(True):
        gradient, _ = jitted(Params(*model), batch, noise)
    en.assert_close(gradient, en.gradient_by_differences(loss, model), 1e-8)
