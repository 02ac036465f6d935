"""The RBMs as classifiers, and the multi-label discriminative RBM."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length

from harmonium.estimators.gradient_tagger import GradientTagger, HiddenUnits, LabelledClips
from harmonium.estimators.gradient_training import single_precision
from harmonium.estimators.labels import is_soft
from harmonium.estimators.parameters import NOT_NEGATIVE, estimator, parameter
from harmonium.estimators.rbm_estimator import ConditionalTraining, RBMInference, Training
from harmonium.estimators.recalibration import Question, share_told
from harmonium.estimators.validation import ask, half_told, is_rankable, mean_auc
from harmonium.rbm.generative import Hybrid, JointContrastiveDivergence, JointParams
from harmonium.rbm.gradients import Gradient, for_soft_targets
from harmonium.rbm.inference import Inference, infer
from harmonium.rbm.model import Params
from harmonium.rbm.training import Penalty, Tree


@estimator
class RBMTagger(HiddenUnits, RBMInference, GradientTagger):
    """Base of the RBMs: p(y | x) is inferred, and some of y may be known."""

    l2_tags: float | None = parameter(
        NOT_NEGATIVE,
        default=None,
        doc="""Strength of the ℓ2 penalty on U, the weights between tags and hidden units; None
        means ``l2``, which otherwise is that of W alone.""",
    )

    @property
    def params_(self) -> Params:
        """The parameters for features as given: σ(c + Wx + Uy) with x a row of X."""
        self._check_linear_in_features("params_")
        U, W, V, c, d = self._conditional(self._params)
        W = W / self._scaling.scale
        return Params(U, W, V, c - W @ self._scaling.mean, d)

    def complete(self, X: Any, y: Any) -> NDArray[np.float32]:
        """p(y_j = 1 | x, the known tags), shape (n_clips, n_tags).

        ``y`` is (n_clips, n_tags) with NaN for the tags to infer, or tag → 0 or 1 for all clips, as
        in ``{"sad": 1}``; known tags come back as given.
        """
        found = self.infer(X, y).y
        if self.recalibration_ is None:
            return found
        known = self._known(y, len(found))
        corrected = self.recalibration_(found, share_told(known))
        return np.where(np.isnan(known), corrected, known)

    def infer(self, X: Any, y: Any = None) -> Inference:
        """Marginals of tags ``y`` and hidden units ``h``, with ``diagnostics`` for each clip.

        The diagnostics say which method found a clip's marginals in the end, how far they are from
        converged, and whether that is within ``tolerance``. ``y`` as for :meth:`complete`. These
        are the model's own marginals, whether or not ``calibrate`` corrects those of
        ``predict_proba`` and :meth:`complete`.
        """
        features = self._features(X)
        known = None
        if y is not None:
            known = self._known(y, len(features))
            check_consistent_length(features, known)
        return self._infer(self._params, features, known)

    def _probabilities(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return self._infer(self._params, X).y

    def _questions(self, clips: LabelledClips) -> list[Question]:
        return ask(lambda told: self._infer(self._params, clips.X, told).y, clips.Y)

    def _validation_scores(self, params: Tree, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return self._infer(params, X, quick=True).y

    def _check_inference(self, params: Tree) -> None:
        self._inference_options(params.U.shape)

    def _penalty(self, params: Tree) -> Penalty:
        penalty = super()._penalty(params)
        if self.l2_tags is None:
            return penalty
        return penalty._replace(l2=penalty.l2._replace(U=np.float32(self.l2_tags)))

    def _infer(
        self,
        params: Tree,
        X: NDArray[np.float32],
        Y: NDArray[np.float32] | None = None,
        *,
        quick: bool = False,
    ) -> Inference:
        if Y is None:
            Y = np.full((len(X), len(self.tags_)), np.nan, np.float32)
        none = np.zeros((len(X), 0), np.int32)
        options = self._inference_options(params.U.shape, quick=quick)
        return infer(self._conditional(params), X, none, Y, options)

    def _input_variance(self) -> float:
        """Variance of each input of the Gaussian RBM: that of scaled features, or 1."""
        scaled = self.scale_features or self.unit_norm
        return 1 / len(self._scaling.mean) if scaled else 1.0

    def _conditional(self, params: Tree) -> Params:
        """The parameters of p(y | x) among those that are trained."""
        return Params(*params[:5])

    def _random_params(self, rng: np.random.Generator, clips: LabelledClips) -> Params:
        """Parameters of p(y | x) to start from."""
        U, W, c, d = self._first_weights(rng, clips)
        V = np.zeros((0, clips.Y.shape[1]))
        return single_precision(Params, U, W, V, c, d)

    def _gradient(self, Y: NDArray[np.float32]) -> Gradient:
        objective = self._objective()
        return for_soft_targets(objective) if is_soft(Y) else objective


@estimator
class DiscriminativeRBM(ConditionalTraining, RBMTagger):
    """Predicts the tags of a clip from its features, and from the tags already known.

    A conditional RBM p(y, h | x) ∝ exp(hᵀUy + hᵀWx + dᵀy + cᵀh) trained to maximise
    log p(y | x). Its binary hidden units tie the tags to the features and to one another, so that
    :meth:`complete` can use what is known of a clip's tags to infer the others.

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

    References
    ----------
    Mandel, Pascanu, Larochelle, Bengio (2011). Autotagging music with conditional restricted
    Boltzmann machines. arXiv:1103.2832. Where this differs from it is in docs/model.md.

    Examples
    --------
    >>> import numpy as np
    >>> from harmonium import DiscriminativeRBM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5))
    >>> Y = (X[:, :3] + rng.normal(size=(200, 3)) > 0).astype(float)
    >>> model = DiscriminativeRBM(n_hidden=10, max_epochs=20).fit(X, Y)
    >>> model.predict_proba(X).shape
    (200, 3)
    """

    training: Training = parameter(default="multi_prediction")
    init_scale: float = parameter(default=0.3)
    l2: float = parameter(default=0.3)
    l2_tags: float | None = parameter(default=0.03)
    generative_weight: float = parameter(
        NOT_NEGATIVE,
        default=0.0,
        doc="""α of the hybrid, which maximises α log p(y, x) + log p(y | x), the joint distribution
        by CD-1 with Gaussian inputs; 0 is the discriminative RBM.""",
    )

    @property
    def _param_type(self) -> Any:
        return JointParams if self.generative_weight else Params

    def _start(self, rng: np.random.Generator, clips: LabelledClips) -> Tree:
        params = self._random_params(rng, clips)
        if not self.generative_weight:
            return params
        return single_precision(JointParams, *params, np.zeros(clips.X.shape[1]))

    def _judge(self, params: Tree, valid: LabelledClips) -> tuple[float, float]:
        """A model trained for questions with some tags told is judged by such questions, too."""
        auc, likelihood = super()._judge(params, valid)
        told = half_told(valid.Y)
        asked = np.where(np.isnan(told), valid.Y, np.nan)
        if self.training == "multi_prediction" and is_rankable(asked):
            answers = self._infer(params, valid.X, told, quick=True).y
            auc = (auc + mean_auc(asked, answers)) / 2
        return auc, likelihood

    def _objective(self) -> Gradient:
        if not self.generative_weight:
            return self._conditional_gradient()
        joint = JointContrastiveDivergence(1, self._input_variance())
        return Hybrid(float(self.generative_weight), self._conditional_gradient(), joint)
