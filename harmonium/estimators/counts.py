"""Completion by counting: what the tags told say of the others, from how often tags go together.

These are the simplest models that can be told tags, and the ones that completion by a model with
hidden units has to beat. Unknown labels are left out of the counts. A label that is a probability
counts as so much of a tag: of two such labels of a clip, the expected number of both is their
product, as if they were independent.
"""

from abc import abstractmethod
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.validation import check_consistent_length

from harmonium.errors import DataError
from harmonium.estimators.labels import base_log_odds
from harmonium.estimators.linear.exact_logistic import fit_linear
from harmonium.estimators.linear.shared import SolvedTagClassifier
from harmonium.estimators.parameters import NOT_NEGATIVE, POSITIVE, estimator, parameter

Floats = NDArray[np.floating]


class PairRates(NamedTuple):
    """How often a tag k holds, given another tag j; (C, C) at [j, k]."""

    if_present: NDArray[np.float64]
    """p(y_k = 1 | y_j = 1)"""
    if_absent: NDArray[np.float64]
    """p(y_k = 1 | y_j = 0)"""


def pair_rates(Y: Floats, smoothing: float) -> PairRates:
    """Shares among the clips on which both tags are known, and ``smoothing`` more with k's rate."""
    known = ~np.isnan(Y)
    present = np.where(known, Y, 0.0).astype(np.float64)
    absent = known - present
    added = smoothing * expit(base_log_odds(Y))

    def rates(given: NDArray[np.float64]) -> NDArray[np.float64]:
        return (given.T @ present + added) / (given.T @ known + smoothing)

    return PairRates(rates(present), rates(absent))


@estimator
class CountingTagger(SolvedTagClassifier):
    """Base of the models that count tags. A subclass says what the counts mean for a clip."""

    smoothing: float = parameter(
        POSITIVE,
        default=3.0,
        doc="""Clips added to the counts of every pair of tags, in which one tag says nothing of the
        other; above 0.""",
    )

    @abstractmethod
    def _complete(self, X: Floats, told: Floats) -> NDArray[np.float64]:
        """p(y_j = 1 | x, the tags told), (N, C), of scaled features; told is NaN elsewhere."""

    def complete(self, X: Any, y: Any) -> NDArray[np.float32]:
        """p(y_j = 1 | x, the known tags), shape (n_clips, n_tags).

        ``y`` is (n_clips, n_tags) with NaN for the tags to infer, or tag → 0 or 1 for all clips, as
        in ``{"sad": 1}``; known tags come back as given.
        """
        features = self._features(X)
        known = self._known(y, len(features))
        check_consistent_length(features, known)
        P = self._complete(features, known).astype(np.float32)
        return np.where(np.isnan(known), P, known)

    def _probabilities(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        nothing = np.full((len(X), len(self.tags_)), np.nan)
        return self._complete(X, nothing).astype(np.float32)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the parameters that are neither of tags nor of pairs of tags."""
        return {}

    def _check_shapes(self, params: Any) -> None:
        n_tags = len(self.tags_)
        usual = {"d": (n_tags,), "rates": (n_tags,)} | self._shapes()
        wanted = {name: usual.get(name, (n_tags, n_tags)) for name in params._fields}
        shapes = {name: array.shape for name, array in params._asdict().items()}
        if shapes != wanted:
            raise DataError(
                f"The model's parameters have the shapes {shapes}, not {wanted}. Fit it again."
            )


class CooccurrenceParams(NamedTuple):
    """How often tags hold, and how often beside another."""

    rates: NDArray[np.float32]  # (C,): p(y_j = 1)
    beside: NDArray[np.float32]  # (C, C): p(y_j = 1 | y_k = 1) at [k, j]


@estimator
class CooccurrenceTagger(CountingTagger):
    """Co-occurrence: a tag is as likely as it is on the clips with a tag that was told.

    It does not use the features: without a true tag, every clip has the tags' shares among all
    clips. Tags that are told to be absent are not used either; :class:`NaiveBayesTagger` uses them.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    tags_ : names of the tags. thresholds_ : probability from which ``predict`` says yes, by tag.
    n_features_in_, feature_names_in_, classes_ : as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from harmonium.estimators import CooccurrenceTagger
    >>> Y = np.array([[1, 1], [1, 1], [1, 0], [0, 0], [0, 0], [0, 0]])
    >>> model = CooccurrenceTagger(smoothing=1e-9).fit(np.zeros((6, 1)), Y)
    >>> P = model.complete([[0.0]], [[1.0, np.nan]])
    >>> round(float(P[0, 1]), 3)
    0.667
    """

    combination: Literal["mean", "noisy_or"] = parameter(
        default="mean",
        doc="""What several true tags say together: the mean of what each says, or 1 - Π(1 - p), as
        if each could be the cause of the tag on its own.""",
    )

    _param_type = CooccurrenceParams

    def _solve(self, X: NDArray[np.float32], Y: NDArray[np.float32]) -> CooccurrenceParams:
        beside = pair_rates(Y, self.smoothing).if_present
        rates = expit(base_log_odds(Y))
        return CooccurrenceParams(rates.astype(np.float32), beside.astype(np.float32))

    def _complete(self, X: Floats, told: Floats) -> NDArray[np.float64]:
        true = (told == 1).astype(np.float64)
        number = true.sum(axis=1, keepdims=True)
        beside = self._params.beside.astype(np.float64)
        if self.combination == "mean":
            P = true @ beside / np.maximum(number, 1)
        else:
            P = -np.expm1(true @ np.log1p(-np.minimum(beside, 1 - 1e-9)))
        return np.where(number > 0, P, self._params.rates)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # the features are not used
        return tags


class NaiveBayesParams(NamedTuple):
    """log p(y_j = 1 | x, told) / p(y_j = 0 | x, told) = d_j + W_j x + Σ_k told (L or M)_kj."""

    W: NDArray[np.float32]  # (C, D)
    d: NDArray[np.float32]  # (C,)
    L: NDArray[np.float32]  # (C, C): log p(y_k = 1 | y_j = 1) / p(y_k = 1 | y_j = 0) at [k, j]
    M: NDArray[np.float32]  # (C, C): the same of y_k = 0


@estimator
class NaiveBayesTagger(CountingTagger):
    """Naive Bayes: every tag that is told changes the odds of the others by its likelihood ratio.

    The odds of a tag before any is told are those of a logistic regression on the features, the one
    of :class:`ExactLogisticTagger`, or without ``use_features`` those of its share among all clips.
    A tag told to be absent counts as one told to be present does. "Naive": the tags told are
    taken to be independent of one another, and of the features, given the tag in question. They
    are not, so that with many of them the odds go too far; ``evidence_weight`` takes them back.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    tags_ : names of the tags. thresholds_ : probability from which ``predict`` says yes, by tag.
    n_features_in_, feature_names_in_, classes_ : as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from harmonium.estimators import NaiveBayesTagger
    >>> Y = np.array([[1, 1], [1, 1], [1, 0], [0, 0], [0, 0], [0, 0]])
    >>> model = NaiveBayesTagger(use_features=False).fit(np.zeros((6, 1)), Y)
    >>> P = model.complete(np.zeros((2, 1)), [[1.0, np.nan], [0.0, np.nan]])
    >>> bool(P[0, 1] > P[1, 1])
    True
    """

    use_features: bool = parameter(
        default=True, doc="Begin with the odds by the features; if not, with the tags' shares."
    )
    evidence_weight: float = parameter(
        NOT_NEGATIVE,
        default=1.0,
        doc="""Exponent of the likelihood ratios of the tags told: 1 is naive Bayes, 0 leaves them
        out.""",
    )
    l2: float = parameter(
        POSITIVE, default=1e-3, doc="Strength of the logistic regression's penalty, above 0."
    )

    _param_type = NaiveBayesParams

    def _solve(self, X: NDArray[np.float32], Y: NDArray[np.float32]) -> NaiveBayesParams:
        present, absent = (rates.T for rates in pair_rates(Y, self.smoothing))
        L = np.log(present) - np.log(absent)
        M = np.log1p(-present) - np.log1p(-absent)
        alone = np.zeros((Y.shape[1], X.shape[1])), base_log_odds(Y)
        prior = fit_linear(X, Y, self.l2) if self.use_features else alone
        return NaiveBayesParams(*(part.astype(np.float32) for part in (*prior, L, M)))

    def _complete(self, X: Floats, told: Floats) -> NDArray[np.float64]:
        # double precision, so that a clip's probabilities do not depend on the clips beside it
        W, d, L, M = (part.astype(np.float64) for part in self._params)
        evidence = (told == 1) @ L + (told == 0) @ M
        return expit(X.astype(np.float64) @ W.T + d + self.evidence_weight * evidence)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"W": (len(self.tags_), len(self._scaling.mean))}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = not self.use_features
        return tags
