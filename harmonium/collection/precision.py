"""How often a tag is right from each probability on, and from where on it is right often enough.

For every learnt tag, training keeps the curve of held-out tracks: how many have at least a
probability, and how many of those have the tag. `precision_curve` gives it, for any stored model.

To be right with a share r, `threshold_for` goes down the ranks of the curve, beginning where one
mistake can still be forgiven. It goes on while the lower bound of the share that is right is not
below r; it is the bound of Clopper and Pearson, which holds however few the tracks are. The last
rank that passed is the threshold. As the first failure ends it, looking at many ranks costs nothing
(fixed-sequence testing): a threshold from which on a tag is right less often than r is chosen in at
most a share `DOUBT` of the cases. That holds where tracks are right or wrong independently of one
another; where the tracks of an album go together, it promises too much
(`benchmarks/precision.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.collection.store.models import NEVER, StoredModel
from harmonium.errors import DataError

USUAL_PRECISION = 0.8
"""What is written is to be right so often."""
DOUBT = 0.2
"""The share of tags about which a bound may be wrong."""
GROWTH = 1.1
"""Beyond the first ranks, each rank of a curve has so many times the tracks of the one before."""

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PrecisionCurve:
    """Held-out tracks of a tag by probability, from the most probable on; all (n_ranks,)."""

    thresholds: Doubles
    """Strictly descending,"""
    chosen: NDArray[np.int64]
    """how many tracks have at least this probability,"""
    right: NDArray[np.int64]
    """and how many of them have the tag."""
    positives: int
    """How many tracks have the tag."""

    @property
    def precision(self) -> Doubles:
        """The share of the tracks chosen that have the tag."""
        return self.right / self.chosen

    @property
    def recall(self) -> Doubles:
        """The share of the tracks with the tag that are chosen."""
        return self.right / max(1, self.positives)

    @property
    def bounds(self) -> tuple[Doubles, Doubles]:
        """Lower and upper bounds of the precision (Clopper and Pearson), each right in 80 %."""
        return lower_bound(self.right, self.chosen), 1 - lower_bound(
            self.chosen - self.right, self.chosen
        )

    def at(self, threshold: float) -> int | None:
        """The last rank that reaches a threshold; None where no track does."""
        n = int(np.sum(self.thresholds >= threshold))
        return n - 1 if n else None


def lower_bound(
    right: NDArray[np.int64], chosen: NDArray[np.int64], doubt: float = DOUBT
) -> Doubles:
    """The precision q at which so many or more are right in a share ``doubt`` of all samples."""
    from scipy.stats import beta

    found = beta.ppf(doubt, np.maximum(right, 1), chosen - right + 1)
    return np.where(right > 0, found, 0.0)


def make_curve(y: NDArray[np.float32], p: NDArray[np.float32]) -> PrecisionCurve:
    """The curve of labels (n,), 0, 1 or NaN, and held-out probabilities (n,)."""
    known = ~np.isnan(y)
    order = np.argsort(-p[known], kind="stable")
    y, ordered = y[known][order], p[known][order].astype(np.float64)
    # tracks of one probability are chosen together
    ranks = np.flatnonzero(np.append(ordered[1:] < ordered[:-1], True))
    kept, last = [], 0
    for rank in ranks.tolist():
        if rank + 1 >= min(GROWTH * last, last + len(y)) or rank == ranks[-1]:
            kept.append(rank)
            last = rank + 1
    places = np.array(kept, np.int64)
    right = np.cumsum(y == 1)[places].astype(np.int64)
    return PrecisionCurve(ordered[places], places + 1, right, int((y == 1).sum()))


def threshold_for(curve: PrecisionCurve, precision: float) -> float:
    """The probability from which on a tag is right with this share; `NEVER` where it cannot be."""
    if not 0 <= precision < 1:
        raise DataError(f"'precision' must be at least 0 and below 1. Got {precision}.")
    passed = lower_bound(curve.right, curve.chosen) >= precision
    usable = np.flatnonzero(curve.chosen >= _first_rank(precision, curve.positives))
    threshold = NEVER
    for rank in usable.tolist():
        if not passed[rank]:
            break
        threshold = float(curve.thresholds[rank])
    return threshold


def _first_rank(precision: float, positives: int) -> int:
    """The fewest tracks that can pass with one mistake, or with none where a tag has fewer."""
    n = np.arange(1, 1000)
    none = int(n[np.argmax(lower_bound(n, n) >= precision)])
    one = int(n[np.argmax(lower_bound(n - 1, n) >= precision)])
    return one if positives >= one else none


# Kept with a model. ---------------------------------------------------------------------------


def curves_to_arrays(curves: Sequence[PrecisionCurve]) -> dict[str, NDArray[Any]]:
    """As arrays of a model file: the curves one after the other, and where each ends."""
    return {
        "curves.thresholds": np.concatenate([one.thresholds for one in curves]).astype(np.float32),
        "curves.chosen": np.concatenate([one.chosen for one in curves]).astype(np.int32),
        "curves.right": np.concatenate([one.right for one in curves]).astype(np.int32),
        "curves.positives": np.array([one.positives for one in curves], np.int32),
        "curves.ends": np.cumsum([len(one.chosen) for one in curves]).astype(np.int32),
    }


def precision_curves(model: StoredModel) -> list[PrecisionCurve] | None:
    """The curve of each tag of a stored model.

    None where it has none: it is an older one, or came without its bytes.
    """
    from harmonium.estimators.model_files import from_bytes

    if not model.bytes:
        return None
    return curves_from_arrays(from_bytes(model.bytes, name="The stored model")[0])


def curves_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> list[PrecisionCurve] | None:
    """What `curves_to_arrays` was given, or None."""
    if "curves.ends" not in arrays:
        return None
    ends = arrays["curves.ends"].tolist()
    return [
        PrecisionCurve(
            arrays["curves.thresholds"][begin:end].astype(np.float64),
            arrays["curves.chosen"][begin:end].astype(np.int64),
            arrays["curves.right"][begin:end].astype(np.int64),
            int(positives),
        )
        for begin, end, positives in zip([0, *ends], ends, arrays["curves.positives"], strict=False)
    ]


def precision_curve(model: StoredModel, tag: str) -> PrecisionCurve | None:
    """Precision and recall of a tag at each threshold, from held-out tracks.

    None where the model has no such tag, or no curves.
    """
    curves = precision_curves(model)
    place = model.vocabulary.index(tag) if tag in model.vocabulary else len(model.vocabulary)
    return None if curves is None or place >= len(curves) else curves[place]


def knows_precision(model: StoredModel) -> bool:
    """Whether the model says how often its tags are right; older ones do not."""
    return model.n_own == 0 or precision_curves(model) is not None


def thresholds_for(model: StoredModel, precision: float | None) -> NDArray[np.float32]:
    """(n_tags,) from which probability on each tag is right with this share; else `NEVER`.

    The model's own thresholds where no precision is asked for, or it knows none. Tags that came
    along with Harmonium have the one threshold at which they were checked.
    """
    if precision is None or not knows_precision(model):
        return model.thresholds
    own = precision_curves(model) or [] if model.n_own else []
    found = [threshold_for(curve, precision) for curve in own[: model.n_own]]
    checked = {tag.get("tag"): tag for tag in model.report.get("tags", [])}
    said = model.report.get("precision", {})
    for place in range(model.n_own, len(model.vocabulary)):
        tag = model.vocabulary[place]
        right = _checked(checked[tag]) if "reached" in checked.get(tag, {}) else said.get(tag) or 0
        found.append(float(model.thresholds[place]) if right >= precision else NEVER)
    return np.where(model.learnt, np.array(found), NEVER).astype(np.float32)


def _checked(tag: Mapping[str, Any]) -> float:
    """The least share that is right of a tag that came along, by the clips that people tagged."""
    if not tag.get("examples") or not tag.get("reached") or tag.get("precision") is None:
        return 0.0
    reached = np.array([tag["reached"]])
    right = np.round(tag["precision"] * reached).astype(np.int64)
    return float(lower_bound(right, reached)[0])
