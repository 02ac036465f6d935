"""The training loop: minibatch descent with early stopping, for any model and objective.

A model here is a pytree of parameters and a gradient with the signature of
:class:`harmonium.rbm.gradients.Gradient`. Blocks of minibatches run as one compiled scan; learning
rate and penalties are inputs of that program, so that trying other values compiles nothing.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax
from numpy.typing import NDArray

from harmonium.errors import DataError
from harmonium.rbm.compilation import compiled, refuse_fork
from harmonium.rbm.gradients import Batch, Gradient, log_probabilities
from harmonium.rbm.rows import RowTable, Shrinkage, look_up, settle, write_back

BLOCK = 128
"""Minibatches per compiled scan: bounds the memory of random numbers and gathered rows."""

Tree = Any
"""Parameters: a NamedTuple of arrays."""


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

    kind: Literal["constant", "inverse", "cosine"] = "constant"
    learning_rate: float = 0.01
    max_epochs: int = 200

    def __call__(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        if self.kind == "inverse":
            return self.learning_rate / (1 + epoch / 10)
        if self.kind == "cosine":
            return self.learning_rate * 0.5 * (1 + np.cos(np.pi * epoch / self.max_epochs))
        return self.learning_rate


class State(NamedTuple):
    """What the next minibatch needs."""

    params: Tree
    optimiser: Any
    average: Tree | None  # running mean of the parameters, if one is kept
    step: Array  # (), minibatches so far
    table: RowTable | None = None  # V, where it is trained by rows; ``params`` and the rest lack it

    @property
    def outcome(self) -> Tree:
        """The parameters to judge and to keep."""
        params = self.params if self.average is None else self.average
        return params if self.table is None else params._replace(V=self.table.V)


class Penalty(NamedTuple):
    """Strengths for each parameter array: trees of scalars with the parameters' structure.

    ``l1`` and ``l2`` are a proximal step after each step of the optimiser. ``ridge`` is ℓ2 as part
    of the loss, ½ ridge θ², whose gradient goes through the optimiser: the result is then the
    minimum of the penalised loss whatever the optimiser, which it is not if ℓ2 is a step after
    those of Adam.
    """

    l1: Tree
    l2: Tree
    ridge: Tree | None = None


@dataclass
class History:
    """What happened, epoch by epoch."""

    log_likelihood: list[float] = field(default_factory=list)  # the objective's proxy, per tag
    score: list[float] = field(default_factory=list)  # of the validation data
    seconds: list[float] = field(default_factory=list)

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


class EpochSettings(NamedTuple):
    """The numbers of an epoch, inputs of the compiled program."""

    rate: Any
    penalty: Penalty
    decay: Any  # of the running mean
    row_rate: Any = None  # these two where V is trained by rows
    shrinkage: Shrinkage | None = None


class Setup(NamedTuple):
    """What a compiled block is specialised to."""

    gradient: Any
    optimiser: Optimiser
    noise: tuple[int, int]  # sweeps, and numbers per clip and sweep


@compiled(static_argnames=("optimiser", "averaged", "by_rows"))
def start(
    params: Tree, optimiser: Optimiser, *, averaged: bool = False, by_rows: bool = False
) -> State:
    """The state before the first minibatch; ``by_rows`` sets V apart."""
    table = None
    if by_rows:
        table = RowTable(jnp.array(params.V), jnp.zeros(len(params.V), jnp.int32))
        params = params._replace(V=params.V[:0])
    memory = optimiser.transformation().init(params)
    average = jax.tree.map(jnp.array, params) if averaged else None
    return State(jax.tree.map(jnp.array, params), memory, average, jnp.int32(0), table)


def block(
    setup: Setup,
    state: State,
    seed: Array,
    data: Batch,
    rows: Array,
    settings: EpochSettings,
) -> tuple[State, Array]:
    """Descend over minibatches whose row numbers are ``rows`` (n_batches, B); -1 fills up."""
    n_batches, size = rows.shape
    sweeps, width = setup.noise
    batches = jax.tree.map(lambda array: array[jnp.maximum(rows, 0)], data)
    batches = batches._replace(w=jnp.where(rows >= 0, batches.w, 0.0))
    with jax.threefry_partitionable(False):  # half the work; nothing here runs on several devices
        noise = jax.random.uniform(jax.random.key(seed), (n_batches, sweeps, size, width))
    transformation = setup.optimiser.transformation()

    def step(state: State, inputs: tuple[Batch, Array]) -> tuple[State, Array]:
        if state.table is None:
            table = None
            gradient, logits = setup.gradient(state.params, *inputs)
        else:
            table, gradient, logits = descend_rows(setup.gradient, state, *inputs, settings)
        if settings.penalty.ridge is not None:
            gradient = jax.tree.map(
                lambda g, r, p: g + r * p, gradient, settings.penalty.ridge, state.params
            )
        updates, memory = transformation.update(gradient, state.optimiser, state.params)
        params = jax.tree.map(lambda p, g: p - settings.rate * g, state.params, updates)
        params = proximal(params, settings.rate, settings.penalty)
        number = state.step + 1
        average = running_mean(state.average, params, settings.decay, number)
        return State(params, memory, average, number, table), logits

    state, logits = lax.scan(step, state, (batches, noise))
    # summed here, because small sums inside the scan are slow
    return state, jnp.sum(log_probabilities(logits, batches))


_block = compiled(static_argnames=("setup",), donate_argnames=("state",))(block)


def descend_rows(
    gradient: Gradient, state: State, batch: Batch, noise: Array, settings: EpochSettings
) -> tuple[RowTable, Tree, Array]:
    """A step of the rows of V that the batch uses: V_r ← V_r - rate Σ_b w_b ∂loss_b/∂V_r.

    Gives the new table, the gradient of the other parameters, and the logits. It is the sum over
    the clips, not their mean, so that how far a row moves depends on the clips that use it and not
    on how many others are in the batch.
    """
    assert state.table is not None
    assert settings.shrinkage is not None
    used, rows, local = look_up(state.table, batch, state.step, settings.shrinkage)
    slopes, logits = gradient(state.params._replace(V=rows), local, noise)
    change = -settings.row_rate * jnp.sum(batch.w) * slopes.V
    table = write_back(state.table, used, rows, change, state.step)
    return table, slopes._replace(V=jnp.zeros_like(state.params.V)), logits


def running_mean(average: Tree | None, params: Tree, decay: Array, number: Array) -> Tree | None:
    """Exponential moving average; over the first steps, the plain mean of those there are."""
    if average is None:
        return None
    gain = jnp.maximum(1 - decay, 1 / number.astype(jnp.float32))
    return jax.tree.map(lambda m, p: m + gain * (p - m), average, params)


def proximal(params: Tree, rate: Array, penalty: Penalty) -> Tree:
    """argmin_z ½(z - θ)² + rate (λ₁|z| + ½ λ₂ z²): soft threshold, then shrink. Zeros are exact."""

    def shrink(p: Array, l1: Array, l2: Array) -> Array:
        return jnp.sign(p) * jnp.maximum(jnp.abs(p) - rate * l1, 0.0) / (1 + rate * l2)

    return jax.tree.map(shrink, params, penalty.l1, penalty.l2)


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
    on_epoch: Callable[[History], None] | None = None,
) -> Result:
    """Train until ``score`` has not risen for ``patience`` epochs; keep the best parameters.

    What is scored and kept is the mean of the parameters over about the last ``averaging`` epochs
    (0: the parameters themselves), which takes out the noise of the last minibatches. Without
    ``score``, train for ``max_epochs`` and keep the last. An interrupt from the keyboard ends the
    training and keeps what would have been kept had it ended there. Parameters that are not finite
    are an error.

    With ``row_rate`` V is trained by rows (see :mod:`harmonium.rbm.rows`): by gradient descent with
    steps of ``row_rate`` per clip, which follow the schedule, and without averaging. Its penalties
    are then per minibatch, and may be columns with one strength for each row, (A, 1).
    """
    refuse_fork()
    known = ~np.isnan(data.y)
    n_known, unknown = float(np.sum(data.w @ known)), not known.all()
    setup = Setup(gradient, optimiser, gradient.noise(params, unknown))
    data = jax.device_put(data)
    by_rows = row_rate is not None
    state = start(params, optimiser, averaged=averaging > 0, by_rows=by_rows)
    history = History()
    window = averaging * -(-len(data.w) // batch_size)
    decay = np.float32(1 - 1 / max(window, 1))
    best, best_epoch, best_score, interrupted = params, 0, -np.inf, False
    try:
        for epoch in range(max_epochs):
            began = time.perf_counter()
            settings = _epoch_settings(schedule, epoch, penalty, decay, row_rate)
            state, proxy = _epoch(setup, state, data, batch_size, (seed, epoch), settings)
            if state.table is not None:
                state = state._replace(table=settle(state.table, state.step, settings.shrinkage))
            if not _finite(state.outcome):
                raise DataError(_diverged(epoch + 1, schedule.learning_rate))
            value = score(state.outcome) if score else np.nan
            history.add(proxy / n_known, value, time.perf_counter() - began)
            if score is None or value > best_score:
                best, best_epoch = _copy(state.outcome), epoch + 1
                best_score = value
            if on_epoch:
                on_epoch(history)
            if epoch + 1 - best_epoch >= patience:
                break
    except KeyboardInterrupt:
        interrupted = True
    return Result(best, history, best_epoch, interrupted)


@compiled()
def _finite(params: Tree) -> Array:
    """Whether all parameters are finite numbers."""
    return jnp.array([jnp.isfinite(array).all() for array in params]).all()


@compiled()
def _copy(params: Tree) -> Tree:
    """The parameters in arrays of their own: those of the state are given to the next block."""
    return jax.tree.map(jnp.array, params)


def _diverged(epoch: int, learning_rate: float) -> str:
    return (
        f"In epoch {epoch} of training the parameters are no longer finite: the steps are too "
        f"long. Use a smaller learning rate than {learning_rate:g}, a larger batch_size, or "
        "features of a smaller scale (scale_features=True)."
    )


def _epoch_settings(
    schedule: Schedule, epoch: int, penalty: Penalty, decay: Any, row_rate: float | None
) -> EpochSettings:
    """The numbers of an epoch; where V is trained by rows its penalty is kept apart."""
    rate = np.float32(schedule(epoch))
    if row_rate is None:
        return EpochSettings(rate, penalty, decay)
    row_step = np.float32(row_rate * rate / schedule.learning_rate)
    shrinkage = Shrinkage(row_step * penalty.l1.V, row_step * penalty.l2.V)
    others = Penalty(*(tree and tree._replace(V=np.float32(0)) for tree in penalty))
    return EpochSettings(rate, others, decay, row_step, shrinkage)


def _epoch(
    setup: Setup,
    state: State,
    data: Batch,
    batch_size: int,
    seeds: tuple[int, int],
    settings: EpochSettings,
) -> tuple[State, float]:
    """Every clip once, in a random order. Gives the state and the log-likelihood proxy's sum."""
    total = 0.0
    for i, rows in enumerate(row_blocks(len(data.w), batch_size, seeds)):
        noise_seed = np.random.SeedSequence((*seeds, i)).generate_state(1)[0]
        state, proxy = _block(setup, state, noise_seed, data, rows, settings)
        total += float(proxy)
    return state, total


def row_blocks(n: int, batch_size: int, seeds: tuple[int, int]) -> Iterator[NDArray[np.int32]]:
    """A random order of n rows in blocks of minibatches, (<= BLOCK, B); -1 fills the last."""
    size = min(batch_size, n)
    order = np.random.default_rng(seeds).permutation(n).astype(np.int32)
    order = np.concatenate([order, np.full(-n % size, -1, np.int32)]).reshape(-1, size)
    for first in range(0, len(order), BLOCK):
        yield order[first : first + BLOCK]
