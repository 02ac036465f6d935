"""Many models of one kind trained at once, as one program: for a GPU, which one cannot fill.

Every model has its own training clips (rows of the same data), its own scaling of the features,
learning rate, penalties and seed; sizes and the objective are those of all. The minibatches, the
step and early stopping are those of :mod:`harmonium.rbm.training`.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from harmonium.rbm.compilation import compiled
from harmonium.rbm.gradients import Batch, Gradient
from harmonium.rbm.training import (
    BLOCK,
    EpochSettings,
    History,
    Optimiser,
    Penalty,
    Result,
    Schedule,
    Setup,
    State,
    Tree,
    block,
    start,
)


class Scaled(NamedTuple):
    """x ← (x - mean) / scale, for one model or, with a first axis, for each of a stack.

    Where unit_norm is 1, then x ← x / ‖x‖.
    """

    mean: Array  # (D,)
    scale: Array  # (D,)
    unit_norm: Array  # ()

    def __call__(self, x: Array) -> Array:
        """Scaled features, the shape of x."""
        x = (x - self.mean) / self.scale
        norm = jnp.linalg.norm(x, axis=-1, keepdims=True)
        return x / jnp.where((self.unit_norm > 0) & (norm > 0), norm, 1.0)


class _OnScaled(NamedTuple):
    """A gradient at scaled features."""

    gradient: Gradient
    scaling: Scaled

    def __call__(self, params: Tree, batch: Batch, noise: Array) -> tuple[Tree, Array]:
        return self.gradient(params, batch._replace(u=self.scaling(batch.u)), noise)


class Stack(NamedTuple):
    """What differs between the models; each has S entries, or arrays with S as first axis."""

    params: Tree
    rows: Sequence[NDArray[np.int64]]
    scaling: Scaled
    schedules: Sequence[Schedule]
    penalties: Sequence[Penalty]
    seeds: Sequence[int]


def stacked(trees: Sequence[Tree]) -> Tree:
    """Trees of one structure as one tree, with the models as first axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *trees)


def unstacked(tree: Tree, n: int) -> list[Tree]:
    """The trees of a stack of n."""
    arrays = jax.tree.map(np.asarray, tree)
    return [jax.tree.map(lambda array, i=i: array[i], arrays) for i in range(n)]


def train_stacked(
    stack: Stack,
    data: Batch,
    *,
    gradient: Gradient,
    optimiser: Optimiser,
    batch_size: int,
    max_epochs: int,
    patience: int,
    averaging: float,
    score: Callable[[Tree], NDArray[np.float64]],
    on_epoch: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Train every model until its score has not risen for ``patience`` epochs.

    ``score`` gives the scores (S,) of a stack of parameters. ``on_epoch`` is called with the epoch
    and the number of models still training. All models run until the last of them stops.
    """
    n = len(stack.seeds)
    unknown = bool(np.isnan(data.y).any())
    setup = Setup(gradient, optimiser, gradient.noise(unstacked(stack.params, 1)[0], unknown))
    data = jax.tree.map(jnp.asarray, data)
    n_known = np.array([np.sum(~np.isnan(np.asarray(data.y)[rows])) for rows in stack.rows])
    state = jax.vmap(lambda params: start(params, optimiser, averaged=averaging > 0))(stack.params)
    n_batches = max(-(-len(rows) // batch_size) for rows in stack.rows)
    decay = np.full(n, 1 - 1 / max(averaging * n_batches, 1), np.float32)
    best = jax.tree.map(jnp.array, stack.params)
    best_score, best_epoch = np.full(n, -np.inf), np.zeros(n, int)
    histories = [History() for _ in range(n)]
    running, penalties = np.full(n, True), stacked(stack.penalties)
    for epoch in range(max_epochs):
        began = time.perf_counter()
        rates = np.array([schedule(epoch) for schedule in stack.schedules], np.float32)
        settings = EpochSettings(rates, penalties, decay)
        state, proxy = _epoch(setup, state, stack, data, batch_size, n_batches, epoch, settings)
        values = score(state.outcome)
        seconds = (time.perf_counter() - began) / n
        for i in np.flatnonzero(running):
            histories[i].add(float(proxy[i] / n_known[i]), float(values[i]), seconds)
        better = running & (values > best_score)
        best = _kept(best, state.outcome, better)
        best_score[better], best_epoch[better] = values[better], epoch + 1
        running &= epoch + 1 - best_epoch < patience
        if on_epoch:
            on_epoch(epoch + 1, int(running.sum()))
        if not running.any():
            break
    return [
        Result(params, history, int(last), False)
        for params, history, last in zip(unstacked(best, n), histories, best_epoch, strict=True)
    ]


def _epoch(
    setup: Setup,
    state: State,
    stack: Stack,
    data: Batch,
    batch_size: int,
    n_batches: int,
    epoch: int,
    settings: EpochSettings,
) -> tuple[State, NDArray[np.float64]]:
    """Every training clip of every model once. Gives the sums of the likelihood proxies, (S,)."""
    rows = np.stack(
        [
            _spread(own, batch_size, n_batches, (seed, epoch))
            for own, seed in zip(stack.rows, stack.seeds, strict=True)
        ]
    )
    total = np.zeros(len(stack.seeds))
    for i, first in enumerate(range(0, n_batches, BLOCK)):
        keys = np.array(
            [np.random.SeedSequence((s, epoch, i)).generate_state(1)[0] for s in stack.seeds]
        )
        part = rows[:, first : first + BLOCK]
        state, proxy = _blocks(setup, state, keys, data, part, settings, stack.scaling)
        total += np.asarray(proxy)
    return state, total


def _spread(
    rows: NDArray[np.int64], batch_size: int, n_batches: int, seeds: tuple[int, int]
) -> NDArray[np.int32]:
    """The rows in a random order in n_batches minibatches, (n_batches, B), none of them empty.

    Models with fewer clips than others have smaller minibatches, filled up with -1.
    """
    order = rows[np.random.default_rng(seeds).permutation(len(rows))]
    sizes = np.full(n_batches, len(rows) // n_batches)
    sizes[: len(rows) % n_batches] += 1
    batches = np.full((n_batches, batch_size), -1, np.int32)
    batches[np.arange(batch_size) < sizes[:, None]] = order
    return batches


@compiled(static_argnames=("setup",), donate_argnames=("state",))
def _blocks(
    setup: Setup,
    state: State,
    seeds: Array,
    data: Batch,
    rows: Array,
    settings: EpochSettings,
    scaling: Scaled,
) -> tuple[State, Array]:
    """`harmonium.rbm.training.block` for each model."""

    def one(
        state: State, seed: Array, rows: Array, settings: EpochSettings, scaling: Scaled
    ) -> Any:
        own = setup._replace(gradient=_OnScaled(setup.gradient, scaling))
        return block(own, state, seed, data, rows, settings)

    return jax.vmap(one)(state, seeds, rows, settings, scaling)


@compiled(donate_argnames=("best",))
def _kept(best: Tree, new: Tree, better: Array) -> Tree:
    """The new parameters of the models that got better."""

    def choose(old: Array, now: Array) -> Array:
        return jnp.where(better.reshape(-1, *[1] * (old.ndim - 1)), now, old)

    return jax.tree.map(choose, best, new)
