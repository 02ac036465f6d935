"""The generative and hybrid RBM, the MLP and logistic regression against slow twins."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from enumeration import gradient_by_differences, states

from harmonium.estimators.linear import LinearParams
from harmonium.rbm import gradients, other_models
from harmonium.rbm.inference import fill_unknown
from harmonium.rbm.model import condition

N_HIDDEN, N_TAGS, N_FEATURES, VARIANCE = 3, 3, 2, 0.5


@pytest.fixture(scope="module")
def params():
    rng = np.random.default_rng(0)
    shapes = ((3, 3), (3, 2), (0, 3), (3,), (3,), (2,))
    return other_models.JointParams(
        *(jnp.asarray(rng.normal(0, 0.7, s), jnp.float32) for s in shapes)
    )


def batch_of(x, y):
    arrays = x, np.zeros((len(x), 0)), y, np.ones(len(x))
    return gradients.Batch(*(jnp.asarray(array, jnp.float32) for array in arrays))


def energies(p, x, y, h):
    U, W, _, c, d, b = (np.asarray(a, float) for a in p)
    square = ((x - b) ** 2).sum() / (2 * VARIANCE)
    return square - h @ W @ x - h @ U @ y - c @ h - d @ y


def test_the_free_energy_sums_out_the_hidden_units(params):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4, N_FEATURES)), rng.integers(0, 2, (4, N_TAGS)).astype(float)
    expected = [
        -np.log(sum(np.exp(-energies(params, x[i], y[i], h)) for h in states(N_HIDDEN)))
        for i in range(4)
    ]
    single = (jnp.asarray(a, jnp.float32) for a in (x, y))
    found = other_models.joint_free_energy(params, *single, VARIANCE)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("soft", [False, True], ids=["labels", "probabilities"])
def test_contrastive_divergence_is_a_difference_of_free_energies(params, soft):
    """The chain's end held constant, automatic differentiation gives the same gradient."""
    rng = np.random.default_rng(2)
    y = rng.random((6, N_TAGS)) if soft else rng.integers(0, 2, (6, N_TAGS))
    batch = batch_of(rng.normal(size=(6, N_FEATURES)), y)
    noise = jnp.asarray(rng.random((2, 6, 8)), jnp.float32)
    joint = other_models.JointContrastiveDivergence(2, VARIANCE)
    gradient, _ = jax.jit(joint)(params, batch, noise)
    x, y = batch.u, batch.y
    sweep = jax.jit(partial(other_models.joint_sweep, variance=VARIANCE))
    for k in range(2):
        x, y, _ = sweep(params, x, y, noise[k])

    def difference(p):
        data = other_models.joint_free_energy(p, batch.u, batch.y, VARIANCE)
        return jnp.mean(data - other_models.joint_free_energy(p, x, y, VARIANCE))

    for found, expected in zip(gradient, jax.jit(jax.grad(difference))(params), strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-6)


def test_the_chain_samples_the_model(params):
    """Means of y and x over long chains equal those of the enumerated model."""
    y, h = states(N_TAGS), states(N_HIDDEN)
    U, W, _, c, d, b = (np.asarray(a, float) for a in params)
    log_w = h @ U @ y.T + (h @ c)[:, None] + (y @ d)[None, :]
    log_w = log_w + (h @ W @ b + VARIANCE * ((h @ W) ** 2).sum(1) / 2)[:, None]
    p = np.exp(log_w - log_w.max())
    p /= p.sum()
    mean_y, mean_x = p.sum(0) @ y, b + VARIANCE * p.sum(1) @ h @ W
    chains = 40_000

    @jax.jit
    def run(key):
        def sweep(i, state):
            noise = jax.random.uniform(jax.random.fold_in(key, i), (chains, 8))
            return other_models.joint_sweep(params, *state, noise, VARIANCE)[:2]

        start = (jnp.zeros((chains, N_FEATURES)), jnp.zeros((chains, N_TAGS)))
        return jax.lax.fori_loop(0, 60, sweep, start)

    x, y = run(jax.random.key(0))
    np.testing.assert_allclose(y.mean(0), mean_y, atol=5 * 0.5 / np.sqrt(chains))
    spread = np.asarray(x).std(0)
    np.testing.assert_allclose(x.mean(0), mean_x, atol=5 * spread.max() / np.sqrt(chains))


def test_unknown_tags_are_drawn_first(params):
    """The gradient is that of the tags which `fill_unknown` draws with the last of the noise."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, (5, N_TAGS)).astype(float)
    y[0, 1] = y[3, :] = np.nan
    x = rng.normal(size=(5, N_FEATURES))
    joint = other_models.JointContrastiveDivergence(2, VARIANCE)
    sweeps, width = joint.noise(params, True)
    noise = jnp.asarray(rng.random((sweeps, 5, width)), jnp.float32)
    batch = batch_of(x, y)
    field = condition(params.conditional(), batch.u, batch.a)
    drawn = fill_unknown(field, batch.y, noise[2:, :, : N_HIDDEN + N_TAGS])
    found, _ = jax.jit(joint)(params, batch, noise)
    expected, _ = jax.jit(joint)(params, batch_of(x, drawn), noise[:2])
    for name in ("U", "W", "c", "d", "b"):
        assert np.isfinite(getattr(found, name)).all()
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-6)


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize(
    "discriminative",
    [
        gradients.ContrastiveDivergence(2),
        gradients.MeanField(3),
        gradients.DrawnTags(gradients.PseudoLikelihood()),
    ],
    ids=str,
)
def test_the_hybrid_adds_the_two_gradients(params, discriminative, unknown):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, (5, N_TAGS)).astype(float)
    if unknown:
        y[0, 1] = y[3, 2] = np.nan
    batch = batch_of(rng.normal(size=(5, N_FEATURES)), y)
    joint = other_models.JointContrastiveDivergence(1, VARIANCE)
    hybrid = other_models.Hybrid(0.25, discriminative, joint)
    sweeps, width = hybrid.noise(params, unknown)
    noise = jnp.asarray(rng.random((sweeps, 5, width)), jnp.float32)
    first = joint.noise(params, unknown)[0]
    generative, _ = jax.jit(joint)(params, batch, noise[:first])
    own, logits = jax.jit(discriminative)(params.conditional(), batch, noise[first:, :, :6])
    found, found_logits = jax.jit(hybrid)(params, batch, noise)
    np.testing.assert_array_equal(found_logits, logits)
    np.testing.assert_allclose(found.b, 0.25 * generative.b, rtol=1e-6)
    for name in ("U", "W", "c", "d"):
        expected = getattr(own, name) + 0.25 * getattr(generative, name)
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-5, atol=1e-7)


RNG = np.random.default_rng(0)
MLP = other_models.MLPParams(*(RNG.normal(size=s) for s in ((3, 2), (3, 4), (3,), (2,))))
LOGISTIC = LinearParams(*(RNG.normal(size=s) for s in ((2, 4), (2,))))
X = RNG.normal(size=(5, 4))
HARD = np.array([[0, 1], [1, 1], [np.nan, 0], [0, np.nan], [1, 0]])
SOFT = np.array([[0.2, 1], [0.7, 0.5], [np.nan, 0], [0.01, np.nan], [1, 0]])
WEIGHTS = np.array([1.0, 2.0, 1.0, 1.0, 0.0])


def loss(params, x, Y):
    """Mean over clips of the cross-entropy of the known tags, in NumPy."""
    if isinstance(params, other_models.MLPParams):
        logits = np.tanh(x @ params.W.T + params.c) @ params.U + params.d
    else:
        logits = x @ params.W.T + params.d
    p = 1 / (1 + np.exp(-logits))
    terms = Y * np.log(p) + (1 - Y) * np.log(1 - p)
    return -np.nansum(terms * WEIGHTS[:, None]) / WEIGHTS.sum()


@pytest.mark.parametrize("Y", [HARD, SOFT], ids=["labels", "probabilities"])
@pytest.mark.parametrize(
    ("params", "logits"),
    [(MLP, other_models.mlp_logits), (LOGISTIC, other_models.logistic_logits)],
    ids=["mlp", "logistic"],
)
def test_the_gradient_is_that_of_the_cross_entropy(params, logits, Y):
    arrays = (X, np.zeros((5, 0)), Y, WEIGHTS)
    batch = gradients.Batch(*(jnp.asarray(a, jnp.float32) for a in arrays))
    single = type(params)(*(jnp.asarray(a, jnp.float32) for a in params))
    gradient, found = other_models.CrossEntropy(logits)(single, batch, jnp.zeros((0, 5, 0)))
    proxy = -gradients.log_probabilities(found, batch).sum() / WEIGHTS.sum()
    assert proxy == pytest.approx(loss(params, X, Y), rel=1e-5)
    expected = gradient_by_differences(lambda p: loss(p, X, Y), params)
    for one, other in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
