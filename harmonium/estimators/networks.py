"""The models with hidden units: the RBMs and the multi-layer perceptron."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from harmonium.arrays import Doubles, Floats, Ids, Rng
from harmonium.errors import DataError
from harmonium.estimators.architecture import (
    NetworkArchitecture,
    Parameters,
    single_precision,
)
from harmonium.estimators.calibration import observed_fraction
from harmonium.estimators.gradient_tagger import GradientTagger
from harmonium.estimators.inference import TRAINING_METHODS
from harmonium.estimators.over_classifier import OverClassifier
from harmonium.estimators.rbm_architecture import (
    TAG_WEIGHTS,
    RBMArchitecture,
    conditional,
    conditions,
    first_feature_weights,
)
from harmonium.estimators.rbm_parameters import InferenceParameters, LikelihoodParameters
from harmonium.estimators.scaling import ScaleFeatures
from harmonium.estimators.tables import ClipTable, in_blocks
from harmonium.estimators.targets import base_log_odds, read_more_targets
from harmonium.logistic import mean_probabilities
from harmonium.parameters import Count, NotNegative, estimator, parameter
from harmonium.rbm.annealing import LogLikelihoods, log_likelihoods
from harmonium.rbm.decisions import decide
from harmonium.rbm.gradients import Gradient
from harmonium.rbm.inference import Diagnostics, Inference, InferenceOptions, predicted
from harmonium.rbm.model import Params, compiled, refuse_fork
from harmonium.rbm.other_models import (
    Hybrid,
    JointContrastiveDivergence,
    JointParams,
    MLPParams,
    joint_sweep,
    mlp_logits,
)
from harmonium.scikit_learn import ClassNamePrefixFeaturesOutMixin, TransformerMixin

# hidden units, and the standard deviation of W at the start, for words and for other features
N_HIDDEN = 100
N_HIDDEN_OF_WORDS = 300
INIT_SCALE = 0.3
INIT_SCALE_OF_WORDS = 1.0


@estimator
class RBMTagger(InferenceParameters, GradientTagger):
    """Base of the RBMs: p(y | x) is inferred, and some of y may be known."""

    n_hidden: Count | None = parameter(
        'Number of hidden units, n; None means 100, or 300 for words ("idf").',
        default=None,
        kw_only=False,
    )
    init_scale: NotNegative | None = parameter(
        """Standard deviation of W at the start of training, for features of unit norm; None means
        0.3, or 1 for words.""",
        default=None,
    )
    l2_tags: NotNegative | None = parameter(
        """Strength of the ℓ2 penalty on U, the weights between tags and hidden units; None means
        ``l2``, which otherwise applies to W alone.""",
        default=None,
    )

    _network = "rbm"

    @property
    def params_(self) -> Params:
        """The parameters for raw features: σ(c + Wx + Uy) with x a row of X."""
        self._check_linear_in_features("params_")
        U, W, V, c, d = conditional(self._params)
        W = W / self._scaling.scale
        return Params(U=U, W=W, V=V, c=c - W @ self._scaling.mean, d=d)

    def complete(self, X: Any, y: Any) -> Floats:
        """p(y_j = 1 | x, the known tags), shape (n_clips, n_tags).

        ``y`` is (n_clips, n_tags) with NaN for the tags to infer; tag → 0 or 1 for all clips, as in
        ``{"sad": 1}``; or a list of true tags for each clip. Known tags come back as given.
        """
        P = self.infer(X, y).y
        if self.recalibration_ is None:
            return P
        known = self._known(P, y)
        corrected = self.recalibration_(P, observed_fraction(known))
        return np.where(np.isnan(known), corrected, known)

    def infer(self, X: Any, y: Any = None) -> Inference:
        """Marginals of tags ``y`` and hidden units ``h``, with ``diagnostics`` for each clip.

        With several members, the tags' log-odds are averaged, the hidden units are concatenated,
        and the diagnostics are those of the member that is furthest from convergence.

        The diagnostics say which method found a clip's marginals in the end, how far they are from
        convergence, and whether that is within ``tolerance``. ``y`` as for :meth:`complete`. These
        are the model's own marginals, whether or not ``calibrate`` corrects those of
        ``predict_proba`` and :meth:`complete`.
        """
        features = self._feature_table(X)
        known = None if y is None else self._known(features, y)
        architecture = self._architecture()
        members = [
            in_blocks(partial(architecture.infer, params), features, known)
            for params in self._member_params()
        ]
        if len(members) == 1:
            return members[0]
        P = mean_probabilities([member.y for member in members])
        if known is not None:
            P = np.where(np.isnan(known), P, known)
        return Inference(
            y=P,
            h=np.hstack([member.h for member in members]),
            diagnostics=_worst([member.diagnostics for member in members]),
        )

    def predict_joint(self, X: Any, y: Any = None, *, beams: int = 64) -> NDArray[Any]:
        """The most probable set of tags of each clip, argmax p(y | x), as a whole.

        :meth:`predict` decides each tag by itself. Here tags are decided together, by a beam search
        with ``beams`` candidates for the lowest free energy, which misses nothing with at least
        2^n_tags of them. A model trained by its likelihood, such as ``training="cd"``, gets more
        clips entirely right in this way, and somewhat fewer single tags. Of several members, the
        mean of the free energies counts; ``calibrate`` and ``thresholds_`` have no part in it.
        ``y`` are known tags, as for :meth:`complete`.

        Shape (n_clips, n_tags), or (n_clips,) of ``classes_`` for one-dimensional labels.
        """
        if beams < 1:
            raise DataError(f"beams must be at least 1. Got {beams} instead.")
        features = self._features(X)
        inferred = self.infer(X, y).y
        known = np.full_like(inferred, np.nan)
        if y is not None:
            known = self._known(features, y)
        members = [conditional(params) for params in self._member_params()]
        u, a = conditions(members[0], features)
        tags = decide(members, u, a, known, inferred, beams).astype(int)
        return self.classes_[tags[:, 0]] if self._one_column else tags

    def log_likelihood(
        self, X: Any, y: Any, *, steps: int = 500, chains: int = 32, random_state: Any = 0
    ) -> LogLikelihoods:
        """log p(the known tags | x) by clip, ``value`` (n_clips,), with its standard ``error``.

        Exact if there are at most 20 hidden units or 20 tags, with an error of 0; else estimated
        by annealed importance sampling with that many ``steps`` and ``chains``. Of several members
        it is the mean: log p of their normalised geometric mean is at least as high. ``calibrate``
        has no part in it. ``y`` as for :meth:`score`; unknown tags are summed out.
        """
        features = self._features(X)
        known = read_more_targets(y, self._targets()).Y
        check_consistent_length(features, known)
        seed = check_random_state(random_state).randint(2**31 - 1)
        estimates = []
        for number, params in enumerate(self._member_params()):
            estimate = log_likelihoods(
                conditional(params),
                *conditions(params, features),
                known,
                steps=steps,
                chains=chains,
                seed=seed + number,
            )
            estimates.append(estimate)
        squared_errors = np.sum([estimate.error**2 for estimate in estimates], axis=0)
        return LogLikelihoods(
            value=np.mean([estimate.value for estimate in estimates], axis=0),
            error=np.sqrt(squared_errors) / len(estimates),
        )

    @abstractmethod
    def _architecture(self) -> RBMArchitecture:
        """The model that the settings ask for."""

    def _rbm_architecture(
        self,
        objective: Gradient,
        inference: InferenceOptions,
        *,
        models_inputs: bool,
        stops_by_completion: bool = False,
        n_below: int = 0,
    ) -> RBMArchitecture:
        init_scale = self.init_scale
        if init_scale is None:
            init_scale = INIT_SCALE_OF_WORDS if self._scaling.is_bag_of_words else INIT_SCALE
        return RBMArchitecture(
            l1=self.l1,
            l2=self.l2 or 0.0,
            l2_tags=self.l2_tags,
            n_hidden=self._n_hidden,
            init_scale=init_scale,
            objective=objective,
            inference=inference,
            models_inputs=models_inputs,
            stops_by_completion=stops_by_completion,
            n_below=n_below,
        )

    @property
    def _n_hidden(self) -> int:
        if self.n_hidden is not None:
            return self.n_hidden
        return N_HIDDEN_OF_WORDS if self._scaling.is_bag_of_words else N_HIDDEN

    def _joint_gradient(self, steps: int) -> JointContrastiveDivergence:
        """Of -log p(y, x), for Gaussian inputs with the variance of the scaled features, or 1."""
        scaled = self.scale_features != "none" or self.unit_norm
        variance = 1 / len(self._scaling.mean) if scaled else 1.0
        return JointContrastiveDivergence(steps, variance)


def _worst(members: list[Diagnostics]) -> Diagnostics:
    """For each clip, the diagnostics of the member that is furthest from convergence."""
    worst = np.argmax([member.residual for member in members], axis=0)
    clips = np.arange(len(worst))
    return Diagnostics(
        method=np.stack([member.method for member in members])[worst, clips],
        residual=np.stack([member.residual for member in members])[worst, clips],
        converged=np.stack([member.converged for member in members])[worst, clips],
    )


@estimator
class DiscriminativeRBM(OverClassifier, LikelihoodParameters, RBMTagger):
    """Predicts the tags of a clip from its features, and from the tags already known.

    A conditional RBM p(y, h | x) ∝ exp(hᵀUy + hᵀWx + dᵀy + cᵀh) trained to maximise
    log p(y | x). Its binary hidden units tie the tags to the features and to each other, so that
    :meth:`complete` can use a clip's known tags to infer the others.

    With ``estimator``, another classifier's log-odds a_j(x) are added to d_j, weighted by V_j. They
    are limited to ±log(2n + 1), where n is the number of clips with the tag known.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    params_ : U (n, C), W (n, D), V, c (n,) and d (C,) for features as given to ``fit``; with an
        additional first axis if there are several members. V is empty, or (1, C) with
        ``estimator``.
    {attributes}

    References
    ----------
    Mandel, Pascanu, Larochelle, Bengio (2011). Autotagging music with conditional restricted
    Boltzmann machines. arXiv:1103.2832. docs/model.md says where this differs from the paper.

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

    l2: NotNegative = parameter(default=0.3)
    l2_tags: NotNegative | None = parameter(default=0.03)
    n_models: Count = parameter(
        """Members of the model. The clips are divided into this many folds; each member learns from
        all folds but one and stops early on that one. Their log-odds are averaged. With an
        ``eval_set``, there is one member.""",
        default=5,
    )
    scale_features: ScaleFeatures = parameter(default="auto")
    generative_weight: NotNegative = parameter(
        """α of the hybrid, which maximises α log p(y, x) + log p(y | x), the joint distribution by
        CD-1 with Gaussian inputs; 0 is the discriminative RBM.""",
        default=0.0,
    )

    @property
    def _param_type(self) -> Any:
        return JointParams if self.generative_weight else Params

    def _architecture(self) -> RBMArchitecture:
        objective = self._likelihood_gradient((self._n_hidden, len(self.tags_)))
        if self.generative_weight:
            objective = Hybrid(float(self.generative_weight), objective, self._joint_gradient(1))
        return self._rbm_architecture(
            objective,
            self._inference_options(self.training, self.training_steps),
            models_inputs=self.generative_weight > 0,
            stops_by_completion=TRAINING_METHODS[self.training].stops_by_completion,
            n_below=self._n_below,
        )

    def _refuse_classifier(self) -> None:
        if self.generative_weight:
            raise DataError(
                "generative_weight must be 0 with estimator: a classifier's log-odds are no part "
                f"of a model of the features. Got {self.generative_weight:g}."
            )


@estimator
class GenerativeRBM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RBMTagger):
    """A joint model p(y, x) of features and tags: Gaussian inputs x, binary tags y.

    Trained on log p(y, x) by contrastive divergence whose chain samples both; p(y | x) is inferred
    as in :class:`DiscriminativeRBM`. As a transformer it gives p(h_k = 1 | x), the hidden
    representation.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    params_ : U (n, C), W (n, D), V (empty), c (n,) and d (C,) for features as given to ``fit``.
    {attributes}
    """

    n_hidden: Count = parameter("Number of hidden units, n.", default=200, kw_only=False)
    init_scale: NotNegative = parameter("Standard deviation of W at the start.", default=1.0)
    training_steps: Count | None = parameter("The K of CD-K; None means 1.", default=None)

    _param_type = JointParams

    def transform(self, X: Any) -> Floats:
        """p(h_k = 1 | x), shape (n_clips, n_hidden)."""
        return self.infer(X).h

    def sample(
        self, n_samples: int = 1, *, steps: int = 1000, random_state: Any = None
    ) -> tuple[Doubles, Ids]:
        """(X, y) drawn from p(y, x) by independent Gibbs chains of ``steps`` sweeps each.

        X is (n_samples, n_features), in the units of the features; y is (n_samples, n_tags). With
        ``unit_norm`` the model knows only clips of norm 1 after scaling, and draws such clips.
        """
        check_is_fitted(self)
        if n_samples < 1 or steps < 1:
            raise DataError(
                f"n_samples and steps must be at least 1. Got {n_samples} and {steps} instead."
            )
        refuse_fork()
        key = jax.random.key(check_random_state(random_state).randint(2**31 - 1))
        x, y = _chains(key, self._params, n_samples, steps, self._joint_gradient(1).variance)
        X = self._scaling.inverse(np.asarray(x))
        return X, np.asarray(y).astype(np.int64)

    def _architecture(self) -> RBMArchitecture:
        objective = self._joint_gradient(self.training_steps or 1)
        return self._rbm_architecture(objective, self._inference_options(), models_inputs=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # the output is always float32
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_hidden


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


@estimator
class MLPTagger(GradientTagger):
    """A multi-layer perceptron with one hidden layer: p(y_j = 1 | x) = σ(d_j + U_jᵀ tanh(c + Wx)).

    Trained to minimise the cross-entropy over all known labels.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    """

    n_hidden: Count = parameter("Number of hidden units.", default=100, kw_only=False)
    init_scale: NotNegative = parameter(default=0.1, like=RBMTagger)
    n_models: Count = parameter(default=DiscriminativeRBM.n_models, like=DiscriminativeRBM)
    scale_features: ScaleFeatures = parameter(default="auto")
    l2: NotNegative = parameter(default=0.3)

    _param_type = MLPParams
    _network = "mlp"

    def _architecture(self) -> "MLPArchitecture":
        return MLPArchitecture(
            l1=self.l1, l2=self.l2, n_hidden=self.n_hidden, init_scale=self.init_scale
        )


@dataclass(frozen=True, kw_only=True)
class MLPArchitecture(NetworkArchitecture):
    """The perceptron without its parameters."""

    n_hidden: int
    init_scale: float

    def start(self, rng: Rng, clips: ClipTable) -> MLPParams:
        """Small random weights, c = 0, and d at the tags' log-odds."""
        U = rng.normal(0, TAG_WEIGHTS, (self.n_hidden, clips.Y.shape[1]))
        W = first_feature_weights(rng, clips.X, self.n_hidden, self.init_scale)
        d = base_log_odds(clips.Y, clips.weights)
        return single_precision(MLPParams, U, W, np.zeros(self.n_hidden), d)

    def logits(self) -> Callable[..., Any]:
        """d + Uᵀ tanh(c + Wx)."""
        return mlp_logits

    def probabilities(
        self, params: Parameters, X: Floats, observed: Floats | None = None
    ) -> Floats:
        """In double precision, in which a clip's position cannot change its result."""
        with jax.enable_x64(True):
            wide = jax.tree.map(np.float64, params)
            P = predicted(self.predictor(), wide, X.astype(np.float64))
            return np.asarray(P).astype(np.float32)
