"""The built-in model as a prior: where it helps, and how much it weighs."""

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
    return with_prior(examples, own, np.arange(200) % 5, builtin_model().vocabulary)


def test_a_prior_is_used_where_it_ranks_better_and_weighs_less_with_examples(examples, own):
    found, y = mixed(examples, own), examples.Y[:, 0]
    assert found.own_weight.tolist() == [pytest.approx(15 / 20), 1.0]
    np.testing.assert_array_equal(found.held_out[:, 1], own[:, 1])
    assert np.corrcoef(found.held_out[:, 0], y)[0, 1] > np.corrcoef(own[:, 0], y)[0, 1] + 0.2


def test_a_prior_that_ranks_worse_is_not_used(examples, own):
    examples.X[:] *= -1
    found = mixed(examples, own)
    assert found.own_weight[0] == 1.0
    np.testing.assert_array_equal(found.held_out, own)
