"""Gradients by central differences in float64, and how those of the package are compared."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np
from enumeration import Model

from harmonium.rbm.model import Params

jitted = cache(jax.jit)  # equal gradients share their programs

STEP = 1e-5
"""Truncation of order STEP², rounding of order 1e-16 · |f| / STEP: both about 1e-10."""


def gradient_by_differences(f: Callable[[Model], float], model: Model) -> Model:
    """∂f/∂θ for every number of the model."""
    gradients = []
    for i, array in enumerate(model):
        gradient = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            ends = []
            for step in (STEP, -STEP):
                moved = array.copy()
                moved[index] += step
                ends.append(f(Model(*model[:i], moved, *model[i + 1 :])))
            gradient[index] = (ends[0] - ends[1]) / (2 * STEP)
        gradients.append(gradient)
    return Model(*gradients)


def evaluate(gradient: Any, model: Any, batch: Any, noise: Any) -> Any:
    """What the package's gradient is, in float64."""
    with jax.enable_x64(True):
        return jitted(gradient)(Params(*model), batch, noise)[0]


def assert_close(gradient: Any, expected: Any, tolerance: float) -> None:
    """Whether two gradients agree in every number."""
    for name, one, other in zip(Params._fields, gradient, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance, err_msg=name)


def distance(one: Any, other: Any) -> float:
    """The Euclidean distance of two gradients."""
    return np.sqrt(sum(np.sum((np.asarray(x) - y) ** 2) for x, y in zip(one, other, strict=True)))
