"""The multi-layer perceptron and logistic regression, on the training loop of the RBMs."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import numpy as np
from numpy.typing import NDArray

from harmonium.estimators.gradient_tagger import GradientTagger, HiddenUnits, LabelledClips
from harmonium.estimators.gradient_training import single_precision
from harmonium.estimators.labels import base_log_odds
from harmonium.estimators.parameters import estimator, parameter
from harmonium.rbm.compilation import compiled
from harmonium.rbm.feedforward import (
    CrossEntropy,
    LogisticParams,
    MLPParams,
    logistic_logits,
    mlp_logits,
)
from harmonium.rbm.gradients import Gradient
from harmonium.rbm.training import Tree


class Feedforward(GradientTagger):
    """A network whose tags are independent given the features: p(y_j = 1 | x) = σ(o_j(x))."""

    _logits: ClassVar[Callable[..., Any]]

    def _objective(self) -> Gradient:
        return CrossEntropy(type(self)._logits)

    def _validation_scores(self, params: Tree, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(_probabilities(type(self)._logits, params, X))

    def _probabilities(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        # in double precision the place of a clip among the others cannot change its result
        with jax.enable_x64(True):
            wide = jax.tree.map(np.float64, self._params)
            return self._validation_scores(wide, X.astype(np.float64)).astype(np.float32)


@compiled(static_argnames=("logits",))
def _probabilities(logits: Callable[..., Any], params: Tree, X: Any) -> Any:
    return jax.nn.sigmoid(logits(params, X))


@estimator
class MLPTagger(HiddenUnits, Feedforward):
    """A multi-layer perceptron with one hidden layer: p(y_j = 1 | x) = σ(d_j + U_jᵀ tanh(c + Wx)).

    Trained to minimise the cross-entropy over all known labels.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    tags_ : names of the tags. thresholds_ : probability from which ``predict`` says yes, by tag.
    recalibration_ : the correction of the probabilities, or None.
    history_ : per epoch "log_likelihood" (a proxy, per tag), "auc" and "seconds".
    best_epoch_ : the epoch whose parameters were kept, counted from 1.
    n_features_in_, feature_names_in_, classes_, n_iter_ : as in scikit-learn.
    """

    init_scale: float = parameter(default=0.1)
    l2: float = parameter(default=0.3)

    _param_type = MLPParams
    _logits = staticmethod(mlp_logits)

    def _start(self, rng: np.random.Generator, clips: LabelledClips) -> Tree:
        return single_precision(MLPParams, *self._first_weights(rng, clips))


@estimator
class LogisticTagger(Feedforward):
    """Logistic regression by gradient descent, as in the paper: p(y_j = 1 | x) = σ(d_j + W_j x).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    tags_ : names of the tags. thresholds_ : probability from which ``predict`` says yes, by tag.
    recalibration_ : the correction of the probabilities, or None.
    history_ : per epoch "log_likelihood" (a proxy, per tag), "auc" and "seconds".
    best_epoch_ : the epoch whose parameters were kept, counted from 1.
    n_features_in_, feature_names_in_, classes_, n_iter_ : as in scikit-learn.
    """

    _param_type = LogisticParams
    _logits = staticmethod(logistic_logits)

    def _start(self, rng: np.random.Generator, clips: LabelledClips) -> Tree:
        W = np.zeros((clips.Y.shape[1], clips.X.shape[1]))
        return single_precision(LogisticParams, W, base_log_odds(clips.Y))

    def _penalised(self) -> tuple[str, ...]:
        return ("W",)
