"""Metrics of whole sets of tags: decisions (yes or no for each tag), and the ranking within a clip.

Conventions are those of `harmonium.evaluation.metrics`: unknown labels are left out, as if the tag
did not exist for that clip. Without unknown labels, each equals scikit-learn's metric of that name.

- ``Y`` (n_clips, n_tags): 1 if the tag holds, 0 if it does not, NaN if nobody knows.
- ``D`` (n_clips, n_tags): decisions, 1 or 0, as ``predict`` gives them.
- ``S`` (n_clips, n_tags): scores, larger if the tag is more likely.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from harmonium.arrays import Doubles, Mask
from harmonium.errors import DataError
from harmonium.evaluation.metrics import Metric, MetricResult, Ternary, checked, per_tag


@dataclass(frozen=True, kw_only=True)
class DecisionScores:
    """How good decisions are; all but the Hamming loss are 1 at best. NaN where undefined."""

    macro_f1: float  # mean over tags of F1
    micro_f1: float  # F1 of all labels together
    hamming_loss: float  # share of wrong labels, 0 at best
    subset_accuracy: float  # share of clips without a wrong label


def evaluate_decisions(Y: ArrayLike, D: ArrayLike) -> DecisionScores:
    """All metrics of decisions.

    Examples
    --------
    >>> Y = [[1, 0, 1], [0, 1, float("nan")]]
    >>> scores = evaluate_decisions(Y, [[1, 0, 0], [0, 1, 1]])
    >>> scores.hamming_loss, scores.subset_accuracy
    (0.2, 0.5)
    """
    labels, said = _checked_decisions(Y, D)
    wrong = labels.known & (said != labels.positive)
    has_known = labels.known.any(axis=1)
    return DecisionScores(
        macro_f1=f1_per_tag(Y, D).mean,
        micro_f1=float(_f1(labels, said, axis=None)),
        hamming_loss=_share(wrong.sum(), labels.known.sum()),
        subset_accuracy=_share(np.sum(has_known & ~wrong.any(axis=1)), has_known.sum()),
    )


def f1_per_tag(Y: ArrayLike, D: ArrayLike) -> MetricResult:
    """F1_j = 2 TP_j / (2 TP_j + FP_j + FN_j), the harmonic mean of precision and recall.

    Undefined for a tag that no clip has and none is given (scikit-learn's ``zero_division=nan``).
    """
    labels, said = _checked_decisions(Y, D)
    values = _f1(labels, said, axis=0)
    undefined = np.flatnonzero(np.isnan(values)).tolist()
    return MetricResult(values, dict.fromkeys(undefined, "no positive, and none predicted"))


def coverage_error_per_clip(Y: ArrayLike, S: ArrayLike) -> MetricResult:
    """max over the tags t that clip i has of #{j known: s_ij ≥ s_it}.

    How far down the list of tags one must go to find all that hold: as many as hold, at best. 0 for
    a clip without tags; undefined for one without a known label.
    """

    def coverage(y: Mask, s: Doubles) -> float:
        return float(np.sum(s >= s[y].min())) if y.any() else 0.0

    return _per_clip(Y, S, coverage)


def ranking_precision_per_clip(Y: ArrayLike, S: ArrayLike) -> MetricResult:
    """LRAP_i: over the tags t that clip i has, the mean of the precision of {j: s_ij ≥ s_it}.

    Label ranking average precision, 1 at best. 1 for a clip that has none or all of its known tags;
    undefined for one without a known label.
    """

    def precision(y: Mask, s: Doubles) -> float:
        if y.all() or not y.any():
            return 1.0
        at_least = s[None] >= s[y][:, None]  # (positives, tags)
        return float(np.mean(at_least[:, y].sum(axis=1) / at_least.sum(axis=1)))

    return _per_clip(Y, S, precision)


def _per_clip(Y: ArrayLike, S: ArrayLike, metric: Metric) -> MetricResult:
    checked(Y, S)  # before transposing, so that an error names clip and tag the right way round
    labels, scores = checked(np.asarray(Y).T, np.asarray(S).T)
    return per_tag(labels, scores, labels.undefined(), metric)


def _checked_decisions(Y: ArrayLike, D: ArrayLike) -> tuple[Ternary, Mask]:
    labels, decisions = checked(Y, D)
    wrong = (decisions != 0) & (decisions != 1)
    if wrong.any():
        clip, tag = np.argwhere(wrong)[0]
        raise DataError(
            f"D must hold decisions, 0 or 1. Got {np.count_nonzero(wrong)} other values, the first "
            f"at clip {clip}, tag {tag}: {decisions[clip, tag]}. Use a model's predict, or compare "
            "scores with thresholds."
        )
    return labels, decisions == 1


def _f1(labels: Ternary, said: Mask, axis: int | None) -> Doubles:
    found = np.sum(labels.positive & said, axis=axis)
    all_said = np.sum(labels.known & said, axis=axis)
    total = np.asarray(np.sum(labels.positive, axis=axis) + all_said, np.float64)
    values = np.full(total.shape, np.nan)
    np.divide(2 * found, total, out=values, where=total > 0)
    return values


def _share(part: int, whole: int) -> float:
    return float(part / whole) if whole else float("nan")
