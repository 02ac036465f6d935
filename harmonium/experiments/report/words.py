"""Numbers and settings in the words that tables and figures use."""

import math
import re
from typing import Any

from harmonium.experiments.report.tables import NOTHING

_KEYS = {
    "n_hidden": "hidden units",
    "training_steps": "training steps",
    "inference_steps": "test steps",
    "learning_rate": "learning rate",
    "training": "trained with",
    "inference": "tested with",
    "known": "tags known",
    "l2": "L2",
    "nu": "ν",
    "features": "features",
    "clips": "training clips",
}
_APPROXIMATIONS = {
    "cd": "CD",
    "pl": "PL",
    "mean_field": "MF",
    "lbp": "LBP",
    "gibbs": "Gibbs",
    "exact": "exact",
}
_FEATURES = {"all": "timbre + rhythm"}


def key_words(key: str) -> str:
    """The name of a setting."""
    return _KEYS.get(key, key.replace("_", " "))


def heading(key: str) -> str:
    """The name of a setting at the head of a column."""
    text = key_words(key)
    return text[0].upper() + text[1:] if text[0].isascii() else text


def value_words(key: str, value: Any) -> str:
    """The value of a setting, without its name."""
    if key in ("training", "inference"):
        return "own" if value is None else _APPROXIMATIONS.get(value, str(value))
    if key == "features":
        return _FEATURES.get(value, str(value))
    if key == "smoothing":
        return "smoothed" if value else "raw"
    if key == "known":
        return f"{100 * value:g} %"
    if key == "clips":
        return f"{value:,}" if value else "all"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:g}"
    return "default" if value is None else str(value)


def setting_words(key: str, value: Any) -> str:
    """The value of a setting with its name, unless the value speaks for itself."""
    text = value_words(key, value)
    if key in ("dataset", "model", "smoothing", "features"):
        return text
    return f"{key_words(key)} {text}"


def percent(mean: float, error: float = math.nan, *, digits: int = 1) -> str:
    """A mean AUC in percent with its standard error, where it has one."""
    if math.isnan(mean):
        return NOTHING
    text = f"{100 * mean:.{digits}f}"
    return text if math.isnan(error) else f"{text} ± {100 * error:.{digits}f}"


def seconds(value: float) -> str:
    """A time in seconds, to three digits or so."""
    if math.isnan(value):
        return NOTHING
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def duration(value: float) -> str:
    """A long time in the unit that suits it."""
    if math.isnan(value):
        return NOTHING
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.1f} s"


def one_line(text: str) -> str:
    """The text without line ends and double spaces; spaces that do not break stay."""
    return re.sub(r"[ \t\r\n]+", " ", text).strip()


def listed(names: list[str]) -> str:
    """a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def number(count: int, thing: str) -> str:
    """1 run, 2 runs."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
