"""The multi-layer perceptron and logistic regression, on the training loop of the RBMs."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import jax
import numpy as np
from numpy.typing import NDArray

from harmonium.estimators.classifier import NOT_NEGATIVE
from harmonium.estimators.tagger import COUNT, Clips, Tagger, base_log_odds, single_precision
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


class Feedforward(Tagger):
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


class MLPTagger(Feedforward):
    """A multi-layer perceptron with one hidden layer: p(y_j = 1 | x) = σ(d_j + U_jᵀ tanh(c + Wx)).

    Trained to minimise the cross-entropy over all known labels. Parameters and attributes are
    those of :class:`DiscriminativeRBM` that do not concern inference; ``n_hidden`` counts the units
    of the hidden layer.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Tagger._parameter_constraints,
        "n_hidden": [COUNT],
        "init_scale": [NOT_NEGATIVE],
    }
    _param_type = MLPParams
    _logits = staticmethod(mlp_logits)

    def __init__(
        self,
        n_hidden: int = 100,
        *,
        learning_rate: float = 0.01,
        schedule: Literal["constant", "inverse", "cosine"] = "constant",
        optimizer: Literal["adam", "sgd"] = "adam",
        momentum: float = 0.9,
        batch_size: int = 20,
        max_epochs: int = 200,
        patience: int = 20,
        averaging: float = 5.0,
        validation_fraction: float = 0.1,
        init_scale: float = 0.1,
        l1: float = 0.0,
        l2: float = 0.3,
        scale_features: bool = True,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_hidden = n_hidden
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.optimizer = optimizer
        self.momentum = momentum
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.averaging = averaging
        self.validation_fraction = validation_fraction
        self.init_scale = init_scale
        self.l1 = l1
        self.l2 = l2
        self.scale_features = scale_features
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _start(self, rng: np.random.Generator, clips: Clips) -> Tree:
        n, n_tags = self.n_hidden, clips.Y.shape[1]
        # nothing is learnt of a feature that is constant: its later values must not matter
        varies = np.ptp(clips.X, axis=0) > 0
        arrays = (
            rng.normal(0, 0.01, (n, n_tags)),
            rng.normal(0, self.init_scale, (n, clips.X.shape[1])) * varies,
            np.zeros(n),
            base_log_odds(clips.Y),
        )
        return single_precision(MLPParams, *arrays)

    def _penalised(self) -> tuple[str, ...]:
        return ("U", "W")


class LogisticTagger(Feedforward):
    """Logistic regression by gradient descent, as in the paper: p(y_j = 1 | x) = σ(d_j + W_j x).

    Parameters and attributes are those of :class:`DiscriminativeRBM` that do not concern the
    hidden units or inference.
    """

    _param_type = LogisticParams
    _logits = staticmethod(logistic_logits)

    def __init__(
        self,
        *,
        learning_rate: float = 0.01,
        schedule: Literal["constant", "inverse", "cosine"] = "constant",
        optimizer: Literal["adam", "sgd"] = "adam",
        momentum: float = 0.9,
        batch_size: int = 20,
        max_epochs: int = 200,
        patience: int = 20,
        averaging: float = 5.0,
        validation_fraction: float = 0.1,
        l1: float = 0.0,
        l2: float = 0.0,
        scale_features: bool = True,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.optimizer = optimizer
        self.momentum = momentum
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.averaging = averaging
        self.validation_fraction = validation_fraction
        self.l1 = l1
        self.l2 = l2
        self.scale_features = scale_features
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _start(self, rng: np.random.Generator, clips: Clips) -> Tree:
        arrays = (np.zeros((clips.Y.shape[1], clips.X.shape[1])), base_log_odds(clips.Y))
        return single_precision(LogisticParams, *arrays)

    def _penalised(self) -> tuple[str, ...]:
        return ("W",)
