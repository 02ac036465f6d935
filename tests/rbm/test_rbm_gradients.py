"""Contrastive divergence, mean field and belief propagation as gradients of log p(y | u, a)."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from enumeration import (
    Model,
    biases,
    enumerated_log_likelihood,
    random_model,
    random_tags,
    single,
)
from finite_differences import assert_close, distance, evaluate, gradient_by_differences, jitted
from gibbs_paths import energy_slopes, expected_slopes, paths, sigmoid, slopes_after

from harmonium.rbm.gradients import (
    Batch,
    BeliefPropagation,
    ContrastiveDivergence,
    MeanField,
)
from harmonium.rbm.model import Params, condition, free_energy

B, N_FEATURES, N_ROWS = 7, 2, 3
NOTHING = np.zeros((0, B, 0))  # the noise of a gradient that samples nothing
TREES = [pytest.param(1, 4, id="one hidden unit"), pytest.param(4, 1, id="one tag")]


def case(seed, n, C, *, scale=1.0, unknown=0.0):
    """A model and a batch in float64, with weights of the clips that differ."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, n, C, N_FEATURES, N_ROWS, scale=scale)
    u, w = single(rng.normal(size=(B, N_FEATURES))), single(rng.uniform(0.5, 2, B))
    a = rng.integers(-1, N_ROWS, (B, 2)).astype(np.int32)
    return model, Batch(u, a, random_tags(rng, B, C, unknown=unknown), w)


def mean_loss(model, batch):
    """The weighted mean of -log p(known tags | u, a), by enumeration."""
    losses = [
        -enumerated_log_likelihood(model.U, *biases(model, u, a), y)
        for u, a, y in zip(*batch[:3], strict=True)
    ]
    return np.average(losses, weights=batch.w)


def exact_gradient(model, batch):
    return gradient_by_differences(lambda m: mean_loss(m, batch), model)


def one_clip(seed, *, unknown=()):
    """A tiny model and one clip: (model, u, a, y)."""
    model, batch = case(seed, 2, 3)
    y = batch.y[0].copy()
    y[list(unknown)] = np.nan
    return model, batch.u[0], batch.a[0], y


def expected_cd(model, u, a, y, steps, *, fill=0):
    """The expectation of the CD gradient over its noise: every path, weighted by probability.

    A number of 0 or 1 as noise forces a unit on or off, and the weights of a batch are free to
    choose, so that one batch of all paths gives the expectation without any sampling error.
    """
    noise, p = paths(model, u, a, y, steps, fill=fill)
    batch = Batch(*(np.tile(row, (len(p), 1)) for row in (u, a, y)), p)
    return evaluate(ContrastiveDivergence(steps), model, batch, noise)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_expected_cd_gradient_is_that_of_the_transition_matrix(steps):
    model, u, a, y = one_clip(0)
    expected = expected_slopes(model, u, a, y, steps)
    assert_close(expected_cd(model, u, a, y, steps), expected, 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_expected_cd_gradient_tends_to_the_exact_one(seed):
    model, u, a, y = one_clip(seed)
    exact = exact_gradient(model, Batch(u[None], a[None], y[None], np.ones(1)))
    errors = [distance(expected_slopes(model, u, a, y, 2**i), exact) for i in range(11)]
    assert errors[0] > 1e-3
    assert all(b < a or b < 1e-9 for a, b in pairwise(errors))
    assert errors[-1] < 1e-9


def test_the_code_itself_gets_closer_with_more_steps():
    model, u, a, y = one_clip(1)
    exact = exact_gradient(model, Batch(u[None], a[None], y[None], np.ones(1)))
    errors = [distance(expected_cd(model, u, a, y, steps), exact) for steps in (1, 2, 3)]
    assert errors[2] < errors[1] < errors[0]


@pytest.mark.parametrize("steps", [1, 3])
def test_cd_is_the_slope_of_a_difference_of_free_energies(steps):
    """F(y⁰) - F(y^K) with the end of the chain held constant, by automatic differentiation."""
    model, batch = case(2, 4, 5)
    noise = np.random.default_rng(2).random((steps, B, 9))
    end = batch.y
    for sweep in noise:
        c, d = (np.array(b) for b in zip(*map(biases, [model] * B, *batch[:2]), strict=True))
        h = (sweep[:, :4] < sigmoid(c + end @ model.U.T)).astype(float)
        end = (sweep[:, 4:] < sigmoid(d + h @ model.U)).astype(float)

    def loss(params):
        field = condition(params, batch.u, batch.a)
        difference = free_energy(field, batch.y) - free_energy(field, end)
        return jnp.sum(batch.w * difference) / jnp.sum(batch.w)

    with jax.enable_x64(True):
        expected = jax.jit(jax.grad(loss))(Params(*model))
    assert_close(evaluate(ContrastiveDivergence(steps), model, batch, noise), expected, 1e-12)


def algorithm_2(model, x, y, K, *, from_zero=False):
    """The paper's mean-field CD-K for one training pair: ∂U, ∂W, ∂c, ∂d."""
    h = sigmoid(model.c + model.W @ x + model.U @ y)
    y_k, h_k = y, sigmoid(model.c + model.W @ x) if from_zero else h
    for _ in range(K):
        y_k = sigmoid(model.d + model.U.T @ h_k)
        h_k = sigmoid(model.c + model.W @ x + model.U @ y_k)
    # ∂E(y⁰, x, ĥ⁰) - ∂E(y^K, x, ĥ^K), with ∂E/∂U = -hyᵀ and so on
    return np.outer(h_k, y_k) - np.outer(h, y), np.outer(h_k - h, x), h_k - h, y_k - y


@pytest.mark.parametrize("soft", [False, True], ids=["labels", "probabilities"])
@pytest.mark.parametrize("from_zero", [False, True])
@pytest.mark.parametrize("steps", [1, 4])
def test_mean_field_is_algorithm_2(steps, from_zero, soft):
    model, batch = case(3, 4, 5)
    batch = batch._replace(a=np.full_like(batch.a, -1))  # the paper's algorithm has no V
    if soft:
        batch = batch._replace(y=np.random.default_rng(3).random(batch.y.shape))
    gradient = evaluate(MeanField(steps, from_zero), model, batch, NOTHING)
    pairs = [
        algorithm_2(model, x, y, steps, from_zero=from_zero)
        for x, y in zip(batch.u, batch.y, strict=True)
    ]
    for i, name in enumerate("UWcd"):
        expected = np.average([pair[i] for pair in pairs], axis=0, weights=batch.w)
        np.testing.assert_allclose(getattr(gradient, name), expected, atol=1e-12, err_msg=name)


def test_mean_field_reaches_the_conditioning_of_the_tags():
    """∂V is ∂d of the clips that have the row, each as often as it has it."""
    model, batch = case(4, 4, 5)
    gradient = evaluate(MeanField(2), model, batch, NOTHING)
    expected = np.zeros_like(model.V)
    for b in range(B):
        c, d = biases(model, batch.u[b], batch.a[b])
        free = Model(model.U, np.zeros((4, 0)), model.V, c, d)
        slope = algorithm_2(free, np.zeros(0), batch.y[b], 2)[3]
        for row in batch.a[b][batch.a[b] >= 0]:
            expected[row] += batch.w[b] / batch.w.sum() * slope
    np.testing.assert_allclose(gradient.V, expected, atol=1e-12)


def test_mean_field_infers_unknown_tags():
    """With U = 0 the tags are independent: an unknown one has no part in the gradient."""
    model, batch = case(5, 4, 5, unknown=0.4)
    model = model._replace(U=np.zeros_like(model.U))
    gradient = evaluate(MeanField(2), model, batch, NOTHING)
    np.testing.assert_allclose(gradient.d, exact_gradient(model, batch).d, atol=1e-9)


@pytest.mark.parametrize("unknown", [0.0, 0.5])
@pytest.mark.parametrize(("n", "C"), TREES)
def test_belief_propagation_is_exact_on_trees(n, C, unknown):
    """With unknown tags too: the gradient of log p(known tags), the unknown ones summed out."""
    model, batch = case(6, n, C, unknown=unknown)
    gradient = evaluate(BeliefPropagation(60, 0.5), model, batch, NOTHING)
    assert_close(gradient, exact_gradient(model, batch), 1e-8)


def test_belief_propagation_is_exact_on_trees_in_float32():
    model, batch = case(7, 1, 4, scale=2.0, unknown=0.3)
    params = Params(*(np.float32(array) for array in model))
    single_batch = Batch(np.float32(batch.u), batch.a, np.float32(batch.y), np.float32(batch.w))
    noise = NOTHING.astype(np.float32)
    gradient, _ = jitted(BeliefPropagation(60, 0.5))(params, single_batch, noise)
    assert_close(gradient, exact_gradient(model, batch), 1e-5)


def test_the_printed_pairwise_marginal_is_wrong():
    """Without the (0, 0) term in its denominator, the gradient for U is far from the exact one.

    The rarer the tags, the more of the probability is in (0, 0), and the larger the error.
    """
    model, batch = case(8, 1, 4)
    model = model._replace(U=np.ones((1, 4)), c=np.zeros(1), d=np.full(4, -1.0))
    exact = exact_gradient(model, batch).U
    printed, corrected = np.zeros_like(exact), np.zeros_like(exact)
    for b, share in enumerate(batch.w / batch.w.sum()):
        c, d = biases(model, batch.u[b], batch.a[b])
        # one hidden unit: a tag's other messages are none, the hidden unit's are exact at once
        up = np.log1p(np.expm1(model.U[0]) * sigmoid(d))
        n01, n10 = d, c + up.sum() - up
        n11 = model.U[0] + n10 + n01
        others = np.exp(n11) + np.exp(n01) + np.exp(n10)
        positive = sigmoid(c + model.U @ batch.y[b]) * batch.y[b]
        printed += share * (np.exp(n11) / others - positive)
        corrected += share * (np.exp(n11) / (1 + others) - positive)
    gradient = evaluate(BeliefPropagation(60, 0.5), model, batch, NOTHING)
    np.testing.assert_allclose(corrected, exact, atol=1e-8)
    np.testing.assert_allclose(gradient.U, exact, atol=1e-8)
    assert (np.abs(printed - exact) > 0.02).all()


def test_cd_fills_the_unknown_tags_by_the_chain_with_the_known_ones_clamped():
    model, u, a, y = one_clip(9, unknown=[1])
    expected = expected_slopes(model, u, a, y, 1, fill=1)
    assert_close(expected_cd(model, u, a, y, 1, fill=1), expected, 1e-12)
    zeros = np.nan_to_num(y)
    assert distance(expected_cd(model, u, a, zeros, 1), expected) > 0.05


@pytest.mark.parametrize("seed", range(3))
def test_filling_leads_to_the_gradient_of_the_known_tags_and_zeros_do_not(seed):
    """Five sweeps, as in training, and a long chain: close to the exact gradient, unlike zeros."""
    model, u, a, y = one_clip(seed, unknown=[0, 2])
    exact = exact_gradient(model, Batch(u[None], a[None], y[None], np.ones(1)))
    filled = distance(expected_slopes(model, u, a, y, 1000, fill=5), exact)
    zeros = distance(expected_slopes(model, u, a, np.nan_to_num(y), 1000), exact)
    assert filled < 0.05 * zeros
    assert distance(expected_slopes(model, u, a, y, 1000, fill=1000), exact) < 1e-8


def test_slopes_of_the_energy_are_those_of_finite_differences():
    """The brute force of this file is itself checked: -∂F/∂θ at one y."""
    model, u, a, y = one_clip(10)

    def minus_free_energy(m):
        c, d = biases(m, u, a)
        return float(d @ y + np.logaddexp(0, c + m.U @ y).sum())

    expected = gradient_by_differences(minus_free_energy, model)
    for one, other in zip(energy_slopes(model, u, a, y), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
    start = np.eye(8)[int(y @ 2 ** np.arange(3))]
    for one, other in zip(
        slopes_after(model, u, a, start), energy_slopes(model, u, a, y), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-15)
