"""The models with hidden units: the RBMs and the multi-layer perceptron."""

from abc import abstractmethod
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from joblib import effective_n_jobs
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from harmonium.arrays import Doubles, Floats, Ids, Rng
from harmonium.errors import DataError
from harmonium.estimators import model_files
from harmonium.estimators.calibration import Question, ask
from harmonium.estimators.classifier import ScaleFeatures, base_log_odds
from harmonium.estimators.gradient_tagger import GradientTagger, LabelledClips, single_precision
from harmonium.parameters import Count, Jobs, NotNegative, Share, estimator, parameter
from harmonium.rbm import gradients
from harmonium.rbm.belief import fits
from harmonium.rbm.inference import (
    MAX_UNITS,
    Diagnostics,
    Inference,
    InferenceOptions,
    infer,
    marginals,
)
from harmonium.rbm.model import Params, compiled, refuse_fork
from harmonium.rbm.other_models import (
    Hybrid,
    JointContrastiveDivergence,
    JointParams,
    MLPParams,
    joint_sweep,
    mlp_logits,
)
from harmonium.rbm.training import Penalty, Tree

Training = Literal["cd", "mean_field", "lbp", "pl", "multi_prediction"]
InferenceMethod = Literal["auto", "lbp", "mean_field", "gibbs", "exact"]


@estimator
class RBMTagger(GradientTagger):
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
    inference: InferenceMethod = parameter(
        """How p(y_j = 1 | x) is computed: by loopy belief propagation, mean field, Gibbs sampling,
        or enumeration ("exact", for at most 20 hidden units or 20 tags). "auto" is mean field for a
        model trained by "multi_prediction", and belief propagation for all others.""",
        default="auto",
    )
    inference_steps: Count | None = parameter(
        """Iterations, or sweeps of each of 8 chains for "gibbs". None means 20, or the steps of
        training for mean field after "multi_prediction".""",
        default=None,
    )
    damping: Share = parameter(
        """Share of the old message that loopy belief propagation keeps, in training and prediction;
        in [0, 1).""",
        default=0.5,
    )
    tolerance: NotNegative = parameter(
        "Inference has converged when none of a clip's probabilities changes by more.", default=1e-3
    )
    n_jobs: Jobs | None = parameter("Threads that predict; None: 1; -1: all cores.", default=None)
    l2_tags: NotNegative | None = parameter(
        """Strength of the ℓ2 penalty on U, the weights between tags and hidden units; None means
        ``l2``, which otherwise applies to W alone.""",
        default=None,
    )

    @property
    def params_(self) -> Params:
        """The parameters for raw features: σ(c + Wx + Uy) with x a row of X."""
        self._check_linear_in_features("params_")
        U, W, V, c, d = Params(*self._params[:5])
        W = W / self._scaling.scale
        return Params(U, W, V, c - W @ self._scaling.mean, d)

    def complete(self, X: Any, y: Any) -> Floats:
        """p(y_j = 1 | x, the known tags), shape (n_clips, n_tags).

        ``y`` is (n_clips, n_tags) with NaN for the tags to infer; tag → 0 or 1 for all clips, as in
        ``{"sad": 1}``; or a list of true tags for each clip. Known tags come back as given.
        """
        found = self.infer(X, y).y
        if self.recalibration_ is None:
            return found
        known = self._known(found, y)
        corrected = self.recalibration_(found, model_files.observed_fraction(known))
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
        features = self._features(X)
        known = None if y is None else self._known(features, y)
        found = [one._infer(one._params, features, known) for one in self._members()]
        if len(found) == 1:
            return found[0]
        y = model_files.mean_probabilities([one.y for one in found])
        if known is not None:
            y = np.where(np.isnan(known), y, known)
        worst = np.argmax([one.diagnostics.residual for one in found], axis=0), np.arange(len(y))
        each = zip(*(one.diagnostics for one in found), strict=True)
        diagnostics = Diagnostics(*(np.stack(part)[worst] for part in each))
        return Inference(y, np.hstack([one.h for one in found]), diagnostics)

    def _probabilities(self, X: Floats) -> Floats:
        return self._infer(self._params, X).y

    def _questions(self, clips: LabelledClips) -> list[Question]:
        return ask(lambda observed: self._infer(self._params, clips.X, observed).y, clips.Y)

    def _validation_scores(self, params: Tree, X: Floats, observed: Floats | None = None) -> Floats:
        return self._infer(params, X, observed, quick=True).y

    def _predictor(self, params: Tree) -> tuple[Any, InferenceOptions]:
        return marginals, inference_options(self, params.U.shape, quick=True)

    def _numbers_per_clip(self, params: Tree) -> int:
        shape = params.U.shape
        method, _ = model_files.chosen_inference(vars(self))
        by_messages = method != "mean_field" and not fits(*shape)
        return shape[0] * shape[1] if by_messages else shape[1]

    def _penalty(self, params: Tree) -> Penalty:
        penalty = super()._penalty(params)
        if self.l2_tags is None:
            return penalty
        return penalty._replace(l2=penalty.l2._replace(U=np.float32(self.l2_tags)))

    def _infer(
        self, params: Tree, X: Floats, Y: Floats | None = None, *, quick: bool = False
    ) -> Inference:
        if Y is None:
            Y = np.full((len(X), len(self.tags_)), np.nan, np.float32)
        none = np.zeros((len(X), 0), np.int32)
        options = inference_options(self, params.U.shape, quick=quick)
        return infer(Params(*params[:5]), X, none, Y, options)

    def _input_variance(self) -> float:
        """Variance of each input of the Gaussian RBM: the scaled features' variance, or 1."""
        scaled = self.scale_features != "none" or self.unit_norm
        return 1 / len(self._scaling.mean) if scaled else 1.0

    def _start(self, rng: Rng, clips: LabelledClips) -> Tree:
        U, W, c, d = first_weights(self, rng, clips)
        n_features, n_tags = clips.X.shape[1], clips.Y.shape[1]
        b = [np.zeros(n_features)] if self._param_type is JointParams else []
        return single_precision(self._param_type, U, W, np.zeros((0, n_tags)), c, d, *b)

    def _gradient(self, Y: Floats) -> gradients.Gradient:
        objective = self._objective()
        return gradients.for_soft_targets(objective) if model_files.is_soft(Y) else objective

    @abstractmethod
    def _objective(self) -> gradients.Gradient:
        """The gradient for labels of 0 and 1."""


@estimator
class DiscriminativeRBM(RBMTagger):
    """Predicts the tags of a clip from its features, and from the tags already known.

    A conditional RBM p(y, h | x) ∝ exp(hᵀUy + hᵀWx + dᵀy + cᵀh) trained to maximise
    log p(y | x). Its binary hidden units tie the tags to the features and to each other, so that
    :meth:`complete` can use a clip's known tags to infer the others.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    params_ : U (n, C), W (n, D), V (empty), c (n,) and d (C,) for features as given to ``fit``;
        with an additional first axis if there are several members.
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

    training: Training = parameter(
        """How the gradient is approximated: by contrastive divergence, mean-field contrastive
        divergence, loopy belief propagation, or as the exact gradient of the pseudo-likelihood.
        "multi_prediction" trains for the questions asked later: some tags of each clip are
        observed, and the cross-entropy of the others is minimised through the mean-field steps that
        predict them. Early stopping then uses the mean of two AUCs: with no tag observed, and with
        half of them.""",
        default="multi_prediction",
    )
    training_steps: Count | None = parameter(
        """Gibbs sweeps, mean-field updates or message iterations of the negative phase; None means
        1 for "cd", 5 for "mean_field", 10 for "lbp", and 3 for "multi_prediction".""",
        default=None,
    )
    mean_field_start: Literal["data", "zero"] = parameter(
        """With "mean_field", where the updates of the negative phase start: at the clip's own tags,
        as contrastive divergence does, or at y = 0, as inference does.""",
        default="data",
    )
    likelihood_weight: NotNegative = parameter(
        """With "multi_prediction", the weight of an added -log p(y | x), whose gradient comes from
        contrastive divergence with 5 sweeps; 0 leaves it out.""",
        default=0.0,
    )
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

    @property
    def _judged_by_completion(self) -> bool:
        """A model trained for questions with some tags observed is also judged by these."""
        return self.training == "multi_prediction"

    def _objective(self) -> gradients.Gradient:
        if not self.generative_weight:
            return conditional_gradient(self)
        joint = JointContrastiveDivergence(1, self._input_variance())
        return Hybrid(float(self.generative_weight), conditional_gradient(self), joint)


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
        x, y = _chains(key, self._params, n_samples, steps, self._input_variance())
        X = self._scaling.inverse(np.asarray(x))
        return X, np.asarray(y).astype(np.int64)

    def _objective(self) -> gradients.Gradient:
        return JointContrastiveDivergence(self.training_steps or 1, self._input_variance())

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

    def _start(self, rng: Rng, clips: LabelledClips) -> Tree:
        return single_precision(MLPParams, *first_weights(self, rng, clips))

    def _logits(self) -> Any:
        return mlp_logits

    def _probabilities(self, X: Floats) -> Floats:
        # in double precision, a clip's position cannot change its result
        with jax.enable_x64(True):
            wide = jax.tree.map(np.float64, self._params)
            return self._validation_scores(wide, X.astype(np.float64)).astype(np.float32)


def inference_options(
    model: Any, shape: tuple[int, int], *, quick: bool = False
) -> InferenceOptions:
    """For U of that shape; ``quick`` for early stopping, only as exact as a ranking needs."""
    method, steps = model_files.chosen_inference(vars(model))
    if method == "exact" and min(shape) > MAX_UNITS:
        raise DataError(
            f"inference='exact' enumerates 2^min(n_hidden, n_tags) states and takes at most "
            f"{MAX_UNITS} units on the smaller side. Got {shape[0]} hidden units and "
            f"{shape[1]} tags; use inference='lbp'."
        )
    tolerance = max(model.tolerance, 1e-2) if quick else model.tolerance
    threads = effective_n_jobs(model.n_jobs)
    return InferenceOptions(
        method, steps, model.damping, tolerance, threads=threads, retry=not quick
    )


def conditional_gradient(model: Any) -> gradients.Gradient:
    """The gradient of -log p(y | x) that ``training`` names."""
    steps = model.training_steps or model_files.STEPS.get(model.training, 1)
    predictions, likelihood = gradients.MultiPrediction(steps), gradients.ContrastiveDivergence(5)
    weight = float(model.likelihood_weight)
    ways: dict[str, gradients.Gradient] = {
        "cd": gradients.ContrastiveDivergence(steps),
        "mean_field": gradients.MeanField(steps, from_zero=model.mean_field_start == "zero"),
        "lbp": gradients.BeliefPropagation(steps, float(model.damping)),
        "pl": gradients.PseudoLikelihood(),
        "multi_prediction": gradients.Sum(predictions, likelihood, weight)
        if weight
        else predictions,
    }
    return ways[model.training]


def first_weights(model: Any, rng: Rng, clips: LabelledClips) -> tuple[Doubles, ...]:
    """U and W, small and random, c = 0, and d at the tags' log-odds: p(y) is the base rate."""
    n, scale = (300, 1.0) if model._scaling.of_words else (100, 0.3)
    n, scale = model.n_hidden or n, scale if model.init_scale is None else model.init_scale
    # nothing is learnt about a constant feature: its later values must not matter
    spans = [(block.min(axis=0), block.max(axis=0)) for block in model_files.blocks(clips.X)]
    varies = np.max([top for _, top in spans], axis=0) > np.min([s for s, _ in spans], axis=0)
    U = rng.normal(0, 0.01, (n, clips.Y.shape[1]))
    W = rng.normal(0, scale, (n, clips.X.shape[1])) * varies
    return U, W, np.zeros(n), base_log_odds(clips.Y)
