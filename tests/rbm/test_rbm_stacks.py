"""Stacks of models: what is put in comes out, for each model by itself."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

from harmonium.rbm.inference import scaled
from harmonium.rbm.training import first_of, for_each, part_of, stack_of, stacked, unstacked


class Pair(NamedTuple):
    weights: np.ndarray
    bias: np.ndarray


def pairs(n):
    rng = np.random.default_rng(n)
    return [Pair(rng.normal(size=(3, 2)), rng.normal(size=2)) for _ in range(n)]


def assert_equal(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_stack_has_the_models_as_its_first_axis():
    models = pairs(4)
    stack = stacked(models)
    assert (stack.weights.shape, stack.bias.shape) == ((4, 3, 2), (4, 2))
    for found, expected in zip(unstacked(stack, 4), models, strict=True):
        assert_equal(found, expected)
    assert_equal(first_of(stack), models[0])
    for found, i in zip(unstacked(part_of(stack, np.array([2, 0])), 2), (2, 0), strict=True):
        assert_equal(found, models[i])


def test_a_model_alone_is_a_stack_of_one():
    model = Pair(jnp.ones((3, 2)), jnp.zeros(2))
    stack = stack_of(model)
    assert stack.weights.shape == (1, 3, 2)
    assert_equal(first_of(stack), model)


@pytest.mark.parametrize("n", [1, 3])
def test_a_function_of_a_model_is_one_of_stacks(n):
    models, xs = pairs(n), np.random.default_rng(9).normal(size=(n, 5, 3)).astype(np.float32)
    stack = stacked([Pair(*(part.astype(np.float32) for part in model)) for model in models])
    found = for_each(lambda model, x: x @ model.weights + model.bias[None])(stack, jnp.asarray(xs))
    expected = [x @ model.weights + model.bias for model, x in zip(models, xs, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("unit_norm", [0.0, 1.0])
def test_features_are_scaled_and_then_have_length_one_if_asked(unit_norm):
    rng = np.random.default_rng(0)
    mean, scale = rng.normal(size=4), rng.uniform(0.5, 3, 4)
    x = rng.normal(size=(6, 4))
    x[2] = mean  # nothing is left of it, and it has no direction
    parts = (jnp.asarray(part, jnp.float32) for part in (x, mean, scale, unit_norm))
    found = np.asarray(scaled(*parts))
    expected = (x - mean) / scale
    if unit_norm:
        length = np.sqrt((expected**2).sum(axis=1, keepdims=True))
        expected = np.divide(expected, length, out=np.zeros_like(expected), where=length > 0)
    rows = [0, 1, 3, 4, 5]
    np.testing.assert_allclose(found[rows], expected[rows], rtol=1e-5, atol=1e-6)
    assert np.isfinite(found).all()
