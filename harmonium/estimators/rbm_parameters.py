"""Parameters that all estimators with an RBM share: how it predicts, and how it is trained."""

from typing import Annotated, Literal

from joblib import effective_n_jobs

from harmonium.estimators.inference import (
    AUTO,
    TRAINING_METHODS,
    InferenceMethod,
    Training,
    check_steps,
    chosen_inference,
)
from harmonium.parameters import Count, Jobs, KeyOf, NotNegative, Share, estimator, parameter
from harmonium.rbm.gradients import OBJECTIVES, Gradient, ObjectiveSettings
from harmonium.rbm.inference import METHODS, InferenceOptions, method_of

TrainingName = Annotated[Training, KeyOf(OBJECTIVES)]
InferenceName = Annotated[InferenceMethod, KeyOf(METHODS, AUTO)]


@estimator
class InferenceParameters:
    """How an RBM predicts."""

    inference: InferenceName = parameter(
        """How p(y_j = 1 | x) is computed: by loopy belief propagation, mean field, Gibbs sampling,
        or enumeration ("exact", for at most 20 hidden units or 20 tags). "auto" is mean field for a
        model trained by "multi_prediction", enumeration for one trained by "exact", and belief
        propagation for all others.""",
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

    def _inference_options(
        self, training: str | None = None, training_steps: int | None = None
    ) -> InferenceOptions:
        """The options of `infer`, for a model trained in this way."""
        chosen = chosen_inference(
            self.inference,
            self.inference_steps,
            training=training,
            training_steps=training_steps,
        )
        return InferenceOptions(
            method=chosen.method,
            steps=chosen.steps,
            damping=self.damping,
            tolerance=self.tolerance,
            threads=effective_n_jobs(self.n_jobs),
        )


def check_inference(options: InferenceOptions, shape: tuple[int, int]) -> None:
    """Refuse options by which a model with U of this shape could not predict."""
    check_steps(options.steps)
    method_of(options).check(shape)


@estimator
class LikelihoodParameters(InferenceParameters):
    """How an RBM is trained on -log p(y | x)."""

    training: TrainingName = parameter(
        """How the gradient is approximated: by contrastive divergence, mean-field contrastive
        divergence, loopy belief propagation, or as the exact gradient of the pseudo-likelihood.
        "pcd" is contrastive divergence whose Gibbs chain, one for each clip, goes on where the last
        epoch left it. "exact" is the gradient of log p(y | x) itself, by enumeration, for models
        with at most 20 hidden units or 20 tags. "multi_prediction" trains for the questions asked
        later: some tags of each clip are observed, and the cross-entropy of the others is minimised
        through the mean-field steps that predict them. Early stopping then uses the mean of two
        AUCs: with no tag observed, and with half of them.""",
        default="multi_prediction",
    )
    training_steps: Count | None = parameter(
        """Gibbs sweeps, mean-field updates or message iterations of the negative phase; None means
        1 for "cd" and "pcd", 5 for "mean_field", 10 for "lbp", and 3 for "multi_prediction".""",
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

    def _likelihood_gradient(self, shape: tuple[int, int]) -> Gradient:
        """The gradient of the objective that ``training`` names, for U of this shape."""
        settings = ObjectiveSettings(
            steps=self.training_steps or TRAINING_METHODS[self.training].steps or 1,
            damping=float(self.damping),
            mean_field_start=self.mean_field_start,
            likelihood_weight=float(self.likelihood_weight),
        )
        gradient = OBJECTIVES[self.training](settings)
        gradient.check(shape)
        return gradient
