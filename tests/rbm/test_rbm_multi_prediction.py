"""Multi-prediction: the loss through the unrolled inference, its gradient, and what is observed."""

import enumeration as en
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harmonium.rbm.gradients import Batch, ContrastiveDivergence, MultiPrediction, Sum, unrolled
from harmonium.rbm.inference import mean_field
from harmonium.rbm.model import Field, Params, condition
from harmonium.rbm.other_models import Hybrid, JointContrastiveDivergence, JointParams

B, N, C, D, ROWS = 6, 3, 4, 2, 3


def case(seed, *, unknown=0.0, soft=False):
    """A model, a batch and noise, all in float64."""
    rng = np.random.default_rng(seed)
    model = en.random_model(rng, N, C, D, ROWS)
    batch = en.random_batch(rng, B, C, D, ROWS, unknown=unknown)
    if soft:
        batch = batch._replace(y=np.where(np.isnan(batch.y), np.nan, rng.random((B, C))))
    return model, batch, rng.uniform(size=(1, B, C + 2))


def observed_by_hand(y, noise, none_observed):
    """The tags that a clip tells, one by one."""
    observed = np.zeros(y.shape, bool)
    for b in range(len(y)):
        q = 0 if noise[b, C] < none_observed else noise[b, C + 1]
        for j in range(C):
            observed[b, j] = not np.isnan(y[b, j]) and noise[b, j] < q
    return observed


def loss_by_hand(model, batch, noise, *, steps, none_observed):
    """The mean over clips of the cross-entropy of the tags not observed, tag by tag, in NumPy."""
    observed = observed_by_hand(batch.y, noise[0], none_observed)
    total = 0.0
    for b in range(B):
        c, d = en.biases(model, batch.u[b], batch.a[b])
        tags = np.where(observed[b], batch.y[b], 0.0)
        for _ in range(steps):
            p = en.sigmoid(d + en.sigmoid(c + model.U @ tags) @ model.U)
            tags = np.where(observed[b], batch.y[b], p)
        for j in range(C):
            y = batch.y[b, j]
            if not observed[b, j] and not np.isnan(y):
                total -= batch.w[b] * (y * np.log(p[j]) + (1 - y) * np.log(1 - p[j]))
    return total / batch.w.sum()


@pytest.mark.parametrize("soft", [False, True], ids=["labels", "probabilities"])
@pytest.mark.parametrize("unknown", [0.0, 0.3])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_gradient_is_that_of_the_loss_through_the_steps(steps, unknown, soft):
    model, batch, noise = case(steps, unknown=unknown, soft=soft)
    expected = en.gradient_by_differences(
        lambda m: loss_by_hand(m, batch, noise, steps=steps, none_observed=0.3), model
    )
    en.assert_close(en.evaluate(MultiPrediction(steps, 0.3), model, batch, noise), expected, 1e-6)


@pytest.mark.parametrize("steps", [1, 4])
def test_the_steps_are_those_of_mean_field_at_test(steps):
    model, batch, _ = case(3)
    rng = np.random.default_rng(0)
    y = np.where(rng.random((B, C)) < 0.5, batch.y, np.nan)
    with jax.enable_x64(True):
        field = condition(Params(*(jnp.asarray(array) for array in model)), batch.u, batch.a)
        p = jax.nn.sigmoid(unrolled(field, y, steps)[0])
        expected = mean_field(Field(*field), y, steps=steps).y
    np.testing.assert_allclose(np.where(np.isnan(y), p, y), expected, atol=1e-12)


@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_the_sum_adds_both_each_with_its_own_noise(unknown):
    model, batch, _ = case(9, unknown=unknown)
    first, second = MultiPrediction(2), ContrastiveDivergence(2)
    both = Sum(first, second, 0.7)
    params = Params(*model)
    sweeps, width = both.noise(params, unknown > 0)
    noise = np.random.default_rng(1).random((sweeps, B, width))
    one = en.evaluate(first, model, batch, noise[:1, :, : C + 2])
    two = en.evaluate(second, model, batch, noise[1:, :, : N + C])
    expected = Params(*(np.asarray(a) + 0.7 * np.asarray(b) for a, b in zip(one, two, strict=True)))
    en.assert_close(en.evaluate(both, model, batch, noise), expected, 1e-12)


def test_a_hybrid_with_one_hidden_unit_has_numbers_for_every_tag():
    gradient = Hybrid(0.5, MultiPrediction(), JointContrastiveDivergence(1, 1.0))
    shapes = ((1, C), (1, 0), (0, C), (1,), (C,), (0,))  # no features: C + 2 is most
    params = JointParams(*(jnp.ones(shape) for shape in shapes))
    sweeps, width = gradient.noise(params, False)
    noise = jnp.asarray(np.random.default_rng(0).random((sweeps, B, width)), jnp.float32)
    batch = Batch(jnp.ones((B, 0)), jnp.zeros((B, 0), int), jnp.ones((B, C)), jnp.ones(B))
    found, _ = en.jitted(gradient)(params, batch, noise)
    own, _ = en.jitted(gradient.discriminative)(params.conditional(), batch, noise[-1:, :, : C + 2])
    joint, _ = en.jitted(gradient.generative)(params, batch, noise[:-1, :, : 1 + C])
    np.testing.assert_allclose(found.U, own.U + 0.5 * joint.U, rtol=1e-6)
