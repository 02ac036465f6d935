"""jit, grad and vmap of every public function, with unknown tags, against finite differences."""

import enumeration as en
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harmonium import rbm

N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS, B = 4, 5, 2, 3, 7
RNG = np.random.default_rng(0)
BATCH = en.random_batch(RNG, B, N_TAGS, N_FEATURES, N_ROWS, unknown=0.4)
TAGS = en.random_tags(RNG, B, N_TAGS)  # all known
HIDDEN = RNG.integers(0, 2, (B, N_HIDDEN)).astype(float)
NOT_TRACED = {"infer", "log_likelihoods", "train", "train_stack"}


def field(params):
    return rbm.condition(params, BATCH.u, BATCH.a)


def marginals(estimate):
    """Without the residual, a diagnostic that is held constant."""
    return estimate._replace(residual=None)


def by_messages(params, **options):
    beliefs = rbm.belief_propagation(field(params), BATCH.y, steps=6, damping=0.4, **options)
    return marginals(beliefs)


def by_gibbs(params):
    key = jax.random.key(0)
    return marginals(rbm.gibbs(key, field(params), BATCH.y, steps=5, chains=2))


def by_annealing(function):
    """Without the error, which is held constant."""

    def value(params):
        return function(jax.random.key(0), field(params), BATCH.y, steps=4, chains=3).value

    return value


def slopes(gradient):
    """The gradient as a function of the parameters; noise and chains are always the same."""

    def function(params):
        sweeps, width = gradient.noise(params, True)
        noise = np.random.default_rng(1).random((sweeps, B, width))
        batch = BATCH._replace(chains=TAGS)
        return gradient(
            params, batch._replace(chains=gradient.advance(params, batch, noise)), noise
        )

    return function


FUNCTIONS = {
    "condition": field,
    "clamp": lambda params: rbm.clamp(field(params), BATCH.y)._replace(d=None),
    "energy": lambda params: rbm.energy(field(params), TAGS, HIDDEN),
    "free_energy": lambda params: rbm.free_energy(field(params), TAGS),
    "hidden_given_tags": lambda params: rbm.hidden_given_tags(field(params), TAGS),
    "tags_given_hidden": lambda params: rbm.tags_given_hidden(field(params), HIDDEN),
    "mean_field": lambda params: marginals(rbm.mean_field(field(params), BATCH.y, steps=3)),
    "belief_propagation": lambda params: by_messages(params, pairs=True),
    "belief_propagation in log form": lambda params: by_messages(params, logs=True),
    "gibbs": by_gibbs,
    "exact": lambda params: rbm.exact(field(params), BATCH.y, pairs=True),
    "log_likelihood": lambda params: rbm.log_likelihood(field(params), BATCH.y),
    "ContrastiveDivergence": slopes(rbm.ContrastiveDivergence(2)),
    "PersistentContrastiveDivergence": slopes(rbm.PersistentContrastiveDivergence(2)),
    "MeanField": slopes(rbm.MeanField(3)),
    "BeliefPropagation": slopes(rbm.BeliefPropagation(6, 0.4)),
    "most_probable": lambda params: rbm.most_probable(field(params), BATCH.y, beams=4),
    "annealed_log_z": by_annealing(rbm.annealed_log_z),
    "annealed_log_likelihood": by_annealing(rbm.annealed_log_likelihood),
    "Exact": slopes(rbm.Exact()),
    "PseudoLikelihood": slopes(rbm.PseudoLikelihood()),
    "MultiPrediction": slopes(rbm.MultiPrediction(2)),
}


def number(function):
    """A function of the parameters whose value depends on everything that ``function`` returns."""

    def value(params):
        leaves = jax.tree.leaves(function(params))
        return sum(
            jnp.sum(leaf * jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape)) for leaf in leaves
        )

    return value


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_are_those_of_finite_differences_for_several_models_at_once(name):
    value = number(FUNCTIONS[name])
    rng = np.random.default_rng(2)
    models = [en.random_model(rng, N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS) for _ in range(2)]
    with jax.enable_x64(True):
        alone = jax.jit(value)
        stack = rbm.Params(*(np.stack(arrays) for arrays in zip(*models, strict=True)))
        values, gradients = jax.jit(jax.vmap(jax.value_and_grad(value)))(stack)
        for i, model in enumerate(models):
            assert values[i] == pytest.approx(float(alone(rbm.Params(*model))), rel=1e-12)
            expected = en.gradient_by_differences(lambda m: float(alone(rbm.Params(*m))), model)
            en.assert_close([array[i] for array in gradients], expected, 1e-7)


def test_residuals_have_no_slope():
    """A standard error has none at 0, and the largest change has one that nobody needs."""
    model = en.random_model(np.random.default_rng(1), N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS)

    def residuals(params):
        clips, key = field(params), jax.random.key(0)
        beliefs = rbm.belief_propagation(clips, BATCH.y, steps=2, damping=0.4)
        chains = rbm.gibbs(key, clips, BATCH.y, steps=5, chains=2)
        means = rbm.mean_field(clips, BATCH.y, steps=2)
        return jnp.sum(beliefs.residual + chains.residual + means.residual)

    slopes = jax.jit(jax.grad(residuals))(en.as_params(model))
    assert all((np.asarray(slope) == 0).all() for slope in slopes)


def test_no_public_function_or_gradient_is_missing_here():
    names = set()
    for name in rbm.__all__:
        is_gradient = hasattr(getattr(rbm, name), "noise")
        if is_gradient or not isinstance(getattr(rbm, name), type):
            names.add(name)
    assert names - NOT_TRACED <= set(FUNCTIONS)


def test_belief_propagation_differentiates_forwards_too():
    """The slope in one direction, forwards and backwards."""
    model = en.random_model(np.random.default_rng(3), N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS)
    direction = en.random_model(np.random.default_rng(4), N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS)
    value = number(FUNCTIONS["belief_propagation"])
    with jax.enable_x64(True):
        params, tangent = rbm.Params(*model), rbm.Params(*direction)
        _, forwards = jax.jvp(value, (params,), (tangent,))
        slopes = jax.grad(value)(params)
        backwards = sum(np.sum(s * t) for s, t in zip(slopes, tangent, strict=True))
    assert float(forwards) == pytest.approx(float(backwards), rel=1e-10)


def test_at_convergence_belief_propagation_has_the_slopes_of_the_exact_marginals_on_a_tree():
    """With a tolerance, so that clips stop before the last iteration."""
    model = en.random_model(np.random.default_rng(5), 1, N_TAGS, N_FEATURES, N_ROWS)

    def total(marginals):
        return lambda params: jnp.sum(marginals(params).y @ jnp.arange(1.0, N_TAGS + 1))

    with jax.enable_x64(True):
        found, exact = (
            jax.jit(jax.grad(total(function)))(rbm.Params(*model))
            for function in (
                lambda params: rbm.belief_propagation(
                    field(params), BATCH.y, steps=80, damping=0.5, tolerance=1e-12
                ),
                lambda params: rbm.exact(field(params), BATCH.y),
            )
        )
    en.assert_close(found, exact, 1e-9)


def test_a_weight_of_zero_has_the_slopes_of_its_neighbours():
    """Where |U| has a kink, nothing that is computed from it has one."""
    model = en.random_model(np.random.default_rng(6), N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS)
    model.U[:2] = 0.0
    value = number(FUNCTIONS["belief_propagation"])
    with jax.enable_x64(True):
        alone = jax.jit(value)
        expected = en.gradient_by_differences(lambda m: float(alone(rbm.Params(*m))), model)
        en.assert_close(jax.jit(jax.grad(value))(rbm.Params(*model)), expected, 1e-7)
