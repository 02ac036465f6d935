"""Data and fitted models that the tests of the estimators share; none of them changes these."""

import pytest
from tagging_data import Clips, draw, easy_model, paired_model, quick

from harmonium import DiscriminativeRBM


@pytest.fixture(scope="session")
def train() -> Clips:
    """300 clips whose tags follow their features."""
    return draw(easy_model(), 300, seed=0)


@pytest.fixture(scope="session")
def held_out() -> Clips:
    """200 more."""
    return draw(easy_model(), 200, seed=1)


@pytest.fixture(scope="session")
def paired_train() -> Clips:
    """300 clips whose tags follow one another more than their features."""
    return draw(paired_model(), 300, seed=0)


@pytest.fixture(scope="session")
def paired_test() -> Clips:
    """200 more."""
    return draw(paired_model(), 200, seed=1)


@pytest.fixture(scope="session")
def fitted(train: Clips, held_out: Clips) -> DiscriminativeRBM:
    """A model of ``train``, stopped early on ``held_out``."""
    return quick().fit(*train, eval_set=held_out)
