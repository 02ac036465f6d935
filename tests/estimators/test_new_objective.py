"""A training objective that is added as docs/design.md says trains every kind of RBM."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tagging_data import quick

from harmonium import TagRBM, TagSmoother
from harmonium.errors import DataError
from harmonium.estimators import inference as names
from harmonium.rbm.gradients import OBJECTIVES, Gradient
from harmonium.rbm.inference import mean_field
from harmonium.rbm.model import condition


@dataclass(frozen=True)
class BrierScore(Gradient):
    """The squared error of mean-field predictions, differentiated automatically."""

    steps: int

    def check(self, shape):
        if shape[0] > 64:
            raise DataError("training='brier' takes at most 64 hidden units.")

    def __call__(self, params, batch, noise):
        known = ~jnp.isnan(batch.y)
        y = jnp.where(known, batch.y, 0.0)

        def loss(params):
            nothing = jnp.full_like(batch.y, jnp.nan)
            P = mean_field(condition(params, batch.u, batch.a), nothing, steps=self.steps).y
            return jnp.sum(batch.w[:, None] * known * (P - y) ** 2) / jnp.sum(batch.w), P

        gradient, P = jax.grad(loss, has_aux=True)(params)
        return gradient, jax.scipy.special.logit(jnp.clip(P, 1e-6, 1 - 1e-6))


@pytest.fixture(autouse=True)
def brier(monkeypatch):
    """The objective, named in the two tables."""
    monkeypatch.setitem(OBJECTIVES, "brier", lambda settings: BrierScore(settings.steps))
    method = names.TrainingMethod(
        label="Brier", steps=2, inference="mean_field", infers_in_as_many_steps=True
    )
    monkeypatch.setitem(names.TRAINING_METHODS, "brier", method)


def test_it_trains_the_discriminative_rbm(train, held_out):
    model = quick(training="brier", inference="auto", max_epochs=30)
    model.fit(*train, eval_set=held_out)
    assert model.score(*held_out) > 0.9
    predicted = model.predict_proba(held_out.X)
    model.set_params(inference="mean_field", inference_steps=2)
    np.testing.assert_array_equal(model.predict_proba(held_out.X), predicted)


def test_it_trains_the_rbm_of_tags(paired_train):
    tags = TagRBM(8, training="brier", max_epochs=5, random_state=0).fit(paired_train.Y)
    assert np.isfinite(tags.complete({0: 1})).all()


def test_it_trains_the_smoother():
    triples = [("ann", "song 1", "rock"), ("bob", "song 2", "jazz"), ("ann", "song 2", "jazz")]
    smoother = TagSmoother(n_hidden=8, n_tags=2, training="brier", max_epochs=2, random_state=0)
    smoother.fit(tuple(zip(*triples, strict=True)))
    assert np.isfinite(smoother.params_.U).all()


def test_it_refuses_what_it_cannot_train(train):
    with pytest.raises(DataError, match="at most 64 hidden units"):
        quick(training="brier", n_hidden=65).fit(*train)


def test_every_objective_has_a_label():
    assert set(OBJECTIVES) == set(names.TRAINING_METHODS)
    assert {"brier", *names.Training.__args__} == set(OBJECTIVES)
