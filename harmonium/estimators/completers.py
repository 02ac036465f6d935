"""Classifiers that complete tags and are solved directly, without gradient descent.

They are baselines for completion by a model with hidden units. JAX is not needed.
"""

from abc import abstractmethod
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.special import expit

from harmonium.arrays import Arrays, Doubles, Floats, Places
from harmonium.errors import DataError
from harmonium.estimators.classifier import TagClassifier, random_generator
from harmonium.estimators.linear import (
    DEFAULT_L2,
    fit_linear,
    has_minimum,
    solve,
    weights_of_tags,
)
from harmonium.estimators.model_files import typed_array
from harmonium.estimators.tables import LabelledClips, in_blocks
from harmonium.estimators.targets import base_log_odds
from harmonium.estimators.weights import ALIKE, Weights
from harmonium.parameters import (
    ClassWeight,
    Count,
    NotNegative,
    Positive,
    Seed,
    estimator,
    parameter,
)

BLOCK = 2**22  # entries of a (clips, chains, tags) array to predict at a time
MAX_TAG_WEIGHTS = 2**27  # weights between tags in all chains: several arrays of 1 GiB in float64
MAX_SHARE = 1 - 1e-9  # of a tag beside another, so that noisy or has no logarithm of 0


class SolvedTagger(TagClassifier):
    """Base of the classifiers that are solved directly. A subclass solves and completes."""

    @abstractmethod
    def _solve(self, X: Floats, Y: Floats, weights: Weights) -> Any:
        """The parameters, from scaled features (N, D) and labels (N, C)."""

    @abstractmethod
    def _complete(self, X: Floats, observed: Floats) -> Floats:
        """p(y_j = 1 | x, the observed tags), (N, C), from scaled features; NaN is not observed."""

    def fit(
        self,
        X: Any,
        y: Any,
        eval_set: tuple[Any, Any] | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from clips and their tags.

        Parameters
        ----------
        X : (n_clips, n_features) features; array, pandas or polars frame.
        y : (n_clips, n_tags) labels: 0 absent, 1 present, NaN unknown; or a probability between,
            as smoothed tags have it. A frame's columns name the tags. Or a list of tags for each
            clip. Or (n_clips,) with two classes, for one tag.
        eval_set : (X, y) to set thresholds with, without probabilities; without it they are set on
            the clips themselves.
        sample_weight : (n_clips,) how much each clip counts; None: all alike.
        """
        self._validate_params()
        X, targets = self._read(X, y, like=None)
        self._check_decisions(held_out=eval_set is not None)
        weights = self._weights(sample_weight, targets)
        X_judged = X
        Y_judged = targets.Y
        judged_weights = weights.of_clips(Y_judged)
        if eval_set is not None:
            X_judged, Y_judged = self._read_eval_set(eval_set, targets)
            judged_weights = weights.of_others(Y_judged)
        self._describe(X, targets, weights)
        self._params = self._solve(self._dense(X), targets.Y, weights)
        judged = LabelledClips(X=self._scaled(X_judged), Y=Y_judged, weights=judged_weights)
        self._set_thresholds(
            judged, in_blocks(self._scores, judged.X), held_out=eval_set is not None
        )
        return self

    def complete(self, X: Any, y: Any) -> Floats:
        """p(y_j = 1 | x, the known tags), shape (n_clips, n_tags).

        ``y`` is (n_clips, n_tags) with NaN for the tags to infer; tag → 0 or 1 for all clips, as in
        ``{"sad": 1}``; or a list of true tags for each clip. Known tags come back as given.
        """
        features = self._feature_table(X)
        known = self._known(features, y)
        return np.where(np.isnan(known), in_blocks(self._complete, features, known), known)

    def _scores(self, X: Floats) -> Floats:
        nothing_known = np.full((len(X), len(self.tags_)), np.nan, np.float32)
        return self._complete(X, nothing_known)


class ChainParams(NamedTuple):
    """p(y_j = 1 | x, tags before j) = σ(d_j + W_j x + V_j y), V_jk = 0 unless k comes before j."""

    W: Floats  # (E, C, D)
    V: Floats  # (E, C, C)
    d: Floats  # (E, C)


@estimator
class ChainTagger(SolvedTagger):
    """Classifier chains: the mean of several, each with the tags in a different random order.

    In a chain, a tag is predicted by logistic regression from the features and from the tags before
    it, as 0 and 1, or as the probabilities in their labels. Each regression is solved to
    convergence, with the objective of :class:`LogisticTagger`'s ``solver="newton"``, on the clips
    for which its own tag is known.

    - In training, an unknown tag before it is replaced by its probability given the features alone,
      from such a regression.
    - In prediction, the tags before it are replaced by their probabilities in the same chain: no
      samples are drawn, so a prediction does not depend on chance.
    - :meth:`complete` puts the known tags in their places. A tag informs only those after it in a
      chain, so each known tag informs another in about half of the chains.

    A tag whose known labels are all 0 or all 1 has the same probability for every clip,
    (positives + 1) / (known + 2).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    orders_ : (n_chains, n_tags), the tags' numbers in the order of each chain.
    params_ : W (E, C, D), V (E, C, C) and d (E, C) for features as given to ``fit``.
    tags_ : names of the tags. thresholds_ : probability from which ``predict`` gives a tag, by tag.
    n_features_in_, feature_names_in_, classes_ : as in scikit-learn.

    References
    ----------
    Read, Pfahringer, Holmes, Frank (2011). Classifier chains for multi-label classification.
    Machine Learning 85, 333-359. Their chains are fed with decisions, and trained on resampled
    clips.

    Examples
    --------
    >>> import numpy as np
    >>> from harmonium.estimators import ChainTagger
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1))
    >>> Y = np.repeat(rng.random((200, 1)) < 0.5, 2, axis=1).astype(float)
    >>> model = ChainTagger(random_state=0).fit(X, Y)
    >>> P = model.complete(np.zeros((2, 1)), [[0.0, np.nan], [1.0, np.nan]])
    >>> bool(P[0, 1] < P[1, 1])
    True
    """

    n_chains: Count = parameter("Number of chains, E.", default=10, kw_only=False)
    l2: Positive = parameter(
        "Strength of the penalty on the weights of features and tags, above 0.", default=DEFAULT_L2
    )
    class_weight: ClassWeight | None = parameter(
        """Weights of absent and present labels in each tag's regressions: a mapping such as
        {0: 1, 1: 5} for all tags, a list with one for each tag, or "balanced", by which both
        classes of a tag count the same.""",
        default=None,
    )
    random_state: Seed = parameter("Seed of the orders.", default=None)

    _param_type = ChainParams

    @property
    def params_(self) -> ChainParams:
        """The parameters for raw features."""
        self._check_linear_in_features("params_")
        W = self._params.W / self._scaling.scale
        return ChainParams(W=W, V=self._params.V, d=self._params.d - W @ self._scaling.mean)

    def _solve(self, X: Floats, Y: Floats, weights: Weights) -> ChainParams:
        n_tags = Y.shape[1]
        n_weights = self.n_chains * n_tags**2
        if n_weights > MAX_TAG_WEIGHTS:
            raise DataError(
                f"{self.n_chains} chains of {n_tags:,} tags have n_chains × n_tags² = "
                f"{n_weights:,} weights between tags; ChainTagger takes at most "
                f"{MAX_TAG_WEIGHTS:,}. Use fewer tags or chains, or DiscriminativeRBM, whose size "
                "is linear in the number of tags."
            )
        rng = random_generator(self.random_state)
        orders = [rng.permutation(n_tags) for _ in range(self.n_chains)]
        self.orders_ = np.array(orders, np.int64)
        l2 = self.l2 * weights.mean_of_clips
        return _fit_chains(X, Y, self.orders_, l2, weights.of_clips(Y))

    def _complete(self, X: Floats, observed: Floats) -> Floats:
        size = max(1, BLOCK // self.orders_.size)
        parts = []
        for first in range(0, len(X), size):
            block = slice(first, first + size)
            parts.append(_run_chains(self._params, self.orders_, X[block], observed[block]))
        return np.concatenate(parts)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        n_tags = len(self.tags_)
        return {
            "W": (self.n_chains, n_tags, len(self._scaling.mean)),
            "V": (self.n_chains, n_tags, n_tags),
            "d": (self.n_chains, n_tags),
        }

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, about = super()._learnt()
        return {**arrays, "orders": self.orders_}, about

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        super()._restore(arrays, about)
        self.orders_ = typed_array(arrays, "orders", np.int64)
        in_order = np.broadcast_to(np.arange(len(self.tags_)), (self.n_chains, len(self.tags_)))
        if not np.array_equal(np.sort(self.orders_, axis=-1), in_order):
            raise ValueError("orders must hold each tag once for each chain")


def _fit_chains(
    X: Floats, Y: Floats, orders: Places, l2: float, weights: Floats | None
) -> ChainParams:
    """All regressions of all chains at once, since they depend on labels and not on each other."""
    n_chains, n_tags = orders.shape
    n_features = X.shape[1]
    W = np.zeros((n_chains, n_tags, n_features))
    V = np.zeros((n_chains, n_tags, n_tags))
    d = np.tile(base_log_odds(Y, weights), (n_chains, 1))
    solvable = has_minimum(Y, weights)
    if solvable.any():
        place = np.argsort(orders, axis=1)
        is_before = place[:, None, :] < place[:, :, None]  # [e, j, k]: k comes before j in chain e
        of_solvable = weights_of_tags(weights, solvable)
        if of_solvable is not None and of_solvable.shape[1] > 1:
            of_solvable = np.tile(of_solvable, n_chains)
        regressions = solve(
            X,
            np.tile(Y[:, solvable], n_chains),
            l2,
            more=_with_unknown_filled(X, Y, l2, weights).astype(np.float64),
            allowed=is_before[:, solvable].reshape(-1, n_tags),
            weights=of_solvable,
        )
        W[:, solvable] = regressions.W.reshape(n_chains, -1, n_features)
        V[:, solvable] = regressions.V.reshape(n_chains, -1, n_tags)
        d[:, solvable] = regressions.d.reshape(n_chains, -1)
    return ChainParams(
        W=W.astype(np.float32),
        V=V.astype(np.float32),
        d=d.astype(np.float32),
    )


def _with_unknown_filled(X: Floats, Y: Floats, l2: float, weights: Floats | None) -> Floats:
    """The labels, with the probabilities given the features in place of unknown ones."""
    unknown = np.isnan(Y)
    if not unknown.any():
        return Y
    alone = fit_linear(X, Y, l2, weights)
    return np.where(unknown, expit(X @ alone.W.T + alone.d), Y)


def _run_chains(params: ChainParams, orders: Places, X: Floats, known: Floats) -> Floats:
    """Mean over the chains of p(y_j = 1 | x, known or probable tags before j), shape (N, C)."""
    n_chains, n_tags = orders.shape
    # double precision, so that a clip's probabilities do not depend on the clips beside it
    W = params.W.reshape(n_chains * n_tags, -1).astype(np.float64)
    by_features = (X.astype(np.float64) @ W.T).reshape(-1, n_chains, n_tags) + params.d  # log-odds
    P = np.zeros_like(by_features)
    fed = np.zeros_like(by_features)  # what tags tell those after them
    chains = np.arange(n_chains)
    for tags in orders.T:  # (E,): the next tag of each chain
        by_tags = np.einsum("nec,ec->ne", fed, params.V[chains, tags])
        p = expit(by_features[:, chains, tags] + by_tags)
        P[:, chains, tags] = p
        fed[:, chains, tags] = np.where(np.isnan(known[:, tags]), p, known[:, tags])
    return P.mean(axis=1).astype(np.float32)


class PairRates(NamedTuple):
    """How often a tag k holds where another, j, does or does not; (C, C) each, at [j, k]."""

    present: Doubles  # p(y_k = 1 | y_j = 1)
    absent: Doubles  # p(y_k = 1 | y_j = 0)


def pair_rates(Y: Floats, smoothing: float, weights: Weights = ALIKE) -> PairRates:
    """Shares among the clips for which both tags are known, plus ``smoothing`` clips with k's rate.

    A label that is a probability counts in proportion: if both labels of a clip are, their product
    counts as both, as if they were independent.
    """
    known = ~np.isnan(Y)
    present = np.where(known, Y, 0.0).astype(np.float64)
    added = smoothing * expit(base_log_odds(Y, weights.of_clips(Y)))
    of_clips = np.ones(len(Y)) if weights.clips is None else weights.clips

    def rates(given: Doubles) -> Doubles:
        weighted = of_clips[:, None] * given
        return (weighted.T @ present + added) / (weighted.T @ known + smoothing)

    return PairRates(present=rates(present), absent=rates(known - present))


class CooccurrenceParams(NamedTuple):
    """How often tags hold, and how often together with another."""

    rates: Floats  # (C,): p(y_j = 1)
    beside: Floats  # (C, C): p(y_j = 1 | y_k = 1) at [k, j]


@estimator
class CooccurrenceTagger(SolvedTagger):
    """Co-occurrence: a tag is as likely as among the clips that have the known tag.

    It does not use the features: without a true tag, every clip has the tags' shares among all
    clips. Tags known to be absent are not used either; :class:`NaiveBayesTagger` uses them.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    tags_ : names of the tags. thresholds_ : probability from which ``predict`` gives a tag, by tag.
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

    smoothing: Positive = parameter(
        "Clips added to the counts of each pair of tags, as if independent; above 0.", default=3.0
    )
    combination: Literal["mean", "noisy_or"] = parameter(
        """How several true tags combine: the mean of their predictions, or 1 - Π(1 - p), as if
        each could cause the tag on its own.""",
        default="mean",
    )

    _param_type = CooccurrenceParams

    def _solve(self, X: Floats, Y: Floats, weights: Weights) -> CooccurrenceParams:
        return CooccurrenceParams(
            rates=expit(base_log_odds(Y, weights.of_clips(Y))).astype(np.float32),
            beside=pair_rates(Y, self.smoothing, weights).present.astype(np.float32),
        )

    def _complete(self, X: Floats, observed: Floats) -> Floats:
        is_true = (observed == 1).astype(np.float64)
        n_true = is_true.sum(axis=1, keepdims=True)
        beside = self._params.beside.astype(np.float64)
        if self.combination == "mean":
            P = is_true @ beside / np.maximum(n_true, 1)
        else:
            P = -np.expm1(is_true @ np.log1p(-np.minimum(beside, MAX_SHARE)))
        return np.where(n_true > 0, P, self._params.rates).astype(np.float32)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        n_tags = len(self.tags_)
        return {"rates": (n_tags,), "beside": (n_tags, n_tags)}

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        super()._restore(arrays, about)
        if any((shares < 0).any() or (shares > 1).any() for shares in self._params):
            raise ValueError("rates and beside must be from 0 to 1")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # the features are not used
        return tags


class NaiveBayesParams(NamedTuple):
    """log p(y_j = 1 | x, y_K) / p(y_j = 0 | x, y_K) = d_j + W_j x + Σ_{k ∈ K} (L or M)_kj."""

    W: Floats  # (C, D)
    d: Floats  # (C,)
    L: Floats  # (C, C): log p(y_k = 1 | y_j = 1) / p(y_k = 1 | y_j = 0) at [k, j]
    M: Floats  # (C, C): the same for y_k = 0


@estimator
class NaiveBayesTagger(SolvedTagger):
    """Naive Bayes: every known tag changes the odds of the others by its likelihood ratio.

    Before any tag is known, a tag's odds are those of :class:`LogisticTagger` with
    ``solver="newton"``, or without ``use_features`` those of its share among all clips. Tags known
    to be absent count just like tags known to be present. "Naive": the known tags are assumed to be
    independent of each other, and of the features, given the tag in question. They are not, so with
    many of them the odds go too far; ``evidence_weight`` reduces that.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    tags_ : names of the tags. thresholds_ : probability from which ``predict`` gives a tag, by tag.
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

    smoothing: Positive = parameter(default=CooccurrenceTagger.smoothing, like=CooccurrenceTagger)
    use_features: bool = parameter(
        "Start from the odds given the features; if False, from the tags' shares.", default=True
    )
    evidence_weight: NotNegative = parameter(
        "Exponent of the likelihood ratios of the known tags: 1 is naive Bayes, 0 leaves them out.",
        default=1.0,
    )
    l2: Positive = parameter("Strength of the regression's penalty, above 0.", default=DEFAULT_L2)

    _param_type = NaiveBayesParams

    def _solve(self, X: Floats, Y: Floats, weights: Weights) -> NaiveBayesParams:
        rates = pair_rates(Y, self.smoothing, weights)
        of_labels = weights.of_clips(Y)
        present = rates.present.T  # p(y_k = 1 | y_j = 1) at [k, j]
        absent = rates.absent.T
        L = np.log(present) - np.log(absent)
        M = np.log1p(-present) - np.log1p(-absent)
        if self.use_features:
            W, d = fit_linear(X, Y, self.l2 * weights.mean_of_clips, of_labels)
        else:
            W = np.zeros((Y.shape[1], X.shape[1]), np.float32)
            d = base_log_odds(Y, of_labels).astype(np.float32)
        return NaiveBayesParams(W=W, d=d, L=L.astype(np.float32), M=M.astype(np.float32))

    def _complete(self, X: Floats, observed: Floats) -> Floats:
        # double precision, so that a clip's probabilities do not depend on the clips beside it
        W, d, L, M = (array.astype(np.float64) for array in self._params)
        evidence = (observed == 1) @ L + (observed == 0) @ M
        odds = X.astype(np.float64) @ W.T + d + self.evidence_weight * evidence
        return expit(odds).astype(np.float32)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        n_tags = len(self.tags_)
        return {
            "W": (n_tags, len(self._scaling.mean)),
            "d": (n_tags,),
            "L": (n_tags, n_tags),
            "M": (n_tags, n_tags),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = not self.use_features
        return tags
