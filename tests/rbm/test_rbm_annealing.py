"""Annealed importance sampling against enumeration: unbiased, and honest about its error."""

import enumeration as en
import jax
import numpy as np
import pytest

from harmonium.rbm import annealing
from harmonium.rbm.annealing import annealed_log_likelihood, annealed_log_z, log_likelihoods

N_HIDDEN, N_TAGS, B = 4, 6, 8
log_z = jax.jit(annealed_log_z, static_argnames=("steps", "chains"))
log_p = jax.jit(annealed_log_likelihood, static_argnames=("steps", "chains"))


def case(seed, scale, unknown):
    """A field of B clips, and their tags, of which the first clip has no known one."""
    rng = np.random.default_rng(seed)
    model = en.random_model(rng, N_HIDDEN, N_TAGS, scale=scale)
    c, d = en.single(rng.normal(0, scale, (B, N_HIDDEN))), en.single(rng.normal(0, 1, (B, N_TAGS)))
    y = en.random_tags(rng, B, N_TAGS, unknown=unknown)
    y[0] = np.nan
    return model.U, c, d, y


def errors(function, truth, seeds, case, **options):
    """Estimate less truth, and the standard errors, (seeds, B)."""
    U, c, d, y = case
    field = en.as_field(U, c, d)
    estimates = [function(jax.random.key(s), field, np.float32(y), **options) for s in range(seeds)]
    expected = np.array([truth(U, c[b], d[b], y[b]) for b in range(B)])
    off = np.array([estimate.value for estimate in estimates]) - expected
    return off, np.array([estimate.error for estimate in estimates])


def true_log_z(U, c, d, y):
    return en.enumerate_clip(U, c, d, y).log_z


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_the_mean_of_the_weights_is_unbiased_even_after_three_steps(scale):
    """E[w] = Z / Z_0 whatever the steps: over many chains only exact weights give the ratio 1."""
    off, _ = errors(log_z, true_log_z, 40, case(0, scale, 0.7), steps=3, chains=32)
    ratio = np.exp(off)  # estimated Z / Z
    error = ratio.std(axis=0, ddof=1) / np.sqrt(len(ratio))
    assert ((np.abs(ratio.mean(axis=0) - 1) < 4 * error) | (error < 1e-5)).all()


@pytest.mark.parametrize(
    ("function", "truth", "unknown"),
    [
        pytest.param(log_z, true_log_z, 1.0, id="log Z"),
        pytest.param(log_z, true_log_z, 0.4, id="log Z given tags"),
        pytest.param(log_p, en.enumerated_log_likelihood, 0.4, id="log p"),
    ],
)
def test_the_truth_is_within_two_standard_errors_as_often_as_it_should(function, truth, unknown):
    """In 95 % of the cases; the share among some hundred draws lies between 0.90 and 0.99."""
    within = []
    for seed, scale in enumerate((0.5, 1.0, 2.0)):
        clips = case(seed, scale, unknown)
        off, error = errors(function, truth, 20, clips, steps=30, chains=32)
        uncertain = error.max(axis=0) > 1e-4  # a clip whose tags are known has no error
        within.append((np.abs(off) < 2 * error)[:, uncertain].ravel())
        assert error.mean() < 0.3
        np.testing.assert_allclose(off[:, ~uncertain], 0, atol=1e-4)
    assert 0.90 < np.concatenate(within).mean() < 0.99


@pytest.mark.parametrize("more", [{"steps": 160}, {"chains": 128}], ids=["steps", "chains"])
def test_the_error_gets_smaller_with_more(more):
    clips = case(3, 1.0, 1.0)
    few = {"steps": 10, "chains": 8}
    off_few, _ = errors(log_z, true_log_z, 10, clips, **few)
    off_more, _ = errors(log_z, true_log_z, 10, clips, **(few | more))
    assert off_more.std() < 0.6 * off_few.std()


def test_many_clips_are_enumerated_or_annealed_by_the_size_of_the_model(monkeypatch):
    rng = np.random.default_rng(4)
    model = en.random_model(rng, N_HIDDEN, N_TAGS, D=3, A=4)
    n_clips = annealing.CHUNK + 9
    batch = en.random_batch(rng, n_clips, N_TAGS, 3, 4, unknown=0.3)
    clips = np.float32(batch.u), batch.a, np.float32(batch.y)
    params = en.as_params(model)
    exact = log_likelihoods(params, *clips)
    truth = [
        en.enumerated_log_likelihood(model.U, *en.biases(model, u, a), y)
        for u, a, y in zip(*batch[:3], strict=True)
    ]
    np.testing.assert_allclose(exact.value, truth, atol=1e-9)
    assert (exact.error == 0).all()
    monkeypatch.setattr(annealing, "MAX_UNITS", 3)
    first = log_likelihoods(params, *clips, steps=30, seed=1)
    assert (np.abs(first.value - truth) < 5 * first.error + 1e-4).all()
    assert np.abs(first.value - truth).max() > 1e-3
    again = log_likelihoods(params, *clips, steps=30, seed=1)
    np.testing.assert_array_equal(first.value, again.value)
    other = log_likelihoods(params, *clips, steps=30, seed=2)
    assert (first.value != other.value).any()


def test_no_clips_have_no_likelihoods():
    params = en.as_params(en.random_model(np.random.default_rng(5), N_HIDDEN, N_TAGS))
    none = (
        np.zeros((0, 0), np.float32),
        np.zeros((0, 0), np.int32),
        np.zeros((0, N_TAGS), np.float32),
    )
    assert log_likelihoods(params, *none).value.shape == (0,)
