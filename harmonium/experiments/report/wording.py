"""How the settings and scores of an experiment are worded in tables and figures."""

import math
from typing import Any

from harmonium.estimators.inference import INFERENCE_LABELS, TRAINING_METHODS
from harmonium.experiments.recipe import ONE

NOTHING = "—"  # the text of a cell that has no value

SETTING_NAMES = {
    "n_hidden": "hidden units",
    "inference_steps": "test steps",
    "training": "trained with",
    "inference": "tested with",
    "known": "tags known",
    "l2": "L2",
    "nu": "ν",
    "clips": "training clips",
    "smoothing.auxiliary": "smoothed by",
    "smoothing.target": "smoothed to",
}
_TARGETS = {"new_user": "a new user", "any_user": "any user"}
_APPROXIMATIONS = {name: method.label for name, method in TRAINING_METHODS.items()}
_APPROXIMATIONS.update(INFERENCE_LABELS)
_SPEAK_FOR_THEMSELVES = ("dataset", "model", "smoothing", "features")
"""The settings whose values are shown without their name."""


def setting_name(key: str) -> str:
    """The name of a setting in words."""
    return SETTING_NAMES.get(key, key.replace("_", " ").replace(".", " "))


def format_value(key: str, value: Any) -> str:
    """The value of a setting, without its name."""
    if key in ("training", "inference"):
        return _APPROXIMATIONS.get(value, value.upper() if value else "own")
    if key == "smoothing.target":
        return _TARGETS.get(value, str(value))
    if key == "features" and value == "all":
        return "timbre + rhythm"
    if key == "smoothing":
        return str(value)
    if isinstance(value, list | tuple):
        return " + ".join(map(str, value)) or "none"
    if key == "known":
        return "one true tag" if value == ONE else f"{100 * value:g} %"
    if key == "clips":
        return f"{value:,}" if value else "all"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:g}"
    return "default" if value is None else str(value)


def format_setting(key: str, value: Any) -> str:
    """The value of a setting with its name, unless the value speaks for itself."""
    text = format_value(key, value)
    if key in _SPEAK_FOR_THEMSELVES:
        return text
    if key == "known":
        return f"{text} known"
    return f"{setting_name(key)} {text}"


def format_percent(mean: float, error: float = math.nan, *, digits: int = 1) -> str:
    """A mean AUC in percent with its standard error, if any."""
    if math.isnan(mean):
        return NOTHING
    text = f"{100 * mean:.{digits}f}"
    return text if math.isnan(error) else f"{text} ± {100 * error:.{digits}f}"


def format_difference(difference: float, error: float) -> str:
    """A difference of AUCs in percentage points, with its sign and its standard error."""
    if math.isnan(difference):
        return NOTHING
    sign = "−" if difference < 0 else "+"
    return sign + format_percent(abs(difference), error, digits=2)
