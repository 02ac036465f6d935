"""Is one model better than another, or could the difference be chance?

- Two models, each scored per tag on the same folds: ``paired_t_tests``, one test per tag.
- Many models, each scored on the same tags or datasets: ``friedman``, with critical differences.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from harmonium.arrays import Doubles, Integers, Mask
from harmonium.errors import DataError
from harmonium.evaluation.metrics import matrix


@dataclass(frozen=True, eq=False)
class PairedTests:
    """What ``paired_t_tests`` found, for each of n_tags tags; NaN without a test."""

    difference: Doubles  # (n_tags,) mean over folds of A's score less B's
    t: Doubles  # (n_tags,) t statistic; positive where A is ahead
    p: Doubles  # (n_tags,) two-sided p value of each test alone
    p_adjusted: Doubles  # (n_tags,) p value corrected for many tests, if asked for
    n_folds: Integers  # (n_tags,) folds in which both scores are defined
    alpha: float  # the level that p_adjusted is compared with
    reasons: dict[int, str]  # tag → why it could not be tested

    @property
    def better(self) -> Mask:
        """(n_tags,) where A is significantly better than B."""
        return (self.p_adjusted < self.alpha) & (self.difference > 0)

    @property
    def worse(self) -> Mask:
        """(n_tags,) where A is significantly worse than B."""
        return (self.p_adjusted < self.alpha) & (self.difference < 0)

    @property
    def n_better(self) -> int:
        """Number of tags on which A is significantly better."""
        return int(self.better.sum())

    @property
    def n_worse(self) -> int:
        """Number of tags on which A is significantly worse."""
        return int(self.worse.sum())


def paired_t_tests(
    A: ArrayLike, B: ArrayLike, *, alpha: float = 0.05, correction: str = "none"
) -> PairedTests:
    """t_j = mean_f(d_fj) / (sd_f(d_fj) / √n_j), d = A - B; p_j = P(|T| ≥ |t_j|).

    One two-sided test per tag, over the n_j folds in which both models have a score; T follows
    Student's distribution with n_j - 1 degrees of freedom. If all differences of a tag are 0, then
    t = 0 and p = 1. If they are all equal and not 0, t is infinite and p = 0, the limit as their
    spread vanishes: the tag counts as better or worse.

    Parameters
    ----------
    A, B : (n_folds, n_tags) scores of the two models, say AUC; NaN where undefined.
    alpha : level of significance; 0.05 tests at 95 %.
    correction : what to do about many tests. "none": each test stands alone, as in the paper, and
        a share alpha of the tags without any difference is expected to be significant. "holm":
        the probability of one or more false findings is at most alpha. "bh" (Benjamini–Hochberg):
        the expected share of false findings among the findings is at most alpha.
    """
    _check_alpha(alpha)
    first = _scores("A", A, "(n_folds, n_tags)")
    second = _scores("B", B, "(n_folds, n_tags)")
    if first.shape != second.shape:
        raise DataError(
            "A and B must have the same shape (n_folds, n_tags). Got "
            f"{first.shape} and {second.shape}; score both models on the same folds and tags."
        )
    differences = first - second
    paired = ~np.isnan(differences)
    n = paired.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(paired, differences, 0.0).sum(axis=0) / n
        deviations = np.where(paired, differences - mean, 0.0)
        variance = (deviations**2).sum(axis=0) / (n - 1)
        # Rounding the mean leaves a trace of variance even if all differences are equal.
        smallest = np.fmin.reduce(differences, initial=np.nan)
        largest = np.fmax.reduce(differences, initial=np.nan)
        is_constant = smallest == largest
        t = mean / np.sqrt(np.where(is_constant, 0.0, variance) / n)
    t[is_constant & (mean == 0)] = 0.0
    t[n < 2] = np.nan
    p = 2 * special.stdtr(n - 1, -np.abs(t))
    few = "fewer than two folds with both scores"
    reasons = dict.fromkeys(np.flatnonzero(n < 2).tolist(), few)
    return PairedTests(
        difference=mean,
        t=t,
        p=p,
        p_adjusted=adjust_p_values(p, correction),
        n_folds=n,
        alpha=float(alpha),
        reasons=reasons,
    )


def adjust_p_values(p: ArrayLike, correction: str) -> Doubles:
    """p values after a correction for many tests; see ``paired_t_tests``. NaN stays NaN.

    "holm": p̃_(i) = max_{l ≤ i} min(1, (m - l + 1) p_(l));
    "bh": p̃_(i) = min_{l ≥ i} min(1, m p_(l) / l), for m sorted p values p_(1) ≤ … ≤ p_(m).
    """
    if correction not in ("none", "holm", "bh"):
        raise DataError(f"correction must be 'none', 'holm' or 'bh'. Got {correction!r}.")
    adjusted = np.array(p, dtype=np.float64)
    order = np.argsort(adjusted, kind="stable")[: np.sum(~np.isnan(adjusted))]  # NaN comes last
    if correction == "holm":
        stepped = np.maximum.accumulate(np.arange(len(order), 0, -1) * adjusted[order])
        adjusted[order] = np.minimum(stepped, 1.0)
    elif correction == "bh":
        adjusted[order] = stats.false_discovery_control(adjusted[order], method="bh")
    return adjusted


@dataclass(frozen=True, eq=False)
class FriedmanTest:
    """What ``friedman`` found about k models scored in n blocks."""

    statistic: float  # Friedman's χ², corrected for ties
    p: float  # probability of a statistic at least this large if all models were alike
    average_ranks: Doubles  # (k,) mean rank of each model over the blocks; 1 is best
    critical_difference: float  # average ranks this far apart differ significantly (Nemenyi)
    n_blocks: int  # blocks in which every model has a score
    n_dropped: int  # blocks left out because a score is undefined there

    @property
    def different(self) -> Mask:
        """(k, k) which pairs of models differ significantly."""
        gaps = np.abs(self.average_ranks[:, None] - self.average_ranks[None, :])
        return gaps >= self.critical_difference


def friedman(scores: ArrayLike, *, alpha: float = 0.05) -> FriedmanTest:
    """χ² = (k-1) Σ_m (R_m - n(k+1)/2)² / (Σ_bm r_bm² - nk(k+1)²/4), R_m = Σ_b r_bm.

    r_bm is the rank of model m in block b, equal scores sharing the mean of their ranks. Two models
    differ if their average ranks are at least q_α √(k(k+1) / 6n) apart, where q_α is the upper α
    point of the studentised range of k, divided by √2 (Nemenyi). Look at that only if p < alpha.

    Parameters
    ----------
    scores : (n_blocks, n_models), larger is better; a block is a tag or a dataset. Negate measures
        of error. Blocks with NaN are left out, and counted.
    alpha : level of significance.
    """
    _check_alpha(alpha)
    blocks = _scores("scores", scores, "(n_blocks, n_models)")
    complete = blocks[~np.isnan(blocks).any(axis=1)]
    n, k = complete.shape
    if k < 3 or n < 2:
        raise DataError(
            "scores must have at least 3 models and 2 blocks in which all of them have a score. "
            f"Got {k} models and {n} such blocks of {len(blocks)}; compare two models with "
            "paired_t_tests, and leave out a model that is undefined in many blocks."
        )
    all_tied = bool((complete == complete[:, :1]).all())
    if all_tied:
        statistic = 0.0
        p = 1.0
    else:
        statistic, p = stats.friedmanchisquare(*complete.T)
    q = stats.studentized_range.ppf(1 - alpha, k, np.inf) / np.sqrt(2)
    return FriedmanTest(
        statistic=float(statistic),
        p=float(p),
        average_ranks=stats.rankdata(-complete, axis=1).mean(axis=0),
        critical_difference=float(q * np.sqrt(k * (k + 1) / (6 * n))),
        n_blocks=n,
        n_dropped=len(blocks) - n,
    )


def _scores(name: str, values: ArrayLike, axes: str) -> Doubles:
    scores = matrix(name, values, axes).astype(np.float64)
    if np.isinf(scores).any():
        raise DataError(
            f"{name} must hold finite scores, or NaN where a score is undefined. Got infinite ones."
        )
    return scores


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise DataError(f"alpha must lie between 0 and 1, for example 0.05. Got {alpha!r}.")
