"""A number for each tag as its condition, weighted by a diagonal V: d_j ← d_j + V_j a_j.

Inference, likelihood, decisions and every objective against enumeration and finite differences.
"""

import enumeration as en
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harmonium.rbm import forward
from harmonium.rbm.annealing import log_likelihoods
from harmonium.rbm.decisions import decide
from harmonium.rbm.descent import Optimiser, Penalty
from harmonium.rbm.gradients import (
    Batch,
    BeliefPropagation,
    ContrastiveDivergence,
    Exact,
    MeanField,
    MultiPrediction,
    PersistentContrastiveDivergence,
    PseudoLikelihood,
    Sum,
)
from harmonium.rbm.inference import InferenceOptions, infer, marginals
from harmonium.rbm.model import Params, condition, free_energy
from harmonium.rbm.training import Schedule, train

B, N_FEATURES = 7, 2
DTYPE_PROMOTION = "standard"  # for optax


def case(seed, n=3, C=4, *, unknown=0.0, scale=1.0):
    rng = np.random.default_rng(seed)
    model = en.random_model(rng, n, C, N_FEATURES, 1, scale=scale)
    return model, en.random_batch(rng, B, C, N_FEATURES, 1, unknown=unknown, numbers=True)


def mean_loss(model, batch):
    """The weighted mean of -log p(known tags | u, a), by enumeration."""
    losses = [
        -en.enumerated_log_likelihood(model.U, *en.biases(model, u, a), y)
        for u, a, y in zip(*batch[:3], strict=True)
    ]
    return np.average(losses, weights=batch.w)


def single(batch):
    return Batch(*(np.asarray(part, np.float32) for part in batch[:4]))


def biases_with(weight):
    """Biases of the tags of a model, its conditions and what they make of the biases."""
    model, batch = case(0)
    weighted = model._replace(V=np.full((1, 4), weight))
    with jax.enable_x64(True):
        field = condition(Params(*weighted), batch.u, batch.a)
    return model.d, batch.a, field.d


def test_a_zero_weight_leaves_the_condition_out():
    d, _, conditioned = biases_with(0.0)
    np.testing.assert_allclose(conditioned, np.tile(d, (B, 1)), atol=1e-12)


def test_a_weight_of_1_adds_the_condition():
    d, a, conditioned = biases_with(1.0)
    np.testing.assert_allclose(conditioned, d + a, atol=1e-12)


@pytest.mark.parametrize("method", ["lbp", "mean_field", "exact"])
def test_inference_is_that_of_each_clips_own_biases(method):
    model, batch = case(1, unknown=0.4)
    u, a, y, _ = single(batch)[:4]
    options = InferenceOptions(method, steps=60)
    result = infer(en.as_params(model), u, a, y, options)
    for clip in range(B):
        c, d = en.biases(model, batch.u[clip], batch.a[clip])
        alone = model._replace(c=c, d=d, W=np.zeros((3, 0)), V=np.zeros((0, 4)))
        none = np.zeros((1, 0), np.float32), np.zeros((1, 0), np.int32)
        same = infer(en.as_params(alone), *none, y[clip : clip + 1], options)
        np.testing.assert_allclose(result.y[clip], same.y[0], atol=1e-5)
        if method == "exact":
            truth = en.enumerate_clip(model.U, c, d, batch.y[clip])
            np.testing.assert_allclose(result.y[clip], truth.y, atol=1e-6)
            np.testing.assert_allclose(result.h[clip], truth.h, atol=1e-6)


def test_the_shape_of_W_tells_features_from_conditions():
    model, batch = case(2)
    u, a, _, _ = single(batch)[:4]
    options = InferenceOptions("mean_field", steps=5)
    nothing = np.full((B, 4), np.nan, np.float32)
    params = en.as_params(model)
    together = marginals(options, params, np.hstack([u, a]))
    np.testing.assert_allclose(together, infer(params, u, a, nothing, options).y, atol=1e-6)


def test_numpy_predicts_what_jax_does():
    model, batch = case(3, unknown=0.5)
    u, a, y, _ = single(batch)[:4]
    members = []
    answers = []
    for seed in (3, 4):
        model = case(seed)[0]
        members.append(
            forward.ConditionalRBM(U=model.U, W=model.W, c=model.c, d=model.d, V=model.V)
        )
        answers.append(infer(en.as_params(model), u, a, y, InferenceOptions("mean_field", 3)).y)
    for member, answer in zip(members, answers, strict=True):
        by_numpy = forward.mean_field(member.condition(batch.u, batch.a), batch.y, steps=3)
        np.testing.assert_allclose(by_numpy, answer, atol=1e-5)
    together = forward.mean_of_members(members, batch.u, batch.y, steps=3, a=batch.a)
    asked = np.isnan(y)
    mean = en.sigmoid(np.mean([np.log(P / (1 - P)) for P in np.float64(answers)[:, asked]], axis=0))
    np.testing.assert_allclose(together[asked], mean, atol=1e-5)


@pytest.mark.parametrize("unknown", [0.0, 0.4])
def test_likelihoods_are_those_of_enumeration(unknown):
    model, batch = case(5, unknown=unknown)
    value, error = log_likelihoods(en.as_params(model), *single(batch)[:3])
    expected = [
        en.enumerated_log_likelihood(model.U, *en.biases(model, u, a), y)
        for u, a, y in zip(*batch[:3], strict=True)
    ]
    np.testing.assert_allclose(value, expected, atol=1e-5)
    assert not error.any()


def test_the_most_probable_tags_are_those_of_enumeration():
    model, batch = case(6, scale=2.0)
    u, a, _, _ = single(batch)[:4]
    nothing = np.full((B, 4), np.nan, np.float32)
    half = np.full((B, 4), 0.5, np.float32)
    tags = decide([en.as_params(model)], u, a, nothing, half, 16)
    for clip in range(B):
        c, d = en.biases(model, batch.u[clip], batch.a[clip])
        every = en.states(4)
        log_p = every @ d + np.logaddexp(0, c + every @ model.U.T).sum(axis=1)
        np.testing.assert_array_equal(tags[clip], every[np.argmax(log_p)])


@pytest.mark.parametrize("unknown", [0.0, 0.4])
def test_the_exact_gradient_is_that_of_finite_differences(unknown):
    model, batch = case(7, unknown=unknown)
    noise = np.zeros((0, B, 0))
    expected = en.gradient_by_differences(lambda m: mean_loss(m, batch), model)
    assert np.abs(expected.V).min() > 1e-4
    en.assert_close(en.evaluate(Exact(), model, batch, noise), expected, 1e-8)


def test_belief_propagation_is_exact_on_a_tree():
    model, batch = case(8, n=1)
    expected = en.gradient_by_differences(lambda m: mean_loss(m, batch), model)
    gradient = en.evaluate(BeliefPropagation(60, 0.5), model, batch, np.zeros((0, B, 0)))
    en.assert_close(gradient, expected, 1e-8)


def test_the_pseudo_likelihood_is_that_of_finite_differences():
    model, batch = case(9)

    def loss(m):
        terms = [
            en.pseudo_likelihood_terms(m, u, a, y).sum() for u, a, y in zip(*batch[:3], strict=True)
        ]
        return -np.average(terms, weights=batch.w)

    gradient = en.evaluate(PseudoLikelihood(), model, batch, np.zeros((0, B, 0)))
    en.assert_close(gradient, en.gradient_by_differences(loss, model), 1e-8)


@pytest.mark.parametrize("unknown", [0.0, 0.4])
def test_multi_prediction_is_that_of_finite_differences(unknown):
    model, batch = case(10, unknown=unknown)
    objective = MultiPrediction(3)
    noise = np.random.default_rng(0).random((1, B, 6))
    observed = np.asarray(objective.observed(batch.y, noise[0]))
    given = np.where(observed, batch.y, np.nan)
    asked = ~observed & ~np.isnan(batch.y)
    assert observed.any()

    def loss(m):
        member = forward.ConditionalRBM(U=m.U, W=m.W, c=m.c, d=m.d, V=m.V)
        P = forward.mean_field(member.condition(batch.u, batch.a), given, steps=3)
        terms = np.where(asked, -np.log(np.where(batch.y == 1, P, 1 - P)), 0.0)
        return np.average(terms.sum(axis=1), weights=batch.w)

    gradient = en.evaluate(objective, model, batch, noise)
    en.assert_close(gradient, en.gradient_by_differences(loss, model), 1e-8)


@pytest.mark.parametrize("persistent", [False, True])
def test_contrastive_divergence_is_the_slope_of_a_difference_of_free_energies(persistent):
    model, batch = case(11)
    noise = np.random.default_rng(2).random((1, B, 7))
    objective = PersistentContrastiveDivergence(1) if persistent else ContrastiveDivergence(1)
    with jax.enable_x64(True):
        params = Params(*model)
        moved = batch._replace(chains=batch.y)
        end = PersistentContrastiveDivergence(1).advance(params, moved, noise)

    def loss(params):
        field = condition(params, batch.u, batch.a)
        difference = free_energy(field, batch.y) - free_energy(field, end)
        return jnp.sum(batch.w * difference) / jnp.sum(batch.w)

    with jax.enable_x64(True):
        expected = jax.jit(jax.grad(loss))(params)
    if persistent:
        batch = batch._replace(chains=np.asarray(end))
    en.assert_close(en.evaluate(objective, model, batch, noise), expected, 1e-12)


def test_mean_field_moves_V_by_the_same_error_as_d():
    model, batch = case(12)
    alike = batch._replace(a=np.ones_like(batch.a))
    gradient = en.evaluate(MeanField(2), model, alike, np.zeros((0, B, 0)))
    np.testing.assert_allclose(gradient.V[0], gradient.d, atol=1e-12)


def test_the_sum_of_two_objectives_adds_the_slopes_of_V():
    model, batch = case(13)
    noise = np.random.default_rng(3).random((2, B, 7))
    first, second = MultiPrediction(2), ContrastiveDivergence(1)
    together = en.evaluate(Sum(first, second, 0.5), model, batch, noise)
    parts = (
        en.evaluate(first, model, batch, noise[:1]),
        en.evaluate(second, model, batch, noise[1:]),
    )
    expected = np.asarray(parts[0].V) + 0.5 * np.asarray(parts[1].V)
    np.testing.assert_allclose(together.V, expected, atol=1e-12)


def test_training_finds_how_far_to_trust_a_classifier():
    """Log-odds three times too large for one tag, and right for another."""
    rng = np.random.default_rng(0)
    log_odds = rng.normal(0, 2, (2000, 2)).astype(np.float32)
    y = (rng.random((2000, 2)) < en.sigmoid(log_odds)).astype(np.float32)
    said = log_odds * np.float32([3.0, 1.0])
    none = np.zeros((2000, 0), np.float32)
    start = Params(
        U=np.zeros((1, 2), np.float32),
        W=np.zeros((1, 0), np.float32),
        V=np.ones((1, 2), np.float32),
        c=np.zeros(1, np.float32),
        d=np.zeros(2, np.float32),
    )
    result = train(
        start,
        Batch(none, said, y, np.ones(2000, np.float32)),
        gradient=MultiPrediction(1),
        optimiser=Optimiser("adam"),
        schedule=Schedule("constant", 0.02),
        penalty=Penalty.none(start),
        batch_size=100,
        max_epochs=30,
        patience=30,
        seed=0,
        averaging=5.0,
    )
    np.testing.assert_allclose(result.params.V, [[1 / 3, 1.0]], atol=0.12)
