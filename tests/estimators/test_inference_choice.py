"""How a model is asked follows from how it was trained; U has a penalty of its own."""

import numpy as np
import pytest

from harmonium import DiscriminativeRBM, GenerativeRBM, TagSmoother
from harmonium.estimators.model_files import chosen_inference


@pytest.mark.parametrize(
    ("settings", "chosen"),
    [
        ({}, ("mean_field", 3)),
        ({"training_steps": 7}, ("mean_field", 7)),
        ({"training_steps": 7, "inference_steps": 4}, ("mean_field", 4)),
        ({"inference": "lbp"}, ("lbp", 20)),
        ({"training": "cd"}, ("lbp", 20)),
        ({"training": "cd", "training_steps": 10, "inference": "mean_field"}, ("mean_field", 20)),
    ],
)
def test_mean_field_with_the_steps_of_training_where_these_were_trained(settings, chosen):
    assert chosen_inference(DiscriminativeRBM(**settings).get_params()) == chosen
    for other in (GenerativeRBM(), TagSmoother()):
        assert chosen_inference(other.get_params()) == ("lbp", 20)


def clips(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, [0, 0, 1]] + 0.5 * rng.normal(size=(n, 3)) > 0).astype(float)


def test_predictions_are_those_of_as_many_mean_field_steps():
    X, Y = clips()
    model = DiscriminativeRBM(5, max_epochs=5, random_state=0).fit(X, Y)
    named = model.predict_proba(X)
    model.set_params(inference="mean_field", inference_steps=3)
    np.testing.assert_array_equal(model.predict_proba(X), named)
    model.set_params(inference_steps=1)
    assert np.abs(model.predict_proba(X) - named).max() > 1e-4


def test_a_larger_penalty_on_u_shrinks_u_and_not_w():
    X, Y = clips()
    settings = {"max_epochs": 20, "validation_fraction": 0.0, "random_state": 0, "l2": 0.1}
    weak = DiscriminativeRBM(5, l2_tags=0.0, **settings).fit(X, Y).params_
    strong = DiscriminativeRBM(5, l2_tags=3.0, **settings).fit(X, Y).params_
    assert np.linalg.norm(strong.U) < 0.5 * np.linalg.norm(weak.U)
    same = DiscriminativeRBM(5, l2_tags=0.1, **settings).fit(X, Y).params_
    none = DiscriminativeRBM(5, l2_tags=None, **settings).fit(X, Y).params_
    np.testing.assert_array_equal(same.U, none.U)
