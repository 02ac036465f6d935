"""A method of inference, added as docs/design.md says, predicts, completes and is reported."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.utils._param_validation import InvalidParameterError
from tagging_data import quick

from harmonium.errors import DataError
from harmonium.estimators import inference as names
from harmonium.estimators.stacked import fit_stacked
from harmonium.experiments.recipe import parse_recipe
from harmonium.experiments.report.wording import format_value
from harmonium.rbm import inference
from harmonium.rbm.belief import Estimate
from harmonium.rbm.inference import METHODS, InferenceMethod, InferenceOptions
from harmonium.rbm.model import clamp, hidden_given_tags, tags_given_hidden, unclamp

RECIPE = """
title = "x"
form = "approximations"
datasets = ["cal500"]
[[model]]
name = "DRBM"
estimator = "DiscriminativeRBM"
[tests]
inference = ["one_step"]
"""


class OneStep(InferenceMethod):
    """One mean-field step from y = 0, for at most ten tags."""

    is_traced = True

    def check(self, shape):
        if shape[1] > 10:
            raise DataError("inference='one_step' takes at most 10 tags.")

    def estimate(self, field, y, steps, numbers):
        free = clamp(field, y)
        hidden = hidden_given_tags(free, jnp.zeros_like(y))
        tags = tags_given_hidden(free, hidden)
        return Estimate(y=unclamp(tags, y), h=hidden, residual=jnp.zeros_like(y[:, 0]))

    def marginals(self, field, y, options):
        return self.estimate(field, y, options.steps, None).y


@pytest.fixture(autouse=True)
def one_step(monkeypatch):
    """The method, named in the two tables."""
    monkeypatch.setitem(METHODS, "one_step", OneStep())
    monkeypatch.setitem(names.INFERENCE_LABELS, "one_step", "1-step")


@pytest.fixture
def model(train):
    return quick().fit(*train).set_params(inference="one_step")


def test_it_predicts(model, train):
    expected = model.set_params(inference="mean_field", inference_steps=1).predict_proba(train.X)
    model.set_params(inference="one_step", inference_steps=None)
    np.testing.assert_allclose(model.predict_proba(train.X), expected, atol=1e-6)


def test_it_completes(model, train):
    known = np.where(np.arange(4) < 2, train.Y, np.nan)
    np.testing.assert_array_equal(model.complete(train.X, known)[:, :2], train.Y[:, :2])


def test_the_diagnostics_name_it(model, train):
    assert set(model.infer(train.X).diagnostics.method) == {"one_step"}


def test_it_stops_training_early(train):
    model = quick(inference="one_step", max_epochs=3)
    rows = np.arange(300)
    fit_stacked([model], *train, [rows[:200]], [rows[200:]])
    assert model.score(*train) > 0.5


def test_it_refuses_what_it_cannot_predict(train):
    with pytest.raises(DataError, match="at most 10 tags"):
        quick(inference="one_step").fit(train.X, np.tile(train.Y, 3))


def test_it_is_a_way_to_test_in_experiments():
    assert parse_recipe(RECIPE, trusted=True).inference == ("one_step",)


def test_without_its_name_it_is_refused(train, monkeypatch):
    monkeypatch.delitem(METHODS, "one_step")
    with pytest.raises(InvalidParameterError, match=r"'inference' parameter of .*'lbp'"):
        quick(inference="one_step").fit(*train)
    with pytest.raises(DataError, match="no method of inference 'one_step'"):
        inference.method_of(InferenceOptions("one_step"))


def test_every_method_has_a_label(monkeypatch):
    assert set(METHODS) == set(names.INFERENCE_LABELS)
    assert {"one_step", *names.ChosenMethod.__args__} == set(METHODS)
    assert {"auto", *names.ChosenMethod.__args__} == set(names.InferenceMethod.__args__)
    assert format_value("inference", "mean_field") == "MF"
