"""Stacks of models: trees of arrays whose first axis is the model."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from harmonium.arrays import Places

Tree = Any  # a structure of arrays, such as a model's parameters: a NamedTuple


def for_each(function: Callable[..., Tree]) -> Callable[..., Tree]:
    """Turn a function of one model's trees into one of stacks, with models as the first axis.

    A stack of one runs like a single model: on a CPU, matrix products with a first axis of 1 are
    slower.
    """

    def run(*stacks: Tree) -> Tree:
        if len(jax.tree.leaves(stacks)[0]) > 1:
            return jax.vmap(function)(*stacks)
        return stack_of(function(*(first_of(stack) for stack in stacks)))

    return run


def stacked(trees: Sequence[Tree]) -> Tree:
    """Trees of one structure as a stack."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def unstacked(stack: Tree, n: int) -> list[Tree]:
    """The trees of a stack of n."""
    arrays = jax.tree.map(np.asarray, stack)
    return [first_of(jax.tree.map(lambda array, i=i: array[i:], arrays)) for i in range(n)]


def part_of(stack: Tree, numbers: Places) -> Tree:
    """Some models of a stack; in NumPy, which does not compile."""
    return jax.tree.map(lambda array: np.asarray(array)[numbers], stack)


def first_of(stack: Tree) -> Tree:
    """The tree of the first model."""
    return jax.tree.map(lambda array: array[0], stack)


def stack_of(tree: Tree) -> Tree:
    """A stack of one."""
    return jax.tree.map(lambda array: jnp.asarray(array)[None], tree)
