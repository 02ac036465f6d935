"""What the RBMs share as estimators: inference of tags, completion, and the start of training."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_consistent_length

from harmonium.errors import DataError
from harmonium.estimators.classifier import COUNT, JOBS, NOT_NEGATIVE
from harmonium.estimators.labels import is_soft, read_more_targets
from harmonium.estimators.tagger import Clips, Tagger, base_log_odds, single_precision
from harmonium.rbm.exact import MAX_UNITS
from harmonium.rbm.gradients import Gradient
from harmonium.rbm.infer import Inference, Options, infer
from harmonium.rbm.model import Params
from harmonium.rbm.soft import for_soft_targets
from harmonium.rbm.training import Tree


class RBMTagger(Tagger):
    """Base of the RBMs: p(y | x) is inferred, and some of y may be known."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Tagger._parameter_constraints,
        "n_hidden": [COUNT],
        "init_scale": [NOT_NEGATIVE],
        "training_steps": [COUNT, None],
        "inference": [StrOptions({"lbp", "mean_field", "gibbs", "exact"})],
        "inference_steps": [COUNT],
        "damping": [Interval(Real, 0, 1, closed="left")],
        "tolerance": [NOT_NEGATIVE],
        "n_jobs": JOBS,
    }

    @property
    def params_(self) -> Params:
        """The parameters for features as given: σ(c + Wx + Uy) with x a row of X."""
        U, W, V, c, d = self._conditional(self._params)
        W = W / self._scaling.scale
        return Params(U, W, V, c - W @ self._scaling.mean, d)

    def complete(self, X: Any, y: Any) -> NDArray[np.float32]:
        """p(y_j = 1 | x, the known tags), shape (n_clips, n_tags).

        ``y`` is (n_clips, n_tags) with NaN for the tags to infer; known tags come back as given.
        """
        return self.infer(X, y).y

    def infer(self, X: Any, y: Any = None) -> Inference:
        """Marginals of tags ``y`` and hidden units ``h``, with ``diagnostics`` for each clip.

        The diagnostics say which method found a clip's marginals in the end, how far they are from
        converged, and whether that is within ``tolerance``. ``y`` as for :meth:`complete`.
        """
        features = self._features(X)
        known = np.full((len(features), len(self.tags_)), np.nan, np.float32)
        if y is not None:
            known = read_more_targets(y, self._targets()).Y
            check_consistent_length(features, known)
        return self._infer(self._params, features, known, self._options(self._params))

    def _probabilities(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        unknown = np.full((len(X), len(self.tags_)), np.nan, np.float32)
        return self._infer(self._params, X, unknown, self._options(self._params)).y

    def _validation_scores(self, params: Tree, X: NDArray[np.float32]) -> NDArray[np.float32]:
        unknown = np.full((len(X), len(self.tags_)), np.nan, np.float32)
        options = self._quick(self._options(params))
        return self._infer(params, X, unknown, options).y

    def _quick(self, options: Options) -> Options:
        """Inference for early stopping: only as exact as a ranking needs."""
        return options._replace(retry=False, tolerance=max(self.tolerance, 1e-2))

    def _check_inference(self, params: Tree) -> None:
        self._options(params)

    def _options(self, params: Tree) -> Options:
        n_hidden, n_tags = params.U.shape
        if self.inference == "exact" and min(n_hidden, n_tags) > MAX_UNITS:
            raise DataError(
                f"inference='exact' enumerates 2^min(n_hidden, n_tags) states and takes at most "
                f"{MAX_UNITS} units on the smaller side. Got {n_hidden} hidden units and "
                f"{n_tags} tags; use inference='lbp'."
            )
        return Options(
            self.inference,
            self.inference_steps,
            self.damping,
            self.tolerance,
            threads=effective_n_jobs(self.n_jobs),
        )

    def _infer(
        self, params: Tree, X: NDArray[np.float32], Y: NDArray[np.float32], options: Options
    ) -> Inference:
        none = np.zeros((len(X), 0), np.int32)
        return infer(self._conditional(params), X, none, Y, options)

    def _input_variance(self) -> float:
        """Variance of each input of the Gaussian RBM: that of scaled features, or 1."""
        return 1 / len(self._scaling.mean) if self.scale_features else 1.0

    def _conditional(self, params: Tree) -> Params:
        """The parameters of p(y | x) among those that are trained."""
        return Params(*params[:5])

    def _random_params(self, rng: np.random.Generator, clips: Clips) -> Params:
        """Small random weights, and d at the tags' log-odds: at first p(y) is the base rate."""
        n, n_tags = self.n_hidden, clips.Y.shape[1]
        # nothing is learnt of a feature that is constant: its later values must not matter
        varies = np.ptp(clips.X, axis=0) > 0
        arrays = (
            rng.normal(0, 0.01, (n, n_tags)),
            rng.normal(0, self.init_scale, (n, clips.X.shape[1])) * varies,
            np.zeros((0, n_tags)),
            np.zeros(n),
            base_log_odds(clips.Y),
        )
        return single_precision(Params, *arrays)

    def _gradient(self, Y: NDArray[np.float32]) -> Gradient:
        objective = self._objective()
        return for_soft_targets(objective) if is_soft(Y) else objective

    def _penalised(self) -> tuple[str, ...]:
        return ("U", "W")
