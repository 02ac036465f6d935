"""The ways to train and to infer, by name, and what the settings of a model mean by them.

The settings are an estimator's parameters, or those in a model file. NumPy is enough to import
this; the classes that do the work are in `rbm/gradients.py` and `rbm/inference.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from harmonium.errors import DataError

Training = Literal["cd", "pcd", "mean_field", "lbp", "pl", "exact", "multi_prediction"]
InferenceMethod = Literal["auto", "lbp", "mean_field", "gibbs", "exact"]
ChosenMethod = Literal["lbp", "mean_field", "gibbs", "exact"]

AUTO = "auto"  # the method of inference that suits the way to train
INFERENCE_STEPS = 20  # by default, if not those of training
MAX_STEPS = 10_000  # of inference


@dataclass(frozen=True, kw_only=True)
class TrainingMethod:
    """A way to train an RBM."""

    label: str  # in tables and figures
    steps: int | None = None  # by default; None if it takes none
    inference: ChosenMethod = "lbp"  # what "auto" means for such a model
    infers_in_as_many_steps: bool = False  # whether that takes as many steps as training did
    stops_by_completion: bool = False  # whether early stopping asks with observed tags, too


TRAINING_METHODS: dict[str, TrainingMethod] = {
    "cd": TrainingMethod(label="CD", steps=1),
    "pcd": TrainingMethod(label="PCD", steps=1),
    "mean_field": TrainingMethod(label="MF", steps=5),
    "lbp": TrainingMethod(label="LBP", steps=10),
    "pl": TrainingMethod(label="PL"),
    "exact": TrainingMethod(label="exact", inference="exact"),
    "multi_prediction": TrainingMethod(
        label="MP",
        steps=3,
        inference="mean_field",
        infers_in_as_many_steps=True,
        stops_by_completion=True,
    ),
}

INFERENCE_LABELS: dict[str, str] = {
    "lbp": "LBP",
    "mean_field": "MF",
    "gibbs": "Gibbs",
    "exact": "exact",
}
"""The methods of inference, and what tables and figures call them."""


class ChosenInference(NamedTuple):
    """A way to predict, without defaults."""

    method: str
    steps: int


def chosen_inference(
    inference: str,
    inference_steps: int | None,
    *,
    training: str | None,
    training_steps: int | None,
) -> ChosenInference:
    """What ``inference`` and ``inference_steps`` mean for a model trained in this way.

    A model trained by multi-prediction predicts best with as many mean-field steps as in training.
    A model that could be trained by enumeration can predict by it, too. All others use belief
    propagation.
    """
    trained = TRAINING_METHODS.get(training or "", TrainingMethod(label=""))
    method = trained.inference if inference == AUTO else inference
    if inference_steps is not None:
        steps = inference_steps
    elif trained.infers_in_as_many_steps and method == trained.inference:
        steps = training_steps or trained.steps or INFERENCE_STEPS
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
