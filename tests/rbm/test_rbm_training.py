"""The training loop: proximal step, schedules, seeds, compilations, early stopping, interrupts."""

import re
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from enumeration import as_params, random_model, random_tags
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from harmonium.errors import DataError
from harmonium.rbm import descent, training
from harmonium.rbm.descent import Optimiser, Penalty, proximal, running_mean
from harmonium.rbm.gradients import (
    Batch,
    ContrastiveDivergence,
    MeanField,
    PersistentContrastiveDivergence,
    PseudoLikelihood,
)
from harmonium.rbm.model import Params, compiled
from harmonium.rbm.stacks import stacked
from harmonium.rbm.training import (
    BLOCK,
    Schedule,
    Stack,
    train,
    train_stack,
)

DTYPE_PROMOTION = "standard"  # optax's Adam is not strict

N_HIDDEN, N_TAGS, N_FEATURES, N_CLIPS = 3, 4, 2, 50


def strengths(value):
    """A penalty on U and W, as the estimators set it."""
    return Params(*(np.float32(value * (name in "UW")) for name in Params._fields))


NO_PENALTY = Penalty(strengths(0), strengths(0))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(N_CLIPS, N_FEATURES)).astype(np.float32)
    y = random_tags(rng, N_CLIPS, N_TAGS).astype(np.float32)
    y[:, 0] = u[:, 0] > 0
    return Batch(u, np.zeros((N_CLIPS, 0), np.int32), y, np.ones(N_CLIPS, np.float32))


@pytest.fixture
def params():
    return as_params(
        random_model(np.random.default_rng(1), N_HIDDEN, N_TAGS, N_FEATURES, scale=0.1)
    )


def run(params, data, **changes):
    """A short training whose program all tests of this file share."""
    settings = {"gradient": ContrastiveDivergence(1), "optimiser": Optimiser(), "batch_size": 8}
    settings |= {"schedule": Schedule("constant", 0.05), "penalty": NO_PENALTY}
    settings |= {"max_epochs": 6, "patience": 100, "seed": 0}
    return train(params, data, **(settings | changes))


def bits(result):
    return b"".join(np.asarray(array).tobytes() for array in result.params)


def distance(one, other):
    return max(np.abs(np.asarray(x) - y).max(initial=0) for x, y in zip(one, other, strict=True))


@settings(deadline=None, max_examples=50)
@given(
    theta=st.floats(-3, 3, width=32),
    rate=st.floats(2**-10, 1, width=32),
    l1=st.floats(0, 3, width=32),
    l2=st.floats(0, 3, width=32),
)
def test_the_proximal_step_minimises_its_objective(theta, rate, l1, l2):
    def objective(z):
        return 0.5 * (z - theta) ** 2 + rate * (l1 * abs(z) + 0.5 * l2 * z**2)

    penalty = Penalty((np.float32(l1),), (np.float32(l2),))
    z = float(proximal((np.float32(theta),), np.float32(rate), penalty)[0])
    best = minimize_scalar(objective, bounds=(-4, 4), method="bounded", options={"xatol": 1e-9})
    assert objective(z) <= min(best.fun, objective(0.0)) + 1e-6
    if abs(theta) <= rate * l1 * (1 - 1e-6):
        assert z == 0


def test_l1_makes_exact_zeros_of_weights_only(params, data):
    result = run(params, data, penalty=Penalty(strengths(5.0), strengths(0)))
    assert (np.asarray(result.params.U) == 0).all()
    assert (np.asarray(result.params.c) != 0).all()
    assert (np.asarray(run(params, data).params.U) != 0).all()


def test_one_step_of_each_optimiser():
    """Plain, with momentum and Adam, on a loss whose gradient is known: one full batch an epoch."""

    class Linear(PseudoLikelihood):
        """The gradient of Σ θ: all ones."""

        def __call__(self, params, batch, noise):
            return jax.tree.map(lambda p: np.ones(p.shape, np.float32), params), batch.y

    def steps(optimiser):
        start = as_params(random_model(np.random.default_rng(2), 1, 1))
        one = Batch(*(np.zeros((1, m), t) for m, t in ((0, np.float32), (0, np.int32))), None, None)
        one = one._replace(y=np.zeros((1, 1), np.float32), w=np.ones(1, np.float32))
        end = run(start, one, gradient=Linear(), optimiser=optimiser, max_epochs=3)
        return np.ravel(start.U - end.params.U)[0]

    assert steps(Optimiser("sgd", 0.0)) == pytest.approx(3 * 0.05, abs=1e-6)
    # the velocity of the three steps is 1, 1 + 0.5 and 1 + 0.5 + 0.25
    assert steps(Optimiser("sgd", 0.5)) == pytest.approx((1 + 1.5 + 1.75) * 0.05, abs=1e-6)
    # Adam divides by the gradient's size
    assert steps(Optimiser("adam")) == pytest.approx(3 * 0.05, abs=1e-5)


class Toggled(PersistentContrastiveDivergence):
    """Chains that change every tag at each step. The step on d is the sum of the chains' tags."""

    def noise(self, params, unknown):
        return 0, 0

    def advance(self, params, batch, noise):
        return 1 - batch.chains

    def __call__(self, params, batch, noise):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return zeros._replace(d=-batch.w @ batch.chains), jnp.zeros_like(batch.y)


class Rows:
    """A table that is read when rows are asked for."""

    def __init__(self, table):
        self.table, self.shape = table, table.shape

    def __getitem__(self, rows):
        return self.table[rows]


def d_after(data, n_epochs):
    """d of two models, of which the second learns from the last three clips only."""
    rows = [np.arange(len(data.w)), np.arange(len(data.w))[-3:]]
    shapes = (1, 2), (1, data.u.shape[1]), (0, 2), (1,), (2,)
    start = Params(*(np.zeros((2, *shape), np.float32) for shape in shapes))
    none = Penalty(*[Params(*[np.float32(0)] * 5)] * 2)
    stack = Stack(start, rows, [Schedule("constant", 1.0)] * 2, [none] * 2, [0, 1])
    results = train_stack(
        stack,
        data,
        gradient=Toggled(),
        optimiser=Optimiser("sgd", 0.0),
        batch_size=2,
        max_epochs=n_epochs,
        patience=9,
    )
    return [result.params.d for result in results]


@pytest.mark.parametrize("on_disk", [False, True], ids=["in memory", "read in blocks"])
def test_each_clip_has_a_chain_that_goes_on_from_epoch_to_epoch(on_disk):
    """Five clips in minibatches of two: the last one is filled up, which must move no chain."""
    y = np.array([[1, 0], [1, 1], [0, 0], [1, np.nan], [0, 1]], np.float32)
    u = np.ones((5, 1), np.float32)
    data = Batch(Rows(u) if on_disk else u, np.zeros((5, 0), np.int32), y, np.ones(5, np.float32))
    on = np.nan_to_num(y)  # where the chains start
    for n_epochs, visits in ((1, [1 - on]), (2, [1 - on, on]), (3, [1 - on, on, 1 - on])):
        whole, part = d_after(data, n_epochs)
        np.testing.assert_array_equal(whole, sum(chains.sum(axis=0) for chains in visits))
        np.testing.assert_array_equal(part, sum(chains[2:].sum(axis=0) for chains in visits))


def test_without_conditions_all_clips_share_the_chains_of_a_minibatch():
    y = np.array([[1, 0], [1, 1], [0, 0], [1, 1]], np.float32)
    no_u = np.zeros((4, 0), np.float32)
    data = Batch(no_u, np.zeros((4, 0), np.int32), y, np.ones(4, np.float32))
    whole, _ = d_after(data, 1)
    # two chains, from the first two clips: all tags changed, and changed back
    np.testing.assert_array_equal(whole, (1 - y[:2]).sum(axis=0) + y[:2].sum(axis=0))


@pytest.mark.parametrize(
    ("kind", "rates"),
    [("constant", [1] * 4), ("inverse", [1, 2 / 3, 0.5, 1 / 3]), ("cosine", [1, 0.85355, 0.5, 0])],
)
def test_schedules(kind, rates):
    found = [Schedule(kind, 0.1, 20)(epoch) for epoch in (0, 5, 10, 20)]
    np.testing.assert_allclose(found, 0.1 * np.array(rates), atol=1e-4)


def test_the_running_mean_is_plain_before_it_is_exponential():
    values = np.random.default_rng(3).normal(size=40).astype(np.float32)
    mean, path = (np.float32(9.0),), []
    for number, value in enumerate(values, 1):
        mean = running_mean(mean, (value,), np.float32(0.9), np.int32(number))
        path.append(float(mean[0]))
    np.testing.assert_allclose(path[:10], np.cumsum(values)[:10] / np.arange(1, 11), atol=1e-6)
    expected = path[9]
    for value in values[10:]:
        expected = 0.9 * expected + 0.1 * value
    assert path[-1] == pytest.approx(expected, abs=1e-6)


def test_training_raises_the_likelihood_proxy(params, data):
    history = run(params, data, max_epochs=40).history
    assert len(history) == 40
    # one tag follows from the features, of which chance knows log 2: a quarter of it is 0.17
    assert np.mean(history.log_likelihood[-5:]) > history.log_likelihood[0] + 0.1
    assert all(value < 0 for value in history.log_likelihood)
    assert all(value > 0 for value in history.seconds)
    twice = run(params, data._replace(w=2 * data.w), max_epochs=2).history.log_likelihood
    np.testing.assert_allclose(twice, history.log_likelihood[:2], rtol=1e-5)


def test_no_loop_over_elements_is_shared_between_threads():
    program = compiled()(lambda x: jnp.sqrt(x) / (1 + jnp.exp(x) * x))
    text = program.__wrapped__.lower(np.ones((500, 2000), np.float32)).compile().as_text()
    assert "exponential" in text
    assert not re.search(r'"outer_dimension_partitions":\["\d', text)


def test_training_leaves_its_start_alone(params, data):
    before = [np.array(array) for array in params]
    run(params, data)
    for one, other in zip(params, before, strict=True):
        np.testing.assert_array_equal(one, other)
    as_jax = Params(*map(jax.numpy.asarray, params))  # whose buffers could have been given away
    run(as_jax, data)
    np.testing.assert_array_equal(as_jax.U, before[0])


def minibatches(n, size, epoch=3, n_batches=None, **options):
    stack = Stack(None, [np.arange(n) + 5], [], [], [0])
    sizes = training._Minibatches(number=n_batches or -(-n // size), size=size, per_block=1)
    [order] = training._minibatches(stack, epoch, sizes, **options)
    return order


@pytest.fixture
def short_runs(monkeypatch):
    """Runs and windows of clips that are short enough for a few clips."""
    monkeypatch.setattr(training, "RUN", 16)
    monkeypatch.setattr(training, "WINDOW", 64)


@pytest.mark.usefixtures("short_runs")
def test_every_clip_is_seen_once_an_epoch():
    sizes = ((50, 8), (7, 20), (2000, 10), (1, 1), (16, 16))
    for (n, size), in_runs in product(sizes, (False, True)):
        order = minibatches(n, size, in_runs=in_runs)
        np.testing.assert_array_equal(np.sort(order[order >= 0]), np.arange(n) + 5)
        assert (order[:-1] >= 0).all()
        assert (order[-1] >= 0).any()
        other = minibatches(n, size, epoch=4, in_runs=in_runs)
        assert (order != other).any() == (n > 1)
    order = minibatches(33, 8, n_batches=7, in_runs=False)  # fewer clips than other models have
    np.testing.assert_array_equal(np.sort(order[order >= 0]), np.arange(33) + 5)
    assert set(np.sum(order >= 0, axis=1)) == {4, 5}


@pytest.mark.usefixtures("short_runs")
def test_rows_on_a_disk_are_seen_near_one_another():
    order = minibatches(640, 8, in_runs=True).ravel() - 5
    for window in order.reshape(10, 64):
        runs, counts = np.unique(window // 16, return_counts=True)
        assert len(runs) == 4
        assert (counts == 16).all()
        assert (np.diff(window) != 1).mean() > 0.9
    assert (np.diff(np.unique(order[:64] // 16)) > 1).any()


PLAIN = {"gradient": MeanField(2), "optimiser": Optimiser("sgd"), "batch_size": 8}


def alike(params, n):
    """A stack of n models that differ in their seeds only."""
    same = [np.arange(50)] * n, [Schedule("constant", 0.05)] * n, [NO_PENALTY] * n
    return Stack(stacked([params] * n), *same, list(range(n)))


def test_models_that_stopped_are_taken_out_as_they_were_at_their_best(params, data, monkeypatch):
    """One model gets no better after its first epoch, one after its second, one goes on."""
    monkeypatch.setattr(training, "MIN_STACK", 2)
    best = np.array([1, 2, 5])
    sizes = []

    def score(params, models):
        sizes.append(len(models))
        return -np.abs(len(sizes) - best[models]).astype(float)

    options = PLAIN | {"max_epochs": 7, "patience": 2}
    results = train_stack(alike(params, 3), data, score=score, **options)
    assert sizes == [3, 3, 3, 3, 1, 1, 1]
    assert [result.best_epoch for result in results] == [1, 2, 5]
    assert [len(result.history) for result in results] == [3, 4, 7]
    for result, epochs, seed in zip(results, best, (0, 1, 2), strict=True):
        alone = run(params, data, **(options | {"max_epochs": int(epochs), "seed": seed}))
        assert distance(result.params, alone.params) < 1e-6


def test_the_blocks_of_a_stack_are_equally_long(params, data, monkeypatch):
    """50 clips in minibatches of 8 would be blocks of 3, 3 and 1: one more program to compile."""
    monkeypatch.setattr(training, "BLOCK", 3)
    blocks, seen = descent.descend_blocks, []

    def watched(*arguments):
        seen.append(arguments[6])  # the rows
        return blocks(*arguments)

    monkeypatch.setattr(training, "descend_blocks", watched)
    train_stack(alike(params, 2), data, max_epochs=1, patience=1, **PLAIN)
    assert [rows.shape for rows in seen] == [(2, 3, 8)] * 3
    for order in np.concatenate(seen, axis=1):
        assert sorted(order[order >= 0]) == list(range(50))
        assert set(np.sum(order >= 0, axis=1)) == {5, 6}


def test_a_stack_holds_the_models_that_are_trained_alone(params, data):
    """Each with its own clips, rate, penalties and seed; one of them diverges and only it stops."""
    others = jax.tree.map(lambda array: array + np.float32(0.1), params)
    rows = [np.arange(40), np.arange(10, 50), np.arange(40)]
    schedules = [Schedule("constant", 0.05), Schedule("cosine", 0.02), Schedule("constant", 1e38)]
    penalties = [NO_PENALTY, Penalty(strengths(0.1), strengths(0.2)), NO_PENALTY]
    options = PLAIN | {"max_epochs": 5, "patience": 100}
    stack = Stack(stacked([params, others, params]), rows, schedules, penalties, [3, 4, 5])
    *sound, diverged = train_stack(stack, data, **options)
    assert len(diverged.history) < 5
    for i, (result, start) in enumerate(zip(sound, (params, others), strict=True)):
        own = jax.tree.map(lambda array, mine=rows[i]: array[mine], data)
        own_options = {"schedule": schedules[i], "penalty": penalties[i], "seed": 3 + i}
        alone = train(start, own, **own_options, **options)
        assert distance(result.params, alone.params) < 1e-6
        one, other = (found.history.log_likelihood for found in (result, alone))
        np.testing.assert_allclose(one, other, atol=1e-6)


def n_programs():
    return descent.descend_blocks.__wrapped__._cache_size()


def test_other_rates_penalties_or_seeds_compile_no_program(params, data):
    run(params, data)
    before = n_programs()
    run(params, data, seed=5, schedule=Schedule("cosine", 0.2), max_epochs=3)
    run(params, data, penalty=Penalty(strengths(0.3), strengths(0.1)), patience=1)
    run(params, data, score=lambda _: 0.5, max_epochs=9)
    assert n_programs() == before


def test_a_run_compiles_at_most_two_programs(params, data):
    before = n_programs()
    # one program for whole blocks of minibatches, one for the rest, however many epochs there are
    rows = np.arange(BLOCK * 3 + 40) % N_CLIPS
    many = jax.tree.map(lambda array: array[rows], data)
    run(params, many, batch_size=2, max_epochs=4)
    assert n_programs() - before <= 2


def scores(values):
    """A score that takes the given values in turn, and remembers the parameters it saw."""
    seen = []

    def score(params):
        seen.append(jax.tree.map(np.array, params))
        value = values[len(seen) - 1]
        if isinstance(value, BaseException):
            raise value
        return value

    return score, seen


@pytest.mark.parametrize(
    ("values", "patience", "best", "n_epochs"),
    [
        ([0.5, 0.7, 0.6, 0.7, 0.65, 0.9], 3, 2, 5),
        ([0.5, 0.4, 0.6, 0.4, 0.7, 0.1], 2, 5, 6),
        ([np.nan, 0.5, np.nan, 0.6, 0.4, 0.3], 100, 4, 6),
        ([0.7, 0.6, KeyboardInterrupt()], 100, 1, 2),
        ([KeyboardInterrupt()], 100, 0, 0),
    ],
    ids=["stopped", "better in time", "not a number", "interrupted", "interrupted at once"],
)
def test_the_parameters_of_the_best_score_are_kept(params, data, values, patience, best, n_epochs):
    score, seen = scores(values)
    result = run(params, data, score=score, patience=patience)
    assert result.best_epoch == best
    assert distance(result.params, [params, *seen][best]) == 0
    assert distance(result.params, seen[-1]) > 0
    assert result.interrupted == (len(values) < 6)
    history = result.history
    assert len(history.log_likelihood) == len(history.score) == len(history) == n_epochs
    np.testing.assert_array_equal(history.score, values[:n_epochs])


def test_an_interrupt_without_a_score_keeps_the_last_epoch(params, data):
    def interrupt(history):
        if len(history) == 3:
            raise KeyboardInterrupt

    result = run(params, data, on_epoch=interrupt)
    assert result.interrupted
    assert result.best_epoch == 3
    assert bits(result) == bits(run(params, data, max_epochs=3))


def test_an_error_of_the_score_is_passed_on(params, data):
    score, _ = scores([0.5, ValueError("from the score")])
    with pytest.raises(ValueError, match="from the score"):
        run(params, data, score=score)


def test_averaging_keeps_the_mean_of_the_parameters_that_was_scored(params, data):
    """Over the first epoch the mean is that of every minibatch: between the start and the end."""
    score, seen = scores([0.5] * 6)
    result = run(params, data, averaging=2.0, score=score)
    assert distance(result.params, seen[0]) == 0
    plain = run(params, data, max_epochs=1)
    assert 0 < distance(seen[0], params) < distance(plain.params, params)
    assert distance(seen[0], plain.params) > 0


def test_parameters_that_are_not_finite_are_refused(params, data):
    with pytest.raises(DataError, match=r"epoch 2 .* no longer finite.*smaller learning rate"):
        run(params, data, schedule=Schedule("constant", 1e38), optimiser=Optimiser("sgd"))
