"""The generative RBM over features and tags, or over tags alone."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from harmonium.errors import DataError
from harmonium.estimators.discriminative import RBMTagger
from harmonium.estimators.gradient_tagger import LabelledClips
from harmonium.estimators.gradient_training import single_precision
from harmonium.estimators.labels import read_more_targets
from harmonium.estimators.parameters import COUNT, estimator, parameter
from harmonium.rbm.compilation import compiled, refuse_fork
from harmonium.rbm.generative import JointContrastiveDivergence, JointParams, joint_sweep
from harmonium.rbm.gradients import Gradient, conditional_logits, log_probability
from harmonium.rbm.model import condition
from harmonium.rbm.training import Tree

SCORE_BLOCK = 2**22
"""Numbers of clips × hidden units × tags that are scored at a time: about 16 MiB each."""


@estimator
class GenerativeRBM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RBMTagger):
    """A joint model p(y, x) of features and tags: Gaussian inputs x, binary tags y.

    Trained on log p(y, x) by contrastive divergence whose chain samples both; p(y | x) is inferred
    as in :class:`DiscriminativeRBM`. With ``X=None`` it is a plain RBM over tag vectors. As a
    transformer it gives p(h_k = 1 | x), the hidden representation.

    A model of tags alone is trained for ``max_epochs``.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    params_ : U (n, C), W (n, D), V (empty), c (n,) and d (C,) for features as given to ``fit``.
    tags_ : names of the tags. thresholds_ : probability from which ``predict`` says yes, by tag.
    recalibration_ : the correction of the probabilities, or None.
    history_ : per epoch "log_likelihood" (a proxy, per tag), "auc" and "seconds".
    best_epoch_ : the epoch whose parameters were kept, counted from 1.
    n_features_in_, feature_names_in_, classes_, n_iter_ : as in scikit-learn.
    """

    n_hidden: int = parameter(default=200, kw_only=False)
    training_steps: int | None = parameter(COUNT, default=None, doc="The K of CD-K; None means 1.")

    _param_type = JointParams

    def transform(self, X: Any) -> NDArray[np.float32]:
        """p(h_k = 1 | x), shape (n_clips, n_hidden)."""
        return self.infer(X).h

    def sample(
        self, n_samples: int = 1, *, steps: int = 1000, random_state: Any = None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """(X, y) drawn from p(y, x) by independent Gibbs chains of ``steps`` sweeps each.

        X is (n_samples, n_features), in the units of the features; y is (n_samples, n_tags). With
        ``unit_norm`` the model knows clips of norm 1 after scaling, and draws such.
        """
        check_is_fitted(self)
        if n_samples < 1 or steps < 1:
            raise DataError(
                f"n_samples and steps must be at least 1. Got {n_samples} and {steps} instead."
            )
        refuse_fork()
        seed = check_random_state(random_state).randint(2**31 - 1)
        variance = self._input_variance()
        x, y = _chains(jax.random.key(seed), self._params, n_samples, steps, variance)
        X = np.asarray(x, np.float64) * self._scaling.scale + self._scaling.mean
        return X, np.asarray(y).astype(np.int64)

    def score_samples(self, X: Any, y: Any) -> NDArray[np.float64]:
        """log pseudo-likelihood Σ_j log p(y_j | y_\\j, x) of each clip, (n_clips,); y all known."""
        X = self._features(_like(X, y))
        Y = read_more_targets(y, self._targets()).Y
        if np.isnan(Y).any():
            raise DataError("score_samples needs every label known; complete(X, y) fills them in.")
        check_consistent_length(X, Y)
        params = self._conditional(self._params)
        size = max(1, SCORE_BLOCK // params.U.size)
        scores = np.zeros(len(X))
        for rows in (slice(start, start + size) for start in range(0, len(X), size)):
            logs = log_probability(_logits(params, X[rows], Y[rows]), jnp.asarray(Y[rows]))
            scores[rows] = np.asarray(logs, np.float64).sum(axis=1)
        return scores

    def score(self, X: Any, y: Any) -> float:
        """Mean AUC over tags; for tags alone, the mean log pseudo-likelihood per clip."""
        if X is None:
            return float(self.score_samples(None, y).mean())
        return super().score(X, y)

    def infer(self, X: Any, y: Any = None) -> Any:
        """As :meth:`DiscriminativeRBM.infer`; ``X=None`` for a model of tags alone."""
        return super().infer(_like(X, y), y)

    def _read_features(self, X: Any, y: Any, *, reset: bool) -> NDArray[np.floating]:
        if X is not None:
            return super()._read_features(X, y, reset=reset)
        self.n_features_in_ = 0
        return _like(X, y)

    def _features(self, X: Any) -> NDArray[np.float32]:
        check_is_fitted(self)
        if self.n_features_in_ == 0 and np.shape(X)[1:] == (0,):
            return np.asarray(X, np.float32)
        return super()._features(X)

    def _hold_out(
        self, rng: Any, X: Any, targets: Any, valid: Any
    ) -> tuple[LabelledClips, LabelledClips | None]:
        if X.shape[1] == 0:  # every clip has the same p(y): there is no ranking to stop on
            return LabelledClips(X.astype(np.float32), targets.Y), None
        return super()._hold_out(rng, X, targets, valid)

    def _input_variance(self) -> float:
        return super()._input_variance() if self.n_features_in_ else 1.0

    def _start(self, rng: np.random.Generator, clips: LabelledClips) -> Tree:
        params = self._random_params(rng, clips)
        return single_precision(JointParams, *params, np.zeros(clips.X.shape[1]))

    def _objective(self) -> Gradient:
        return JointContrastiveDivergence(self.training_steps or 1, self._input_variance())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # what comes out is always float32
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_hidden


def _like(X: Any, y: Any) -> Any:
    """X, or no features for as many clips as y has."""
    return np.zeros((np.shape(y)[0], 0)) if X is None and y is not None else X


@compiled()
def _logits(params: Any, X: Any, Y: Any) -> Any:
    return conditional_logits(condition(params, X, jnp.zeros((X.shape[0], 0), jnp.int32)), Y)


@compiled(static_argnames=("n_samples", "steps", "variance"))
def _chains(key: Any, params: JointParams, n_samples: int, steps: int, variance: float) -> Any:
    n, n_tags = params.U.shape
    n_features = params.W.shape[1]

    def sweep(i: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        noise = jax.random.uniform(jax.random.fold_in(key, i), (n_samples, n + n_tags + n_features))
        x, y, _ = joint_sweep(params, *state, noise, variance)
        return x, y

    start = (jnp.zeros((n_samples, n_features)), jnp.zeros((n_samples, n_tags)))
    return jax.lax.fori_loop(0, steps, sweep, start)
