"""Training: minibatch descent with early stopping, for one model or many at once.

Every model of a stack has its own training clips (rows of the same data), learning rate, penalties
and seed; they share sizes and the objective. One model cannot keep a GPU busy; a stack can.
Features that are not an array but an object that yields rows are read block by block.

A minibatch looks up few rows of V. The others only change by their penalty, and k steps of that
have a closed form: a row is updated when it is next used, so the cost of an epoch depends on its
clips, not on the size of V. The result equals gradient descent on all of V.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from harmonium.arrays import Codes, Doubles, Floats, Ids, Places, Rng
from harmonium.errors import DataError
from harmonium.rbm.gradients import Batch, Gradient, log_probabilities
from harmonium.rbm.model import compiled, refuse_fork

Tree = Any  # a structure of arrays, such as a model's parameters: a NamedTuple

BLOCK = 128  # minibatches per compiled scan: bounds the memory of random numbers and gathered rows
RUN = 256  # rows of a table on disk that are read in a run
WINDOW = 2**16  # rows of a table on disk that are shuffled together
MAX_NUMBERS = 2**28  # random numbers and features in one block, for all models: 1 GiB
MIN_STACK = 32  # a stack this large is compiled again without models that have stopped
READ_AHEAD = 2  # blocks read from disk while others are computed


@dataclass(frozen=True)
class Optimiser:
    """Adam, or gradient descent with momentum."""

    kind: Literal["adam", "sgd"] = "adam"
    momentum: float = 0.9

    def transformation(self) -> optax.GradientTransformation:
        """The step without its length, which the loop multiplies in."""
        if self.kind == "adam":
            return optax.scale_by_adam(b1=self.momentum)
        return optax.trace(decay=self.momentum) if self.momentum else optax.identity()


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


class Penalty(NamedTuple):
    """Strengths for each parameter array: trees of scalars with the parameters' structure.

    ``l1`` and ``l2`` are a proximal step after each step of the optimiser. ``ridge`` is ℓ2 as part
    of the loss, ½ ridge θ², whose gradient goes through the optimiser: the result is then the
    minimum of the penalised loss whatever the optimiser. With Adam and ℓ2 as a separate step, it is
    not.
    """

    l1: Tree
    l2: Tree
    ridge: Tree | None = None

    @classmethod
    def none(cls, params: Tree) -> "Penalty":
        """No penalty on any of these parameters."""
        zeros = type(params)(*(np.float32(0) for _ in params))
        return cls(zeros, zeros)


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


class Stack(NamedTuple):
    """What differs between the models; each has S entries, or arrays with S as first axis."""

    params: Tree
    rows: Sequence[Ids]  # the clips that each model learns from
    schedules: Sequence[Schedule]
    penalties: Sequence[Penalty]
    seeds: Sequence[int]

    def take(self, numbers: Places) -> "Stack":
        """Some of the models."""
        others = ([part[i] for i in numbers] for part in self[1:])
        return Stack(part_of(self.params, numbers), *others)


class RowTable(NamedTuple):
    """V, and which rows still have shrinkage to do."""

    V: Array  # (A, C)
    done: Array  # (A,), minibatches whose penalty the row already has


class State(NamedTuple):
    """What the next minibatch needs."""

    params: Tree
    optimiser: Any
    average: Tree | None  # running mean of the parameters, if one is kept
    step: Array  # (), minibatches so far
    table: RowTable | None = None  # V, if trained by rows; ``params`` and the rest lack it

    @property
    def outcome(self) -> Tree:
        """The parameters to judge and to keep."""
        params = self.params if self.average is None else self.average
        return params if self.table is None else params._replace(V=self.table.V)


class EpochSettings(NamedTuple):
    """The numbers of an epoch, inputs of the compiled program."""

    rate: Any
    penalty: Penalty
    decay: Any  # of the running mean
    row_rate: Any = None  # these two if V is trained by rows
    shrinkage: Any = None  # ℓ1 and ℓ2 of V per minibatch, times its rate: scalars or (A, 1) by row


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
    score: Callable[[Tree, Places], Doubles] | None = None,
    on_epoch: Callable[[Sequence[History]], None] | None = None,
) -> list[Result]:
    """Train every model until its score has not risen for ``patience`` epochs; keep the best.

    ``score`` returns the scores (S,) of a stack of parameters, for the models with these numbers.
    What is scored and kept is the mean of the parameters over about the last ``averaging`` epochs
    (0: the parameters themselves), which removes the noise of the last minibatches. Without
    ``score``, train for ``max_epochs`` and keep the last. Stopped models are removed when they are
    most of the stack. ``on_epoch`` is called with the histories of all models. A keyboard interrupt
    ends the training as if this had been the last epoch. A model whose parameters are not finite
    stops; if all others have stopped, that is an error.

    With ``row_rate`` V is trained by rows (see :mod:`harmonium.rbm.training`): by gradient descent
    with steps of ``row_rate`` per clip, which follow the schedule, and without averaging. Its
    penalties are then per minibatch, and may be columns with one strength for each row, (A, 1).
    """
    refuse_fork()
    n = len(stack.seeds)
    n_known, unknown = _known(data, stack.rows)
    noise = gradient.noise(first_of(stack.params), unknown)
    run = partial(_blocks, gradient, optimiser, noise)
    if _is_array(data.u):
        data = jax.device_put(data)
    state = _start(stack.params, optimiser, averaged=averaging > 0, by_rows=row_rate is not None)
    n_batches = max(-(-len(rows) // batch_size) for rows in stack.rows)
    size = min(batch_size, max(len(rows) for rows in stack.rows))
    per_clip = noise[0] * noise[1] + data.u.shape[1] + 2 * data.y.shape[1]
    length = min(BLOCK, max(1, MAX_NUMBERS // (n * size * per_clip)))
    if n > 1:  # blocks of one length, since each length needs its own program
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
            state, proxy = _epoch(run, state, stack, data, order, length, epoch, settings)
            running[models] &= np.asarray(_finite(state.outcome))
            if not running.any():
                raise DataError(
                    f"In epoch {epoch + 1} of training the parameters are no longer finite: the "
                    "steps are too long. Use a smaller learning rate than "
                    f"{stack.schedules[0].learning_rate:g}, a larger batch_size, or features of a "
                    "smaller scale (scale_features='standard')."
                )
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
    """Whether the data is in memory, rather than an object that yields rows."""
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
    """Each model's clips in random order, in minibatches (S, n_batches, B), padded with -1.

    All minibatches except the last are full. If a model has too few clips for that, they are as
    equal as possible: none may be empty.
    """
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
    run: Callable[..., tuple[State, Array]],
    state: State,
    stack: Stack,
    data: Batch,
    order: Codes,
    length: int,
    epoch: int,
    settings: EpochSettings,
) -> tuple[State, Doubles]:
    """Every training clip of every model once; returns the sums of the likelihood proxies, (S,)."""
    sums: list[Array] = []
    for i, first in enumerate(range(0, order.shape[1], length)):
        seeds = np.array(
            [np.random.SeedSequence((s, epoch, i)).generate_state(1)[0] for s in stack.seeds]
        )
        clips, rows = data, order[:, first : first + length]
        if not _is_array(data.u):  # read the clips of this block, which get new numbers
            clips = Batch(*(part[np.maximum(rows, 0).ravel()] for part in data))
            numbers = np.arange(rows.size, dtype=np.int32).reshape(rows.shape)
            rows = np.where(rows < 0, np.int32(-1), numbers)
        state, proxy = run(state, seeds, clips, rows, settings)
        sums.append(proxy)
        if i >= READ_AHEAD:
            sums[i - READ_AHEAD].block_until_ready()
    if state.table is not None:
        state = state._replace(table=_up_to_date(state.table, state.step, settings.shrinkage))
    return state, np.sum([np.asarray(proxy, np.float64) for proxy in sums], axis=0)


def _epoch_settings(
    stack: Stack, epoch: int, decay: Floats, row_rate: float | None
) -> EpochSettings:
    """The numbers of an epoch; if V is trained by rows, its penalty is kept apart."""
    rates = np.array([schedule(epoch) for schedule in stack.schedules], np.float32)
    penalties = stacked(stack.penalties)
    if row_rate is None:
        return EpochSettings(rates, penalties, decay)
    whole = np.array([schedule.learning_rate for schedule in stack.schedules])
    steps = (row_rate * rates / whole).astype(np.float32)
    shrinkage = tuple(
        steps.reshape(-1, *[1] * (strength.V.ndim - 1)) * strength.V for strength in penalties[:2]
    )
    others = Penalty(*(tree and tree._replace(V=np.zeros_like(steps)) for tree in penalties))
    return EpochSettings(rates, others, decay, steps, shrinkage)


@compiled(static_argnames=("optimiser", "averaged", "by_rows"))
def _start(params: Tree, optimiser: Optimiser, *, averaged: bool, by_rows: bool) -> State:
    """The states before the first minibatch; ``by_rows`` sets V apart."""

    def one(params: Tree) -> State:
        table = None
        if by_rows:
            table = RowTable(jnp.array(params.V), jnp.zeros(len(params.V), jnp.int32))
            params = params._replace(V=params.V[:0])
        memory = optimiser.transformation().init(params)
        average = jax.tree.map(jnp.array, params) if averaged else None
        return State(jax.tree.map(jnp.array, params), memory, average, jnp.int32(0), table)

    return for_each(one)(params)


@compiled(static_argnames=("gradient", "optimiser", "noise"), donate_argnames=("state",))
def _blocks(
    gradient: Gradient,
    optimiser: Optimiser,
    noise: tuple[int, int],
    state: State,
    seeds: Array,
    data: Batch,
    rows: Array,
    settings: EpochSettings,
) -> tuple[State, Array]:
    """Each model's descent over minibatches of ``rows`` (S, n_batches, B), padded with -1.

    ``noise`` is the gradient's, (sweeps, numbers per clip and sweep). Returns the states and the
    sums of the likelihood proxies, (S,).
    """
    transformation = optimiser.transformation()

    def one(state: State, seed: Array, rows: Array, settings: EpochSettings) -> tuple[State, Array]:
        (n_batches, size), (sweeps, width) = rows.shape, noise
        batches = jax.tree.map(lambda array: array[jnp.maximum(rows, 0)], data)
        batches = batches._replace(w=jnp.where(rows >= 0, batches.w, 0.0))
        with jax.threefry_partitionable(False):  # half the work, since there is one device
            numbers = jax.random.uniform(jax.random.key(seed), (n_batches, sweeps, size, width))

        def step(state: State, inputs: tuple[Batch, Array]) -> tuple[State, Array]:
            if state.table is None:
                table = None
                found, logits = gradient(state.params, *inputs)
            else:
                table, found, logits = descend_rows(gradient, state, *inputs, settings)
            if settings.penalty.ridge is not None:
                found = jax.tree.map(
                    lambda g, r, p: g + r * p, found, settings.penalty.ridge, state.params
                )
            updates, memory = transformation.update(found, state.optimiser, state.params)
            params = jax.tree.map(lambda p, g: p - settings.rate * g, state.params, updates)
            params = proximal(params, settings.rate, settings.penalty)
            number = state.step + 1
            average = running_mean(state.average, params, settings.decay, number)
            return State(params, memory, average, number, table), logits

        state, logits = lax.scan(step, state, (batches, numbers))
        # summed here, because small sums inside the scan are slow
        return state, jnp.sum(log_probabilities(logits, batches))

    return for_each(one)(state, seeds, rows, settings)


def running_mean(average: Tree | None, params: Tree, decay: Array, number: Array) -> Tree | None:
    """Exponential moving average; over the first steps, the plain mean so far."""
    if average is None:
        return None
    gain = jnp.maximum(1 - decay, 1 / number.astype(jnp.float32))
    return jax.tree.map(lambda m, p: m + gain * (p - m), average, params)


def proximal(params: Tree, rate: Array, penalty: Penalty) -> Tree:
    """argmin_z ½(z - θ)² + rate (λ₁|z| + ½ λ₂ z²): soft threshold, then shrink. Zeros are exact."""

    def shrink(p: Array, l1: Array, l2: Array) -> Array:
        return (p - jnp.clip(p, -rate * l1, rate * l1)) / (1 + rate * l2)

    return jax.tree.map(shrink, params, penalty.l1, penalty.l2)


def descend_rows(
    gradient: Callable[..., Any], state: State, batch: Batch, noise: Array, settings: EpochSettings
) -> tuple[RowTable, Tree, Array]:
    """A step on the rows of V that the batch uses: V_r ← V_r - rate Σ_b w_b ∂loss_b/∂V_r.

    Returns the new table, the gradient of the other parameters, and the logits. It sums over the
    clips instead of averaging, so that how far a row moves depends on the clips that use it, not on
    how many others are in the batch.
    """
    assert state.table is not None
    V, done = state.table
    # one copy of a row for each use, (B·S, C); an empty part looks up row 0 and counts for nothing
    used = jnp.maximum(batch.a.reshape(-1), 0)
    owed = (state.step - done[used]).astype(V.dtype)[:, None]
    rows = shrink(V[used], owed, *(s[used] if s.ndim else s for s in settings.shrinkage))
    places = jnp.arange(batch.a.size, dtype=batch.a.dtype).reshape(batch.a.shape)
    local = batch._replace(a=jnp.where(batch.a >= 0, places, batch.a))
    slopes, logits = gradient(state.params._replace(V=rows), local, noise)
    change = -settings.row_rate * jnp.sum(batch.w) * slopes.V
    V = V.at[used].set(rows, mode="promise_in_bounds")
    V = V.at[used].add(change, mode="promise_in_bounds")  # a row used twice gets both changes
    table = RowTable(V, done.at[used].set(state.step, mode="promise_in_bounds"))
    return table, slopes._replace(V=jnp.zeros_like(state.params.V)), logits


def shrink(v: Array, times: Array, l1: Array, l2: Array) -> Array:
    """``times`` proximal steps |v| ← (|v| - λ₁)₊ / (1 + λ₂) at once.

    With q = 1 / (1 + λ₂) they give |v| ← (q^k |v| - λ₁ (q + q² + … + q^k))₊, and the sum is
    (1 - q^k) / λ₂, or k without ℓ2. Zeros are exact.
    """
    kept = jnp.exp(-times * jnp.log1p(l2))  # q^k
    summed = jnp.where(l2 > 0, (1 - kept) / jnp.where(l2 > 0, l2, 1.0), times)
    return jnp.sign(v) * jnp.maximum(kept * jnp.abs(v) - l1 * summed, 0.0)


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


@compiled(donate_argnums=0)
@for_each
def _up_to_date(table: RowTable, step: Array, shrinkage: Any) -> RowTable:
    """The tables with all shrinkage applied."""
    owed = (step - table.done).astype(table.V.dtype)[:, None]
    return RowTable(shrink(table.V, owed, *shrinkage), jnp.full_like(table.done, step))


@compiled()
@for_each
def _finite(params: Tree) -> Array:
    """Whether all parameters of a model are finite numbers, (S,)."""
    return jnp.array([jnp.isfinite(array).all() for array in params]).all()


@compiled()
@for_each
def _kept(best: Tree, new: Tree, better: Array) -> Tree:
    """The new parameters of the models that improved, in new arrays."""
    return jax.tree.map(lambda old, now: jnp.where(better, now, old), best, new)


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
