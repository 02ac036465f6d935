"""What all gradients share: weights of clips, unknown tags, and large weights."""

import jax
import numpy as np
import pytest
from enumeration import (
    as_params,
    extreme_model,
    jitted,
    random_model,
    random_tags,
)

from harmonium.rbm.gradients import (
    Batch,
    BeliefPropagation,
    ContrastiveDivergence,
    MeanField,
    MultiPrediction,
    PseudoLikelihood,
)

N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS, B = 4, 5, 3, 4, 8
OBJECTIVES = [
    pytest.param(gradient, id=type(gradient).__name__)
    for gradient in (
        ContrastiveDivergence(2),
        MeanField(3),
        BeliefPropagation(20, 0.5),
        PseudoLikelihood(),
        MultiPrediction(2),
    )
]


@pytest.fixture
def params():
    return as_params(random_model(np.random.default_rng(0), N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS))


def random_batch(seed):
    """B clips with some unknown tags."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(B, N_FEATURES)).astype(np.float32)
    a = rng.integers(-1, N_ROWS, (B, 2)).astype(np.int32)
    y = random_tags(rng, B, N_TAGS, unknown=0.2).astype(np.float32)
    y[0, 0] = np.nan
    return Batch(u, a, y, np.ones(B, np.float32))


def random_noise(gradient, params, seed=0):
    sweeps, width = gradient.noise(params, True)
    return np.random.default_rng(seed).random((sweeps, B, width), np.float32)


def assert_close(one, other, tolerance=1e-6):
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("gradient", OBJECTIVES)
def test_clips_of_weight_0_change_nothing(gradient, params):
    batch, noise = random_batch(1), random_noise(gradient, params)
    batch.w[5:] = 0
    before, logits = jitted(gradient)(params, batch, noise)
    other = random_batch(2)
    u, a, y = (
        np.concatenate([one[:5], two[5:]]) for one, two in zip(batch[:3], other[:3], strict=True)
    )
    noise[:, 5:] = random_noise(gradient, params, seed=1)[:, 5:]
    after, others = jitted(gradient)(params, Batch(u, a, y, batch.w), noise)
    assert_close(before, after, 0)
    assert_close(logits[:5], others[:5], 0)
    assert max(np.abs(array).max() for array in before) > 0.01
    nothing, _ = jitted(gradient)(params, batch._replace(w=0 * batch.w), noise)
    assert all((np.asarray(slope) == 0).all() for slope in nothing)


@pytest.mark.parametrize("gradient", OBJECTIVES)
def test_an_integer_weight_is_a_repetition_and_the_gradient_is_of_the_mean(gradient, params):
    batch, noise = random_batch(3), random_noise(gradient, params)
    weights = np.array([3, 2, 2, 1, 0, 0, 0, 0], np.float32)
    rows = np.repeat(np.arange(B), weights.astype(int))  # 8 clips again
    weighted, logits = jitted(gradient)(params, batch._replace(w=weights), noise)
    repeated = Batch(*(array[rows] for array in batch))
    gradient_of_repeated, others = jitted(gradient)(params, repeated, noise[:, rows])
    assert_close(weighted, gradient_of_repeated)
    assert_close(logits[rows], others)
    doubled, _ = jitted(gradient)(params, batch._replace(w=2 * weights), noise)
    assert_close(weighted, doubled)


@pytest.mark.parametrize("gradient", OBJECTIVES)
def test_an_unknown_tag_is_not_a_zero(gradient, params):
    """Averaged over the noise, tags that are unknown give another gradient than absent ones."""
    batch = random_batch(5)
    batch.y[:, 0], batch.y[:, 3] = np.nan, np.nan
    absent = batch._replace(y=np.nan_to_num(batch.y))
    draws = 64 if gradient.noise(params, True)[0] else 1
    difference = 0
    for seed in range(draws):
        noise = random_noise(gradient, params, seed)
        one, other = (jitted(gradient)(params, each, noise)[0] for each in (batch, absent))
        difference = difference + np.asarray(one.d - other.d)[[0, 3]] / draws
    # an absent tag pushes its bias down by p(y_j = 1) > 0: the gradient of an unknown one has less
    assert (difference < -0.05).all()


@pytest.mark.parametrize("gradient", OBJECTIVES)
def test_weights_of_50_give_finite_gradients(gradient):
    rng = np.random.default_rng(7)
    for seed in range(3):
        params = as_params(extreme_model(rng, N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS))
        batch, noise = random_batch(seed), random_noise(gradient, params, seed)
        result, logits = jitted(gradient)(params, batch, noise)
        for array in result:
            assert np.isfinite(array).all()
        assert np.isfinite(logits).all()
        assert (np.abs(result.d) <= 1).all()


def test_noise_is_asked_for_only_where_it_is_used(params):
    width = N_HIDDEN + N_TAGS
    assert ContrastiveDivergence(3).noise(params, False) == (3, width)
    assert ContrastiveDivergence(3).noise(params, True) == (8, width)
    assert PseudoLikelihood().noise(params, False)[0] == 0
    assert PseudoLikelihood().noise(params, True) == (5, width)
    assert MeanField().noise(params, True)[0] == BeliefPropagation().noise(params, True)[0] == 0
