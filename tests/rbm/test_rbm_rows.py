"""V trained by rows: the same steps as on the whole of V, and what is hidden by chance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from enumeration import as_params, random_model, random_tags
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.rbm.descent import Optimiser, Penalty, shrink
from harmonium.rbm.gradients import (
    Batch,
    ContrastiveDivergence,
    HiddenConditions,
    MeanField,
    PseudoLikelihood,
)
from harmonium.rbm.model import Params
from harmonium.rbm.training import Schedule, train

DTYPE_PROMOTION = "standard"  # optax is not strict

N_HIDDEN, N_TAGS, N_INPUTS, N_CLIPS, SIZE = 3, 4, 2, 40, 8
PARTS = (5, 30)  # rows of V that belong to each part of a


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(N_CLIPS, N_INPUTS)).astype(np.float32)
    y = random_tags(rng, N_CLIPS, N_TAGS).astype(np.float32)
    a = np.stack([rng.integers(0, PARTS[0], N_CLIPS), rng.integers(5, 35, N_CLIPS)], axis=1)
    a[::7, 1] = -1
    return Batch(u, a.astype(np.int32), y, np.ones(N_CLIPS, np.float32))


@pytest.fixture
def params():
    rng = np.random.default_rng(1)
    params = as_params(random_model(rng, N_HIDDEN, N_TAGS, N_INPUTS, scale=0.3))
    return params._replace(V=jnp.asarray(rng.normal(size=(35, N_TAGS)), jnp.float32))


def run(params, data, *, rate, l1, l2, row_rate=None, **changes):
    zero = np.float32(0)
    penalty = Penalty(*(Params(zero, zero, value, zero, zero) for value in (l1, l2)))
    options = {"gradient": PseudoLikelihood(), "optimiser": Optimiser("sgd", 0.0), "seed": 0}
    options |= {"schedule": Schedule("inverse", rate), "penalty": penalty}
    options |= {"batch_size": SIZE, "max_epochs": 5, "patience": 100}
    return train(params, data, row_rate=row_rate, **(options | changes)).params


@pytest.mark.parametrize("by_row", [False, True], ids=["one penalty", "a penalty for each row"])
def test_rows_are_trained_as_the_whole_of_v_would_be(params, data, by_row):
    rate, l1, l2 = 0.4, np.float32(0.05), np.float32(0.2)
    if by_row:
        column = np.linspace(0, 1, 35, dtype=np.float32)[:, None]
        l1, l2 = l1 * column, l2 * column
    whole = run(params, data, rate=rate, l1=l1, l2=l2)
    # a step of ``rate`` on the mean of SIZE clips is one of rate / SIZE for each of them
    rows = run(params, data, rate=rate, l1=SIZE * l1, l2=SIZE * l2, row_rate=rate / SIZE)
    for name in Params._fields:
        np.testing.assert_allclose(getattr(rows, name), getattr(whole, name), atol=2e-6)
    assert 0 < np.mean(np.asarray(rows.V) == 0) < 1
    np.testing.assert_array_equal(np.asarray(rows.V) == 0, np.asarray(whole.V) == 0)


def test_the_last_smaller_batch_moves_a_row_no_further(params, data):
    """41 clips in batches of 40: the one clip left over must not count forty times."""
    more = jax.tree.map(lambda array: np.concatenate([array, array[:1]]), data)
    free = {"rate": 1e-30, "l1": np.float32(0), "l2": np.float32(0), "max_epochs": 1}
    rows = run(params, more, row_rate=0.1, batch_size=N_CLIPS, **free)
    used = np.unique(data.a[data.a >= 0], return_counts=True)[1].max() + 1
    assert np.abs(np.asarray(rows.V) - params.V).max() <= 0.1 * used


@settings(deadline=None, max_examples=40)
@given(
    v=st.floats(-3, 3, width=32),
    times=st.integers(0, 30),
    l1=st.floats(0, 0.5, width=32),
    l2=st.sampled_from([0.0, 1e-4, 0.03, 0.5]),
)
def test_many_steps_of_shrinkage_at_once_are_those_steps(v, times, l1, l2):
    slow = v
    for _ in range(times):
        slow = np.sign(slow) * max(abs(slow) - l1, 0.0) / (1 + l2)
    fast = float(shrink(*(jnp.float32(number) for number in (v, times, l1, l2))))
    assert fast == pytest.approx(slow, abs=2e-4)
    if times * l1 > abs(v) * 1.001:
        assert fast == 0


@pytest.mark.parametrize("gradient", [ContrastiveDivergence(2), MeanField(2), PseudoLikelihood()])
def test_hiding_everything_is_training_without_conditions(params, data, gradient):
    hidden = HiddenConditions(gradient, a=(0.0, 0.0), all=1.0)
    sweeps, width = hidden.noise(params, False)
    noise = jnp.asarray(np.random.default_rng(0).random((sweeps, N_CLIPS, width)), jnp.float32)
    batch = jax.tree.map(jnp.asarray, data)
    bare = batch._replace(u=jnp.zeros_like(batch.u), a=jnp.full_like(batch.a, -1))
    inner = gradient.noise(params, False)
    expected, _ = jax.jit(gradient)(params, bare, noise[: inner[0], :, : inner[1]])
    found, _ = jax.jit(hidden)(params, batch, noise)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def what_is_hidden(params, *, n=20_000, **chances):
    """Which of n clips' u, and which parts of their a, a gradient does not see."""
    seen = []

    class Spy:
        def noise(self, params, unknown):
            return 0, 0

        def __call__(self, params, batch, noise):
            seen.append(batch)
            return params, batch.y

    hidden = HiddenConditions(Spy(), **chances)
    noise = np.random.default_rng(0).random((*hidden.noise(params, False), n))
    noise = np.moveaxis(noise, 2, 1).astype(np.float32)
    ones = Batch(np.ones((n, 2), "f4"), np.ones((n, 2), "i4"), np.ones((n, 1), "f4"), np.ones(n))
    hidden(params, jax.tree.map(jnp.asarray, ones), jnp.asarray(noise))
    u, a = np.asarray(seen[0].u), np.asarray(seen[0].a)
    assert (u[:, 0] == u[:, 1]).all()
    return u[:, 0] == 0, a == -1


def test_each_part_is_hidden_as_often_as_asked(params):
    u, a = what_is_hidden(params, a=(0.5, 0.0), all=0.1)
    np.testing.assert_allclose(a.mean(axis=0), [1 - 0.9 * 0.5, 0.1], atol=0.02)
    np.testing.assert_array_equal(u, a[:, 1])  # only with all the rest


def test_parts_are_hidden_independently(params):
    u, a = what_is_hidden(params, a=(0.5, 0.5), all=0.0)
    assert not u.any()
    np.testing.assert_allclose(a.all(axis=1).mean(), 0.25, atol=0.02)
