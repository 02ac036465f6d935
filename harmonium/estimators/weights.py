"""Weights of clips and of classes: how much each label counts.

A clip with the weight 2 counts as two clips. With class weights, a label counts as its clip does,
times the weight of its class, as in scikit-learn: in a matrix, a tag has the classes 0 and 1. NumPy
is enough to import this.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from harmonium.arrays import Doubles, Floats
from harmonium.errors import DataError
from harmonium.estimators.targets import Targets

BALANCED = "balanced"


class Weights(NamedTuple):
    """How much clips and classes count; None: all alike."""

    clips: Doubles | None = None  # (N,)
    classes: Doubles | None = None  # (C, 2), of absent and present

    def of_clips(self, Y: Floats) -> Floats | None:
        """What the labels Y of these N clips count: (N, 1), or (N, C) with class weights."""
        of_classes = self.of_others(Y)
        if self.clips is None:
            return of_classes
        of_clips = self.clips[:, None].astype(np.float32)
        return of_clips if of_classes is None else of_clips * of_classes

    def of_others(self, Y: Floats) -> Floats | None:
        """What the labels Y of other clips count, which weigh 1 each: (N, C), or None if all do.

        A label that is a probability has the mean weight; an unknown label has that of absent ones.
        """
        if self.classes is None:
            return None
        absent, present = self.classes.T
        return (absent + (present - absent) * np.nan_to_num(Y)).astype(np.float32)

    @property
    def mean_of_clips(self) -> float:
        """The mean weight of a clip."""
        return 1.0 if self.clips is None else float(self.clips.mean())


ALIKE = Weights()


def read_weights(sample_weight: Any, class_weight: Any, targets: Targets) -> Weights:
    """The weights that ``fit`` was given, for the clips and the tags of the targets."""
    clips = read_sample_weight(sample_weight, len(targets.Y))
    return Weights(clips=clips, classes=_class_weights(class_weight, targets, clips))


def read_sample_weight(sample_weight: Any, n_clips: int) -> Doubles | None:
    """A weight for each clip, (n_clips,), or one number for all; None: all alike."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, np.float64)
    if weights.ndim == 0:
        weights = np.full(n_clips, float(weights))
    if weights.shape != (n_clips,):
        raise DataError(
            f"sample_weight must have one number for each of the {n_clips} clips. "
            f"Got the shape {weights.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise DataError(
            "sample_weight must hold finite numbers of at least 0. "
            f"sample_weight[{wrong[0]}] is {weights[wrong[0]]:g}."
        )
    if not weights.any():
        raise DataError("sample_weight must be above 0 for some clip. Each weight is zero.")
    return weights


def _class_weights(class_weight: Any, targets: Targets, clips: Doubles | None) -> Doubles | None:
    """The weights of absent and present labels of each tag, (C, 2)."""
    if class_weight is None:
        return None
    n_tags = len(targets.tags)
    if isinstance(class_weight, str):
        if class_weight != BALANCED:
            raise _wrong(class_weight)
        return _balanced(targets.Y, clips)
    if isinstance(class_weight, Mapping):
        return np.tile(_pair(class_weight, targets.classes), (n_tags, 1))
    if isinstance(class_weight, list | tuple):
        if len(class_weight) != n_tags:
            raise DataError(
                f"class_weight must have one mapping for each of the {n_tags} tags. "
                f"Got {len(class_weight)}."
            )
        return np.array([_pair(of_tag, targets.classes) for of_tag in class_weight])
    raise _wrong(class_weight)


def _pair(of_tag: Any, classes: Any) -> Doubles:
    """The weights of the two classes; a class that is not named has the weight 1."""
    names = [0, 1] if classes is None else classes.tolist()
    if not isinstance(of_tag, Mapping) or not set(of_tag) <= set(names):
        raise DataError(
            f"class_weight must map the classes {names[0]!r} and {names[1]!r} to numbers. "
            f"Got {of_tag!r}."
        )
    pair = np.array([of_tag.get(name, 1.0) for name in names], np.float64)
    if not (np.isfinite(pair) & (pair >= 0)).all() or not pair.any():
        raise DataError(f"class_weight must hold numbers of at least 0. Got {of_tag!r}.")
    return pair


def _balanced(Y: Floats, clips: Doubles | None) -> Doubles:
    """n / (2 n_class) of each tag, with n its known labels, by weight; 1 for an empty class."""
    weights = np.ones(len(Y)) if clips is None else clips
    present = weights @ np.nan_to_num(Y).astype(np.float64)
    known = weights @ ~np.isnan(Y)
    counts = np.column_stack([known - present, present])
    balanced = np.ones_like(counts)
    np.divide(known[:, None], 2 * counts, out=balanced, where=counts > 0)
    return balanced


def _wrong(class_weight: Any) -> DataError:
    return DataError(
        "class_weight must be None, 'balanced', a mapping of classes to weights, or a list with "
        f"such a mapping for each tag. Got {class_weight!r}."
    )
