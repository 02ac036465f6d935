"""How well scores rank the clips of a tag, or the tags of a clip: AUC, precision.

No step depends on the order of clips with equal scores, so ties are exact.

Sorting is nearly all the work, and sorting numbers is much faster than sorting indices. So score
and label become one 64-bit integer, the key: the score's place among the floating point numbers
(its ordinal), shifted left by one, and the label as last bit. Keys sort as the scores do, negatives
before positives where scores are equal, and nothing is rounded.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonium.errors import DataError
from harmonium.evaluation.inputs import MetricResult, Ternary, checked

_INT64_MAX = np.iinfo(np.int64).max
_UNKNOWN = _INT64_MAX - 1  # larger than any score's key, and even: never counted as positive
_BLOCK = 2**17  # entries sorted together: 1 MB, which stays in the processor's cache


def auc_per_tag(Y: ArrayLike, S: ArrayLike) -> MetricResult:
    """AUC_j = #{(p, n): y_pj = 1, y_nj = 0, s_pj > s_nj} / (P_j N_j), equal scores counting half.

    P_j positives and N_j negatives of tag j make P_j N_j pairs; the AUC is the share of them that
    the scores put in the right order. 0.5 is chance. Undefined without a positive or a negative.

    Parameters
    ----------
    Y : (n_clips, n_tags) labels: 0, 1, or NaN for unknown.
    S : (n_clips, n_tags) scores, larger where the tag is more likely.

    Returns
    -------
    MetricResult of length n_tags.
    """
    labels, scores = checked(Y, S)
    reasons = labels.undefined(needs_positive=True, needs_negative=True)
    won = np.empty(scores.shape[1])
    for tags, keys in _sorted_keys(labels, scores):
        won[tags] = _pairs_won(keys)
    n_pairs = labels.n_positive * labels.n_negative
    values = np.divide(won, n_pairs, where=n_pairs > 0, out=np.full_like(won, np.nan))
    return MetricResult(values, reasons)


def auc_per_clip(Y: ArrayLike, S: ArrayLike) -> MetricResult:
    """AUC_i = #{(p, n): y_ip = 1, y_in = 0, s_ip > s_in} / (P_i N_i), equal scores counting half.

    As ``auc_per_tag``, but over the tags of clip i instead of the clips of tag j: does the model
    put the tags that hold for a clip before those that do not?

    Returns
    -------
    MetricResult of length n_clips; its reasons are keyed by clip.
    """
    checked(Y, S)  # before transposing, so that an error names clip and tag the right way round
    return auc_per_tag(np.asarray(Y).T, np.asarray(S).T)


def average_precision_per_tag(Y: ArrayLike, S: ArrayLike) -> MetricResult:
    """AP_j = 1/P_j Σ_{p: y_pj = 1} #{i: y_ij = 1, s_ij ≥ s_pj} / #{i: y_ij known, s_ij ≥ s_pj}.

    The precision of the list that ends with a positive (and all clips tied with it), averaged over
    the positives. Chance is the share of positives. Undefined without a positive.

    Returns
    -------
    MetricResult of length n_tags.
    """
    labels, scores = checked(Y, S)
    reasons = labels.undefined(needs_positive=True, needs_negative=False)
    values = np.full(scores.shape[1], np.nan)
    for tag, positives, known in _sorted_scores(labels, scores, reasons):
        found = len(positives) - np.searchsorted(positives, positives)
        listed = len(known) - np.searchsorted(known, positives)
        values[tag] = np.mean(found / listed)
    return MetricResult(values, reasons)


def precision_at_k_per_tag(Y: ArrayLike, S: ArrayLike, *, k: int = 10) -> MetricResult:
    """P@k_j = E[#positives among the k clips with the largest scores] / k.

    The expectation is over the order of clips with equal scores. Undefined without a positive
    (there is nothing to find) and with fewer than k known labels.

    Parameters
    ----------
    k : length of the list, at least 1.

    Returns
    -------
    MetricResult of length n_tags.
    """
    if not isinstance(k, int | np.integer) or k < 1:
        raise DataError(f"k must be a whole number, at least 1. Got {k!r}.")
    labels, scores = checked(Y, S)
    reasons = labels.undefined(needs_positive=True, needs_negative=False)
    for tag in np.flatnonzero(labels.n_known < k).tolist():
        reasons.setdefault(tag, f"fewer than {k} known labels")
    values = np.full(scores.shape[1], np.nan)
    for tags, keys in _sorted_keys(labels, scores):
        values[tags] = _expected_hits(keys, labels.n_known[tags], k) / k
    values[list(reasons)] = np.nan
    return MetricResult(values, reasons)


def precision_at_k_per_clip(Y: ArrayLike, S: ArrayLike, *, k: int = 3) -> MetricResult:
    """P@k_i = E[#tags that hold among the k with the largest scores] / k.

    As ``precision_at_k_per_tag``, but over the tags of clip i instead of the clips of tag j: how
    many of the first k tags that a person would be shown are right? A clip for which fewer than k
    tags hold cannot reach 1.

    Returns
    -------
    MetricResult of length n_clips; its reasons are keyed by clip.
    """
    checked(Y, S)  # before transposing, so that an error names clip and tag the right way round
    return precision_at_k_per_tag(np.asarray(Y).T, np.asarray(S).T, k=k)


def _expected_hits(
    keys: NDArray[np.int64], n_known: NDArray[np.int64], k: int
) -> NDArray[np.float64]:
    """(t,) E[#positives in the top k]: those above the k-th score, a fair share of those at it."""
    if keys.shape[1] < k:
        return np.zeros(len(keys))
    places = np.arange(keys.shape[1])
    known, positive, score = places < n_known[:, None], (keys & 1).astype(bool), keys >> 1
    kth = np.take_along_axis(score, np.maximum(n_known - k, 0)[:, None], axis=1)
    above, tied = known & (score > kth), known & (score == kth)
    listed, n_tied = above.sum(axis=1), np.maximum(tied.sum(axis=1), 1)
    hits, tied_hits = (above & positive).sum(axis=1), (tied & positive).sum(axis=1)
    return hits + (k - listed) * tied_hits / n_tied


def _sorted_scores(
    labels: Ternary, scores: NDArray[np.floating], undefined: dict[int, str]
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """For each defined tag: (tag, ordinals of its positives, of its known clips), ascending."""
    for tags, keys in _sorted_keys(labels, scores):
        for tag, row in zip(range(tags.start, tags.stop), keys, strict=True):
            if tag not in undefined:
                known = row[: labels.n_known[tag]]
                yield tag, known[(known & 1).astype(bool)] >> 1, known >> 1


def _pairs_won(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """(t,) number of (positive, negative) pairs in the right order, equal scores counting half."""
    positive = keys & 1
    n_positive = positive.sum(axis=1)
    # i of the clips before the i-th positive are positives; with equal score, all negatives are.
    won_or_tied = positive @ np.arange(keys.shape[1]) - n_positive * (n_positive - 1) // 2
    return won_or_tied - _pairs_tied(keys) / 2


def _pairs_tied(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """(t,) number of (positive, negative) pairs with equal scores."""
    # Where the last bit alone changes, a run of negatives meets the positives with their score.
    meets = np.zeros(keys.shape, dtype=bool)
    np.equal(keys[:, 1:] ^ keys[:, :-1], 1, out=meets[:, 1:])
    n_tags, n_clips = keys.shape
    if not meets.any():
        return np.zeros(n_tags)
    begins = np.ones(keys.shape, dtype=bool)
    np.not_equal(keys[:, 1:], keys[:, :-1], out=begins[:, 1:])
    starts = np.flatnonzero(begins)
    lengths = np.diff(starts, append=keys.size)
    meeting = np.flatnonzero(meets)
    run = np.searchsorted(starts, meeting)
    pairs = lengths[run - 1] * lengths[run]
    per_tag = np.bincount(meeting // n_clips, weights=pairs, minlength=n_tags)
    return per_tag.astype(np.float64)


def _sorted_keys(
    labels: Ternary, scores: NDArray[np.floating]
) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Pairs of some tags and their keys (tags, n_clips), ascending, unknown labels last."""
    n_clips, n_tags = scores.shape
    step = max(1, _BLOCK // max(1, n_clips))
    for start in range(0, n_tags, step):
        tags = slice(start, min(start + step, n_tags))
        keys = ordinals(scores[:, tags].T)
        keys <<= 1
        keys |= labels.positive[:, tags].T
        if labels.known is not None:
            np.copyto(keys, _UNKNOWN, where=~labels.known[:, tags].T)
        keys.sort(axis=1)
        yield tags, keys


def ordinals(scores: NDArray[np.floating]) -> NDArray[np.int64]:
    """A new array of integers between ±2⁶² that are in the same order as the scores, ties included.

    The bits of positive floating point numbers, read as integers, are in the numbers' order; those
    of negative ones are in reverse. Both leave one bit free for numbers between -1 and 1, and
    multiplying by a power of two, which is exact, brings all scores there.
    """
    values = np.add(scores, 0.0, dtype=np.float64, order="C")  # -0.0 + 0.0 is 0.0
    lowest, highest = values.min(initial=0.0), values.max(initial=0.0)
    largest = max(-lowest, highest)
    if largest > 1:
        factor = 0.5 ** float(np.frexp(largest)[1])
        scaled = values * factor
        if not np.array_equal(scaled / factor, values):  # one is lost: they differ 2¹⁰²²-fold
            return np.unique(values, return_inverse=True)[1].reshape(values.shape)
        values = scaled
    bits = values.view(np.int64)
    if lowest < 0:
        bits ^= (bits >> 63) & _INT64_MAX  # of negative numbers, all bits but the sign
    return bits
