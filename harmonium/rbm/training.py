"""The steps of training: minibatch descent for any model and objective.

A model here is a pytree of parameters and a gradient with the signature of
:class:`harmonium.rbm.gradients.Gradient`. Blocks of minibatches run as one compiled scan; learning
rate and penalties are inputs of that program, so that trying other values compiles nothing.

V may have far more rows than a minibatch looks up: one for each one-hot part of a. The others
change by their penalty alone, and k steps of that have a closed form. So a row is brought up to
date when it is next used, and an epoch costs what its clips cost, however large V is. The result is
that of the same steps of gradient descent on the whole of V.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from harmonium.rbm.gradients import Batch, Gradient, log_probabilities

Tree = Any
"""Arrays in a structure, such as the parameters of a model: a NamedTuple."""

BLOCK = 128
"""Minibatches per compiled scan: bounds the memory of random numbers and gathered rows."""


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


class RowTable(NamedTuple):
    """V, with an account of which rows still owe shrinkage."""

    V: Array  # (A, C)
    done: Array  # (A,), minibatches whose penalty is in the row already


class Shrinkage(NamedTuple):
    """Each row's penalty per minibatch, times the step length: scalars, or (A, 1) by row."""

    l1: Array
    l2: Array

    def at(self, rows: Array) -> "Shrinkage":
        """That of some rows."""
        return Shrinkage(*(s[rows] if s.ndim else s for s in self))


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

    @classmethod
    def none(cls, params: Tree) -> "Penalty":
        """No penalty on any of these parameters."""
        zeros = type(params)(*(np.float32(0) for _ in params))
        return cls(zeros, zeros)


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
        return (p - jnp.clip(p, -rate * l1, rate * l1)) / (1 + rate * l2)

    return jax.tree.map(shrink, params, penalty.l1, penalty.l2)


# V by rows. ----------------------------------------------------------------------------------


def shrink(v: Array, times: Array, by: Shrinkage) -> Array:
    """``times`` proximal steps |v| ← (|v| - λ₁)₊ / (1 + λ₂) at once.

    With q = 1 / (1 + λ₂) they give |v| ← (q^k |v| - λ₁ (q + q² + … + q^k))₊, and the sum is
    (1 - q^k) / λ₂, or k without ℓ2. Zeros are exact.
    """
    kept = jnp.exp(-times * jnp.log1p(by.l2))  # q^k
    summed = jnp.where(by.l2 > 0, (1 - kept) / jnp.where(by.l2 > 0, by.l2, 1.0), times)
    return jnp.sign(v) * jnp.maximum(kept * jnp.abs(v) - by.l1 * summed, 0.0)


def look_up(
    table: RowTable, batch: Batch, step: Array, by: Shrinkage
) -> tuple[Array, Array, Batch]:
    """The rows that a batch uses, one copy for each use, and the batch with indices into these.

    Gives the rows' numbers (B·S,), the rows (B·S, C) up to date before minibatch ``step``, and the
    batch. An empty part looks up row 0, and counts for nothing.
    """
    used = jnp.maximum(batch.a.reshape(-1), 0)
    owed = (step - table.done[used]).astype(table.V.dtype)[:, None]
    rows = shrink(table.V[used], owed, by.at(used))
    places = jnp.arange(batch.a.size, dtype=batch.a.dtype).reshape(batch.a.shape)
    return used, rows, batch._replace(a=jnp.where(batch.a >= 0, places, batch.a))


def write_back(table: RowTable, used: Array, rows: Array, change: Array, step: Array) -> RowTable:
    """The table with the rows brought up to date and changed; a row used twice changes by both."""
    V = table.V.at[used].set(rows, mode="promise_in_bounds")
    V = V.at[used].add(change, mode="promise_in_bounds")
    return RowTable(V, table.done.at[used].set(step, mode="promise_in_bounds"))


def shrink_all(table: RowTable, step: Array, by: Shrinkage) -> RowTable:
    """The table with every row up to date."""
    owed = (step - table.done).astype(table.V.dtype)[:, None]
    return RowTable(shrink(table.V, owed, by), jnp.full_like(table.done, step))
