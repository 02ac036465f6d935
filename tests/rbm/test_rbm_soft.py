"""Soft targets: the bound that the RBMs descend, and the drawn tags of the pseudo-likelihood."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from enumeration import (
    Model,
    biases,
    enumerate_clip,
    enumerated_log_likelihood,
    pseudo_likelihood_terms,
    random_model,
    states,
)
from finite_differences import assert_close, distance, evaluate, gradient_by_differences, jitted
from gibbs_paths import bernoulli, energy_slopes, paths, sigmoid, slopes_after, transitions

from harmonium.rbm.gradients import (
    Batch,
    BeliefPropagation,
    ContrastiveDivergence,
    DrawnTags,
    MeanField,
    PseudoLikelihood,
    draw_tags,
    for_soft_targets,
    log_probabilities,
)
from harmonium.rbm.model import Params
from harmonium.rbm.other_models import Hybrid, JointContrastiveDivergence, JointParams

P = np.array([0.3, 0.85, 0.0])  # the probabilities of a clip's tags
UNKNOWN = np.full(3, np.nan)


def clip(seed, n=2):
    """A tiny model with three tags, and what conditions one clip."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, n, 3, 2, 3)
    return model, rng.normal(size=2), np.array([1, -1], np.int32)


def batch_of(u, a, y, w):
    return Batch(*(np.tile(row, (len(w), 1)) for row in (u, a, y)), w)


def bound(model, u, a, p):
    """F(p) + log Z, log Z by enumeration."""
    c, d = biases(model, u, a)
    free_energy = -d @ p - np.logaddexp(0, c + model.U @ p).sum()
    return float(free_energy + enumerate_clip(model.U, c, d, UNKNOWN).log_z)


def expected_loss(model, u, a, p):
    """E_{y ~ p}[-log p(y | u, a)], by enumeration."""
    c, d = biases(model, u, a)
    terms = [bernoulli(p, y) * enumerated_log_likelihood(model.U, c, d, y) for y in states(3)]
    return -sum(terms)


@pytest.mark.parametrize("seed", range(5))
def test_the_loss_is_above_the_expected_one_and_equal_for_hard_labels(seed):
    model, u, a = clip(seed)
    for p in np.random.default_rng(seed).random((10, 3)):
        assert bound(model, u, a, p) > expected_loss(model, u, a, p)
    for y in states(3):
        assert bound(model, u, a, y) == pytest.approx(expected_loss(model, u, a, y), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_belief_propagation_has_the_gradient_of_the_bound_on_a_tree(seed):
    model, u, a = clip(seed, n=1)
    batch = batch_of(u, a, P, np.ones(1))
    gradient = evaluate(BeliefPropagation(60, 0.5), model, batch, np.zeros((0, 1, 0)))
    assert_close(gradient, gradient_by_differences(lambda m: bound(m, u, a, P), model), 1e-8)


def expected_slopes(model, u, a, p, steps):
    """What CD-``steps`` from p gives on average: a chain whose first hidden units see p."""
    c, d = biases(model, u, a)
    tags, hidden = states(3), states(len(c))
    p_h = bernoulli(sigmoid(c + model.U @ p), hidden)
    first = p_h @ bernoulli(sigmoid(d + hidden @ model.U)[:, None, :], tags[None])
    end = first @ np.linalg.matrix_power(transitions(model.U, c, d, UNKNOWN), steps - 1)
    phases = slopes_after(model, u, a, end), energy_slopes(model, u, a, p)
    return Model(*(negative - positive for negative, positive in zip(*phases, strict=True)))


@pytest.mark.parametrize("steps", [1, 2])
def test_the_expected_cd_gradient_is_that_of_a_chain_from_the_probabilities(steps):
    """Noise of 0 and 1 forces every path, and the weights of the batch are the probabilities."""
    model, u, a = clip(3)
    noise, w = paths(model, u, a, P, steps)
    gradient = evaluate(ContrastiveDivergence(steps), model, batch_of(u, a, P, w), noise)
    assert_close(gradient, expected_slopes(model, u, a, P, steps), 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_expected_cd_gradient_tends_to_that_of_the_bound(seed):
    model, u, a = clip(seed)
    exact = gradient_by_differences(lambda m: bound(m, u, a, P), model)
    errors = [distance(expected_slopes(model, u, a, P, 2**i), exact) for i in range(11)]
    assert errors[0] > 1e-3
    assert all(b < a or b < 1e-9 for a, b in pairwise(errors))
    assert errors[-1] < 1e-9


def test_unknown_tags_are_filled_given_the_probabilities_of_the_others():
    """By one sweep whose hidden units see p; the proxy counts the known tags."""
    model, u, a = clip(4)
    c, d = biases(model, u, a)
    p = np.array([0.3, np.nan, 0.8])
    forced = np.array([[*h, 1, t, 1] for h in states(2) for t in (0.0, 1.0)])
    p_h = bernoulli(sigmoid(c + model.U @ np.nan_to_num(p)), forced[:, :2])
    p_on = sigmoid(d[1] + forced[:, :2] @ model.U[:, 1])
    w = p_h * np.where(forced[:, 3] == 1, p_on, 1 - p_on)
    expected = [weight * np.array([0.3, t, 0.8]) for weight, t in zip(w, forced[:, 3], strict=True)]
    chain = np.zeros((1, len(w), 5))  # a chain that ends with every tag on
    noise = np.concatenate([chain, (1.0 - forced)[None]])
    gradient = evaluate(ContrastiveDivergence(1), model, batch_of(u, a, p, w), noise)
    np.testing.assert_allclose(gradient.d, 1 - np.sum(expected, axis=0), atol=1e-12)


def test_tags_are_drawn_and_known_or_unknown_ones_stay():
    y = jnp.tile(jnp.array([[0.0, 1.0, jnp.nan, 0.25]]), (1000, 1))
    noise = jnp.tile(((jnp.arange(1000.0) + 0.5) / 1000)[:, None], (1, 4))
    drawn = np.asarray(draw_tags(y, noise))
    np.testing.assert_array_equal(drawn[:, :3], y[:, :3])
    assert set(drawn[:, 3]) == {0.0, 1.0}
    assert drawn[:, 3].mean() == 0.25
    for number in (0.0, float(np.nextafter(np.float32(1), np.float32(0)))):
        np.testing.assert_array_equal(draw_tags(y, jnp.full_like(noise, number))[:, :3], y[:, :3])


@pytest.mark.parametrize("seed", range(3))
def test_pseudo_likelihood_has_the_gradient_of_its_expectation(seed):
    """One batch of all tag vectors, drawn by noise that forces them, weighted by probability."""
    model, u, a = clip(seed)

    def loss(m):
        terms = (pseudo_likelihood_terms(m, u, a, y).sum() for y in states(3))
        return -sum(bernoulli(P, y) * term for y, term in zip(states(3), terms, strict=True))

    tags = states(3)[bernoulli(P, states(3)) > 0]
    batch = batch_of(u, a, P, bernoulli(P, tags))
    gradient = evaluate(DrawnTags(PseudoLikelihood()), model, batch, (1.0 - tags)[None])
    assert_close(gradient, gradient_by_differences(loss, model), 1e-8)


def joint_params():
    rng = np.random.default_rng(5)
    shapes = ((2, 3), (2, 2), (0, 3), (2,), (3,), (2,))
    return JointParams(*(rng.normal(0, 0.7, shape) for shape in shapes))


def test_hybrid_of_pseudo_likelihood_draws_tags_for_that_part_alone():
    """Labels, probabilities and unknown ones; the joint part takes them all as they are."""
    params, rng = joint_params(), np.random.default_rng(6)
    y = np.where(rng.random((6, 3)) < 0.5, rng.random((6, 3)), rng.integers(0, 2, (6, 3)))
    y[0, 1] = y[4, 2] = np.nan
    batch = Batch(rng.normal(size=(6, 2)), np.ones((6, 0), np.int32), y, rng.uniform(0.5, 2, 6))
    joint = JointContrastiveDivergence(1, 0.5)
    hybrid = for_soft_targets(Hybrid(0.25, PseudoLikelihood(), joint))
    sweeps, width = hybrid.noise(params, True)
    own = joint.noise(params, True)[0]
    noise = rng.random((sweeps, 6, width))
    drawn = np.where(np.isnan(y), np.nan, noise[-1, :, :3] < y)
    with jax.enable_x64(True):
        found, _ = jitted(hybrid)(params, batch, noise)
        first, _ = jitted(joint)(params, batch, noise[:own])
        second, _ = jitted(PseudoLikelihood())(
            params.conditional(), batch._replace(y=drawn), noise[own:-1, :, :5]
        )
    for name in ("U", "W", "c", "d"):
        expected = 0.25 * np.asarray(getattr(first, name)) + np.asarray(getattr(second, name))
        np.testing.assert_allclose(getattr(found, name), expected, atol=1e-12)


def test_only_the_pseudo_likelihood_draws():
    for gradient in (ContrastiveDivergence(2), MeanField(), BeliefPropagation()):
        assert for_soft_targets(gradient) == gradient
    drawn = for_soft_targets(PseudoLikelihood())
    assert drawn == DrawnTags(PseudoLikelihood())
    params = Params(*clip(0)[0])
    assert drawn.noise(params, False) == (1, 5)
    assert drawn.noise(params, True) == (6, 5)


def test_the_proxy_is_the_expected_log_likelihood():
    """Linear in y: that of the probabilities is the mean of those of the draws."""
    logits = jnp.array([[0.3, -1.2, 2.0]])
    nothing = jnp.zeros((1, 0))
    soft = Batch(nothing, nothing, jnp.asarray(P[None], jnp.float32), jnp.ones(1))
    expected = sum(
        bernoulli(P, y)
        * log_probabilities(logits, soft._replace(y=jnp.asarray(y[None], jnp.float32)))
        for y in states(3)
    )
    np.testing.assert_allclose(log_probabilities(logits, soft), expected, rtol=1e-6)
