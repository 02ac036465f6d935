"""How far the scores can be believed as probabilities: calibration error, Brier score, log loss.

Here S must hold probabilities, between 0 and 1. All three metrics are 0 at best, and are undefined
only for a tag without any known label.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonium.errors import DataError
from harmonium.evaluation.inputs import MetricResult, checked


def calibration_error_per_tag(
    Y: ArrayLike, S: ArrayLike, *, n_bins: int = 10, bins: str = "mass"
) -> MetricResult:
    """ECE_j = Σ_b n_b / n_j · |mean_b(y) - mean_b(s)| = 1/n_j Σ_b |Σ_{i ∈ b} (y_ij - s_ij)|.

    The clips of tag j are put into bins by their score; in each bin the share of positives is
    compared with the mean score.

    Parameters
    ----------
    Y : (n_clips, n_tags) labels: 0, 1, or NaN for unknown.
    S : (n_clips, n_tags) probabilities.
    n_bins : number of bins, at least 1.
    bins : "mass" for bins that hold equally many clips, or "width" for bins of equal width. Most
        tags are rare and most of their scores small: bins of equal width would put nearly all clips
        into the first. Clips with equal scores always share a bin.

    Returns
    -------
    MetricResult of length n_tags.
    """
    if not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise DataError(f"n_bins must be a whole number, at least 1. Got {n_bins!r}.")
    if bins not in _BIN_OF:
        raise DataError(f"bins must be one of {', '.join(map(repr, _BIN_OF))}. Got {bins!r}.")
    bin_of = _BIN_OF[bins]

    def error(y: NDArray[np.float64], s: NDArray[np.float64]) -> float:
        surplus = np.bincount(bin_of(s, int(n_bins)), weights=y - s)
        return float(np.abs(surplus).sum() / len(s))

    return _per_tag(Y, S, error)


@dataclass(frozen=True, eq=False)
class Reliability:
    """How often it was true where about so much was said; sums, so that those of folds add up."""

    n: NDArray[np.int64]
    """(n_bins,) labels in each bin."""
    scores: NDArray[np.float64]
    """(n_bins,) sum of their probabilities."""
    positives: NDArray[np.float64]
    """(n_bins,) how many of them are 1."""

    edges: ClassVar[tuple[float, ...]] = (0, 0.01, 0.02, 0.05, *(i / 10 for i in range(1, 11)))
    """A bin goes from one edge up to the next; most probabilities of tags are small."""

    @property
    def error(self) -> float:
        """Expected calibration error: Σ_b n_b/n · |share of positives - mean probability|."""
        return float(np.abs(self.positives - self.scores).sum() / max(1, self.n.sum()))

    def __add__(self, other: "Reliability") -> "Reliability":
        return Reliability(
            self.n + other.n, self.scores + other.scores, self.positives + other.positives
        )


def reliability(Y: ArrayLike, S: ArrayLike) -> Reliability:
    """The reliability diagram of all known labels of all tags together.

    Errors of tags in opposite directions may cancel in it; ``calibration_error_per_tag`` keeps tags
    apart, and needs more clips.
    """
    labels, scores = checked(Y, S)
    _refuse_other_scores(scores)
    known = slice(None) if labels.known is None else labels.known
    y, s = labels.positive[known].ravel(), scores[known].ravel().astype(np.float64)
    n_bins = len(Reliability.edges) - 1
    place = np.clip(np.searchsorted(Reliability.edges, s, side="right") - 1, 0, n_bins - 1)
    n = np.bincount(place, minlength=n_bins)
    said, true = (np.bincount(place, weights=w, minlength=n_bins) for w in (s, y.astype(float)))
    return Reliability(n, said.astype(np.float64), true.astype(np.float64))


def brier_per_tag(Y: ArrayLike, S: ArrayLike) -> MetricResult:
    """BS_j = 1/n_j Σ_i (y_ij - s_ij)², over the n_j clips whose label is known.

    0.25 is the score of always saying one half.

    Returns
    -------
    MetricResult of length n_tags.
    """
    return _per_tag(Y, S, lambda y, s: float(np.mean((y - s) ** 2)))


def log_loss_per_tag(Y: ArrayLike, S: ArrayLike) -> MetricResult:
    """L_j = -1/n_j Σ_i [y_ij log s_ij + (1 - y_ij) log(1 - s_ij)], over known labels.

    Natural logarithms. A probability of 0 given to what then holds would cost infinitely much; it
    counts as 2⁻⁵² (the spacing of float64 at 1), and costs 36.

    Returns
    -------
    MetricResult of length n_tags.
    """
    smallest = np.finfo(np.float64).eps

    def loss(y: NDArray[np.float64], s: NDArray[np.float64]) -> float:
        given_to_truth = np.where(y == 1, s, 1 - s)
        return float(-np.mean(np.log(np.clip(given_to_truth, smallest, 1))))

    return _per_tag(Y, S, loss)


def are_probabilities(S: ArrayLike) -> bool:
    """Whether all scores are between 0 and 1."""
    scores = np.asarray(S)
    return scores.size == 0 or bool(scores.min() >= 0 and scores.max() <= 1)


def _per_tag(
    Y: ArrayLike, S: ArrayLike, metric: Callable[[NDArray[np.float64], NDArray[np.float64]], float]
) -> MetricResult:
    """The metric of (labels, probabilities) of each tag's known clips."""
    labels, scores = checked(Y, S)
    _refuse_other_scores(scores)
    reasons = labels.undefined(needs_positive=False, needs_negative=False)
    values = np.full(scores.shape[1], np.nan)
    for tag in np.flatnonzero(labels.n_known > 0):
        y, s = labels.positive[:, tag], scores[:, tag]
        if labels.known is not None:
            y, s = y[labels.known[:, tag]], s[labels.known[:, tag]]
        values[tag] = metric(y.astype(np.float64), s.astype(np.float64))
    return MetricResult(values, reasons)


def _refuse_other_scores(scores: NDArray[np.floating]) -> None:
    if not are_probabilities(scores):
        raise DataError(
            "S must hold probabilities, between 0 and 1, to be judged as such. Got scores from "
            f"{scores.min()} to {scores.max()}; use a model's predict_proba, or the metrics of "
            "ranking."
        )


def _bin_of_equal_mass(s: NDArray[np.float64], n_bins: int) -> NDArray[np.int64]:
    """b_i = ⌊n_bins · #{i': s_i' < s_i} / n⌋, the same for equal scores."""
    below = np.searchsorted(np.sort(s), s)
    return n_bins * below // len(s)


def _bin_of_equal_width(s: NDArray[np.float64], n_bins: int) -> NDArray[np.int64]:
    """b_i = ⌊n_bins · s_i⌋, and the last bin holds s = 1 too."""
    return np.minimum((n_bins * s).astype(np.int64), n_bins - 1)


_BIN_OF = {"mass": _bin_of_equal_mass, "width": _bin_of_equal_width}
