"""How a model predicts: what the settings of an estimator, or of a model file, mean.

NumPy is enough to import this.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from harmonium.errors import DataError

Training = Literal["cd", "pcd", "mean_field", "lbp", "pl", "exact", "multi_prediction"]
InferenceMethod = Literal["auto", "lbp", "mean_field", "gibbs", "exact"]
ChosenMethod = Literal["lbp", "mean_field", "gibbs", "exact"]

# the steps of training by default; the other ways to train have none
TRAINING_STEPS: dict[Training, int] = {
    "cd": 1,
    "pcd": 1,
    "mean_field": 5,
    "lbp": 10,
    "multi_prediction": 3,
}
INFERENCE_STEPS = 20  # by default, if not those of training
MAX_STEPS = 10_000  # of inference


class ChosenInference(NamedTuple):
    """A way to predict, without defaults."""

    method: ChosenMethod
    steps: int


def chosen_inference(
    inference: InferenceMethod,
    inference_steps: int | None,
    *,
    training: Training | None,
    training_steps: int | None,
) -> ChosenInference:
    """What ``inference`` and ``inference_steps`` mean for a model trained in this way.

    A model trained by multi-prediction predicts best with as many mean-field steps as in training.
    A model that could be trained by enumeration can predict by it, too. All others use belief
    propagation.
    """
    method: ChosenMethod
    if inference != "auto":
        method = inference
    elif training == "multi_prediction":
        method = "mean_field"
    elif training == "exact":
        method = "exact"
    else:
        method = "lbp"

    if inference_steps is not None:
        steps = inference_steps
    elif training == "multi_prediction" and method == "mean_field":
        steps = training_steps or TRAINING_STEPS["multi_prediction"]
    else:
        steps = INFERENCE_STEPS
    return ChosenInference(method, int(steps))


def check_steps(steps: int) -> None:
    """Refuse steps of inference that would take for ever."""
    if not 1 <= steps <= MAX_STEPS:
        raise DataError(f"'inference_steps' must be from 1 to {MAX_STEPS:,}. Got {steps}.")


def stored_inference(parameters: Mapping[str, Any]) -> ChosenInference:
    """How a stored model predicts, by the parameters in its file."""
    chosen = chosen_inference(
        parameters["inference"],
        parameters["inference_steps"],
        training=parameters.get("training"),
        training_steps=parameters.get("training_steps"),
    )
    check_steps(chosen.steps)
    return chosen
