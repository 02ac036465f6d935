"""Soft targets: gradients at drawn tags, against the expectation over all tags.

A number of 0 or 1 as noise forces a tag on or off, and the weights of a batch are free to choose:
one batch of all tag vectors gives the expectation over the draws without any sampling error.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from enumeration import (
    biases,
    enumerated_log_likelihood,
    pseudo_likelihood_terms,
    random_model,
    states,
)
from finite_differences import gradient_by_differences
from gibbs_paths import bernoulli, expected_slopes, paths

from harmonium.rbm.generative import Hybrid, JointContrastiveDivergence, JointParams
from harmonium.rbm.gradients import (
    Batch,
    BeliefPropagation,
    ContrastiveDivergence,
    MeanField,
    PseudoLikelihood,
    log_probabilities,
)
from harmonium.rbm.model import Params
from harmonium.rbm.soft import DrawnTags, draw_tags, for_soft_targets

P = np.array([0.3, 0.85, 0.0])  # the probabilities of the clip's tags
CONDITIONAL = [ContrastiveDivergence(2), BeliefPropagation(5, 0.5), PseudoLikelihood()]
JOINT = [
    JointContrastiveDivergence(2, 0.5),
    Hybrid(0.25, ContrastiveDivergence(2), JointContrastiveDivergence(1, 0.5)),
    Hybrid(0.25, MeanField(3), JointContrastiveDivergence(1, 0.5)),
]

jitted = cache(jax.jit)


def name_of(gradient):
    inner = getattr(gradient, "discriminative", None)
    return type(gradient).__name__ + (f" of {type(inner).__name__}" if inner else "")


def clip(seed, n=2):
    """A tiny model with three tags, and what conditions one clip."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, n, 3, 2, 3)
    return model, rng.normal(size=2), np.array([1, -1], np.int32)


def every_draw(u, a, p):
    """A batch of the clip for every tag vector that p allows, the noise that draws it, and it."""
    tags = states(len(p))
    tags = tags[bernoulli(p, tags) > 0]
    copies = (np.tile(row, (len(tags), 1)) for row in (u, a, p))
    return Batch(*copies, bernoulli(p, tags)), 1.0 - tags, tags


def evaluate(gradient, model, batch, noise):
    with jax.enable_x64(True):
        return jitted(gradient)(Params(*model), batch, noise)[0]


def assert_close(gradient, expected, tolerance=1e-8):
    for name in Params._fields:
        np.testing.assert_allclose(
            getattr(gradient, name), getattr(expected, name), rtol=0, atol=tolerance, err_msg=name
        )


# The draw. -----------------------------------------------------------------------------------


def test_tags_are_drawn_and_known_or_unknown_ones_stay():
    y = jnp.tile(jnp.array([[0.0, 1.0, jnp.nan, 0.25]]), (1000, 1))
    noise = jnp.tile(((jnp.arange(1000.0) + 0.5) / 1000)[:, None], (1, 4))
    drawn = np.asarray(draw_tags(y, noise))
    assert (drawn[:, 0] == 0).all()
    assert (drawn[:, 1] == 1).all()
    assert np.isnan(drawn[:, 2]).all()
    assert set(drawn[:, 3]) == {0.0, 1.0}
    assert drawn[:, 3].mean() == 0.25


def test_the_smallest_and_largest_random_numbers_change_no_label():
    y = jnp.array([[0.0, 1.0]])
    for noise in (0.0, float(np.nextafter(np.float32(1), np.float32(0)))):
        np.testing.assert_array_equal(draw_tags(y, jnp.full((1, 2), noise)), y)


# The expected gradient. ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_belief_propagation_has_the_gradient_of_the_expected_loss(seed):
    """On a tree, where it is exact: E_{y ~ p}[-log p(y | u, a)] by enumeration."""
    model, u, a = clip(seed, n=1)

    def loss(m):
        c, d = biases(m, u, a)
        terms = [bernoulli(P, y) * enumerated_log_likelihood(m.U, c, d, y) for y in states(3)]
        return -sum(terms)

    batch, noise, _ = every_draw(u, a, P)
    gradient = evaluate(DrawnTags(BeliefPropagation(60, 0.5)), model, batch, noise[None])
    assert_close(gradient, gradient_by_differences(loss, model))


@pytest.mark.parametrize("seed", range(3))
def test_pseudo_likelihood_has_the_gradient_of_its_expectation(seed):
    model, u, a = clip(seed)

    def loss(m):
        return -sum(bernoulli(P, y) * pseudo_likelihood_terms(m, u, a, y).sum() for y in states(3))

    batch, noise, _ = every_draw(u, a, P)
    gradient = evaluate(DrawnTags(PseudoLikelihood()), model, batch, noise[None])
    assert_close(gradient, gradient_by_differences(loss, model))


@pytest.mark.parametrize("steps", [1, 2])
def test_the_chain_of_contrastive_divergence_starts_at_the_drawn_tags(steps):
    """Every draw and every path from it, weighted by probability: transition matrices say what."""
    model, u, a = clip(3)
    batches, expected = [], []
    for y in states(3):
        if bernoulli(P, y) > 0:
            noise, p = paths(model, u, a, y, steps)
            draw = np.tile(np.append(1.0 - y, np.ones(2)), (1, len(p), 1))
            batches.append((np.concatenate([noise, draw]), bernoulli(P, y) * p))
            slopes = expected_slopes(model, u, a, y, steps)
            expected.append([bernoulli(P, y) * array for array in slopes])
    noise = np.concatenate([each for each, _ in batches], axis=1)
    w = np.concatenate([each for _, each in batches])
    batch = Batch(*(np.tile(row, (len(w), 1)) for row in (u, a, P)), w)
    gradient = evaluate(DrawnTags(ContrastiveDivergence(steps)), model, batch, noise)
    sums = (sum(arrays) for arrays in zip(*expected, strict=True))
    assert_close(gradient, type(model)(*sums), 1e-12)


def test_probabilities_in_place_of_draws_would_have_another_gradient():
    """E[σ(c + Uy)] is not σ(c + Up): that is why tags are drawn, except for mean field."""
    model, u, a = clip(4, n=1)
    model = model._replace(U=3 * model.U)
    batch, noise, _ = every_draw(u, a, P)
    drawn = evaluate(DrawnTags(MeanField(3)), model, batch, noise[None])
    one = Batch(u[None], a[None], P[None], np.ones(1))
    instead = evaluate(MeanField(3), model, one, np.zeros((0, 1, 0)))
    assert np.abs(drawn.c - instead.c).max() > 0.02
    assert for_soft_targets(MeanField(3)) == MeanField(3)
    assert for_soft_targets(PseudoLikelihood()) == DrawnTags(PseudoLikelihood())


# Any gradient. -------------------------------------------------------------------------------


def joint_params():
    rng = np.random.default_rng(5)
    shapes = ((2, 3), (2, 2), (0, 3), (2,), (3,), (2,))
    return JointParams(*(rng.normal(0, 0.7, shape) for shape in shapes))


def params_and_parts(gradient):
    """Parameters for the gradient, and how many one-hot parts its clips have."""
    if gradient in JOINT:
        return joint_params(), 0
    return Params(*clip(5)[0]), 2


@pytest.mark.parametrize("gradient", CONDITIONAL + JOINT, ids=name_of)
def test_it_is_the_gradient_at_what_was_drawn(gradient):
    """Labels, probabilities and unknown ones; the noise before the draw's is the gradient's."""
    params, parts = params_and_parts(gradient)
    rng = np.random.default_rng(6)
    y = np.where(rng.random((6, 3)) < 0.5, rng.random((6, 3)), rng.integers(0, 2, (6, 3)))
    y[0, 1] = y[4, 2] = np.nan
    batch = Batch(rng.normal(size=(6, 2)), np.ones((6, parts), np.int32), y, rng.uniform(0.5, 2, 6))
    sweeps, width = DrawnTags(gradient).noise(params, True)
    noise = rng.random((sweeps, 6, width))
    drawn = np.where(np.isnan(y), np.nan, noise[-1, :, :3] < y)
    own = gradient.noise(params, True)
    assert sweeps == own[0] + 1
    with jax.enable_x64(True):
        found = jitted(DrawnTags(gradient))(params, batch, noise)
        wanted = jitted(gradient)(params, batch._replace(y=drawn), noise[:-1, :, : own[1]])
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("gradient", CONDITIONAL + JOINT, ids=name_of)
def test_there_is_a_random_number_for_each_tag(gradient):
    params, _ = params_and_parts(gradient)
    for unknown in (False, True):
        sweeps, width = gradient.noise(params, unknown)
        assert DrawnTags(gradient).noise(params, unknown) == (sweeps + 1, max(width, 3))


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
