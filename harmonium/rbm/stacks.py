"""Stacks: the arrays of many models of one size as one tree, with the models as first axis."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

Tree = Any
"""Arrays in a structure, such as the parameters of a model: a NamedTuple."""


class Scaled(NamedTuple):
    """x ← (x - mean) / scale, for one model or, with a first axis, for each of a stack.

    Where unit_norm is 1, then x ← x / ‖x‖.
    """

    mean: Array  # (D,)
    scale: Array  # (D,)
    unit_norm: Array  # ()

    def __call__(self, x: Array) -> Array:
        """Scaled features of some clips, (B, D)."""
        x = (x - self.mean[None, :]) / self.scale[None, :]
        norm = jnp.linalg.norm(x, axis=-1, keepdims=True)
        return x / jnp.where((self.unit_norm > 0) & (norm > 0), norm, 1.0)


def stacked(trees: Sequence[Tree]) -> Tree:
    """Trees of one structure as a stack."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def unstacked(stack: Tree, n: int) -> list[Tree]:
    """The trees of a stack of n."""
    arrays = jax.tree.map(np.asarray, stack)
    return [first_of(jax.tree.map(lambda array, i=i: array[i:], arrays)) for i in range(n)]


def part_of(stack: Tree, numbers: NDArray[np.intp]) -> Tree:
    """Some models of a stack; in NumPy, which has nothing to compile."""
    return jax.tree.map(lambda array: np.asarray(array)[numbers], stack)


def first_of(stack: Tree) -> Tree:
    """The tree of the first model."""
    return jax.tree.map(lambda array: array[0], stack)


def stack_of(tree: Tree) -> Tree:
    """A stack of one."""
    return jax.tree.map(lambda array: jnp.asarray(array)[None], tree)


def for_each(function: Callable[..., Tree], n: int) -> Callable[..., Tree]:
    """A function of one model's trees as a function of stacks of n.

    A stack of one runs as the model alone would: on a CPU, products of matrices with a first axis
    of 1 are slower.
    """
    if n > 1:
        return jax.vmap(function)
    return lambda *stacks: stack_of(function(*(first_of(stack) for stack in stacks)))
