"""The training loop: early stopping for many models at once, of which one is the simplest case.

Every model of a stack has its own training clips (rows of the same data), its own scaling of the
features, learning rate, penalties and seed; sizes and the objective are those of all. One model
cannot fill a GPU, a stack can. The steps are those of :mod:`harmonium.rbm.training`.

Data whose features are no array, but something that gives rows, is read block by block.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from harmonium.arrays import Codes, Doubles, Floats, Ids
from harmonium.errors import DataError
from harmonium.rbm.compilation import compiled, refuse_fork
from harmonium.rbm.gradients import Batch, Gradient
from harmonium.rbm.training import (
    BLOCK,
    EpochSettings,
    Optimiser,
    Penalty,
    Schedule,
    Setup,
    Shrinkage,
    State,
    Tree,
    block,
    shrink_all,
    start,
)

RUN = 256
"""Rows of a table on disk that are read one after the other, in their order."""

WINDOW = 2**16
"""Rows of a table on disk among which the order is random."""

MAX_NUMBERS = 2**28
"""Random numbers and features in one block, of all models: 1 GiB."""

MIN_STACK = 32
"""Models in a stack that is worth another compilation to go on without those that have stopped."""

READ_AHEAD = 2
"""Blocks that are read from the disk while others are computed."""


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


@dataclass
class History:
    """What happened, epoch by epoch."""

    log_likelihood: list[float] = field(default_factory=list)  # the objective's proxy, per tag
    score: list[float] = field(default_factory=list)  # of the validation data
    seconds: list[float] = field(default_factory=list)  # of a stack, each model's share

    def __len__(self) -> int:
        return len(self.seconds)

    def add(self, log_likelihood: float, score: float, seconds: float) -> None:
        """Append one finished epoch; an epoch cut short by an interrupt leaves no half row."""
        self.log_likelihood.append(log_likelihood)
        self.score.append(score)
        self.seconds.append(seconds)


class Result(NamedTuple):
    """The parameters to keep, and how they were found."""

    params: Tree
    history: History
    best_epoch: int  # counted from 1; 0 if no epoch was finished
    interrupted: bool


class Stack(NamedTuple):
    """What differs between the models; each has S entries, or arrays with S as first axis."""

    params: Tree
    rows: Sequence[Ids]  # the clips that each model learns from
    schedules: Sequence[Schedule]
    penalties: Sequence[Penalty]
    seeds: Sequence[int]
    scaling: Scaled | None = None

    def take(self, numbers: NDArray[np.intp]) -> "Stack":
        """Some of the models."""
        params, scaling = part_of(self.params, numbers), part_of(self.scaling, numbers)
        rows, schedules, penalties, seeds = ([part[i] for i in numbers] for part in self[1:5])
        return Stack(params, rows, schedules, penalties, seeds, scaling)


def train(
    params: Tree,
    data: Batch,
    *,
    schedule: Schedule,
    penalty: Penalty,
    seed: int,
    score: Callable[[Tree], float] | None = None,
    on_epoch: Callable[[History], None] | None = None,
    **options: Any,
) -> Result:
    """`train_stack` for one model, which learns from all clips of the data.

    ``score`` takes the parameters of the model, ``on_epoch`` its history.
    """
    alone = Stack(stack_of(params), [np.arange(len(data.w))], [schedule], [penalty], [seed])
    [result] = train_stack(
        alone,
        data,
        score=score and (lambda params, _: np.array([score(first_of(params))])),
        on_epoch=on_epoch and (lambda histories: on_epoch(histories[0])),
        **options,
    )
    return result


def train_stack(
    stack: Stack,
    data: Batch,
    *,
    gradient: Gradient,
    optimiser: Optimiser,
    batch_size: int,
    max_epochs: int,
    patience: int,
    averaging: float = 0.0,
    row_rate: float | None = None,
    score: Callable[[Tree, NDArray[np.intp]], Doubles] | None = None,
    on_epoch: Callable[[Sequence[History]], None] | None = None,
) -> list[Result]:
    """Train every model until its score has not risen for ``patience`` epochs; keep the best.

    ``score`` gives the scores (S,) of a stack of parameters, which are those of the models with
    these numbers. What is scored and kept is the mean of the parameters over about the last
    ``averaging`` epochs (0: the parameters themselves), which takes out the noise of the last
    minibatches. Without ``score``, train for ``max_epochs`` and keep the last. Models that have
    stopped are taken out when they are most of the stack. ``on_epoch`` is called with the histories
    of all. An interrupt from the keyboard ends the training and keeps what would have been kept
    had it ended there. A model whose parameters are not finite stops; if no other goes on, that is
    an error.

    With ``row_rate`` V is trained by rows (see :mod:`harmonium.rbm.training`): by gradient descent
    with steps of ``row_rate`` per clip, which follow the schedule, and without averaging. Its
    penalties are then per minibatch, and may be columns with one strength for each row, (A, 1).
    """
    refuse_fork()
    n = len(stack.seeds)
    n_known, unknown = _known(data, stack.rows)
    setup = Setup(gradient, optimiser, gradient.noise(first_of(stack.params), unknown))
    if _is_array(data.u):
        data = jax.device_put(data)
    state = _start(stack.params, optimiser, averaged=averaging > 0, by_rows=row_rate is not None)
    n_batches = max(-(-len(rows) // batch_size) for rows in stack.rows)
    size = min(batch_size, max(len(rows) for rows in stack.rows))
    per_clip = setup.noise[0] * setup.noise[1] + data.u.shape[1] + 2 * data.y.shape[1]
    length = min(BLOCK, max(1, MAX_NUMBERS // (n * size * per_clip)))
    if n > 1:  # blocks of one length, since each length is another program
        n_blocks = -(-n_batches // length)
        length = -(-n_batches // n_blocks)
        n_batches = n_blocks * length
    decay = np.full(n, 1 - 1 / max(averaging * n_batches, 1), np.float32)
    histories = [History() for _ in range(n)]
    models, running, interrupted = np.arange(n), np.full(n, True), False
    best, best_score, best_epoch = stack.params, np.full(n, -np.inf), np.zeros(n, int)
    taken_out: dict[int, Tree] = {}
    try:
        for epoch in range(max_epochs):
            began = time.perf_counter()
            settings = _epoch_settings(stack, epoch, decay, row_rate)
            order = _minibatches(stack, epoch, n_batches, size, in_runs=not _is_array(data.u))
            state, proxy = _epoch(setup, state, stack, data, order, length, epoch, settings)
            running[models] &= np.asarray(_finite(state.outcome))
            if not running.any():
                raise DataError(_diverged(epoch + 1, stack.schedules[0].learning_rate))
            values = np.full(len(models), np.nan)
            if score is not None:
                values = score(state.outcome, models)
            seconds = (time.perf_counter() - began) / len(models)
            for i in np.flatnonzero(running[models]):
                known = n_known[models[i]]
                histories[models[i]].add(float(proxy[i] / known), float(values[i]), seconds)
            better = running[models] & ((score is None) | (values > best_score[models]))
            if better.any():
                best = _kept(best, state.outcome, better)
                best_score[models[better]] = values[better]
                best_epoch[models[better]] = epoch + 1
            if on_epoch:
                on_epoch(histories)
            running &= epoch + 1 - best_epoch < patience
            if not running.any():
                break
            # compact the stack once half of its models have stopped
            if len(models) >= MIN_STACK and 2 * running.sum() <= len(models):
                taken_out |= dict(zip(models, unstacked(best, len(models)), strict=True))
                left = np.flatnonzero(running[models])
                models, stack, decay = models[left], stack.take(left), decay[left]
                state, best = part_of(state, left), part_of(best, left)
    except KeyboardInterrupt:
        interrupted = True
    found = taken_out | dict(zip(models, unstacked(best, len(models)), strict=True))
    return [
        Result(found[i], history, int(best_epoch[i]), interrupted)
        for i, history in enumerate(histories)
    ]


def _is_array(table: Any) -> bool:
    """Whether the data is in memory, and not only something that gives rows."""
    return isinstance(table, np.ndarray | Array)


def _known(data: Batch, rows: Sequence[Ids]) -> tuple[Doubles, bool]:
    """How many known labels each model learns from, by weight, (S,); and whether any is unknown."""
    n_clips, n_tags = len(data.w), data.y.shape[1]
    counts = np.zeros(n_clips)
    for first in range(0, n_clips, WINDOW):
        part = np.arange(first, min(first + WINDOW, n_clips))
        counts[part] = np.sum(~np.isnan(np.asarray(data.y[part])), axis=1)
    weighted = counts * np.asarray(data.w)
    return np.array([weighted[own].sum() for own in rows]), bool((counts < n_tags).any())


def _minibatches(stack: Stack, epoch: int, n_batches: int, size: int, *, in_runs: bool) -> Codes:
    """Each model's clips in a random order in minibatches, (S, n_batches, B); -1 fills up.

    All minibatches are full but the last. Those of a model with too few clips for that are as equal
    as can be: none may be empty.
    """
    orders = np.full((len(stack.seeds), n_batches * size), -1, np.int32)
    for order, rows, seed in zip(orders, stack.rows, stack.seeds, strict=True):
        rng = np.random.default_rng((seed, epoch))
        numbers = _in_runs(rng, len(rows)) if in_runs else rng.permutation(len(rows))
        order[_places(len(rows), n_batches, size)] = rows[numbers]
    return orders.reshape(-1, n_batches, size)


@lru_cache(maxsize=64)
def _places(n: int, n_batches: int, size: int) -> slice | NDArray[np.intp]:
    """Where n clips stand in a row of minibatches."""
    if n > (n_batches - 1) * size:
        return slice(n)
    sizes = np.diff(np.linspace(0, n, n_batches + 1).astype(int))
    return np.flatnonzero(np.arange(size) < sizes[:, None])


def _in_runs(rng: np.random.Generator, n: int) -> Ids:
    """A random order of n rows of which a disk reads many one after the other.

    Runs of rows are put in a random order, and the rows are then shuffled within windows.
    """
    runs = np.arange(0, n, RUN)
    order = np.concatenate(
        [np.arange(first, min(first + RUN, n)) for first in runs[rng.permutation(len(runs))]]
    )
    for first in range(0, n, WINDOW):
        rng.shuffle(order[first : first + WINDOW])
    return order


def _epoch(
    setup: Setup,
    state: State,
    stack: Stack,
    data: Batch,
    order: Codes,
    length: int,
    epoch: int,
    settings: EpochSettings,
) -> tuple[State, Doubles]:
    """Every training clip of every model once, ``length`` minibatches at a time.

    Gives the sums of the likelihood proxies, (S,).
    """
    sums: list[Array] = []
    for i, first in enumerate(range(0, order.shape[1], length)):
        seeds = np.array(
            [np.random.SeedSequence((s, epoch, i)).generate_state(1)[0] for s in stack.seeds]
        )
        part = order[:, first : first + length]
        clips, rows = (data, part) if _is_array(data.u) else _read(data, part)
        state, proxy = _blocks(setup, state, seeds, clips, rows, settings, stack.scaling)
        sums.append(proxy)
        if i >= READ_AHEAD:
            sums[i - READ_AHEAD].block_until_ready()
    if state.table is not None:
        state = state._replace(table=_up_to_date(state.table, state.step, settings.shrinkage))
    return state, np.sum([np.asarray(proxy, np.float64) for proxy in sums], axis=0)


def _read(data: Batch, rows: Codes) -> tuple[Batch, Codes]:
    """The clips of a block as arrays in memory, and the numbers that they have there."""
    used = np.maximum(rows, 0).ravel()
    numbers = np.arange(rows.size, dtype=np.int32).reshape(rows.shape)
    return Batch(*(part[used] for part in data)), np.where(rows < 0, np.int32(-1), numbers)


def _epoch_settings(
    stack: Stack, epoch: int, decay: Floats, row_rate: float | None
) -> EpochSettings:
    """The numbers of an epoch; where V is trained by rows its penalty is kept apart."""
    rates = np.array([schedule(epoch) for schedule in stack.schedules], np.float32)
    penalties = stacked(stack.penalties)
    if row_rate is None:
        return EpochSettings(rates, penalties, decay)
    whole = np.array([schedule.learning_rate for schedule in stack.schedules])
    steps = (row_rate * rates / whole).astype(np.float32)

    def by_step(strength: Floats) -> Any:
        return steps.reshape(-1, *[1] * (strength.ndim - 1)) * strength

    shrinkage = Shrinkage(by_step(penalties.l1.V), by_step(penalties.l2.V))
    others = Penalty(*(tree and tree._replace(V=np.zeros_like(steps)) for tree in penalties))
    return EpochSettings(rates, others, decay, steps, shrinkage)


@compiled(static_argnames=("optimiser", "averaged", "by_rows"))
def _start(params: Tree, optimiser: Optimiser, *, averaged: bool, by_rows: bool) -> State:
    """`harmonium.rbm.training.start` for each model."""
    one = partial(start, optimiser=optimiser, averaged=averaged, by_rows=by_rows)
    return for_each(one)(params)


@compiled(static_argnames=("setup",), donate_argnames=("state",))
def _blocks(
    setup: Setup,
    state: State,
    seeds: Array,
    data: Batch,
    rows: Array,
    settings: EpochSettings,
    scaling: Scaled | None,
) -> tuple[State, Array]:
    """`harmonium.rbm.training.block` for each model, at features that it has scaled."""

    def one(
        state: State, seed: Array, rows: Array, settings: EpochSettings, scaling: Scaled | None
    ) -> Any:
        def gradient(params: Tree, batch: Batch, noise: Array) -> Any:
            u = batch.u if scaling is None else scaling(batch.u)
            return setup.gradient(params, batch._replace(u=u), noise)

        return block(setup._replace(gradient=gradient), state, seed, data, rows, settings)

    return for_each(one)(state, seeds, rows, settings, scaling)


def for_each(function: Callable[..., Tree]) -> Callable[..., Tree]:
    """A function of one model's trees as a function of stacks.

    A stack of one runs as the model alone would: on a CPU, products of matrices with a first axis
    of 1 are slower.
    """

    def run(*stacks: Tree) -> Tree:
        if len(jax.tree.leaves(stacks)[0]) > 1:
            return jax.vmap(function)(*stacks)
        return stack_of(function(*(first_of(stack) for stack in stacks)))

    return run


_up_to_date = compiled(donate_argnums=0)(for_each(shrink_all))


@compiled()
@for_each
def _finite(params: Tree) -> Array:
    """Whether all parameters of a model are finite numbers, (S,)."""
    return jnp.array([jnp.isfinite(array).all() for array in params]).all()


@compiled()
@for_each
def _kept(best: Tree, new: Tree, better: Array) -> Tree:
    """The new parameters of the models that got better, in arrays of their own."""
    return jax.tree.map(lambda old, now: jnp.where(better, now, old), best, new)


def _diverged(epoch: int, learning_rate: float) -> str:
    return (
        f"In epoch {epoch} of training the parameters are no longer finite: the steps are too "
        f"long. Use a smaller learning rate than {learning_rate:g}, a larger batch_size, or "
        "features of a smaller scale (scale_features=True)."
    )


# Stacks: the arrays of many models of one size as one tree, with the models as first axis. -----


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
