"""Which epoch of training is kept: the one after which held-out clips are predicted best."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from harmonium.arrays import Doubles, Places
from harmonium.estimators.architecture import Architecture, Parameters, member_of, numpy_params
from harmonium.estimators.calibration import half_observed
from harmonium.estimators.tables import LabelledClips, in_blocks
from harmonium.estimators.validation import is_rankable, log_likelihood, mean_auc

if TYPE_CHECKING:
    from harmonium.rbm.training import Result

# A few validation clips may be ranked perfectly long before their probabilities are right: at equal
# AUC the likelihood decides. With words, overfitting begins before the ranking shows it, so there
# it counts.
TIE_BREAKER = 1e-9
OF_WORDS = 0.5


class Judgement(NamedTuple):
    """How well held-out clips are predicted, by each of S members."""

    auc: Doubles  # (S,)
    log_likelihood: Doubles  # (S,)


class Judge(Protocol):
    """Judges members on their held-out clips."""

    def __call__(self, params: Parameters, numbers: Places) -> Judgement:
        """For a stack of parameters, of the members with these numbers."""


@dataclass(frozen=True)
class HostJudge:
    """Judges one member after the other, by any method of inference."""

    architecture: Architecture
    held_out: Sequence[LabelledClips]  # of each member

    def __call__(self, params: Parameters, numbers: Places) -> Judgement:
        """For a stack of parameters, of the members with these numbers."""
        arrays = numpy_params(params)  # JAX would be slow to take parts of it
        aucs = np.zeros(len(numbers))
        likelihoods = np.zeros(len(numbers))
        for place, number in enumerate(numbers):
            member = member_of(arrays, place)
            aucs[place], likelihoods[place] = self.judge(member, self.held_out[number])
        return Judgement(auc=aucs, log_likelihood=likelihoods)

    def judge(self, params: Parameters, clips: LabelledClips) -> tuple[float, float]:
        """The AUC and the log-likelihood of some clips."""
        predict = partial(self.architecture.quick_probabilities, params)
        P = in_blocks(predict, clips.X)
        auc = mean_auc(clips.Y, P, clips.weights)
        if self.architecture.judged_by_completion:
            observed = half_observed(clips.Y)
            asked = np.where(np.isnan(observed), clips.Y, np.nan)
            if is_rankable(asked):
                completed = in_blocks(predict, clips.X, observed)
                auc = (auc + mean_auc(asked, completed, clips.weights)) / 2
        return auc, log_likelihood(clips.Y, P, clips.weights)


class ValidationScore:
    """The mean over a model's members of AUC + weight · log-likelihood.

    All members of a model have the same score, so they stop at the epoch that is best on average:
    one fold may have few clips, ranked well by chance before anything is learnt.
    """

    def __init__(self, judge: Judge, models: Sequence[int], weights: Sequence[float]) -> None:
        """``models`` (S,) numbers each member's model; ``weights`` (S,) are of the likelihood."""
        self._judge = judge
        self._models = np.array(models)
        self._weights = np.array(weights, np.float64)
        self._aucs: list[Doubles] = []  # after each epoch, by member

    def __call__(self, params: Parameters, numbers: Places) -> Doubles:
        """The scores of members, for a stack of parameters."""
        judgement = self._judge(params, numbers)
        models = self._models[numbers]
        auc = _mean_by_model(judgement.auc, models)
        likelihood = _mean_by_model(judgement.log_likelihood, models)
        of_all_members = np.full(len(self._models), np.nan)
        of_all_members[numbers] = auc
        self._aucs.append(of_all_members)
        return auc + self._weights[numbers] * likelihood

    def write_aucs(self, results: Sequence["Result"]) -> None:
        """Let the histories have the AUC alone."""
        for member, result in enumerate(results):
            aucs = self._aucs[: len(result.history)]
            result.history.score[:] = [float(of_members[member]) for of_members in aucs]


def _mean_by_model(values: Doubles, models: Places) -> Doubles:
    """For each member, the mean over the members of its model."""
    total = np.bincount(models, values)
    return (total / np.maximum(np.bincount(models), 1))[models]
