"""The conditional RBM without its parameters."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from harmonium.arrays import Floats, Rng
from harmonium.errors import DataError
from harmonium.estimators.architecture import (
    Architecture,
    Parameters,
    Predictor,
    single_precision,
)
from harmonium.estimators.rbm_parameters import check_inference
from harmonium.estimators.tables import ClipTable, Table, TableRows
from harmonium.estimators.targets import base_log_odds
from harmonium.rbm.gradients import Gradient, for_soft_targets
from harmonium.rbm.inference import (
    Inference,
    InferenceOptions,
    infer,
    marginals,
    method_of,
)
from harmonium.rbm.model import Params
from harmonium.rbm.other_models import JointParams
from harmonium.rbm.slopes import unrolled_log_odds

QUICK_TOLERANCE = 1e-2  # of inference during training
TAG_WEIGHTS = 0.01  # standard deviation of U at the start


@dataclass(frozen=True, kw_only=True)
class RBMArchitecture(Architecture):
    """A conditional RBM p(y, h | x), perhaps with a model of its inputs beside it."""

    n_hidden: int
    init_scale: float  # standard deviation of W at the start
    objective: Gradient  # for labels of 0 and 1
    inference: InferenceOptions
    models_inputs: bool = False  # whether there is a mean b of the inputs
    stops_by_completion: bool = False  # whether early stopping asks with observed tags, too
    n_below: int = 0  # log-odds of a classifier below, in as many last columns of the inputs

    completes: ClassVar[bool] = True

    @property
    def judged_by_completion(self) -> bool:
        """A model trained for questions with some tags observed is also judged by these."""
        return self.stops_by_completion

    def start(self, rng: Rng, clips: ClipTable) -> Parameters:
        """U and W, small and random, c = 0, and d at the tags' log-odds: p(y) is the base rate.

        Over a classifier, d = 0 and V = 1: p(y) is what the classifier says.
        """
        x, _ = self.inputs(clips.X)
        n_features = x.shape[1]
        n_tags = clips.Y.shape[1]
        U = rng.normal(0, TAG_WEIGHTS, (self.n_hidden, n_tags))
        W = first_feature_weights(rng, x, self.n_hidden, self.init_scale)
        c = np.zeros(self.n_hidden)
        if self.n_below:
            return single_precision(Params, U, W, np.ones((1, n_tags)), c, np.zeros(n_tags))
        V = np.zeros((0, n_tags))
        d = base_log_odds(clips.Y, clips.weights)
        if self.models_inputs:
            return single_precision(JointParams, U, W, V, c, d, np.zeros(n_features))
        return single_precision(Params, U, W, V, c, d)

    def inputs(self, X: Table) -> tuple[Table, Any]:
        """The features and, in the last columns, what a classifier below says."""
        if not self.n_below:
            return X, None
        return X[:, : -self.n_below], X[:, -self.n_below :]

    def gradient(self, *, soft: bool) -> Gradient:
        """The objective, which may need tags of 0 and 1."""
        return for_soft_targets(self.objective) if soft else self.objective

    def check(self, params: Parameters) -> None:
        """Refuse enumeration of too many units, or steps without end."""
        check_inference(self.inference, params.U.shape)

    def probabilities(
        self, params: Parameters, X: Floats, observed: Floats | None = None
    ) -> Floats:
        """p(y_j = 1 | x, the observed tags), (N, C)."""
        return self.infer(params, X, observed).y

    def infer(self, params: Parameters, X: Floats, observed: Floats | None = None) -> Inference:
        """Marginals of tags and hidden units, with diagnostics."""
        self.check(params)
        return _infer(params, X, observed, self.inference)

    def quick_probabilities(
        self, params: Parameters, X: Floats, observed: Floats | None = None
    ) -> Floats:
        """The same, until it changes little, and by one method."""
        self.check(params)
        return _infer(params, X, observed, quick_options(self.inference)).y

    def predictor(self) -> Predictor | None:
        """The method of inference, if it can be traced; sampling and enumeration cannot."""
        if not method_of(self.inference).is_traced:
            return None
        return marginals, quick_options(self.inference)

    def log_odds(self) -> Predictor:
        """Those after the steps of mean field."""
        if self.n_below:
            raise DataError(
                "A model over a classifier has no importances and no ONNX: how the classifier uses "
                "the features is unknown. Use a model without estimator."
            )
        if self.inference.method != "mean_field":
            raise DataError(
                "Importances and ONNX need the steps of mean field, but this model predicts by "
                f"{self.inference.method!r}. Set inference='mean_field', which needs no new fit."
            )
        return unrolled_log_odds, self.inference.steps

    def numbers_per_clip(self, params: Parameters) -> int:
        """As many as the method of inference keeps."""
        return method_of(self.inference).numbers_per_clip(params.U.shape)


def conditional(params: Parameters) -> Params:
    """The parameters of p(y | x), without those of the inputs."""
    return Params(*params[: len(Params._fields)])


def first_feature_weights(rng: Rng, X: Table, n_hidden: int, scale: float) -> Floats:
    """W at the start of training, (n, D).

    Nothing is learnt about a feature that is constant: its later values must not matter.
    """
    rows = X if isinstance(X, TableRows) else TableRows(X)
    W = rng.normal(0, scale, (n_hidden, X.shape[1])) * rows.varying()
    return W.astype(np.float32)


def _infer(
    params: Parameters, X: Floats, observed: Floats | None, options: InferenceOptions
) -> Inference:
    if observed is None:
        observed = np.full((len(X), len(params.d)), np.nan, np.float32)
    return infer(conditional(params), *conditions(params, X), observed, options)


def conditions(params: Parameters, X: Floats) -> tuple[Floats, Floats]:
    """u and a of clips: the features and, over a classifier, a number for each tag."""
    n_features = params.W.shape[1]
    return X[:, :n_features], X[:, n_features:]


def quick_options(options: InferenceOptions) -> InferenceOptions:
    """Only as exact as a ranking needs, for early stopping."""
    return options._replace(tolerance=max(options.tolerance, QUICK_TOLERANCE), retry=False)
