"""The plain RBM over tags: which tags go together, learnt from tags alone."""

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from harmonium.arrays import Arrays, Doubles, Floats, Ids, Rng
from harmonium.errors import DataError
from harmonium.estimators.architecture import (
    Parameters,
    member_of,
    numpy_params,
    single_precision,
)
from harmonium.estimators.calibration import half_observed
from harmonium.estimators.classifier import random_generator
from harmonium.estimators.gradient_tagger import GradientTagger
from harmonium.estimators.history import EpochCallback, EpochHistory
from harmonium.estimators.model_files import StoredEstimator, array_of_names
from harmonium.estimators.rbm_architecture import TAG_WEIGHTS, quick_options
from harmonium.estimators.rbm_parameters import (
    LikelihoodParameters,
    TrainingName,
    check_inference,
)
from harmonium.estimators.targets import (
    Targets,
    base_log_odds,
    is_soft,
    read_more_targets,
    read_observed,
    read_targets,
)
from harmonium.estimators.trainer import Member, Score, Trainer, batch_of
from harmonium.estimators.validation import log_likelihood
from harmonium.estimators.weights import Weights, read_sample_weight
from harmonium.parameters import (
    Count,
    NotNegative,
    Positive,
    Seed,
    Share,
    Verbosity,
    estimator,
    parameter,
)
from harmonium.rbm.annealing import LogLikelihoods, log_likelihoods
from harmonium.rbm.decisions import decide
from harmonium.rbm.descent import Optimiser, Penalty
from harmonium.rbm.gradients import for_soft_targets
from harmonium.rbm.inference import Inference, InferenceOptions, gibbs_sweep, infer
from harmonium.rbm.model import Params, clamp, compiled, condition, refuse_fork, unclamp
from harmonium.rbm.training import Schedule
from harmonium.scikit_learn import BaseEstimator

MIN_HELD_OUT = 20  # the fewest clips to stop early on
SAMPLED_AT_ONCE = 1000  # chains


@estimator
class TagRBM(LikelihoodParameters, EpochHistory, StoredEstimator, BaseEstimator):
    """Which tags go together, whatever the sound: completes, samples and judges sets of tags.

    The paper's first model, an RBM p(y, h) ∝ exp(hᵀUy + dᵀy + cᵀh) of tags y and hidden units h.
    There are no features: like scikit-learn's ``BernoulliRBM``, it learns from one table, whose
    rows are clips and whose columns are tags.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    tags_ : names of the tags. params_ : U (n, C), W and V (empty), c (n,) and d (C,).
    history_ : per epoch "log_likelihood" (a proxy), "validation" and "seconds".
    best_epoch_, n_iter_ : the best epoch, and the number of epochs.

    Examples
    --------
    >>> from harmonium import TagRBM
    >>> clips = 50 * [["rock", "guitar"], ["techno", "synth"], ["rock", "guitar", "live"]]
    >>> model = TagRBM(max_epochs=100, random_state=0).fit(clips)
    >>> guitar, live, rock, synth, techno = model.complete({"rock": 1})[0]
    >>> bool(guitar > 0.8 > 0.2 > synth)
    True
    >>> model.sample(3, random_state=0).shape
    (3, 5)
    """

    n_hidden: Count = parameter("Number of hidden units.", default=50, kw_only=False)
    training: TrainingName = parameter(default="cd")
    training_steps: Count | None = parameter(default=10)
    learning_rate: Positive = parameter("Step length, of Adam.", default=0.01)
    batch_size: Count = parameter("Clips per step.", default=20)
    max_epochs: Count = parameter("Maximum number of passes over the clips.", default=200)
    patience: Count | None = parameter(
        """Training stops after this many epochs without a better log-likelihood of the held-out
        clips: of a half of their tags, given the other half. None means 20, or more if there are so
        few clips that 20 epochs are fewer than 500 steps.""",
        default=None,
    )
    validation_fraction: Share = parameter(
        """Share of the clips held out for early stopping. If it is 0, or less than 20 clips,
        training uses all clips, for ``max_epochs``.""",
        default=0.1,
    )
    averaging: NotNegative = parameter(
        "Number of epochs, roughly, over which parameters are averaged; 0 turns it off.",
        default=5.0,
    )
    l2: NotNegative = parameter("Strength of the ℓ2 penalty on U.", default=0.03)
    random_state: Seed = parameter(
        "Seed; the same seed, data and machine give the same model to the bit.", default=None
    )
    verbose: Verbosity = parameter("1 shows a progress bar.", default=0)
    callback: EpochCallback | None = parameter(default=None, like=GradientTagger)

    _param_type = Params
    _score_name: ClassVar[str] = "validation"
    _score_label: ClassVar[str] = "log-likelihood"

    def fit(self, Y: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the tags of clips.

        ``Y`` is (n_clips, n_tags): 0 absent, 1 present, NaN unknown, or a probability between; a
        frame's columns name the tags. Or a list of tags for each clip. ``y`` is not used.
        ``sample_weight`` is (n_clips,), how much each clip counts; None: all alike.
        """
        self._validate_params()
        targets = read_targets(Y)
        if targets.classes is not None:
            raise DataError(
                "Y must have a column for each tag, or a list of tags for each clip. "
                "Got one dimension."
            )
        labels = targets.Y
        weights = Weights(clips=read_sample_weight(sample_weight, len(labels)))
        of_clips = weights.of_clips(labels)
        self.tags_ = targets.tags
        self.n_features_in_ = len(targets.tags)
        shape = (self.n_hidden, len(self.tags_))
        objective = self._likelihood_gradient(shape)
        options = self._options()
        check_inference(options, shape)
        rng = random_generator(self.random_state)
        order = rng.permutation(len(labels))
        n_held_out = int(self.validation_fraction * len(labels))
        score = None
        if n_held_out >= MIN_HELD_OUT:
            held_out = order[:n_held_out]
            score = _completion_score(
                labels[held_out],
                quick_options(options),
                None if of_clips is None else of_clips[held_out],
            )
        else:
            n_held_out = 0

        trainer = Trainer(
            gradient=for_soft_targets(objective) if is_soft(labels) else objective,
            optimiser=Optimiser(),
            batch_size=self.batch_size,
            max_epochs=self.max_epochs,
            patience=self.patience,
            averaging=self.averaging,
            verbose=self.verbose,
            title=type(self).__name__,
            score_label=self._score_label,
            callback=self.callback,
        )
        start = self._start(rng, labels, of_clips)
        none = Penalty.none(start)
        member = Member(
            start=start,
            rows=np.sort(order[n_held_out:]),
            seed=int(rng.integers(2**31)),
            penalty=none._replace(l2=none.l2._replace(U=np.float32(self.l2))),
            schedule=Schedule("constant", self.learning_rate, self.max_epochs),
        )
        if of_clips is not None:
            of_clips = of_clips / np.float32(weights.mean_of_clips)
        data = batch_of(_no_features(labels), labels, weights=of_clips)
        [result] = trainer.train([member], data, score)
        self._begin_history()
        self._extend_history(result)
        self._params = numpy_params(result.params)
        self._warn_if_interrupted(result.interrupted, f" in epoch {self.n_iter_ + 1}")
        self._warn_if_not_converged(result, stops_early=score is not None)
        return self

    def complete(self, Y: Any) -> Floats:
        """p(y_j = 1 | the known tags), shape (n_clips, n_tags); known tags come back as given.

        ``Y`` is (n_clips, n_tags) with NaN for the tags to infer; tag → 0 or 1, as in ``{"sad":
        1}``, for one clip; or a list of true tags for each clip.
        """
        return self.infer(Y).y

    def infer(self, Y: Any) -> Inference:
        """Marginals of tags ``y`` and hidden units ``h``, with ``diagnostics``, as `complete`."""
        known = self._known(Y)
        self._check_shapes()
        check_inference(self._options(), self._params.U.shape)
        return infer(self._params, *_clips(known), self._options())

    def predict_joint(self, Y: Any, *, beams: int = 64) -> Ids:
        """The most probable set of tags that agrees with the known ones, (n_clips, n_tags).

        By a beam search, which misses nothing with at least 2^n_tags ``beams``.
        """
        if beams < 1:
            raise DataError(f"beams must be at least 1. Got {beams} instead.")
        known = self._known(Y)
        return decide([self._params], *_clips(known), self.infer(known).y, beams).astype(int)

    def sample(
        self,
        n_samples: int = 1,
        *,
        observed: Any = None,
        steps: int = 1000,
        random_state: Any = None,
    ) -> Ids:
        """Sets of tags drawn from p(y | the observed tags), (n_samples, n_tags).

        By independent Gibbs chains of ``steps`` sweeps each. ``observed`` is tag → 0 or 1.
        """
        if n_samples < 1 or steps < 1:
            raise DataError(
                f"n_samples and steps must be at least 1. Got {n_samples} and {steps} instead."
            )
        refuse_fork()
        known = self._known({} if observed is None else observed)
        if len(known) != 1:
            raise DataError(f"observed must be tag → 0 or 1, as in {{'sad': 1}}. Got {observed!r}.")
        key = jax.random.key(check_random_state(random_state).randint(2**31 - 1))
        parts = []
        for first in range(0, n_samples, SAMPLED_AT_ONCE):
            size = min(SAMPLED_AT_ONCE, n_samples - first)
            tags = np.repeat(known, size, axis=0)
            drawn = _sampled(jax.random.fold_in(key, first), self._params, tags, steps)
            parts.append(np.asarray(drawn).astype(np.int64))
        return np.concatenate(parts)

    def log_likelihood(
        self, Y: Any, *, steps: int = 500, chains: int = 32, random_state: Any = 0
    ) -> LogLikelihoods:
        """log p(the known tags) of each clip, ``value`` (n_clips,), with its standard ``error``.

        Exact if there are at most 20 hidden units or 20 tags, with an error of 0; else estimated
        by annealed importance sampling with that many ``steps`` and ``chains``. ``Y`` is as for
        :meth:`fit`, without probabilities; unknown tags are summed out.
        """
        seed = check_random_state(random_state).randint(2**31 - 1)
        clips = _clips(read_more_targets(Y, self._targets(), name="Y").Y)
        return log_likelihoods(self._params, *clips, steps=steps, chains=chains, seed=seed)

    def score_samples(self, Y: Any) -> Doubles:
        """log p(the known tags) of each clip, (n_clips,)."""
        return self.log_likelihood(Y).value

    def score(self, Y: Any, y: Any = None) -> float:
        """Mean log p(the known tags) of a clip."""
        return float(self.score_samples(Y).mean())

    @property
    def params_(self) -> Params:
        """U, c and d; W and V are empty."""
        check_is_fitted(self)
        return self._params

    def _options(self) -> InferenceOptions:
        return self._inference_options(self.training, self.training_steps)

    def _known(self, Y: Any) -> Floats:
        """The known tags, (n_clips, n_tags), NaN for the others."""
        return read_observed(Y, self._targets(), 1)

    def _targets(self) -> Targets:
        """The fitted model's tags, without labels."""
        check_is_fitted(self)
        none = np.zeros((0, len(self.tags_)), np.float32)
        return Targets(Y=none, tags=self.tags_, classes=None)

    def _start(self, rng: Rng, Y: Floats, weights: Floats | None) -> Params:
        """U small and random, c = 0, and d at the tags' log-odds."""
        n_tags = Y.shape[1]
        U = rng.normal(0, TAG_WEIGHTS, (self.n_hidden, n_tags))
        W = np.zeros((self.n_hidden, 0))
        V = np.zeros((0, n_tags))
        d = base_log_odds(Y, weights)
        return single_precision(Params, U, W, V, np.zeros(self.n_hidden), d)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        n, n_tags = self.n_hidden, len(self.tags_)
        return {"U": (n, n_tags), "W": (n, 0), "V": (0, n_tags), "c": (n,), "d": (n_tags,)}

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        about = {"tags": self.tags_.tolist(), "best_epoch": self.best_epoch_}
        return self._history_arrays(), about

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        self.tags_ = array_of_names(about["tags"])
        self.n_features_in_ = len(self.tags_)
        self._restore_history(arrays, about)


def _no_features(Y: Floats) -> Floats:
    return np.zeros((len(Y), 0), np.float32)


def _clips(Y: Floats) -> tuple[Floats, NDArray[np.int32], Floats]:
    """u and a, which are empty, and y."""
    return _no_features(Y), np.zeros((len(Y), 0), np.int32), Y


def _completion_score(Y: Floats, options: InferenceOptions, weights: Floats | None) -> Score:
    """Mean log-likelihood of a half of the held-out clips' tags, given the other half."""
    observed = half_observed(Y)
    asked = np.where(np.isnan(observed), Y, np.nan)

    def score(params: Parameters, numbers: Any) -> Doubles:
        P = infer(member_of(numpy_params(params), 0), *_clips(observed), options).y
        return np.array([log_likelihood(asked, P, weights)])

    return score


@compiled(static_argnames="steps")
def _sampled(key: Any, params: Params, y: Any, steps: int) -> Any:
    """y with the unknown tags drawn, after that many sweeps from 0."""
    no_u, no_a = jnp.zeros((len(y), 0)), jnp.zeros((len(y), 0), jnp.int32)
    free = clamp(condition(params, no_u, no_a), y)
    shape = (len(y), sum(params.U.shape))

    def sweep(i: Any, tags: Any) -> Any:
        return gibbs_sweep(free, tags, jax.random.uniform(jax.random.fold_in(key, i), shape))[0]

    return unclamp(jax.lax.fori_loop(0, steps, sweep, jnp.zeros_like(y)), y)
