"""Metrics for tags: how well scores rank clips or tags, and whether probabilities can be trusted.

Conventions, the same in every metric:

- ``Y`` (n_clips, n_tags): 1 if the tag holds, 0 if it does not, NaN if nobody knows.
  Unknown entries are left out: they are neither positive nor negative.
- ``S`` (n_clips, n_tags): finite scores, larger if the tag is more likely. Calibration error, Brier
  score and log loss need probabilities, between 0 and 1, and are 0 at best.
- The result is a `MetricResult` of n_tags values (of n_clips for ``..._per_clip``). A metric that
  is undefined for a tag is NaN there, and the result says why.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonium.arrays import Doubles, Integers, Mask, Numbers
from harmonium.errors import DataError

Metric: TypeAlias = Callable[[Mask, Doubles], float]
"""Of the labels (n,) and the scores (n,) of the clips of one tag whose label is known."""


@dataclass(frozen=True, eq=False)
class MetricResult:
    """One value per tag (or per clip), NaN where it is undefined, and the reason for each NaN.

    NumPy functions take the result as the array of its values.
    """

    values: Doubles  # (n,) the metric, NaN where undefined
    reasons: dict[int, str]  # index of each undefined value → why it is undefined

    @property
    def n_defined(self) -> int:
        """Number of values that are defined."""
        return len(self.values) - len(self.reasons)

    @property
    def mean(self) -> float:
        """Mean over the defined values; NaN without any."""
        return float(np.nanmean(self.values)) if self.n_defined else float("nan")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)


def evaluate(
    Y: ArrayLike, S: ArrayLike, *, k: int = 10, n_bins: int = 10
) -> dict[str, MetricResult]:
    """Every metric by name, each with its values, their mean, and why some are undefined.

    Parameters
    ----------
    Y : (n_clips, n_tags) labels: 0, 1, or NaN for unknown.
    S : (n_clips, n_tags) scores. If some are below 0 or above 1, they are ranked but not judged as
        probabilities: the metrics of calibration are then NaN for all tags, with that reason.
    k : length of the list of ``precision_at_k``.
    n_bins : number of bins of ``calibration_error``.

    Returns
    -------
    dict with the keys ``auc``, ``average_precision``, ``precision_at_k``, ``auc_per_clip``,
    ``calibration_error``, ``brier``, ``log_loss``. ``auc_per_clip`` has n_clips values, the others
    n_tags.

    Examples
    --------
    >>> Y = [[1, 0], [0, 1], [0, float("nan")]]
    >>> results = evaluate(Y, [[0.9, 0.2], [0.3, 0.6], [0.5, 0.1]])
    >>> results["auc"].mean
    1.0
    >>> results["precision_at_k"].reasons
    {0: 'fewer than 10 known labels', 1: 'fewer than 10 known labels'}
    """
    results = {
        "auc": auc_per_tag(Y, S),
        "average_precision": average_precision_per_tag(Y, S),
        "precision_at_k": precision_at_k_per_tag(Y, S, k=k),
        "auc_per_clip": auc_per_clip(Y, S),
    }
    if are_probabilities(S):
        results["calibration_error"] = calibration_error_per_tag(Y, S, n_bins=n_bins)
        results["brier"] = brier_per_tag(Y, S)
        results["log_loss"] = log_loss_per_tag(Y, S)
    else:
        n_tags = np.shape(S)[1]
        reasons = dict.fromkeys(range(n_tags), "scores are not probabilities")
        undefined = MetricResult(np.full(n_tags, np.nan), reasons)
        results |= dict.fromkeys(("calibration_error", "brier", "log_loss"), undefined)
    return results


class Ternary(NamedTuple):
    """Checked labels: which are positive, which are known, and how many of each a tag has."""

    positive: Mask  # (n_clips, n_tags)
    known: Mask  # (n_clips, n_tags)
    n_positive: Integers  # (n_tags,)
    n_known: Integers  # (n_tags,)

    @property
    def n_negative(self) -> Integers:
        """(n_tags,) known labels that are 0."""
        return self.n_known - self.n_positive

    def undefined(
        self, *, needs_positive: bool = False, needs_negative: bool = False
    ) -> dict[int, str]:
        """Tag → why a metric with these needs is undefined for it."""
        reasons = {}
        for tag in np.flatnonzero((self.n_positive == 0) | (self.n_negative == 0)).tolist():
            if self.n_known[tag] == 0:
                reasons[tag] = "no known label"
            elif needs_positive and self.n_positive[tag] == 0:
                reasons[tag] = "no positive"
            elif needs_negative and self.n_negative[tag] == 0:
                reasons[tag] = "no negative"
        return reasons


def checked(Y: ArrayLike, S: ArrayLike) -> tuple[Ternary, Numbers]:
    """Ternary labels and finite scores of one shape, or ``DataError``."""
    labels = ternary(Y)
    scores = matrix("S", S)
    if labels.positive.shape != scores.shape:
        raise DataError(
            f"Y and S must have the same shape (n_clips, n_tags). Got Y {labels.positive.shape} "
            f"and S {scores.shape}; score the same clips and tags, in the same order."
        )
    finite = np.isfinite(scores)
    if not finite.all():
        clip, tag = np.argwhere(~finite)[0]
        raise DataError(
            f"S must hold finite scores. Got {np.count_nonzero(~finite)} that are NaN or infinite, "
            f"the first at clip {clip}, tag {tag}: {scores[clip, tag]}. Mark unknown labels in Y, "
            "not in S, and check that the model that gave S has converged."
        )
    return labels, scores


def ternary(Y: ArrayLike) -> Ternary:
    """Y as positive and known masks; ``DataError`` for values other than 0, 1 and NaN."""
    labels = matrix("Y", Y)
    positive = labels == 1
    known = ~np.isnan(labels)
    wrong = known & ~positive & (labels != 0)
    if wrong.any():
        clip, tag = np.argwhere(wrong)[0]
        raise DataError(
            f"Y must hold 0, 1 and NaN (unknown) only. Got {np.count_nonzero(wrong)} other values, "
            f"the first at clip {clip}, tag {tag}: {labels[clip, tag]}. Turn counts and "
            "probabilities into labels first."
        )
    return Ternary(
        positive=positive,
        known=known,
        n_positive=positive.sum(axis=0),
        n_known=known.sum(axis=0),
    )


def matrix(name: str, values: ArrayLike, axes: str = "(n_clips, n_tags)") -> Numbers:
    """A matrix of floats (in its original precision), or a ``DataError`` that names it."""
    try:
        array = np.asarray(values)
        if not np.issubdtype(array.dtype, np.floating):
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{name} must be a matrix of numbers {axes}. Got {type(values).__name__} "
            f"that NumPy cannot read as one: {error}."
        ) from None
    if array.ndim != 2:
        hint = f"; for a single tag, use {name}[:, None]" if "n_tags" in axes else ""
        raise DataError(f"{name} must have two dimensions {axes}. Got shape {array.shape}{hint}.")
    return array


def at_least(name: str, value: int, least: int) -> int:
    """The value, or ``DataError`` unless it is a whole number of at least ``least``."""
    if not isinstance(value, int | np.integer) or value < least:
        raise DataError(f"{name} must be a whole number, at least {least}. Got {value!r}.")
    return int(value)


# Ranking. No step depends on the order of clips with equal scores, so ties are exact. Scores are
# sorted as numbers, which is much faster than sorting the clips by them.


def auc_per_tag(Y: ArrayLike, S: ArrayLike) -> MetricResult:
    """AUC_j = #{(p, n): y_pj = 1, y_nj = 0, s_pj > s_nj} / (P_j N_j), equal scores counting half.

    P_j positives and N_j negatives of tag j make P_j N_j pairs; the AUC is the share that the
    scores put in the right order. 0.5 is chance. Undefined without a positive or a negative.

    Parameters
    ----------
    Y : (n_clips, n_tags) labels: 0, 1, or NaN for unknown.
    S : (n_clips, n_tags) scores, larger where the tag is more likely.
    """
    labels, scores = checked(Y, S)
    reasons = labels.undefined(needs_positive=True, needs_negative=True)

    def auc(y: Mask, s: Doubles) -> float:
        positives = np.sort(s[y])
        negatives = np.sort(s[~y])
        n_below = np.searchsorted(negatives, positives, "left").sum()
        n_below_or_equal = np.searchsorted(negatives, positives, "right").sum()
        n_in_order = (n_below + n_below_or_equal) / 2
        return float(n_in_order / (len(positives) * len(negatives)))

    return per_tag(labels, scores, reasons, auc)


def expected_auc_per_tag(
    Y: ArrayLike, S: ArrayLike, weights: Numbers | None = None
) -> MetricResult:
    """AUC_j = Σ_{i≠k} y_ij (1 - y_kj) [s_ij > s_kj] / Σ_{i≠k} y_ij (1 - y_kj), for soft labels.

    A label may be a probability y: it counts as y positives and 1 - y negatives. For labels of 0
    and 1 this is ``auc_per_tag``. Undefined for a tag without such pairs. With ``weights`` of the
    labels, (N, 1) or (N, C), a pair counts as the product of its two.
    """
    labels = matrix("Y", Y)
    if weights is None and not ((labels > 0) & (labels < 1)).any():
        return auc_per_tag(labels, S)
    scores = matrix("S", S)
    counts = np.broadcast_to(1.0 if weights is None else weights, labels.shape)
    pairs = expected_pairs(labels, counts)
    in_order = np.zeros(len(pairs))
    for tag, (y, s, count) in enumerate(zip(labels.T, scores.T, counts.T, strict=True)):
        known = ~np.isnan(y)
        in_order[tag] = _expected_in_order(
            y[known].astype(np.float64), s[known], count[known].astype(np.float64)
        )
    values = np.full(len(pairs), np.nan)
    np.divide(in_order, pairs, out=values, where=pairs > 0)
    undefined = np.flatnonzero(pairs == 0).tolist()
    return MetricResult(values, dict.fromkeys(undefined, "no positive or no negative"))


def expected_pairs(Y: Numbers, weights: Numbers | float = 1.0) -> Doubles:
    """Σ_{i≠k} y_ij (1 - y_kj): pairs of a positive and a negative clip of each tag, (n_tags,)."""
    known = ~np.isnan(Y)
    p = np.where(known, weights * Y, 0.0).astype(np.float64)
    q = known * weights - p
    return np.maximum(p.sum(axis=0) * q.sum(axis=0) - (p * q).sum(axis=0), 0.0)


def _expected_in_order(y: Doubles, s: Numbers, weights: Doubles) -> float:
    """Σ_{i≠k} y_i (1 - y_k) [s_i > s_k] of one tag, equal scores counting half."""
    values, place = np.unique(s, return_inverse=True)
    present = weights * y
    absent = weights * (1 - y)
    positive = np.bincount(place, weights=present, minlength=len(values))
    negative = np.bincount(place, weights=absent, minlength=len(values))
    below = np.cumsum(negative) - negative
    with_itself = (present * absent).sum()  # i = k, which has equal scores
    return float(positive @ (below + negative / 2) - with_itself / 2)


def auc_per_clip(Y: ArrayLike, S: ArrayLike) -> MetricResult:
    """AUC_i = #{(p, n): y_ip = 1, y_in = 0, s_ip > s_in} / (P_i N_i), equal scores counting half.

    As ``auc_per_tag``, but over the tags of clip i instead of the clips of tag j: does the model
    put the tags that hold for a clip before those that do not?
    """
    checked(Y, S)  # before transposing, so that an error names clip and tag the right way round
    return auc_per_tag(np.asarray(Y).T, np.asarray(S).T)


def average_precision_per_tag(Y: ArrayLike, S: ArrayLike) -> MetricResult:
    """AP_j = 1/P_j Σ_{p: y_pj = 1} #{i: y_ij = 1, s_ij ≥ s_pj} / #{i: y_ij known, s_ij ≥ s_pj}.

    The precision of the list that ends with a positive (and all clips tied with it), averaged over
    the positives. Chance is the share of positives. Undefined without a positive.
    """
    labels, scores = checked(Y, S)

    def average_precision(y: Mask, s: Doubles) -> float:
        positives = np.sort(s[y])
        n_positives = len(positives) - np.searchsorted(positives, positives)
        n_all = len(s) - np.searchsorted(np.sort(s), positives)
        return float(np.mean(n_positives / n_all))

    return per_tag(labels, scores, labels.undefined(needs_positive=True), average_precision)


def precision_at_k_per_tag(Y: ArrayLike, S: ArrayLike, *, k: int = 10) -> MetricResult:
    """P@k_j = E[#positives among the k clips with the largest scores] / k.

    The expectation is over the order of clips with equal scores. Undefined without a positive
    (there is nothing to find) and with fewer than k known labels.
    """
    k = at_least("k", k, 1)
    labels, scores = checked(Y, S)
    reasons = labels.undefined(needs_positive=True)
    for tag in np.flatnonzero(labels.n_known < k).tolist():
        reasons.setdefault(tag, f"fewer than {k} known labels")

    def precision(y: Mask, s: Doubles) -> float:
        kth = np.partition(s, -k)[-k]
        is_above = s > kth
        is_tied = s == kth  # of which a fair share is taken
        return float(y[is_above].sum() + (k - is_above.sum()) * y[is_tied].mean()) / k

    return per_tag(labels, scores, reasons, precision)


def precision_at_k_per_clip(Y: ArrayLike, S: ArrayLike, *, k: int = 3) -> MetricResult:
    """P@k_i = E[#tags that hold among the k with the largest scores] / k.

    As ``precision_at_k_per_tag``, but over the tags of clip i instead of the clips of tag j: how
    many of the first k tags that a person would be shown are right? A clip for which fewer than k
    tags hold cannot reach 1.
    """
    checked(Y, S)  # before transposing, so that an error names clip and tag the right way round
    return precision_at_k_per_tag(np.asarray(Y).T, np.asarray(S).T, k=k)


def per_tag(
    labels: Ternary,
    scores: Numbers,
    reasons: dict[int, str],
    metric: Metric,
) -> MetricResult:
    """The metric of labels (n,) and scores (n,) of the known clips of each tag without a reason."""
    values = np.full(scores.shape[1], np.nan)
    known_of_tag = np.ascontiguousarray(labels.known.T)
    positive_of_tag = np.ascontiguousarray(labels.positive.T)
    scores_of_tag = np.ascontiguousarray(scores.T)
    for tag in set(range(len(values))) - set(reasons):
        known = known_of_tag[tag]
        known_scores = scores_of_tag[tag][known].astype(np.float64)
        values[tag] = metric(positive_of_tag[tag][known], known_scores)
    return MetricResult(values, reasons)


# Calibration. These metrics are undefined only for a tag without any known label.


def calibration_error_per_tag(Y: ArrayLike, S: ArrayLike, *, n_bins: int = 10) -> MetricResult:
    """ECE_j = Σ_b n_b / n_j · |mean_b(y) - mean_b(s)| = 1/n_j Σ_b |Σ_{i ∈ b} (y_ij - s_ij)|.

    The clips of tag j are put into bins by their score; in each bin the share of positives is
    compared with the mean score. Bins hold equally many clips: most tags are rare and most of their
    scores small, and bins of equal width would put nearly all clips into the first. Clips with
    equal scores always share a bin.

    Parameters
    ----------
    Y : (n_clips, n_tags) labels: 0, 1, or NaN for unknown.
    S : (n_clips, n_tags) probabilities.
    n_bins : number of bins, at least 1.
    """
    n_bins = at_least("n_bins", n_bins, 1)

    def error(y: Mask, s: Doubles) -> float:
        # ⌊n_bins · #{i': s_i' < s_i} / n⌋, the same for equal scores
        bin_of = n_bins * np.searchsorted(np.sort(s), s) // len(s)
        return float(np.abs(np.bincount(bin_of, weights=y - s)).sum() / len(s))

    return _per_tag_of_probabilities(Y, S, error)


def brier_per_tag(Y: ArrayLike, S: ArrayLike) -> MetricResult:
    """BS_j = 1/n_j Σ_i (y_ij - s_ij)², over the n_j clips whose label is known.

    0.25 is the score of always saying one half.
    """
    return _per_tag_of_probabilities(Y, S, lambda y, s: float(np.mean((y - s) ** 2)))


def log_loss_per_tag(Y: ArrayLike, S: ArrayLike) -> MetricResult:
    """L_j = -1/n_j Σ_i [y_ij log s_ij + (1 - y_ij) log(1 - s_ij)], over known labels.

    Natural logarithms. A probability of 0 for a tag that holds would cost infinitely much; it
    counts as 2⁻⁵² (the spacing of float64 at 1), and costs 36.
    """

    def loss(y: Mask, s: Doubles) -> float:
        probability_of_truth = np.where(y, s, 1 - s)
        smallest = np.finfo(np.float64).eps
        return float(-np.mean(np.log(np.clip(probability_of_truth, smallest, 1))))

    return _per_tag_of_probabilities(Y, S, loss)


@dataclass(frozen=True, eq=False)
class Reliability:
    """How often predictions came true, by probability; as sums, so that folds can be added."""

    n: Integers  # (n_bins,) labels in each bin
    scores: Doubles  # (n_bins,) sum of their probabilities
    positives: Doubles  # (n_bins,) how many of them are 1

    edges: ClassVar[tuple[float, ...]] = (0, 0.01, 0.02, 0.05, *(i / 10 for i in range(1, 11)))
    """A bin goes from one edge to the next; most tag probabilities are small."""

    @property
    def error(self) -> float:
        """Expected calibration error: Σ_b n_b/n · |share of positives - mean probability|."""
        return float(np.abs(self.positives - self.scores).sum() / max(1, self.n.sum()))

    def __add__(self, other: "Reliability") -> "Reliability":
        return Reliability(
            n=self.n + other.n,
            scores=self.scores + other.scores,
            positives=self.positives + other.positives,
        )


def reliability(Y: ArrayLike, S: ArrayLike) -> Reliability:
    """The reliability diagram of all known labels of all tags together.

    Errors of tags in opposite directions may cancel here; ``calibration_error_per_tag`` keeps tags
    apart, but needs more clips.
    """
    labels, scores = _checked_probabilities(Y, S)
    y = labels.positive[labels.known].astype(np.float64)
    s = scores[labels.known].astype(np.float64)
    n_bins = len(Reliability.edges) - 1
    bin_of = np.clip(np.searchsorted(Reliability.edges, s, side="right") - 1, 0, n_bins - 1)
    # NumPy gives integers for no labels at all.
    return Reliability(
        n=np.bincount(bin_of, minlength=n_bins),
        scores=np.bincount(bin_of, weights=s, minlength=n_bins).astype(np.float64),
        positives=np.bincount(bin_of, weights=y, minlength=n_bins).astype(np.float64),
    )


def are_probabilities(S: ArrayLike) -> bool:
    """Whether all scores are between 0 and 1."""
    scores = np.asarray(S)
    return scores.size == 0 or bool(scores.min() >= 0 and scores.max() <= 1)


def _checked_probabilities(Y: ArrayLike, S: ArrayLike) -> tuple[Ternary, Numbers]:
    labels, scores = checked(Y, S)
    if not are_probabilities(scores):
        raise DataError(
            "S must hold probabilities, between 0 and 1, for calibration. Got scores from "
            f"{scores.min()} to {scores.max()}; use a model's predict_proba, or the metrics of "
            "ranking."
        )
    return labels, scores


def _per_tag_of_probabilities(Y: ArrayLike, S: ArrayLike, metric: Metric) -> MetricResult:
    labels, scores = _checked_probabilities(Y, S)
    return per_tag(labels, scores, labels.undefined(), metric)
