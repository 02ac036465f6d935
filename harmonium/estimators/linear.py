"""Linear classifiers, and logistic regression. JAX is loaded only for gradient descent."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.special import expit

from harmonium.arrays import Doubles, Floats, Mask, Rng
from harmonium.errors import DataError, TrainingWarning
from harmonium.estimators.architecture import NetworkArchitecture, single_precision
from harmonium.estimators.classifier import TagClassifier
from harmonium.estimators.gradient_tagger import GradientTagger
from harmonium.estimators.newton import Regressions, logistic_regressions
from harmonium.estimators.tables import ClipTable, LabelledClips, in_blocks
from harmonium.estimators.targets import base_log_odds
from harmonium.parameters import NotNegative, estimator, parameter
from harmonium.scikit_learn import available_if

DEFAULT_L2 = 1e-3


class LinearParams(NamedTuple):
    """o = d + Wx."""

    W: Floats  # (C, D)
    d: Floats  # (C,)

    def scores(self, X: Floats) -> Doubles:
        """d + Wx, (N, C); in double precision, so that a clip's does not depend on the others."""
        return X.astype(np.float64) @ self.W.T.astype(np.float64) + self.d


class LinearTagger(TagClassifier):
    """Base of the classifiers whose score is a monotone function of a linear score."""

    _param_type = LinearParams

    @property
    def coef_(self) -> Doubles:
        """(n_tags, n_features), for features as given to ``fit``."""
        self._check_linear_in_features("coef_ and intercept_")
        return self._params.W / self._scaling.scale

    @property
    def intercept_(self) -> Doubles:
        """(n_tags,), for features as given to ``fit``."""
        return self._params.d - self.coef_ @ self._scaling.mean

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        n_tags = len(self.tags_)
        return {"W": (n_tags, len(self._scaling.mean)), "d": (n_tags,)}


@estimator
class LogisticTagger(LinearTagger, GradientTagger):
    """Logistic regression: p(y_j = 1 | x) = σ(d_j + W_j x).

    ``solver="gradient"`` descends as the paper does, in minibatches with early stopping.
    ``solver="newton"`` finds, for each tag separately, the only minimum of

        (1/N) Σ_{i known} -log p(y_ij | x_i) + (l2/2) |W_j|²

    over its known labels among N clips, where x is scaled and d_j is not penalised. A label that is
    a probability p counts as p clips with the tag and 1 - p without. This is the minimum of
    ``sklearn.linear_model.LogisticRegression(C=1 / (N * l2))`` on the scaled features, and the
    point that ``solver="gradient"`` reaches with ``optimizer="sgd"`` and ``momentum=0`` if it is
    not stopped early. Other optimisers weigh the penalty differently. A tag whose known labels are
    all 0 or all 1 has no minimum: its probability is the same for every clip, (positives + 1) /
    (known + 2). No clips are held out, and probabilities need no correction: ``eval_set`` sets the
    thresholds, and of the parameters below only ``l2``, ``class_weight``, ``scale_features`` and
    ``unit_norm`` count. With weights, each term has its label's, and N is the sum of the clips'.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    coef_, intercept_ : (n_tags, n_features) and (n_tags,) for features as given to ``fit``.
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from harmonium import LogisticTagger
    >>> X = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    >>> Y = np.array([[0.0], [0.0], [np.nan], [1.0], [1.0]])
    >>> LogisticTagger(solver="newton").fit(X, Y).predict([[-3.0], [3.0]]).ravel().tolist()
    [0, 1]
    """

    solver: Literal["gradient", "newton"] = parameter(
        "Gradient descent, or Newton's method to convergence.", default="gradient"
    )
    l2: NotNegative | None = parameter(
        """Strength of the ℓ2 penalty on the weights. None means 0 for "gradient" and 0.001 for
        "newton", which needs one above 0.""",
        default=None,
    )

    _network = "logistic"

    partial_fit = available_if(lambda self: self.solver == "gradient")(GradientTagger.partial_fit)

    def fit(
        self,
        X: Any,
        y: Any,
        eval_set: tuple[Any, Any] | None = None,
        groups: Any = None,
        eval_y: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from clips and their tags, as :meth:`DiscriminativeRBM.fit` does.

        ``solver="newton"`` learns from all clips: it takes ``eval_set`` to set the thresholds with,
        and neither ``groups`` nor ``eval_y`` change anything.
        """
        if self.solver == "newton":
            return self._fit_by_newton(X, y, eval_set, sample_weight)
        return super().fit(X, y, eval_set, groups, eval_y, sample_weight)

    def _fit_by_newton(
        self, X: Any, y: Any, eval_set: tuple[Any, Any] | None, sample_weight: Any
    ) -> Self:
        self._validate_params()
        l2 = DEFAULT_L2 if self.l2 is None else self.l2
        if l2 == 0:
            raise DataError("solver='newton' needs l2 above 0, else a minimum may be infinite.")
        X, targets = self._read(X, y, like=None)
        self._check_decisions(held_out=eval_set is not None)
        weights = self._weights(sample_weight, targets)
        of_labels = weights.of_clips(targets.Y)
        X_judged = X
        Y_judged = targets.Y
        judged_weights = of_labels
        if eval_set is not None:
            X_judged, Y_judged = self._read_eval_set(eval_set, targets)
            judged_weights = weights.of_others(Y_judged)
        self._describe(X, targets, weights)
        penalty = l2 * weights.mean_of_clips
        self._params = fit_linear(self._dense(X), targets.Y, penalty, of_labels)
        judged = LabelledClips(X=self._scaled(X_judged), Y=Y_judged, weights=judged_weights)
        self._set_thresholds(
            judged, in_blocks(self._scores, judged.X), held_out=eval_set is not None
        )
        return self

    def _architecture(self) -> "LogisticArchitecture":
        return LogisticArchitecture(l1=self.l1, l2=self.l2 or 0.0)


@dataclass(frozen=True, kw_only=True)
class LogisticArchitecture(NetworkArchitecture):
    """Logistic regression without its parameters."""

    def start(self, rng: Rng, clips: ClipTable) -> LinearParams:
        """No weights, and d at the tags' log-odds."""
        W = np.zeros((clips.Y.shape[1], clips.X.shape[1]))
        return single_precision(LinearParams, W, base_log_odds(clips.Y, clips.weights))

    def logits(self) -> Callable[..., Any]:
        """d + Wx."""
        from harmonium.rbm.other_models import logistic_logits

        return logistic_logits

    def probabilities(
        self, params: LinearParams, X: Floats, observed: Floats | None = None
    ) -> Floats:
        """σ(d + Wx), in NumPy."""
        return expit(params.scores(X)).astype(np.float32)


def fit_linear(X: Floats, Y: Floats, l2: float, weights: Floats | None = None) -> LinearParams:
    """The regressions for all tags; those without a minimum get their base rates.

    ``weights`` are what labels count, (N, 1) or (N, C); without, all count 1.
    """
    W = np.zeros((Y.shape[1], X.shape[1]))
    d = base_log_odds(Y, weights)
    solvable = has_minimum(Y, weights)
    if solvable.any():
        of_solvable = weights_of_tags(weights, solvable)
        regressions = solve(X, Y[:, solvable], l2, weights=of_solvable)
        W[solvable] = regressions.W
        d[solvable] = regressions.d
    return LinearParams(W=W.astype(np.float32), d=d.astype(np.float32))


def has_minimum(Y: Floats, weights: Floats | None = None) -> Mask:
    """Which tags have known labels of both kinds, (C,), with weights above 0."""
    counts = True if weights is None else weights > 0
    return np.asarray(((Y > 0) & counts).any(axis=0) & ((Y < 1) & counts).any(axis=0))


def weights_of_tags(weights: Floats | None, tags: Any) -> Floats | None:
    """Of some tags; weights of clips are the same for all."""
    if weights is None or weights.shape[1] == 1:
        return weights
    return weights[:, tags]


def solve(
    X: Floats,
    Y: Floats,
    l2: float,
    *,
    more: Doubles | None = None,
    allowed: Mask | None = None,
    weights: Floats | None = None,
) -> Regressions:
    """`logistic_regressions`; warns how many did not reach their minimum."""
    regressions = logistic_regressions(
        X.astype(np.float64),
        Y.astype(np.float64),
        l2,
        more=more,
        allowed=allowed,
        weights=weights,
    )
    n_missing = int(np.sum(~regressions.converged))
    if n_missing:
        warnings.warn(
            f"{n_missing} of {len(regressions.converged)} logistic regressions did not reach their "
            "minimum. Raise l2, or use scale_features='standard'.",
            TrainingWarning,
            stacklevel=5,  # the caller of fit, which calls a method and that another function
        )
    return regressions
