"""Penalised logistic regression, solved to convergence."""

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from harmonium.errors import TrainingWarning
from harmonium.estimators.labels import base_log_odds
from harmonium.estimators.linear.newton import Solution, logistic_regressions
from harmonium.estimators.linear.shared import (
    LinearParams,
    LinearTagClassifier,
    SolvedTagClassifier,
)
from harmonium.estimators.parameters import POSITIVE, estimator, parameter


@estimator
class ExactLogisticTagger(LinearTagClassifier, SolvedTagClassifier):
    """Logistic regression by an exact solver: p(y_j = 1 | x) = σ(d_j + W_j x).

    Finds, for each tag on its own, the one minimum of

        (1/N) Σ_{i known} -log p(y_ij | x_i) + (l2/2) |W_j|²

    over its known labels among N clips, where x is scaled and d_j is not penalised. A label that is
    a probability p counts as a share p of a clip with the tag and 1 - p of one without. It is the
    minimum of ``sklearn.linear_model.LogisticRegression(C=1 / (N * l2))`` on the scaled features,
    and the point to which :class:`LogisticTagger` goes with ``optimizer="sgd"`` and ``momentum=0``
    if it is not stopped early. Other optimisers weigh the penalty differently there.

    A tag whose known labels are all 0 or all 1 has no minimum: its probability is the same for
    every clip, (positives + 1) / (known + 2).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    coef_, intercept_ : (n_tags, n_features) and (n_tags,) for features as given to ``fit``.
    tags_ : names of the tags. thresholds_ : probability from which ``predict`` says yes, by tag.
    n_features_in_, feature_names_in_, classes_ : as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from harmonium.estimators import ExactLogisticTagger
    >>> X = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    >>> Y = np.array([[0.0], [0.0], [np.nan], [1.0], [1.0]])
    >>> ExactLogisticTagger().fit(X, Y).predict(X).ravel().tolist()
    [0, 0, 0, 1, 1]
    """

    l2: float = parameter(POSITIVE, default=1e-3, doc="Strength of the penalty, above 0.")

    def _solve(self, X: NDArray[np.float32], Y: NDArray[np.float32]) -> LinearParams:
        return fit_linear(X, Y, self.l2)

    def _probabilities(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return expit(self._linear(X)).astype(np.float32)


def fit_linear(X: NDArray[np.float32], Y: NDArray[np.float32], l2: float) -> LinearParams:
    """The regressions of all tags, those without a minimum at their base rates."""
    solvable = has_minimum(Y)
    W, d = np.zeros((Y.shape[1], X.shape[1])), base_log_odds(Y)
    if solvable.any():
        solution = logistic_regressions(X.astype(float), Y[:, solvable].astype(float), l2)
        warn_if_not_converged(solution)
        W[solvable], d[solvable] = solution.W, solution.d
    return LinearParams(W.astype(np.float32), d.astype(np.float32))


def has_minimum(Y: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which tags have known labels that are neither all 0 nor all 1, (C,)."""
    return np.asarray((Y > 0).any(axis=0) & (Y < 1).any(axis=0))


def warn_if_not_converged(solution: Solution) -> None:
    """Warn how many regressions did not reach their minimum."""
    missing = int(np.sum(~solution.converged))
    if missing:
        warnings.warn(
            f"{missing} of {len(solution.converged)} logistic regressions did not reach their "
            "minimum. Raise l2, or use scale_features=True.",
            TrainingWarning,
            stacklevel=5,
        )
