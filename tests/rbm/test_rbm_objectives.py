"""What all gradients share: weights of clips, unknown tags, and large weights."""

import jax
import numpy as np
import pytest
from enumeration import as_params, extreme_model, jitted, random_batch, random_model

from harmonium.rbm import gradients

N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS, B = 4, 5, 3, 4, 8
OBJECTIVES = [
    pytest.param(gradient, id=type(gradient).__name__)
    for gradient in (
        gradients.ContrastiveDivergence(2),
        gradients.PersistentContrastiveDivergence(2),
        gradients.MeanField(3),
        gradients.BeliefPropagation(20, 0.5),
        gradients.Exact(),
        gradients.PseudoLikelihood(),
        gradients.MultiPrediction(2),
    )
]


@pytest.fixture
def params():
    return as_params(random_model(np.random.default_rng(0), N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS))


def some_clips(seed):
    """B clips with some unknown tags, in float32."""
    sizes = (B, N_TAGS, N_FEATURES, N_ROWS)
    batch = random_batch(np.random.default_rng(seed), *sizes, unknown=0.2)
    batch.y[0, 0] = np.nan
    chains = np.random.default_rng(seed).integers(0, 2, (B, N_TAGS))
    return gradients.Batch(
        u=np.float32(batch.u),
        a=batch.a,
        y=np.float32(batch.y),
        w=np.ones(B, np.float32),
        chains=np.float32(chains),
    )


def random_noise(gradient, params, seed=0):
    sweeps, width = gradient.noise(params, True)
    return np.random.default_rng(seed).random((sweeps, B, width), np.float32)


def assert_close(one, other, tolerance=1e-6):
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("gradient", OBJECTIVES)
def test_clips_of_weight_0_change_nothing(gradient, params):
    batch, noise = some_clips(1), random_noise(gradient, params)
    batch.w[5:] = 0
    before, logits = jitted(gradient)(params, batch, noise)
    other = some_clips(2)
    u, a, y = (
        np.concatenate([one[:5], two[5:]]) for one, two in zip(batch[:3], other[:3], strict=True)
    )
    chains = np.concatenate([batch.chains[:5], other.chains[5:]])
    noise[:, 5:] = random_noise(gradient, params, seed=1)[:, 5:]
    after, others = jitted(gradient)(params, gradients.Batch(u, a, y, batch.w, chains), noise)
    assert_close(before, after, 0)
    assert_close(logits[:5], others[:5], 0)
    assert max(np.abs(array).max() for array in before) > 0.01
    nothing, _ = jitted(gradient)(params, batch._replace(w=0 * batch.w), noise)
    assert all((np.asarray(slope) == 0).all() for slope in nothing)


@pytest.fixture
def weighted_clips():
    """Clips with whole weights."""
    weights = np.array([3, 2, 2, 1, 0, 0, 0, 0], np.float32)
    return some_clips(3)._replace(w=weights)


@pytest.mark.parametrize("gradient", OBJECTIVES)
def test_an_integer_weight_is_a_repetition(gradient, params, weighted_clips):
    noise = random_noise(gradient, params)
    rows = np.repeat(np.arange(B), weighted_clips.w.astype(int))  # 8 clips again
    weighted, logits = jitted(gradient)(params, weighted_clips, noise)
    repeated = jax.tree.map(lambda array: array[rows], some_clips(3))
    gradient_of_repeated, others = jitted(gradient)(params, repeated, noise[:, rows])
    assert_close(weighted, gradient_of_repeated)
    assert_close(logits[rows], others)


@pytest.mark.parametrize("gradient", OBJECTIVES)
def test_the_gradient_is_of_the_mean_over_clips(gradient, params, weighted_clips):
    noise = random_noise(gradient, params)
    weighted, _ = jitted(gradient)(params, weighted_clips, noise)
    twice = weighted_clips._replace(w=2 * weighted_clips.w)
    doubled, _ = jitted(gradient)(params, twice, noise)
    assert_close(weighted, doubled)


@pytest.mark.parametrize("gradient", OBJECTIVES)
def test_an_unknown_tag_is_not_a_zero(gradient, params):
    """Averaged over the noise, tags that are unknown give another gradient than absent ones."""
    batch = some_clips(5)
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
        batch, noise = some_clips(seed), random_noise(gradient, params, seed)
        result, logits = jitted(gradient)(params, batch, noise)
        assert all(np.isfinite(array).all() for array in (*result, logits))
        assert (np.abs(result.d) <= 1).all()
