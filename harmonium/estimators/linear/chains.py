"""Classifier chains over logistic regression: each tag is predicted from those before it too."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from harmonium.errors import DataError
from harmonium.estimators.labels import base_log_odds, read_more_targets
from harmonium.estimators.linear.exact_logistic import (
    fit_linear,
    has_minimum,
    warn_if_not_converged,
)
from harmonium.estimators.linear.newton import logistic_regressions
from harmonium.estimators.linear.shared import SolvedTagClassifier
from harmonium.estimators.model_files import Arrays, typed_array
from harmonium.estimators.parameters import COUNT, POSITIVE, estimator, parameter

BLOCK = 2**22  # entries of a (clips, chains, tags) array that are predicted at a time
LARGEST = 2**27
"""Weights between tags at most, over all chains: 1 GiB in double precision, several times."""


class ChainParams(NamedTuple):
    """p(y_j = 1 | x, tags before j) = σ(d_j + W_j x + V_j y), V_jk = 0 unless k comes before j."""

    W: NDArray[np.float32]  # (E, C, D)
    V: NDArray[np.float32]  # (E, C, C)
    d: NDArray[np.float32]  # (E, C)


@estimator
class ChainTagger(SolvedTagClassifier):
    """Classifier chains: the mean of several, each with the tags in another random order.

    In a chain, a tag is predicted by logistic regression from the features and from the tags before
    it, as 0 and 1, or as the probabilities they are labelled with. Each regression is solved to
    convergence, with the objective of :class:`ExactLogisticTagger`, on the clips on which its own
    tag is known.

    - In training, a tag before it that is unknown is replaced by its probability given the features
      alone, of an :class:`ExactLogisticTagger`.
    - In prediction, the tags before it are replaced by their probabilities in the same chain: no
      samples are drawn, so a prediction does not depend on chance.
    - :meth:`complete` puts the known tags in their places. A tag informs only those after it in a
      chain, so that each known tag speaks for another in about half of the chains.

    A tag whose known labels are all 0 or all 1 has the same probability for every clip,
    (positives + 1) / (known + 2).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    orders_ : (n_chains, n_tags), the tags' numbers in the order of each chain.
    params_ : W (E, C, D), V (E, C, C) and d (E, C) for features as given to ``fit``.
    tags_ : names of the tags. thresholds_ : probability from which ``predict`` says yes, by tag.
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

    n_chains: int = parameter(COUNT, default=10, doc="Number of chains, E.", kw_only=False)
    l2: float = parameter(
        POSITIVE,
        default=1e-3,
        doc="Strength of the penalty on the weights of features and tags, above 0.",
    )
    random_state: Any = parameter("random_state", default=None, doc="Seed of the orders.")

    _param_type = ChainParams

    def _solve(self, X: NDArray[np.float32], Y: NDArray[np.float32]) -> ChainParams:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        n_tags = len(self.tags_)
        _check_size(self.n_chains, n_tags)
        orders = [rng.permutation(n_tags) for _ in range(self.n_chains)]
        self.orders_ = np.array(orders, np.int64)
        return _fit_chains(X, Y, self.orders_, self.l2)

    @property
    def params_(self) -> ChainParams:
        """The parameters for features as given."""
        self._check_linear_in_features("params_")
        W = self._params.W / self._scaling.scale
        return ChainParams(W, self._params.V, self._params.d - W @ self._scaling.mean)

    def complete(self, X: Any, y: Any) -> NDArray[np.float32]:
        """p(y_j = 1 | x, the known tags), shape (n_clips, n_tags): what the chains make of it.

        ``y`` is (n_clips, n_tags) with NaN for the tags to infer; known tags come back as given.
        """
        features = self._features(X)
        known = read_more_targets(y, self._targets()).Y
        check_consistent_length(features, known)
        return np.where(np.isnan(known), self._predict(features, known), known)

    def _probabilities(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return self._predict(X, np.full((len(X), len(self.tags_)), np.nan, np.float32))

    def _predict(self, X: NDArray[np.float32], known: NDArray[np.float32]) -> NDArray[np.float32]:
        n = max(1, BLOCK // self.orders_.size)
        starts = range(0, len(X), n)
        parts = [
            _run_chains(self._params, self.orders_, X[i : i + n], known[i : i + n]) for i in starts
        ]
        return np.concatenate(parts)

    def _check_shapes(self, params: Any) -> None:
        n_tags, n_features = len(self.tags_), len(self._scaling.mean)
        shapes = tuple(array.shape for array in params)
        E = self.n_chains
        wanted = ((E, n_tags, n_features), (E, n_tags, n_tags), (E, n_tags))
        if shapes != wanted:
            raise DataError(
                f"The model's parameters have the shapes {shapes}, but its settings ask for "
                f"{wanted}. Fit a new model to change its size, or set it back."
            )

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, about = super()._learnt()
        return arrays | {"orders": self.orders_}, about

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        super()._restore(arrays, about)
        self.orders_ = typed_array(arrays, "orders", np.int64)
        wanted = np.broadcast_to(np.arange(len(self.tags_)), (self.n_chains, len(self.tags_)))
        if not np.array_equal(np.sort(self.orders_, axis=-1), wanted):
            raise ValueError("orders must hold each tag once for each chain")


def _check_size(n_chains: int, n_tags: int) -> None:
    """Refuse chains whose weights would not fit into memory."""
    if n_chains * n_tags**2 > LARGEST:
        raise DataError(
            f"{n_chains} chains of {n_tags:,} tags have n_chains × n_tags² = "
            f"{n_chains * n_tags**2:,} weights between tags; ChainTagger takes at most "
            f"{LARGEST:,}. Use fewer tags or chains, or DiscriminativeRBM, whose size is linear in "
            "the number of tags."
        )


def _fit_chains(
    X: NDArray[np.float32], Y: NDArray[np.float32], orders: NDArray[np.intp], l2: float
) -> ChainParams:
    """All regressions of all chains at once, for they depend on labels and not on one another."""
    n_chains, n_tags = orders.shape
    solvable = has_minimum(Y)
    W = np.zeros((n_chains, n_tags, X.shape[1]))
    V = np.zeros((n_chains, n_tags, n_tags))
    d = np.tile(base_log_odds(Y), (n_chains, 1))
    if solvable.any():
        solution = logistic_regressions(
            X.astype(float),
            np.tile(Y[:, solvable].astype(float), n_chains),
            l2,
            more=_filled(X, Y, l2).astype(float),
            allowed=_comes_before(orders)[:, solvable].reshape(-1, n_tags),
        )
        warn_if_not_converged(solution)
        W[:, solvable] = solution.W.reshape(n_chains, -1, X.shape[1])
        V[:, solvable] = solution.V.reshape(n_chains, -1, n_tags)
        d[:, solvable] = solution.d.reshape(n_chains, -1)
    return ChainParams(W.astype(np.float32), V.astype(np.float32), d.astype(np.float32))


def _filled(X: NDArray[np.float32], Y: NDArray[np.float32], l2: float) -> NDArray[np.float32]:
    """Y with p(y_j = 1 | x) where it is unknown."""
    unknown = np.isnan(Y)
    if not unknown.any():
        return Y
    W, d = fit_linear(X, Y, l2)
    return np.where(unknown, expit(X @ W.T + d), Y)


def _comes_before(orders: NDArray[np.intp]) -> NDArray[np.bool_]:
    """(E, C, C), True at [e, j, k] if tag k comes before tag j in chain e."""
    place = np.argsort(orders, axis=1)
    return place[:, None, :] < place[:, :, None]


def _run_chains(
    params: ChainParams,
    orders: NDArray[np.intp],
    X: NDArray[np.float32],
    known: NDArray[np.float32],
) -> NDArray[np.float32]:
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
