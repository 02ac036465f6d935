"""Training V by the rows that a minibatch uses, where V has far more rows than that.

A minibatch of clips looks up a few rows of V: one for each one-hot part of a. The others change by
their penalty alone, and k steps of that have a closed form. So a row is brought up to date when it
is next used, and an epoch costs what its clips cost, however large V is. The steps are those of
plain gradient descent, and the result is that of the same steps taken on the whole of V.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from harmonium.rbm.gradients import Batch


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


def settle(table: RowTable, step: Array, by: Shrinkage) -> RowTable:
    """The table with every row up to date."""
    owed = (step - table.done).astype(table.V.dtype)[:, None]
    return RowTable(shrink(table.V, owed, by), jnp.full_like(table.done, step))
