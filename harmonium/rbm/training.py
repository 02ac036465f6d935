"""Training: minibatch descent with early stopping, for one model or many at once.

Every model of a stack has its own training clips (rows of the same data), learning rate, penalties
and seed; they share sizes and the objective. One model cannot keep a GPU busy; a stack can.
Features that are not an array but an object that yields rows are read block by block.

The chains of persistent contrastive divergence are part of the state: one for each clip or, in a
model without u and a, one for each place of a minibatch.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import numpy as np
from jax import Array

from harmonium import stopping
from harmonium.arrays import Codes, Doubles, Ids, Mask, Places, Rng
from harmonium.errors import DataError
from harmonium.rbm.descent import (
    EpochSettings,
    Optimiser,
    Penalty,
    State,
    are_finite,
    descend_blocks,
    first_states,
    improved,
    with_all_shrinkage,
)
from harmonium.rbm.gradients import Batch, Gradient
from harmonium.rbm.model import refuse_fork
from harmonium.rbm.stacks import Tree, first_of, part_of, stack_of, stacked, unstacked

BLOCK = 128  # minibatches per compiled scan: bounds the memory of random numbers and gathered rows
RUN = 256  # rows of a table on disk that are read in a run
WINDOW = 2**16  # rows of a table on disk that are shuffled together
MAX_NUMBERS = 2**28  # random numbers and features in one block, for all models: 1 GiB
MAX_READ = 2**24  # the same for tables that are read by blocks, of which there are several copies
MIN_STACK = 32  # a stack this large is compiled again without models that have stopped
READ_AHEAD = 2  # blocks read from disk while others are computed

StackScore: TypeAlias = Callable[[Tree, Places], Doubles]
"""The scores (S,) of a stack of parameters, for the models with these numbers; larger is better."""


@dataclass(frozen=True)
class Schedule:
    """Learning rate by epoch t of T: constant, inverse (1 / (1 + t / 10)) or cosine (to zero)."""

    kind: Literal["constant", "inverse", "cosine"]
    learning_rate: float
    max_epochs: int = 200

    def __call__(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        if self.kind == "inverse":
            return self.learning_rate / (1 + epoch / 10)
        if self.kind == "cosine":
            return self.learning_rate * 0.5 * (1 + np.cos(np.pi * epoch / self.max_epochs))
        return self.learning_rate


@dataclass
class History:
    """What happened, epoch by epoch."""

    log_likelihood: list[float] = field(default_factory=list)  # the objective's proxy, per tag
    score: list[float] = field(default_factory=list)  # of the validation data
    seconds: list[float] = field(default_factory=list)  # each model's share in a stack

    def __len__(self) -> int:
        return len(self.seconds)

    def add(self, log_likelihood: float, score: float, seconds: float) -> None:
        """Append one finished epoch; an interrupted epoch leaves no partial row."""
        self.log_likelihood.append(log_likelihood)
        self.score.append(score)
        self.seconds.append(seconds)


class Result(NamedTuple):
    """The parameters to keep, and how they were found."""

    params: Tree
    history: History
    best_epoch: int  # counted from 1; 0 if no epoch was finished
    interrupted: bool
    stopped: bool  # because its score had not risen for long enough


class Stack(NamedTuple):
    """What differs between the models; each has S entries, or arrays with S as first axis."""

    params: Tree
    rows: Sequence[Ids]  # the clips that each model learns from
    schedules: Sequence[Schedule]
    penalties: Sequence[Penalty]
    seeds: Sequence[int]

    def take(self, numbers: Places) -> "Stack":
        """Some of the models."""
        return Stack(
            params=part_of(self.params, numbers),
            rows=[self.rows[number] for number in numbers],
            schedules=[self.schedules[number] for number in numbers],
            penalties=[self.penalties[number] for number in numbers],
            seeds=[self.seeds[number] for number in numbers],
        )


def train(
    params: Tree,
    data: Batch,
    *,
    gradient: Gradient,
    optimiser: Optimiser,
    schedule: Schedule,
    penalty: Penalty,
    batch_size: int,
    max_epochs: int,
    patience: int,
    seed: int,
    averaging: float = 0.0,
    row_rate: float | None = None,
    score: Callable[[Tree], float] | None = None,
    on_epoch: Callable[[History], bool | None] | None = None,
) -> Result:
    """`train_stack` for one model, which learns from all clips of the data.

    ``score`` takes the parameters of the model, ``on_epoch`` its history.
    """

    def score_alone(params: Tree, _: Places) -> Doubles:
        assert score is not None
        return np.array([score(first_of(params))])

    def on_epoch_alone(histories: Sequence[History]) -> bool | None:
        assert on_epoch is not None
        return on_epoch(histories[0])

    alone = Stack(
        params=stack_of(params),
        rows=[np.arange(len(data.w))],
        schedules=[schedule],
        penalties=[penalty],
        seeds=[seed],
    )
    [result] = train_stack(
        alone,
        data,
        gradient=gradient,
        optimiser=optimiser,
        batch_size=batch_size,
        max_epochs=max_epochs,
        patience=patience,
        averaging=averaging,
        row_rate=row_rate,
        score=None if score is None else score_alone,
        on_epoch=None if on_epoch is None else on_epoch_alone,
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
    score: StackScore | None = None,
    on_epoch: Callable[[Sequence[History]], bool | None] | None = None,
) -> list[Result]:
    """Train every model until its score has not risen for ``patience`` epochs; keep the best.

    What is scored and kept is the mean of the parameters over about the last ``averaging`` epochs
    (0: the parameters themselves), which removes the noise of the last minibatches. Without
    ``score``, train for ``max_epochs`` and keep the last. Stopped models are removed when they are
    most of the stack. ``on_epoch`` is called with the histories of all models, and ends the
    training if it returns true. A keyboard interrupt ends the training as if this had been the last
    epoch. A model whose parameters are not finite stops; if all others have stopped, that is an
    error.

    With ``row_rate`` V is trained by rows (see :mod:`harmonium.rbm.descent`): by gradient descent
    with steps of ``row_rate`` per clip, which follow the schedule, and without averaging. Its
    penalties are then per minibatch, and may be columns with one strength for each row, (A, 1).
    """
    refuse_fork()
    n_known, unknown = _known(data, stack.rows)
    noise = gradient.noise(first_of(stack.params), unknown)
    batches = _minibatch_sizes(stack, data, batch_size, noise)
    if _is_array(data.u):
        data = jax.device_put(data)
    chains = None
    if gradient.is_persistent:
        chains = _first_chains(data, stack.rows, batches.size)
    by_rows = row_rate is not None
    state = first_states(stack.params, chains, optimiser, averaged=averaging > 0, by_rows=by_rows)
    descend = partial(descend_blocks, gradient, optimiser, noise)
    decay = np.float32(1 - 1 / max(averaging * batches.number, 1))
    selection = _Selection(stack, n_known, patience)
    interrupted = False
    try:
        for epoch in range(max_epochs):
            began = time.perf_counter()
            settings = _epoch_settings(stack, epoch, decay, row_rate)
            state, proxies = _epoch(descend, state, stack, data, batches, epoch, settings)
            selection.stop_diverged(np.asarray(are_finite(state.outcome)), stack, epoch)
            scores = None if score is None else score(state.outcome, selection.models)
            seconds = time.perf_counter() - began
            selection.judge(state.outcome, epoch, proxies, scores, seconds)
            if on_epoch and on_epoch(selection.histories):
                selection.running[:] = False
            selection.stop_impatient(epoch)
            if not selection.running.any():
                break
            if selection.is_mostly_idle():
                left = selection.compact()
                stack = stack.take(left)
                state = part_of(state, left)
    except KeyboardInterrupt:
        interrupted = True
    return selection.results(interrupted)


class _Selection:
    """Which models of a stack still train, and the best parameters of each so far."""

    def __init__(self, stack: Stack, n_known: Doubles, patience: int) -> None:
        n = len(stack.seeds)
        self.models = np.arange(n)  # the numbers of those in the stack
        self.running = np.full(n, True)  # by number, like all that follows
        self.histories = [History() for _ in range(n)]
        self._n_known = n_known  # labels
        self._patience = patience
        self._best = stack.params  # of those in the stack
        self._best_score = np.full(n, -np.inf)
        self._best_epoch = np.zeros(n, int)  # counted from 1
        self._removed: dict[int, Tree] = {}  # the best parameters of those no longer in the stack

    def stop_diverged(self, finite: Mask, stack: Stack, epoch: int) -> None:
        """Stop models whose parameters are not finite; an error if none is left."""
        self.running[self.models] &= finite
        if not self.running.any():
            raise DataError(
                f"In epoch {epoch + 1} of training the parameters are no longer finite: the "
                "steps are too long. Use a smaller learning rate than "
                f"{stack.schedules[0].learning_rate:g}, a larger batch_size, or features of a "
                "smaller scale (scale_features='standard')."
            )

    def judge(
        self,
        params: Tree,
        epoch: int,
        proxies: Doubles,
        scores: Doubles | None,
        seconds: float,
    ) -> None:
        """Add an epoch to the histories, and keep parameters that are better; the last, unscored.

        ``proxies`` are the sums of the likelihood proxies.
        """
        running = self.running[self.models]
        values = np.full(len(self.models), np.nan) if scores is None else scores
        for place in np.flatnonzero(running):
            number = self.models[place]
            self.histories[number].add(
                log_likelihood=float(proxies[place] / self._n_known[number]),
                score=float(values[place]),
                seconds=seconds / len(self.models),
            )
        better = running
        if scores is not None:
            better = running & (scores > self._best_score[self.models])
        if better.any():
            self._best = improved(self._best, params, better)
            self._best_score[self.models[better]] = values[better]
            self._best_epoch[self.models[better]] = epoch + 1

    def stop_impatient(self, epoch: int) -> None:
        """Stop models that have not become better for too long."""
        self.running &= epoch + 1 - self._best_epoch < self._patience

    def is_mostly_idle(self) -> bool:
        """Whether so many have stopped that a smaller stack is worth another compilation."""
        n = len(self.models)
        return n >= MIN_STACK and 2 * self.running.sum() <= n

    def compact(self) -> Places:
        """Remove the models that have stopped; returns the places of the others."""
        self._removed |= self._best_by_number()
        left = np.flatnonzero(self.running[self.models])
        self.models = self.models[left]
        self._best = part_of(self._best, left)
        return left

    def results(self, interrupted: bool) -> list[Result]:
        """Of all models."""
        best = self._removed | self._best_by_number()
        return [
            Result(
                params=best[number],
                history=history,
                best_epoch=int(self._best_epoch[number]),
                interrupted=interrupted,
                stopped=not self.running[number],
            )
            for number, history in enumerate(self.histories)
        ]

    def _best_by_number(self) -> dict[int, Tree]:
        trees = unstacked(self._best, len(self.models))
        return dict(zip(self.models, trees, strict=True))


class _Minibatches(NamedTuple):
    """How the clips of an epoch are cut up, the same for all models of a stack."""

    number: int
    size: int  # B
    per_block: int  # minibatches per compiled scan


def _minibatch_sizes(
    stack: Stack, data: Batch, batch_size: int, noise: tuple[int, int]
) -> _Minibatches:
    n_models = len(stack.seeds)
    number = max(-(-len(rows) // batch_size) for rows in stack.rows)
    size = min(batch_size, max(len(rows) for rows in stack.rows))
    sweeps, width = noise
    numbers_per_clip = sweeps * width + data.u.shape[1] + 2 * data.y.shape[1]
    most = MAX_NUMBERS if _is_array(data.u) else MAX_READ
    per_block = min(BLOCK, max(1, most // (n_models * size * numbers_per_clip)))
    if n_models > 1:  # blocks of one length, since each length needs its own program
        n_blocks = -(-number // per_block)
        per_block = -(-number // n_blocks)
        number = n_blocks * per_block
    return _Minibatches(number=number, size=size, per_block=per_block)


def _is_array(table: Any) -> bool:
    """Whether the data is in memory, rather than an object that yields rows."""
    return isinstance(table, np.ndarray | Array)


def _known(data: Batch, rows: Sequence[Ids]) -> tuple[Doubles, bool]:
    """How many known labels each model learns from, by weight, (S,); and whether any is unknown."""
    n_clips, n_tags = len(data.w), data.y.shape[1]
    counts = np.zeros(n_clips)
    n_known = np.zeros(n_clips)
    for first in range(0, n_clips, WINDOW):
        part = np.arange(first, min(first + WINDOW, n_clips))
        known = ~np.isnan(np.asarray(data.y[part]))
        n_known[part] = known.sum(axis=1)
        counts[part] = n_known[part]
        if data.label_weights is not None:
            counts[part] = np.sum(known * data.label_weights[part], axis=1)
    weighted = counts * np.asarray(data.w)
    return np.array([weighted[own].sum() for own in rows]), bool((n_known < n_tags).any())


def _is_conditional(data: Batch) -> bool:
    return data.u.shape[1] + data.a.shape[1] > 0


def _first_chains(data: Batch, rows: Sequence[Ids], size: int) -> Mask:
    """Chains start at the clips' tags, with unknown ones off; (S, N, C), or (S, B, C) of some."""
    if not _is_conditional(data):
        own = [np.resize(numbers, size) for numbers in rows]
        return np.stack([np.asarray(data.y[numbers]) > 0.5 for numbers in own])
    n_clips, n_tags = data.y.shape
    start = np.zeros((n_clips, n_tags), bool)
    for first in range(0, n_clips, WINDOW):
        part = np.arange(first, min(first + WINDOW, n_clips))
        start[part] = np.asarray(data.y[part]) > 0.5
    return np.broadcast_to(start, (len(rows), n_clips, n_tags))


def _minibatches(stack: Stack, epoch: int, batches: _Minibatches, *, in_runs: bool) -> Codes:
    """Each model's clips in random order, in minibatches (S, n_batches, B), padded with -1.

    All minibatches except the last are full. If a model has too few clips for that, they are as
    equal as possible: none may be empty.
    """
    n_batches, size, _ = batches
    orders = np.full((len(stack.seeds), n_batches * size), -1, np.int32)
    for order, rows, seed in zip(orders, stack.rows, stack.seeds, strict=True):
        rng = np.random.default_rng((seed, epoch))
        numbers = _in_runs(rng, len(rows)) if in_runs else rng.permutation(len(rows))
        order[_places(len(rows), n_batches, size)] = rows[numbers]
    return orders.reshape(-1, n_batches, size)


@lru_cache(maxsize=64)
def _places(n: int, n_batches: int, size: int) -> slice | Places:
    """Where n clips stand in a row of minibatches."""
    if n > (n_batches - 1) * size:
        return slice(n)
    sizes = np.diff(np.linspace(0, n, n_batches + 1).astype(int))
    return np.flatnonzero(np.arange(size) < sizes[:, None])


def _in_runs(rng: Rng, n: int) -> Ids:
    """A random order of n rows in which a disk can read many in a run."""
    # Runs of rows are put in a random order, and the rows are then shuffled within windows.
    runs = np.arange(0, n, RUN)
    order = np.concatenate(
        [np.arange(first, min(first + RUN, n)) for first in runs[rng.permutation(len(runs))]]
    )
    for first in range(0, n, WINDOW):
        rng.shuffle(order[first : first + WINDOW])
    return order


def _epoch(
    descend: Callable[..., tuple[State, Array]],
    state: State,
    stack: Stack,
    data: Batch,
    batches: _Minibatches,
    epoch: int,
    settings: EpochSettings,
) -> tuple[State, Doubles]:
    """Every training clip of every model once; returns the sums of the likelihood proxies, (S,)."""
    in_runs = not _is_array(data.u) and getattr(data.u, "in_runs", True)
    order = _minibatches(stack, epoch, batches, in_runs=in_runs)
    sums: list[Array] = []
    for i, first in enumerate(range(0, batches.number, batches.per_block)):
        stopping.check()
        seeds = np.array(
            [np.random.SeedSequence((s, epoch, i)).generate_state(1)[0] for s in stack.seeds]
        )
        clips, rows = data, order[:, first : first + batches.per_block]
        places = rows
        if not _is_conditional(data):
            places = np.where(rows < 0, np.int32(-1), np.arange(rows.shape[2], dtype=np.int32))
        if not _is_array(data.u):  # read the clips of this block, which get new numbers
            wanted = np.maximum(rows, 0).ravel()
            labels = data.label_weights
            clips = Batch(
                u=data.u[wanted],
                a=data.a[wanted],
                y=data.y[wanted],
                w=data.w[wanted],
                label_weights=None if labels is None else labels[wanted],
            )
            numbers = np.arange(rows.size, dtype=np.int32).reshape(rows.shape)
            rows = np.where(rows < 0, np.int32(-1), numbers)
        state, proxy = descend(state, seeds, clips, rows, places, settings)
        sums.append(proxy)
        if i >= READ_AHEAD:
            sums[i - READ_AHEAD].block_until_ready()
    if state.table is not None:
        state = state._replace(
            table=with_all_shrinkage(state.table, state.step, settings.shrinkage)
        )
    return state, np.sum([np.asarray(proxy, np.float64) for proxy in sums], axis=0)


def _epoch_settings(
    stack: Stack, epoch: int, decay: np.float32, row_rate: float | None
) -> EpochSettings:
    """The numbers of an epoch; if V is trained by rows, its penalty is kept apart."""
    rates = np.array([schedule(epoch) for schedule in stack.schedules], np.float32)
    decays = np.full_like(rates, decay)
    penalties = stacked(stack.penalties)
    if row_rate is None:
        return EpochSettings(rates, penalties, decays)
    whole = np.array([schedule.learning_rate for schedule in stack.schedules])
    steps = (row_rate * rates / whole).astype(np.float32)
    shrinkage = tuple(
        steps.reshape(-1, *[1] * (strength.V.ndim - 1)) * strength.V for strength in penalties[:2]
    )
    others = Penalty(*(tree and tree._replace(V=np.zeros_like(steps)) for tree in penalties))
    return EpochSettings(rates, others, decays, steps, shrinkage)
