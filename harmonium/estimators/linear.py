"""Logistic regression, and the classifiers built on it and on counts of tags.

:class:`ChainTagger`, :class:`CooccurrenceTagger` and :class:`NaiveBayesTagger` complete tags: they
are baselines for completion by a model with hidden units. JAX is loaded only for gradient descent.
"""

import warnings
from abc import abstractmethod
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.special import expit
from sklearn.utils.metaestimators import available_if

from harmonium.arrays import Arrays, Doubles, Floats, Mask, Places, Rng
from harmonium.errors import DataError, TrainingWarning
from harmonium.estimators.classifier import TagClassifier, base_log_odds
from harmonium.estimators.gradient_tagger import GradientTagger, LabelledClips, single_precision
from harmonium.estimators.model_files import typed_array
from harmonium.estimators.newton import logistic_regressions
from harmonium.parameters import Count, NotNegative, Positive, Seed, estimator, parameter

BLOCK = 2**22  # entries of a (clips, chains, tags) array to predict at a time
MAX_TAG_WEIGHTS = 2**27  # weights between tags in all chains: several arrays of 1 GiB in float64

DEFAULT_L2 = 1e-3


class LinearParams(NamedTuple):
    """o = d + Wx."""

    W: Floats  # (C, D)
    d: Floats  # (C,)


class LinearTagger(TagClassifier):
    """Base of the classifiers whose score is a monotone function of a linear score."""

    _param_type, _axes = LinearParams, ("CD", "C")

    @property
    def coef_(self) -> Doubles:
        """(n_tags, n_features), for features as given to ``fit``."""
        self._check_linear_in_features("coef_ and intercept_")
        return self._params.W / self._scaling.scale

    @property
    def intercept_(self) -> Doubles:
        """(n_tags,), for features as given to ``fit``."""
        return self._params.d - self.coef_ @ self._scaling.mean

    def _linear(self, X: Floats) -> Doubles:
        """d + Wx, (N, C), of scaled features."""
        # In double precision, so that a clip's score does not depend on the other clips.
        return X.astype(np.float64) @ self._params.W.T.astype(np.float64) + self._params.d


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
    thresholds, and of the parameters below only ``l2``, ``scale_features`` and ``unit_norm`` count.

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

    partial_fit = available_if(lambda self: self.solver == "gradient")(GradientTagger.partial_fit)

    def _learn(self, X: Any, Y: Floats, valid: Any, *judged_by: Any, fresh: bool) -> bool:
        if self.solver == "gradient":
            return super()._learn(X, Y, valid, *judged_by, fresh=fresh)
        l2 = DEFAULT_L2 if self.l2 is None else self.l2
        if l2 == 0:
            raise DataError("solver='newton' needs l2 above 0, else a minimum may be infinite.")
        scaled = self._scaling(X)
        self._params = fit_linear(scaled, Y, l2)
        clips = (scaled, Y) if valid is None else (self._scaling(valid[0]), valid[1])
        self._set_thresholds(*clips)
        return False

    def _start(self, rng: Rng, clips: LabelledClips) -> LinearParams:
        W = np.zeros((clips.Y.shape[1], clips.X.shape[1]))
        return single_precision(LinearParams, W, base_log_odds(clips.Y))

    def _logits(self) -> Any:
        from harmonium.rbm.other_models import logistic_logits

        return logistic_logits

    def _probabilities(self, X: Floats) -> Floats:
        return expit(self._linear(X)).astype(np.float32)


def fit_linear(X: Floats, Y: Floats, l2: float) -> LinearParams:
    """The regressions for all tags; those without a minimum get their base rates."""
    solvable = has_minimum(Y)
    W, d = np.zeros((Y.shape[1], X.shape[1])), base_log_odds(Y)
    if solvable.any():
        W[solvable], _, d[solvable] = solve(X, Y[:, solvable], l2)
    return LinearParams(W.astype(np.float32), d.astype(np.float32))


def has_minimum(Y: Floats) -> Mask:
    """Which tags have known labels of both kinds, (C,)."""
    return np.asarray((Y > 0).any(axis=0) & (Y < 1).any(axis=0))


def solve(X: Floats, Y: Floats, l2: float, **more: Any) -> tuple[Doubles, Doubles, Doubles]:
    """W, V and d from `logistic_regressions`; warns how many did not reach their minimum."""
    W, V, d, converged = logistic_regressions(X.astype(float), Y.astype(float), l2, **more)
    missing = int(np.sum(~converged))
    if missing:
        warnings.warn(
            f"{missing} of {len(converged)} logistic regressions did not reach their minimum. "
            "Raise l2, or use scale_features='standard'.",
            TrainingWarning,
            stacklevel=5,
        )
    return W, V, d


class SolvedTagger(TagClassifier):
    """Base of the classifiers that are solved directly. A subclass solves and completes."""

    @abstractmethod
    def _solve(self, X: Floats, Y: Floats) -> Any:
        """The parameters, from scaled features (N, D) and labels (N, C)."""

    @abstractmethod
    def _complete(self, X: Floats, observed: Floats) -> Floats:
        """p(y_j = 1 | x, the observed tags), (N, C), from scaled features; NaN is not observed."""

    def fit(self, X: Any, y: Any, eval_set: tuple[Any, Any] | None = None) -> Self:
        """Learn from clips and their tags.

        Parameters
        ----------
        X : (n_clips, n_features) features; array, pandas or polars frame.
        y : (n_clips, n_tags) labels: 0 absent, 1 present, NaN unknown; or a probability between,
            as smoothed tags have it. A frame's columns name the tags. Or a list of tags for each
            clip. Or (n_clips,) with two classes, for one tag.
        eval_set : (X, y) to set thresholds with, without probabilities; without it they are set on
            the clips themselves.
        """
        self._validate_params()
        X, targets = self._read(X, y, like=None)
        valid = (X, targets.Y) if eval_set is None else self._read_eval_set(eval_set, targets)
        self._describe(X, targets)
        self._params = self._solve(self._scaling(X), targets.Y)
        self._set_thresholds(self._scaling(valid[0]), valid[1])
        return self

    def complete(self, X: Any, y: Any) -> Floats:
        """p(y_j = 1 | x, the known tags), shape (n_clips, n_tags).

        ``y`` is (n_clips, n_tags) with NaN for the tags to infer; tag → 0 or 1 for all clips, as in
        ``{"sad": 1}``; or a list of true tags for each clip. Known tags come back as given.
        """
        features = self._features(X)
        known = self._known(features, y)
        return np.where(np.isnan(known), self._complete(features, known), known)

    def _scores(self, X: Floats) -> Floats:
        return self._complete(X, np.full((len(X), len(self.tags_)), np.nan, np.float32))


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
    tags_ : names of the tags. thresholds_ : probability at which ``predict`` says yes, by tag.
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
    random_state: Seed = parameter("Seed of the orders.", default=None)

    _param_type, _axes = ChainParams, ("ECD", "ECC", "EC")

    def _solve(self, X: Floats, Y: Floats) -> ChainParams:
        rng, n_tags = self._generator(), len(self.tags_)
        n_weights = self.n_chains * n_tags**2
        if n_weights > MAX_TAG_WEIGHTS:
            raise DataError(
                f"{self.n_chains} chains of {n_tags:,} tags have n_chains × n_tags² = "
                f"{n_weights:,} weights between tags; ChainTagger takes at most "
                f"{MAX_TAG_WEIGHTS:,}. Use fewer tags or chains, or DiscriminativeRBM, whose size "
                "is linear in the number of tags."
            )
        orders = [rng.permutation(n_tags) for _ in range(self.n_chains)]
        self.orders_ = np.array(orders, np.int64)
        return _fit_chains(X, Y, self.orders_, self.l2)

    @property
    def params_(self) -> ChainParams:
        """The parameters for raw features."""
        self._check_linear_in_features("params_")
        W = self._params.W / self._scaling.scale
        return ChainParams(W, self._params.V, self._params.d - W @ self._scaling.mean)

    def _complete(self, X: Floats, observed: Floats) -> Floats:
        n = max(1, BLOCK // self.orders_.size)
        blocks = [slice(start, start + n) for start in range(0, len(X), n)]
        parts = [_run_chains(self._params, self.orders_, X[b], observed[b]) for b in blocks]
        return np.concatenate(parts)

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, about = super()._learnt()
        return arrays | {"orders": self.orders_}, about

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        super()._restore(arrays, about)
        self.orders_ = typed_array(arrays, "orders", np.int64)
        wanted = np.broadcast_to(np.arange(len(self.tags_)), (self.n_chains, len(self.tags_)))
        if not np.array_equal(np.sort(self.orders_, axis=-1), wanted):
            raise ValueError("orders must hold each tag once for each chain")


def _fit_chains(X: Floats, Y: Floats, orders: Places, l2: float) -> ChainParams:
    """All regressions of all chains at once, since they depend on labels and not on each other."""
    n_chains, n_tags = orders.shape
    solvable = has_minimum(Y)
    W = np.zeros((n_chains, n_tags, X.shape[1]))
    V = np.zeros((n_chains, n_tags, n_tags))
    d = np.tile(base_log_odds(Y), (n_chains, 1))
    if solvable.any():
        filled, unknown = Y, np.isnan(Y)
        if unknown.any():  # an unknown label becomes its probability
            alone = fit_linear(X, Y, l2)
            filled = np.where(unknown, expit(X @ alone.W.T + alone.d), Y)
        place = np.argsort(orders, axis=1)
        is_before = place[:, None, :] < place[:, :, None]  # [e, j, k]: k comes before j in chain e
        found = solve(
            X,
            np.tile(Y[:, solvable], n_chains),
            l2,
            more=filled.astype(float),
            allowed=is_before[:, solvable].reshape(-1, n_tags),
        )
        W[:, solvable] = found[0].reshape(n_chains, -1, X.shape[1])
        V[:, solvable] = found[1].reshape(n_chains, -1, n_tags)
        d[:, solvable] = found[2].reshape(n_chains, -1)
    return ChainParams(W.astype(np.float32), V.astype(np.float32), d.astype(np.float32))


def _run_chains(params: ChainParams, orders: Places, X: Floats, known: Floats) -> Floats:
    """Mean over the chains of p(y_j = 1 | x, known or probable tags before j), shape (N, C)."""
    n_chains, n_tags = orders.shape
    # double precision, so that a clip's probabilities do not depend on the clips beside it
    W = params.W.reshape(n_chains * n_tags, -1).astype(np.float64)
    odds = (X.astype(np.float64) @ W.T).reshape(-1, n_chains, n_tags) + params.d  # of x alone
    P = np.zeros_like(odds)
    fed = np.zeros_like(odds)
    chains = np.arange(n_chains)
    for tags in orders.T:  # (E,): the next tag of each chain
        before = np.einsum("nec,ec->ne", fed, params.V[chains, tags])
        p = expit(odds[:, chains, tags] + before)
        P[:, chains, tags] = p
        fed[:, chains, tags] = np.where(np.isnan(known[:, tags]), p, known[:, tags])
    return P.mean(axis=1).astype(np.float32)


def pair_rates(Y: Floats, smoothing: float) -> tuple[Doubles, Doubles]:
    """p(y_k = 1 | y_j = 1) and p(y_k = 1 | y_j = 0), (C, C) each, at [j, k].

    Shares among the clips for which both tags are known, plus ``smoothing`` clips with k's rate. A
    label that is a probability counts in proportion: if both labels of a clip are, their product
    counts as both, as if they were independent.
    """
    known = ~np.isnan(Y)
    present = np.where(known, Y, 0.0).astype(np.float64)
    added = smoothing * expit(base_log_odds(Y))

    def rates(given: Doubles) -> Doubles:
        return (given.T @ present + added) / (given.T @ known + smoothing)

    return rates(present), rates(known - present)


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
    tags_ : names of the tags. thresholds_ : probability at which ``predict`` says yes, by tag.
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

    _param_type, _axes = CooccurrenceParams, ("C", "CC")

    def _solve(self, X: Floats, Y: Floats) -> CooccurrenceParams:
        beside, _ = pair_rates(Y, self.smoothing)
        rates = expit(base_log_odds(Y))
        return CooccurrenceParams(rates.astype(np.float32), beside.astype(np.float32))

    def _complete(self, X: Floats, observed: Floats) -> Floats:
        true = (observed == 1).astype(np.float64)
        number = true.sum(axis=1, keepdims=True)
        beside = self._params.beside.astype(np.float64)
        if self.combination == "mean":
            P = true @ beside / np.maximum(number, 1)
        else:
            P = -np.expm1(true @ np.log1p(-np.minimum(beside, 1 - 1e-9)))
        return np.where(number > 0, P, self._params.rates).astype(np.float32)

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
    tags_ : names of the tags. thresholds_ : probability at which ``predict`` says yes, by tag.
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

    _param_type, _axes = NaiveBayesParams, ("CD", "C", "CC", "CC")

    def _solve(self, X: Floats, Y: Floats) -> NaiveBayesParams:
        present, absent = (rates.T for rates in pair_rates(Y, self.smoothing))
        L = np.log(present) - np.log(absent)
        M = np.log1p(-present) - np.log1p(-absent)
        alone = np.zeros((Y.shape[1], X.shape[1])), base_log_odds(Y)
        prior = fit_linear(X, Y, self.l2) if self.use_features else alone
        return NaiveBayesParams(*(part.astype(np.float32) for part in (*prior, L, M)))

    def _complete(self, X: Floats, observed: Floats) -> Floats:
        # double precision, so that a clip's probabilities do not depend on the clips beside it
        W, d, L, M = (part.astype(np.float64) for part in self._params)
        evidence = (observed == 1) @ L + (observed == 0) @ M
        odds = X.astype(np.float64) @ W.T + d + self.evidence_weight * evidence
        return expit(odds).astype(np.float32)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = not self.use_features
        return tags
