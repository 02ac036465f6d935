"""What every estimator with an RBM inside shares: how it is trained, and how it infers tags."""

from typing import Literal

from joblib import effective_n_jobs

from harmonium.errors import DataError
from harmonium.estimators.inference_choice import STEPS, chosen_inference
from harmonium.estimators.parameters import (
    COUNT,
    JOBS,
    NOT_NEGATIVE,
    SHARE,
    estimator,
    parameter,
)
from harmonium.rbm.gradients import (
    BeliefPropagation,
    ContrastiveDivergence,
    Gradient,
    MeanField,
    MultiPrediction,
    PseudoLikelihood,
    Sum,
)
from harmonium.rbm.inference import InferenceOptions
from harmonium.rbm.marginals import MAX_UNITS

Training = Literal["cd", "mean_field", "lbp", "pl", "multi_prediction"]


@estimator
class RBMInference:
    """The part of an estimator that infers the tags of an RBM."""

    inference: Literal["auto", "lbp", "mean_field", "gibbs", "exact"] = parameter(
        default="auto",
        doc="""How p(y_j = 1 | x) is computed: by loopy belief propagation, mean field, Gibbs
        sampling, or enumeration ("exact": of at most 20 hidden units or 20 tags). "auto" is mean
        field for a model trained by "multi_prediction", and belief propagation for all others.""",
    )
    inference_steps: int | None = parameter(
        COUNT,
        default=None,
        doc="""Iterations, or sweeps of each of 8 chains for "gibbs". None means 20, or the steps of
        training for mean field after "multi_prediction".""",
    )
    damping: float = parameter(
        SHARE,
        default=0.5,
        doc="""Share of the old message that loopy belief propagation keeps, in training and
        prediction; in [0, 1).""",
    )
    tolerance: float = parameter(
        NOT_NEGATIVE,
        default=1e-3,
        doc="A clip's inference is converged when no probability changes by more.",
    )
    n_jobs: int | None = parameter(
        *JOBS, default=None, doc="Threads that predict; None means 1, -1 one for each core."
    )

    def _inference_options(
        self, shape: tuple[int, int], *, quick: bool = False
    ) -> InferenceOptions:
        """For U of that shape; ``quick`` for early stopping, only as exact as a ranking needs."""
        n_hidden, n_tags = shape
        method, steps = chosen_inference(vars(self))
        if method == "exact" and min(shape) > MAX_UNITS:
            raise DataError(
                f"inference='exact' enumerates 2^min(n_hidden, n_tags) states and takes at most "
                f"{MAX_UNITS} units on the smaller side. Got {n_hidden} hidden units and "
                f"{n_tags} tags; use inference='lbp'."
            )
        return InferenceOptions(
            method,
            steps,
            self.damping,
            max(self.tolerance, 1e-2) if quick else self.tolerance,
            threads=effective_n_jobs(self.n_jobs),
            retry=not quick,
        )


@estimator
class ConditionalTraining(RBMInference):
    """The part of an estimator that learns p(y | x) by one of several approximations."""

    training: Training = parameter(
        default="cd",
        doc="""How the gradient is approximated: by contrastive divergence, mean-field contrastive
        divergence, loopy belief propagation, or as the exact gradient of the pseudo-likelihood.
        "multi_prediction" trains for the questions asked later: some tags of each clip are told,
        and the cross-entropy of the others descends through the mean-field steps that predict
        them. Early stopping then goes by the mean of two AUCs: with no tag told, and with half
        of them.""",
    )
    training_steps: int | None = parameter(
        COUNT,
        default=None,
        doc="""Gibbs sweeps, mean-field updates or message iterations of the negative phase; None
        means 1 for "cd", 5 for "mean_field", 10 for "lbp", and 3 for "multi_prediction".""",
    )
    mean_field_start: Literal["data", "zero"] = parameter(
        default="data",
        doc="""With "mean_field", where the updates of the negative phase start: at the clip's own
        tags, as contrastive divergence does, or at y = 0, as inference does.""",
    )
    likelihood_weight: float = parameter(
        NOT_NEGATIVE,
        default=0.0,
        doc="""With "multi_prediction", the weight of -log p(y | x) beside it, whose gradient is
        that of contrastive divergence with 5 sweeps; 0 leaves it out.""",
    )

    def _conditional_gradient(self) -> Gradient:
        """The gradient of -log p(y | x) that ``training`` names."""
        if self.training == "pl":
            return PseudoLikelihood()
        steps = self.training_steps or STEPS[self.training]
        if self.training == "cd":
            return ContrastiveDivergence(steps)
        if self.training == "mean_field":
            return MeanField(steps, from_zero=self.mean_field_start == "zero")
        if self.training == "lbp":
            return BeliefPropagation(steps, float(self.damping))
        predictions = MultiPrediction(steps)
        if not self.likelihood_weight:
            return predictions
        return Sum(predictions, ContrastiveDivergence(5), float(self.likelihood_weight))
