"""Contrastive divergence, mean field and belief propagation as gradients; soft targets."""

import enumeration as en
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harmonium.errors import DataError
from harmonium.rbm.gradients import (
    Batch,
    BeliefPropagation,
    ContrastiveDivergence,
    DrawnTags,
    Exact,
    HiddenConditions,
    MeanField,
    MultiPrediction,
    PersistentContrastiveDivergence,
    PseudoLikelihood,
    Sum,
    for_soft_targets,
)
from harmonium.rbm.model import Params, condition, free_energy
from harmonium.rbm.other_models import Hybrid, JointContrastiveDivergence, JointParams

B, N_FEATURES, N_ROWS = 7, 2, 3
NOTHING = np.zeros((0, B, 0))  # the noise of a gradient that samples nothing
TREES = [pytest.param(1, 4, id="one hidden unit"), pytest.param(4, 1, id="one tag")]


def case(seed, n, C, *, scale=1.0, unknown=0.0):
    rng = np.random.default_rng(seed)
    model = en.random_model(rng, n, C, N_FEATURES, N_ROWS, scale=scale)
    return model, en.random_batch(rng, B, C, N_FEATURES, N_ROWS, unknown=unknown)


def mean_loss(model, batch):
    """The weighted mean of -log p(known tags | u, a), by enumeration."""
    losses = [
        -en.enumerated_log_likelihood(model.U, *en.biases(model, u, a), y)
        for u, a, y in zip(*batch[:3], strict=True)
    ]
    return np.average(losses, weights=batch.w)


def exact_gradient(model, batch):
    return en.gradient_by_differences(lambda m: mean_loss(m, batch), model)


@pytest.mark.parametrize("steps", [1, 3])
def test_cd_is_the_slope_of_a_difference_of_free_energies(steps):
    """F(y⁰) - F(y^K) with the end of the chain held constant, by automatic differentiation."""
    model, batch = case(2, 4, 5)
    noise = np.random.default_rng(2).random((steps, B, 9))
    end = batch.y
    for sweep in noise:
        c, d = (np.array(b) for b in zip(*map(en.biases, [model] * B, *batch[:2]), strict=True))
        h = (sweep[:, :4] < en.sigmoid(c + end @ model.U.T)).astype(float)
        end = (sweep[:, 4:] < en.sigmoid(d + h @ model.U)).astype(float)

    def loss(params):
        field = condition(params, batch.u, batch.a)
        difference = free_energy(field, batch.y) - free_energy(field, end)
        return jnp.sum(batch.w * difference) / jnp.sum(batch.w)

    with jax.enable_x64(True):
        expected = jax.jit(jax.grad(loss))(Params(*model))
    en.assert_close(en.evaluate(ContrastiveDivergence(steps), model, batch, noise), expected, 1e-12)


def test_pcd_is_cd_whose_chain_starts_elsewhere():
    """The chain makes the sweeps of CD from where it is, and the data have only the positive phase.

    So the two have the same gradient if the chain is at the data, and if it is not, the slope of
    F(y⁰) - F(end of the chain).
    """
    model, batch = case(10, 4, 5)
    noise = np.random.default_rng(10).random((2, B, 9))
    chains = en.random_tags(np.random.default_rng(11), B, 5)
    pcd = PersistentContrastiveDivergence(2)

    def moved(start):
        with jax.enable_x64(True):
            started = batch._replace(chains=start)
            return started._replace(chains=pcd.advance(Params(*model), started, noise))

    same = en.evaluate(pcd, model, moved(batch.y), noise)
    en.assert_close(same, en.evaluate(ContrastiveDivergence(2), model, batch, noise), 1e-12)
    elsewhere = moved(chains)

    def loss(params):
        field = condition(params, batch.u, batch.a)
        difference = free_energy(field, batch.y) - free_energy(field, elsewhere.chains)
        return jnp.sum(batch.w * difference) / jnp.sum(batch.w)

    with jax.enable_x64(True):
        expected = jax.jit(jax.grad(loss))(Params(*model))
    en.assert_close(en.evaluate(pcd, model, elsewhere, noise), expected, 1e-12)


@pytest.fixture(scope="module")
def wrapped():
    """Persistent contrastive divergence to wrap, with parameters, a batch and noise for it."""
    model, double = case(12, 4, 5)
    rng = np.random.default_rng(0)
    batch = Batch(
        u=np.float32(double.u),
        a=double.a,
        y=np.float32(double.y),
        w=np.float32(double.w),
        chains=np.float32(en.random_tags(rng, B, 5)),
    )
    noise = rng.random((3, B, 11), np.float32)
    return PersistentContrastiveDivergence(2), en.as_params(model), batch, noise


def test_hidden_conditions_move_the_chains_of_their_objective(wrapped):
    pcd, params, batch, noise = wrapped
    hidden = HiddenConditions(pcd, a=(0.0, 0.0), all=1.0)  # everything
    bare = batch._replace(u=0 * batch.u, a=np.full_like(batch.a, -1))
    np.testing.assert_array_equal(
        hidden.advance(params, batch, noise), pcd.advance(params, bare, noise[:2])
    )
    assert hidden.is_persistent
    assert not HiddenConditions(ContrastiveDivergence(), a=(), all=0.0).is_persistent


def test_the_hybrid_moves_the_chains_of_its_objective(wrapped):
    pcd, params, batch, noise = wrapped
    hybrid = Hybrid(0.5, pcd, JointContrastiveDivergence(1, 0.5))
    joint = JointParams(*params, b=np.zeros(N_FEATURES, np.float32))
    batch = batch._replace(a=batch.a[:, :0])
    np.testing.assert_array_equal(
        hybrid.advance(joint, batch, noise), pcd.advance(params, batch, noise[1:])
    )
    assert hybrid.is_persistent


def algorithm_2(model, x, y, K, *, from_zero=False):
    """The paper's mean-field CD-K for one training pair: ∂U, ∂W, ∂c, ∂d."""
    h = en.sigmoid(model.c + model.W @ x + model.U @ y)
    y_k, h_k = y, en.sigmoid(model.c + model.W @ x) if from_zero else h
    for _ in range(K):
        y_k = en.sigmoid(model.d + model.U.T @ h_k)
        h_k = en.sigmoid(model.c + model.W @ x + model.U @ y_k)
    # ∂E(y⁰, x, ĥ⁰) - ∂E(y^K, x, ĥ^K), with ∂E/∂U = -hyᵀ and so on
    return np.outer(h_k, y_k) - np.outer(h, y), np.outer(h_k - h, x), h_k - h, y_k - y


@pytest.mark.parametrize("soft", [False, True], ids=["labels", "probabilities"])
@pytest.mark.parametrize("from_zero", [False, True])
@pytest.mark.parametrize("steps", [1, 4])
def test_mean_field_is_algorithm_2(steps, from_zero, soft):
    model, batch = case(3, 4, 5)
    batch = batch._replace(a=np.full_like(batch.a, -1))  # the paper's algorithm has no V
    if soft:
        batch = batch._replace(y=np.random.default_rng(3).random(batch.y.shape))
    gradient = en.evaluate(MeanField(steps, from_zero), model, batch, NOTHING)
    pairs = [
        algorithm_2(model, x, y, steps, from_zero=from_zero)
        for x, y in zip(batch.u, batch.y, strict=True)
    ]
    for i, name in enumerate("UWcd"):
        expected = np.average([pair[i] for pair in pairs], axis=0, weights=batch.w)
        np.testing.assert_allclose(getattr(gradient, name), expected, atol=1e-12, err_msg=name)


def test_mean_field_infers_unknown_tags():
    """With U = 0 the tags are independent: an unknown one has no part in the gradient."""
    model, batch = case(5, 4, 5, unknown=0.4)
    model = model._replace(U=np.zeros_like(model.U))
    gradient = en.evaluate(MeanField(2), model, batch, NOTHING)
    np.testing.assert_allclose(gradient.d, exact_gradient(model, batch).d, atol=1e-9)


@pytest.mark.parametrize("unknown", [0.0, 0.5])
@pytest.mark.parametrize(("n", "C"), TREES)
def test_belief_propagation_is_exact_on_trees(n, C, unknown):
    """With unknown tags too: the gradient of log p(known tags), the unknown ones summed out."""
    model, batch = case(6, n, C, unknown=unknown)
    gradient = en.evaluate(BeliefPropagation(60, 0.5), model, batch, NOTHING)
    en.assert_close(gradient, exact_gradient(model, batch), 1e-8)


@pytest.mark.parametrize("unknown", [0.0, 0.5])
@pytest.mark.parametrize(("n", "C"), [(3, 5), (4, 3)], ids=["over hidden units", "over tags"])
def test_the_exact_gradient_is_that_of_log_p_of_the_known_tags(n, C, unknown):
    model, batch = case(7, n, C, unknown=unknown)
    gradient = en.evaluate(Exact(), model, batch, NOTHING)
    en.assert_close(gradient, exact_gradient(model, batch), 1e-8)


def test_the_exact_gradient_refuses_models_too_large_to_enumerate():
    model, batch = case(8, 21, 21)
    with pytest.raises(DataError, match=r"20 units.* Got 21 hidden units and 21 tags"):
        en.evaluate(Exact(), model, batch, NOTHING)


P = np.array([0.3, 0.85, 0.0])  # the probabilities of a clip's tags
UNKNOWN = np.full(3, np.nan)


def clip(seed, n=2):
    """A tiny model with three tags, and what conditions one clip."""
    rng = np.random.default_rng(seed)
    model = en.random_model(rng, n, 3, 2, 3)
    return model, rng.normal(size=2), np.array([1, -1], np.int32)


def batch_of(u, a, y, w):
    return Batch(*(np.tile(row, (len(w), 1)) for row in (u, a, y)), w)


def bound(model, u, a, p):
    """F(p) + log Z, log Z by enumeration."""
    c, d = en.biases(model, u, a)
    free_energy = -d @ p - np.logaddexp(0, c + model.U @ p).sum()
    return float(free_energy + en.enumerate_clip(model.U, c, d, UNKNOWN).log_z)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("objective", [BeliefPropagation(60, 0.5), Exact()], ids=["lbp", "exact"])
def test_the_gradient_of_the_bound_on_a_tree(objective, seed):
    model, u, a = clip(seed, n=1)
    batch = batch_of(u, a, P, np.ones(1))
    gradient = en.evaluate(objective, model, batch, np.zeros((0, 1, 0)))
    en.assert_close(gradient, en.gradient_by_differences(lambda m: bound(m, u, a, P), model), 1e-8)


def slopes_from_probabilities(model, u, a, p, steps):
    """What CD-``steps`` from p gives on average: a chain whose first hidden units see p."""
    c, d = en.biases(model, u, a)
    tags, hidden = en.states(3), en.states(len(c))
    p_h = en.bernoulli(en.sigmoid(c + model.U @ p), hidden)
    first = p_h @ en.bernoulli(en.sigmoid(d + hidden @ model.U)[:, None, :], tags[None])
    end = first @ np.linalg.matrix_power(en.transitions(model.U, c, d, UNKNOWN), steps - 1)
    phases = en.slopes_after(model, u, a, end), en.energy_slopes(model, u, a, p)
    return en.Model(*(negative - positive for negative, positive in zip(*phases, strict=True)))


@pytest.mark.parametrize("p", [P, np.array([1.0, 0.0, 1.0])], ids=["probabilities", "labels"])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_expected_cd_gradient_is_that_of_a_chain_from_the_data(steps, p):
    """Without sampling error: noise of 0 and 1 forces every path, weighted by its probability."""
    model, u, a = clip(3)
    noise, w = en.paths(model, u, a, p, steps)
    gradient = en.evaluate(ContrastiveDivergence(steps), model, batch_of(u, a, p, w), noise)
    en.assert_close(gradient, slopes_from_probabilities(model, u, a, p, steps), 1e-12)


def test_cd_fills_the_unknown_tags_by_the_chain_with_the_known_ones_clamped():
    model, u, a = clip(9)
    y = np.array([1.0, np.nan, 0.0])
    noise, w = en.paths(model, u, a, y, 1, fill=1)
    gradient = en.evaluate(ContrastiveDivergence(1), model, batch_of(u, a, y, w), noise)
    en.assert_close(gradient, en.expected_slopes(model, u, a, y, 1, fill=1), 1e-12)


def test_unknown_tags_are_filled_given_the_probabilities_of_the_others():
    """By one sweep whose hidden units see p; the proxy counts the known tags."""
    model, u, a = clip(4)
    c, d = en.biases(model, u, a)
    p = np.array([0.3, np.nan, 0.8])
    forced = np.array([[*h, 1, t, 1] for h in en.states(2) for t in (0.0, 1.0)])
    p_h = en.bernoulli(en.sigmoid(c + model.U @ np.nan_to_num(p)), forced[:, :2])
    p_on = en.sigmoid(d[1] + forced[:, :2] @ model.U[:, 1])
    w = p_h * np.where(forced[:, 3] == 1, p_on, 1 - p_on)
    expected = [weight * np.array([0.3, t, 0.8]) for weight, t in zip(w, forced[:, 3], strict=True)]
    chain = np.zeros((1, len(w), 5))  # a chain that ends with every tag on
    noise = np.concatenate([chain, (1.0 - forced)[None]])
    gradient = en.evaluate(ContrastiveDivergence(1), model, batch_of(u, a, p, w), noise)
    np.testing.assert_allclose(gradient.d, 1 - np.sum(expected, axis=0), atol=1e-12)


def test_only_uncertain_tags_are_drawn():
    class Spy(PseudoLikelihood):
        def __call__(self, params, batch, noise):
            return params, batch.y

    params, y = Params(*clip(0)[0]), jnp.tile(jnp.array([[1.0, jnp.nan, 0.25]]), (1000, 1))
    batch = Batch(None, None, y.at[500:, 0].set(0.0), None)
    for numbers, mean in (((jnp.arange(1000.0) + 0.5) / 1000, 0.25), (jnp.zeros(1000), 1.0)):
        drawn = DrawnTags(Spy())(params, batch, jnp.tile(numbers[None, :, None], (1, 1, 5)))[1]
        np.testing.assert_array_equal(drawn[:, :2], batch.y[:, :2])
        assert drawn[:, 2].mean() == mean


@pytest.mark.parametrize("seed", range(3))
def test_pseudo_likelihood_has_the_gradient_of_its_expectation(seed):
    """One batch of all tag vectors, drawn by noise that forces them, weighted by probability."""
    model, u, a = clip(seed)

    def loss(m):
        terms = (en.pseudo_likelihood_terms(m, u, a, y).sum() for y in en.states(3))
        return -sum(en.bernoulli(P, y) * term for y, term in zip(en.states(3), terms, strict=True))

    tags = en.states(3)[en.bernoulli(P, en.states(3)) > 0]
    batch = batch_of(u, a, P, en.bernoulli(P, tags))
    gradient = en.evaluate(DrawnTags(PseudoLikelihood()), model, batch, (1.0 - tags)[None])
    en.assert_close(gradient, en.gradient_by_differences(loss, model), 1e-8)


def test_only_the_pseudo_likelihood_draws():
    both = Sum(MultiPrediction(), ContrastiveDivergence())
    for gradient in (ContrastiveDivergence(2), MeanField(), BeliefPropagation(), both):
        assert for_soft_targets(gradient) == gradient
    drawn, joint = DrawnTags(PseudoLikelihood()), JointContrastiveDivergence(1, 0.5)
    assert for_soft_targets(PseudoLikelihood()) == drawn
    hybrid = for_soft_targets(Hybrid(0.25, PseudoLikelihood(), joint))
    assert hybrid == Hybrid(0.25, drawn, joint)
    params = Params(*clip(0)[0])
    assert drawn.noise(params, False) == (1, 5)
    assert drawn.noise(params, True) == (6, 5)
