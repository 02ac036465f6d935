"""The built-in model as a prior: for which tags, and how much it weighs."""

import numpy as np
import pytest

from harmonium.library.learning.examples import TrainingSet
from harmonium.library.learning.prior import with_prior
from harmonium.library.model.builtin import builtin_model
from harmonium.library.model.odds import log_odds


@pytest.fixture
def examples():
    """The built-in model knows which of 200 tracks are calm; sunday is nothing to it."""
    rng, n = np.random.default_rng(0), 200
    vocabulary = builtin_model().vocabulary
    y = (np.arange(n) < 15).astype(np.float32)
    P = np.full((n, len(vocabulary)), 0.5, np.float32)
    calm = np.clip(0.3 + 0.5 * y + 0.05 * rng.normal(size=n), 0.01, 0.99)
    P[:, vocabulary.index("calm")] = calm
    Y = np.stack([y, y], axis=1)
    return TrainingSet(log_odds(P), Y, np.arange(n), ("calm", "sunday"), n_builtin=P.shape[1])


@pytest.fixture
def own():
    """What the library's own model says, which is chance."""
    return np.random.default_rng(1).uniform(0.3, 0.7, size=(200, 2)).astype(np.float32)


def mixed(examples, own):
    return with_prior(examples, own, builtin_model().vocabulary)


def test_a_prior_weighs_less_with_examples(examples, own):
    assert mixed(examples, own).own_weight.tolist() == [pytest.approx(15 / 20), 1.0]


def test_a_prior_is_used_for_the_tags_that_it_knows(examples, own):
    found, y = mixed(examples, own), examples.Y[:, 0]
    np.testing.assert_array_equal(found.held_out[:, 1], own[:, 1])
    assert np.corrcoef(found.held_out[:, 0], y)[0, 1] > np.corrcoef(own[:, 0], y)[0, 1] + 0.2


def test_what_the_library_shows_outweighs_a_prior_that_ranks_worse(examples, own):
    own[:, 0] = np.where(examples.Y[:, 0] == 1, 0.8, 0.2)
    examples.X[:] *= -1
    ranked = mixed(examples, own).held_out[:, 0]
    assert ranked[examples.Y[:, 0] == 1].min() > ranked[examples.Y[:, 0] == 0].max()
