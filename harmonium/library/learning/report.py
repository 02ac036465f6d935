"""What held-out tracks show of a model: thresholds, precision curves, and a report of each tag."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType

import numpy as np

from harmonium.arrays import Doubles, Floats, Ids
from harmonium.library.learning.examples import TrainingSet
from harmonium.library.learning.labels import row_blocks
from harmonium.library.learning.scores import (
    TagScores,
    choose_thresholds,
    make_curves,
    score_tags,
)
from harmonium.library.model import USUAL_PRECISION
from harmonium.library.model.precision import PrecisionCurve, TagPrecision
from harmonium.library.store.reports import CalibrationReport, TagReport

BLOCK = 50_000  # tracks whose probabilities are compared with the truth at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownTag:
    """What the built-in model knows about a tag, from its own clips."""

    threshold: float  # NaN: it never predicts the tag
    curve: PrecisionCurve | None  # None if nobody checked it


NONE_KNOWN: Mapping[str, KnownTag] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What held-out probabilities show of a model's C tags."""

    thresholds: Floats  # (C,) the probability from which a track gets the tag; NaN: never
    curves: list[PrecisionCurve]
    rates: Doubles  # (C,) the share of tracks that have the tag
    mean_auc: float | None  # of the tags that have one
    tags: tuple[TagReport, ...]
    calibration: CalibrationReport


def evaluate(
    examples: TrainingSet,
    held_out: Floats,
    folds: Ids,
    builtin: Mapping[str, KnownTag] = NONE_KNOWN,
) -> Evaluation:
    """Compare held-out probabilities (n, C) with the labels of the same tracks.

    A tag that is not learnt clearly better than chance is still predicted if the built-in model
    knows it, with its threshold.
    """
    scores = score_tags(examples.Y, held_out, folds)
    thresholds = choose_thresholds(examples.Y, held_out, scores)
    for j in np.flatnonzero(~scores.learnt):
        known = builtin.get(examples.tags[j])
        if known is not None:
            thresholds[j] = known.threshold
    curves = make_curves(examples.Y, held_out, examples.groups)
    n_known = scores.positives + scores.negatives
    defined = scores.auc[np.isfinite(scores.auc)]
    return Evaluation(
        thresholds=thresholds,
        curves=curves,
        rates=scores.positives / np.maximum(n_known, 1),
        mean_auc=float(defined.mean()) if len(defined) else None,
        tags=tuple(
            _tag_report(tag, scores, j, thresholds[j], curves[j], builtin.get(tag))
            for j, tag in enumerate(examples.tags)
        ),
        calibration=_calibration(examples.Y, held_out),
    )


def _tag_report(
    tag: str,
    scores: TagScores,
    j: int,
    threshold: np.float32,
    curve: PrecisionCurve,
    known: KnownTag | None,
) -> TagReport:
    """The report of the j-th tag."""
    examples = int(scores.positives[j])
    auc = _number(scores.auc[j])
    error = _number(scores.error[j])
    if np.isnan(threshold):
        return TagReport(tag=tag, examples=examples, auc=auc, error=error)
    measured = TagPrecision(
        own=curve if len(curve.chosen) else None,
        builtin=None if known is None else known.curve,
        taught=True,
    )
    rank = curve.at(float(threshold))
    return TagReport(
        tag=tag,
        examples=examples,
        auc=auc,
        error=error,
        learnt=bool(scores.learnt[j]),
        threshold=float(threshold),
        precision=curve.precision_from(float(threshold)),
        precision_at_least=None if rank is None else float(curve.bound[rank]),
        recall=curve.recall_from(float(threshold)),
        write_from=measured.threshold(USUAL_PRECISION),
    )


def _calibration(Y: Floats, held_out: Floats) -> CalibrationReport:
    """How far held-out probabilities are from the share of tracks that have the tag."""
    from harmonium.evaluation import reliability

    blocks = row_blocks(len(Y), BLOCK)
    found = reduce(operator.add, (reliability(Y[block], held_out[block]) for block in blocks))
    return CalibrationReport(
        error=found.error,
        edges=tuple(found.edges),
        n=tuple(found.n.tolist()),
        mean_probability=_means(found.scores, found.n),
        share_true=_means(found.positives, found.n),
    )


def _means(sums: Doubles, n: Ids) -> tuple[float | None, ...]:
    """Sums divided by n; None if n is 0."""
    pairs = zip(sums.tolist(), n.tolist(), strict=True)
    return tuple(total / count if count else None for total, count in pairs)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
