"""Which inference a model is asked by, where that was left to how it was trained. Without JAX."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

STEPS = {"cd": 1, "mean_field": 5, "lbp": 10, "multi_prediction": 3}
"""Steps of each way to train, unless others are given."""


class InferenceChoice(NamedTuple):
    """A method and its number of steps."""

    method: Literal["lbp", "mean_field", "gibbs", "exact"]
    steps: int


def chosen_inference(parameters: Mapping[str, Any]) -> InferenceChoice:
    """What ``inference`` and ``inference_steps`` stand for in the parameters of an estimator.

    A model trained by multi-prediction is trained through so many steps of mean field and predicts
    best by as many. All others are asked by belief propagation.
    """
    method, steps = parameters["inference"], parameters["inference_steps"]
    unrolled = parameters.get("training") == "multi_prediction"
    if method == "auto":
        method = "mean_field" if unrolled else "lbp"
    if steps is None:
        steps = 20
        if unrolled and method == "mean_field":
            steps = parameters.get("training_steps") or STEPS["multi_prediction"]
    return InferenceChoice(method, steps)
