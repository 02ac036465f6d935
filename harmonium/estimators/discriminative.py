"""The multi-label discriminative RBM as a scikit-learn estimator."""

from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from harmonium.estimators.classifier import NOT_NEGATIVE
from harmonium.estimators.rbm_tagger import RBMTagger
from harmonium.estimators.tagger import Clips, single_precision
from harmonium.rbm.generative import Hybrid, JointContrastiveDivergence, JointParams
from harmonium.rbm.gradients import (
    BeliefPropagation,
    ContrastiveDivergence,
    Gradient,
    MeanField,
    PseudoLikelihood,
)
from harmonium.rbm.model import Params
from harmonium.rbm.training import Tree


class DiscriminativeRBM(RBMTagger):
    """Predicts the tags of a clip from its features, and from the tags already known.

    A conditional RBM p(y, h | x) ∝ exp(hᵀUy + hᵀWx + dᵀy + cᵀh) trained to maximise
    log p(y | x). Its binary hidden units tie the tags to the features and to one another, so that
    :meth:`complete` can use what is known of a clip's tags to infer the others.

    Parameters
    ----------
    n_hidden : number of hidden units, n.
    training : how the gradient is approximated: "cd" (contrastive divergence), "mean_field"
        (mean-field contrastive divergence), "lbp" (loopy belief propagation) or "pl" (the exact
        gradient of the pseudo-likelihood).
    training_steps : Gibbs sweeps, mean-field updates or message iterations of the negative phase;
        None means 1 for "cd", 5 for "mean_field" and 10 for "lbp".
    inference : how p(y_j = 1 | x) is computed: "lbp", "mean_field", "gibbs", or "exact"
        (enumeration: only if there are at most 20 hidden units or 20 tags).
    inference_steps : iterations, or sweeps of each of 8 chains for "gibbs".
    damping : share of the old message that loopy belief propagation keeps, in training and
        prediction; in [0, 1).
    tolerance : a clip's inference is converged when no probability changes by more.
    learning_rate, schedule : step length, and how it changes with the epochs: "constant",
        "inverse" or "cosine".
    optimizer, momentum : "adam" or "sgd", and the decay of its mean gradient.
    batch_size, max_epochs : clips per step, and passes over the clips at most.
    patience : epochs without a better validation AUC, or as good a one with a better likelihood,
        after which training stops; the best parameters are kept.
    averaging : the model is the mean of its parameters over about so many epochs; 0 turns it off.
    validation_fraction : share of the clips to stop early on when ``fit`` is given no
        ``eval_set``; 0 trains on all clips for ``max_epochs``.
    init_scale : standard deviation of W at the start of training, for features of unit norm.
    l1, l2 : strengths of the penalties on U and W. With ℓ1, zeros are exact if ``averaging=0``.
    generative_weight : α of the hybrid, which maximises α log p(y, x) + log p(y | x), the joint
        distribution by CD-1 with Gaussian inputs; 0 is the discriminative RBM.
    scale_features : bring each feature to zero mean and equal variance first (see
        ``harmonium.estimators.scaling``); without it, X is used as it is.
    warm_start : let ``fit`` continue from the parameters of the last. With a number as
        ``random_state`` it holds out the same clips again, if they are given in the same order.
    n_jobs : threads that predict; None means 1, -1 one for each core.
    random_state : seed; the same seed, data and machine give the same model to the bit.
    verbose : 1 shows a progress bar.

    Attributes
    ----------
    params_ : U (n, C), W (n, D), V (empty), c (n,) and d (C,) for features as given to ``fit``.
    tags_ : names of the tags. thresholds_ : probability from which ``predict`` says yes, by tag.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RBMTagger._parameter_constraints,
        "training": [StrOptions({"cd", "mean_field", "lbp", "pl"})],
        "generative_weight": [NOT_NEGATIVE],
    }

    def __init__(
        self,
        n_hidden: int = 100,
        *,
        training: Literal["cd", "mean_field", "lbp", "pl"] = "cd",
        training_steps: int | None = None,
        inference: Literal["lbp", "mean_field", "gibbs", "exact"] = "lbp",
        inference_steps: int = 20,
        damping: float = 0.5,
        tolerance: float = 1e-3,
        learning_rate: float = 0.01,
        schedule: Literal["constant", "inverse", "cosine"] = "constant",
        optimizer: Literal["adam", "sgd"] = "adam",
        momentum: float = 0.9,
        batch_size: int = 20,
        max_epochs: int = 200,
        patience: int = 20,
        averaging: float = 5.0,
        validation_fraction: float = 0.1,
        init_scale: float = 1.0,
        l1: float = 0.0,
        l2: float = 0.1,
        generative_weight: float = 0.0,
        scale_features: bool = True,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_hidden = n_hidden
        self.training = training
        self.training_steps = training_steps
        self.inference = inference
        self.inference_steps = inference_steps
        self.damping = damping
        self.tolerance = tolerance
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
        self.generative_weight = generative_weight
        self.scale_features = scale_features
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _param_type(self) -> Any:
        return JointParams if self.generative_weight else Params

    def _start(self, rng: np.random.Generator, clips: Clips) -> Tree:
        params = self._random_params(rng, clips)
        if not self.generative_weight:
            return params
        return single_precision(JointParams, *params, np.zeros(clips.X.shape[1]))

    def _objective(self) -> Gradient:
        if not self.generative_weight:
            return self._discriminative()
        joint = JointContrastiveDivergence(1, self._input_variance())
        return Hybrid(float(self.generative_weight), self._discriminative(), joint)

    def _discriminative(self) -> Gradient:
        steps = self.training_steps
        if self.training == "cd":
            return ContrastiveDivergence(steps or 1)
        if self.training == "mean_field":
            return MeanField(steps or 5)
        if self.training == "lbp":
            return BeliefPropagation(steps or 10, float(self.damping))
        return PseudoLikelihood()
