"""The report of a model: how it was trained, and how well it knows its tags. Stored as JSON."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, lru_cache
from typing import Any, Self, Union, get_args, get_origin, get_type_hints

from harmonium.data.tag_names import AUDIO_FEATURES

OPTIONAL_NUMBERS = ("rate", "reached")  # only reports of built-in tags have them


@dataclass(frozen=True, kw_only=True)
class TagReport:
    """What training found out about a tag, on tracks held out from it."""

    tag: str  # its name at that time
    examples: int = 0  # tracks that it was learnt from; for a built-in tag, clips of other music
    auc: float | None = None
    error: float | None = None  # the standard error of the AUC
    learnt: bool = False  # whether it is predicted clearly better than chance
    threshold: float | None = None  # the probability from which a track gets it
    precision: float | None = None  # of tracks that reach the threshold, the share that have it
    precision_at_least: float | None = None  # its lower bound
    recall: float | None = None  # of tracks that have it, the share that reach the threshold
    write_from: float | None = None  # the probability from which it is written by default
    rate: float | None = None  # the share of tracks that have it
    reached: float | None = None  # how many reach the threshold


@dataclass(frozen=True, kw_only=True)
class ExcludedTag:
    """A tag that people gave and that is not learnt."""

    tag: str
    examples: int
    missing: int  # how many more tracks it needs: with it, or, if it is on most tracks, without it
    reason: str


@dataclass(frozen=True, kw_only=True)
class CalibrationReport:
    """How far held-out probabilities are from the share of tracks that have the tag."""

    error: float  # the mean difference
    edges: tuple[float, ...]  # of the ranges of probabilities
    n: tuple[int, ...]  # predictions in each range
    mean_probability: tuple[float | None, ...]
    share_true: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Hyperparameters that training tried, and how well they did."""

    learning_rate: float
    l2: float
    smoothed: bool
    more_inputs: bool
    linear: bool
    auc: float
    epochs: int


@dataclass(frozen=True, kw_only=True)
class ModelReport:
    """How a model was trained and how good it is."""

    tracks: int | None = None  # that it was trained on
    people: int | None = None  # who tagged them
    mean_auc: float | None = None
    tags: tuple[TagReport, ...] = ()  # in the order of its vocabulary, without built-in tags
    left_out: tuple[ExcludedTag, ...] = ()
    calibration: CalibrationReport | None = None
    smoothing_tried: bool = False
    smoothed: bool = False
    shipped_inputs: bool = False  # whether the built-in model's log-odds are inputs
    trials: tuple[Trial, ...] = ()
    folds: int | None = None
    grouped_by: str | None = None
    min_count: int | None = None
    min_share: float | None = None
    seed: int | None = None
    genres: bool = False  # whether a genre tree was used
    seconds: float | None = None
    version: str | None = None
    own: int | None = None  # how many of its tags were learnt here; None: all
    aliases: Mapping[str, str] = field(default_factory=dict)  # other words for built-in tags
    precision: Mapping[str, float | None] = field(default_factory=dict)
    """Built-in tag → the share of held-out clips reaching its threshold that have it."""
    unconfirmed: tuple[str, ...] = ()
    """Built-in moods whose precision no second collection confirms."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The report that JSON describes; a ValueError if a value has another type."""
        calibration = data.get("calibration")
        if isinstance(calibration, Mapping) and "edges" not in calibration:  # of a built-in model
            data = {**data, "calibration": None}
        report: Self = _read_record(cls, data)
        return report

    def to_json(self) -> dict[str, Any]:
        """As JSON; what only reports of built-in tags have is left out of the others."""
        report: dict[str, Any] = _as_json(self)
        for name in ("own", "aliases", "precision", "unconfirmed", "calibration"):
            if not report[name] and report[name] != 0:
                del report[name]
        for tag in report["tags"]:
            for name in OPTIONAL_NUMBERS:
                if tag[name] is None:
                    del tag[name]
        return report

    def __getitem__(self, name: str) -> Any:
        """A value as it is in JSON: reports were dictionaries in version 1.0."""
        return self.to_json()[name]

    @property
    def n_given(self) -> int:
        """How many tags people had given, whether they could be learnt or not."""
        tags = [tag for tag in self.tags if self.own != 0 or tag.tag not in AUDIO_FEATURES]
        return len(tags) + len(self.left_out)

    @property
    def n_learnt(self) -> int:
        """How many of them it learnt."""
        return sum(tag.learnt for tag in self.tags)


def _as_json(value: Any) -> Any:
    if is_dataclass(value):
        return {one.name: _as_json(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple):
        return [_as_json(one) for one in value]
    return dict(value) if isinstance(value, Mapping) else value


@lru_cache(maxsize=32)
def read_report(text: str) -> ModelReport:
    """The report in a column of JSON; a ValueError if it is damaged."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("it is not a table")
    return ModelReport.from_json(data)


def _read_record(kind: Any, data: Any) -> Any:
    if not isinstance(data, Mapping):
        raise ValueError(f"{kind.__name__} is {data!r}")
    hints = _hints(kind)
    values = {}
    for one in fields(kind):
        if one.name in data:
            values[one.name] = _read_value(hints[one.name], data[one.name], one.name)
    try:
        return kind(**values)
    except TypeError as error:  # a field is missing
        raise ValueError(str(error)) from None


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _read_value(kind: Any, value: Any, name: str) -> Any:
    """A value of JSON as the type of a field; a ValueError if it has another one."""
    origin = get_origin(kind)
    inner = get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        kind = next(one for one in inner if one is not type(None))
        return _read_value(kind, value, name)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(_read_value(inner[0], one, name) for one in value)
    if origin is not None and origin is not tuple and isinstance(value, Mapping):
        return {str(key): _read_value(inner[1], one, name) for key, one in value.items()}
    if is_dataclass(kind) and isinstance(kind, type):
        return _read_record(kind, value)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind in (str, bool) and isinstance(value, kind):
        return value
    raise ValueError(f"{name} is {value!r}")
