"""Gradients by central differences in float64, for any scalar function of a model."""

from collections.abc import Callable

import numpy as np
from enumeration import Model

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
