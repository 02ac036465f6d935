"""The most probable set of tags, against all sets of a small model."""

import enumeration as en
import jax
import numpy as np
import pytest

from harmonium.rbm.decisions import decide, most_probable

N_HIDDEN, N_TAGS, B = 4, 6, 8
search = jax.jit(most_probable, static_argnames=("beams", "models"))


def case(seed, scale):
    """A field of B clips with tags that are partly known; the first clip has no known tag."""
    rng = np.random.default_rng(seed)
    model = en.random_model(rng, N_HIDDEN, N_TAGS, scale=scale)
    c, d = rng.normal(0, scale, (B, N_HIDDEN)), rng.normal(0, scale, (B, N_TAGS))
    y = en.random_tags(rng, B, N_TAGS, unknown=0.6)
    y[0] = np.nan
    return model.U, en.single(c), en.single(d), y


def free_energy(U, c, d, y):
    return -y @ d - np.logaddexp(0, c + y @ U.T).sum(axis=-1)


@pytest.mark.parametrize("scale", [0.5, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_with_beams_for_all_sets_it_is_the_best_of_those_that_agree_with_the_known_tags(
    scale, seed
):
    U, c, d, y = case(seed, scale)
    found = search(en.as_field(U, c, d), np.float32(y), beams=2**N_TAGS)
    for b in range(B):
        sets = en.agreeing(y[b])
        best = sets[free_energy(U, c[b], d[b], sets).argmin()]
        np.testing.assert_array_equal(found[b], best)


@pytest.fixture(scope="module")
def energies():
    """Free energies of each clip's tags: those at the start, and found with 1, 4 and 64 beams."""
    U, c, d, y = case(4, 3.0)
    rng, field, energies = np.random.default_rng(0), en.as_field(U, c, d), []
    p = rng.random((B, N_TAGS)).astype(np.float32)
    start = np.where(np.isnan(y), p > 0.5, y)
    for tags in (start, *(search(field, np.float32(y), p, beams=beams) for beams in (1, 4, 64))):
        tags = np.asarray(tags, float)
        energies.append([free_energy(U, c[b], d[b], tags[b]) for b in range(B)])
    return np.array(energies)


def test_a_narrow_search_is_never_worse_than_its_start(energies):
    assert (energies[1:] <= energies[0] + 1e-5).all()


def test_a_wider_search_is_better(energies):
    assert energies[0].mean() > energies[1].mean() > energies[3].mean()
    assert energies[3].mean() <= energies[2].mean()


def test_several_models_decide_by_the_mean_of_their_free_energies():
    rng = np.random.default_rng(5)
    models = [en.random_model(rng, N_HIDDEN, N_TAGS, D=3, scale=2.0) for _ in range(3)]
    batch = en.random_batch(rng, 70, N_TAGS, 3, 0, unknown=0.7)
    clips = np.float32(batch.u), np.zeros((70, 0), np.int32), np.float32(batch.y)
    p = np.full((70, N_TAGS), 0.3, np.float32)
    found = decide([en.as_params(model) for model in models], *clips, p, 2**N_TAGS)
    alone = decide([en.as_params(models[0])], *clips, p, 2**N_TAGS)
    assert (found != alone).any()
    for b in range(70):
        sets = en.agreeing(batch.y[b])
        energies = [
            free_energy(model.U, model.c + model.W @ batch.u[b], model.d, sets) for model in models
        ]
        np.testing.assert_array_equal(found[b], sets[np.mean(energies, axis=0).argmin()])
        np.testing.assert_array_equal(alone[b], sets[energies[0].argmin()])
