"""What the smoother is compared with: the mean of the others, co-occurrence, ALS; calibrated alike.

Each baseline gives scores for clips from counts alone. Its settings are chosen on held-out pairs,
and a logistic regression on (log-odds of the score, log-odds of the tag's rate), fitted on the same
pairs, makes probabilities of the scores. That changes no ranking within a tag.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from harmonium.data import Conditioning
from harmonium.estimators.pairs import tag_rates
from harmonium.estimators.validation import log_likelihood

Scores = np.ndarray  # (n_items, n_tags)


def profile(data: Conditioning, of_track: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean tags of a clip's users, with a share of the mean over its track's, and their number."""
    counts, n = data.counts.toarray(), data.n_users.astype(float)[:, None]
    if not of_track:
        return counts / np.maximum(n, 1), n
    ones = np.ones(len(n))
    members = sp.coo_array((ones, (data.item_track, np.arange(len(n)))))
    totals, users = (
        (members.tocsr() @ counts)[data.item_track],
        (members.tocsr() @ n)[data.item_track],
    )
    clip, track = counts / np.maximum(n, 1), totals / np.maximum(users, 1)
    return (1 - of_track) * clip + of_track * track, n


def mean_of_others(data: Conditioning, prior: float, of_track: float) -> Scores:
    """The mean, drawn to the tags' rates with the weight of so many users."""
    mean, n = profile(data, of_track)
    return (n * mean + prior * tag_rates(data)) / (n + prior)


def co_occurrence(
    data: Conditioning, level: str, prior: float, own: float, of_track: float
) -> Scores:
    """Σ_i v_i p(j | i) / Σ_i v_i for the tags i present, p(j | i) counted over clips or over pairs.

    ``own`` is the share of the mean itself that is mixed in.
    """
    rates = tag_rates(data)
    rows = (data.counts > 0).astype(np.float64) if level == "clips" else data.y.astype(np.float64)
    together = (rows.T @ rows).toarray()
    given = (together + prior * rates) / (np.diag(together)[:, None] + prior)
    mean, _ = profile(data, of_track)
    expected = (mean @ given + 0.1 * rates) / (mean.sum(axis=1, keepdims=True) + 0.1)
    return own * mean + (1 - own) * expected


def factorisation(
    data: Conditioning, factors: int, regularization: float, alpha: float, of_track: float
) -> Scores:
    """implicit's alternating least squares on clips × tags counts, squashed into (0, 1)."""
    from implicit.als import AlternatingLeastSquares

    mean, n = profile(data, of_track)
    model = AlternatingLeastSquares(
        factors=factors,
        regularization=regularization,
        alpha=alpha,
        iterations=15,
        random_state=0,
        num_threads=1,
    )
    model.fit(sp.csr_matrix((n * mean).astype(np.float32)), show_progress=False)
    return 1 / (1 + np.exp(-6 * (model.user_factors @ model.item_factors.T - 0.5)))


def grid(**values: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    for point in itertools.product(*values.values()):
        yield dict(zip(values, point, strict=True))


def methods(with_tracks: bool) -> dict[str, tuple[Callable[..., Scores], list[dict[str, Any]]]]:
    """Name -> the method and the settings to choose among."""
    shares = (0.3, 0.7) if with_tracks else (0.0,)
    return {
        "mean of the others": (mean_of_others, [*grid(prior=(0.3, 1, 3, 10), of_track=shares)]),
        "co-occurrence": (
            co_occurrence,
            [*grid(level=("clips", "pairs"), prior=(1, 10), own=(0.0, 0.3, 0.6), of_track=shares)],
        ),
        "ALS": (
            factorisation,
            [*grid(factors=(5, 10, 20, 40), regularization=(1, 10), alpha=(1, 5), of_track=shares)],
        ),
    }  # fmt: skip


class Calibration:
    """σ(a log-odds(score) + b log-odds(rate) + c), fitted to held-out pairs."""

    def __init__(self, y: np.ndarray, scores: np.ndarray, rates: np.ndarray) -> None:
        from sklearn.linear_model import LogisticRegression

        self.rates = rates
        self.model = LogisticRegression(C=1e6, max_iter=1000)
        self.model.fit(self._inputs(scores), y.ravel())

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        p = self.model.predict_proba(self._inputs(scores))[:, 1]
        return p.reshape(scores.shape).astype(np.float32)

    def _inputs(self, scores: np.ndarray) -> np.ndarray:
        return np.stack([_log_odds(x).ravel() for x in np.broadcast_arrays(scores, self.rates)], 1)


def _log_odds(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.log(p) - np.log1p(-p)


def chosen(
    method: Callable[..., Scores],
    settings: list[dict[str, Any]],
    known: Conditioning,
    item: np.ndarray,
    y: np.ndarray,
) -> tuple[dict[str, Any], Calibration]:
    """The settings most likely for held-out pairs, by their items (n,) and tags (n, C)."""
    rates = tag_rates(known)
    best: tuple[float, dict[str, Any], Calibration] | None = None
    for setting in settings:
        scores = method(known, **setting)[item]
        calibration = Calibration(y, scores, rates)
        value = log_likelihood(y, calibration(scores))
        if best is None or value > best[0]:
            best = value, setting, calibration
    assert best is not None
    return best[1], best[2]
