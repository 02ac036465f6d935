"""Descent over minibatches, compiled: the optimiser's step, penalties, averages, chains, rows of V.

A minibatch looks up few rows of V. The others only change by their penalty, and k steps of that
have a closed form: a row is updated when it is next used, so the cost of an epoch depends on its
clips, not on the size of V. The result equals gradient descent on all of V.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from harmonium.rbm.gradients import Batch, Gradient, log_probabilities
from harmonium.rbm.model import compiled
from harmonium.rbm.stacks import Tree, for_each


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
    chains: Any = None  # (N, C) or (B, C) truth values: the tags of persistent chains

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


@compiled(static_argnames=("optimiser", "averaged", "by_rows"))
def first_states(
    params: Tree, chains: Any, optimiser: Optimiser, *, averaged: bool, by_rows: bool
) -> State:
    """The states before the first minibatch; ``by_rows`` sets V apart."""

    def one(params: Tree, chains: Any) -> State:
        table = None
        if by_rows:
            table = RowTable(jnp.array(params.V), jnp.zeros(len(params.V), jnp.int32))
            params = params._replace(V=params.V[:0])
        memory = optimiser.transformation().init(params)
        average = jax.tree.map(jnp.array, params) if averaged else None
        return State(jax.tree.map(jnp.array, params), memory, average, jnp.int32(0), table, chains)

    return for_each(one)(params, chains)


@compiled(static_argnames=("gradient", "optimiser", "noise"), donate_argnames=("state",))
def descend_blocks(
    gradient: Gradient,
    optimiser: Optimiser,
    noise: tuple[int, int],
    state: State,
    seeds: Array,
    data: Batch,
    rows: Array,
    places: Array,
    settings: EpochSettings,
) -> tuple[State, Array]:
    """Each model's descent over minibatches of ``rows`` (S, n_batches, B), padded with -1.

    ``places`` are the clips' persistent chains, likewise. ``noise`` is the gradient's, (sweeps,
    numbers per clip and sweep). Returns the states and the sums of the likelihood proxies, (S,).
    """
    transformation = optimiser.transformation()

    def one(
        state: State, seed: Array, rows: Array, places: Array, settings: EpochSettings
    ) -> tuple[State, Array]:
        (n_batches, size), (sweeps, width) = rows.shape, noise
        batches = jax.tree.map(lambda array: array[jnp.maximum(rows, 0)], data)
        batches = batches._replace(w=jnp.where(rows >= 0, batches.w, 0.0))
        with jax.threefry_partitionable(False):  # half the work, since there is one device
            numbers = jax.random.uniform(jax.random.key(seed), (n_batches, sweeps, size, width))

        def step(state: State, inputs: tuple[Batch, Array, Array]) -> tuple[State, Array]:
            batch, numbers, own = inputs
            if state.chains is not None:
                batch = batch._replace(chains=state.chains[own].astype(batch.y.dtype))
            if state.table is None:
                table = None
                batch = batch._replace(chains=gradient.advance(state.params, batch, numbers))
                found, logits = gradient(state.params, batch, numbers)
            else:
                table, batch, found, logits = descend_rows(
                    gradient, state, batch, numbers, settings
                )
            # the gradient is of the mean over the batch; heavy clips make the step longer
            mean_weight = jnp.sum(batch.w) / jnp.maximum(jnp.sum(own >= 0), 1)
            found = jax.tree.map(lambda g: mean_weight * g, found)
            chains = state.chains
            if chains is not None:
                filling = jnp.where(own >= 0, own, len(chains))  # not stored
                chains = chains.at[filling].set(batch.chains > 0.5, mode="drop")
            if settings.penalty.ridge is not None:
                found = jax.tree.map(
                    lambda g, r, p: g + r * p, found, settings.penalty.ridge, state.params
                )
            updates, memory = transformation.update(found, state.optimiser, state.params)
            params = jax.tree.map(lambda p, g: p - settings.rate * g, state.params, updates)
            params = proximal(params, settings.rate, settings.penalty)
            number = state.step + 1
            average = running_mean(state.average, params, settings.decay, number)
            return State(params, memory, average, number, table, chains), logits

        state, logits = lax.scan(step, state, (batches, numbers, places))
        # summed here, because small sums inside the scan are slow
        return state, jnp.sum(log_probabilities(logits, batches))

    return for_each(one)(state, seeds, rows, places, settings)


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
    gradient: Gradient, state: State, batch: Batch, noise: Array, settings: EpochSettings
) -> tuple[RowTable, Batch, Tree, Array]:
    """A step on the rows of V that the batch uses: V_r ← V_r - rate Σ_b w_b ∂loss_b/∂V_r.

    Returns the new table, the batch with its chains moved on, the gradient of the other parameters,
    and the logits. It sums over the clips instead of averaging, so that how far a row moves depends
    on the clips that use it, not on how many others are in the batch.
    """
    assert state.table is not None
    V, done = state.table
    # one copy of a row for each use, (B·S, C); an empty part looks up row 0 and counts for nothing
    used = jnp.maximum(batch.a.reshape(-1), 0)
    owed = (state.step - done[used]).astype(V.dtype)[:, None]
    rows = shrink(V[used], owed, *(s[used] if s.ndim else s for s in settings.shrinkage))
    places = jnp.arange(batch.a.size, dtype=batch.a.dtype).reshape(batch.a.shape)
    local = batch._replace(a=jnp.where(batch.a >= 0, places, batch.a))
    params = state.params._replace(V=rows)
    local = local._replace(chains=gradient.advance(params, local, noise))
    slopes, logits = gradient(params, local, noise)
    change = -settings.row_rate * jnp.sum(batch.w) * slopes.V
    V = V.at[used].set(rows, mode="promise_in_bounds")
    V = V.at[used].add(change, mode="promise_in_bounds")  # a row used twice gets both changes
    table = RowTable(V, done.at[used].set(state.step, mode="promise_in_bounds"))
    others = slopes._replace(V=jnp.zeros_like(state.params.V))
    return table, batch._replace(chains=local.chains), others, logits


def shrink(v: Array, times: Array, l1: Array, l2: Array) -> Array:
    """``times`` proximal steps |v| ← (|v| - λ₁)₊ / (1 + λ₂) at once.

    With q = 1 / (1 + λ₂) they give |v| ← (q^k |v| - λ₁ (q + q² + … + q^k))₊, and the sum is
    (1 - q^k) / λ₂, or k without ℓ2. Zeros are exact.
    """
    kept = jnp.exp(-times * jnp.log1p(l2))  # q^k
    summed = jnp.where(l2 > 0, (1 - kept) / jnp.where(l2 > 0, l2, 1.0), times)
    return jnp.sign(v) * jnp.maximum(kept * jnp.abs(v) - l1 * summed, 0.0)


@compiled(donate_argnums=0)
@for_each
def with_all_shrinkage(table: RowTable, step: Array, shrinkage: Any) -> RowTable:
    """The tables with all shrinkage applied."""
    owed = (step - table.done).astype(table.V.dtype)[:, None]
    return RowTable(shrink(table.V, owed, *shrinkage), jnp.full_like(table.done, step))


@compiled()
@for_each
def are_finite(params: Tree) -> Array:
    """Whether all parameters of a model are finite numbers, (S,)."""
    return jnp.array([jnp.isfinite(array).all() for array in params]).all()


@compiled()
@for_each
def improved(best: Tree, new: Tree, better: Array) -> Tree:
    """The new parameters of the models that improved, in new arrays."""
    return jax.tree.map(lambda old, now: jnp.where(better, now, old), best, new)
