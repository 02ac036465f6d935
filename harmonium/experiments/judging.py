"""What a trained model is asked, and how well it answers.

A model predicts the tags of clips from their sound alone, or observes some tags first: a random
share of a clip's known tags, present or absent; or "one" true tag, as a person would begin. Then
every clip with at least two of them is asked about once for each, so that chance plays no part.
The answers are judged on the other tags.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, cast

import numpy as np

from harmonium.arrays import Floats, Places
from harmonium.estimators.calibration import observed_fraction
from harmonium.evaluation import (
    MetricResult,
    auc_per_clip,
    auc_per_tag,
    coverage_error_per_clip,
    evaluate_decisions,
    precision_at_k_per_clip,
    ranking_precision_per_clip,
    reliability,
)
from harmonium.evaluation.metrics import are_probabilities
from harmonium.experiments.models import CrossFitted, Model, mean_of_members, predict
from harmonium.experiments.plan import MEASURES
from harmonium.experiments.recipe import ONE, Known


class Questions(NamedTuple):
    """Clips whose tags to predict, each once or several times."""

    clips: Places  # (n_questions,) the clip of each question
    given: Floats  # (n_questions, n_tags) the tags that the model is given; NaN for the others
    asked: Floats  # (n_questions, n_tags) the true labels of the others; NaN where given or unknown


def questions(Y: Floats, known: Known, seed: Sequence[int]) -> Questions:
    """The questions about clips with labels Y (n_clips, n_tags), some of which are given."""
    if known == ONE:
        has_two = np.sum(Y == 1, axis=1, keepdims=True) >= 2
        clips, tags = np.nonzero((Y == 1) & has_two)
        is_given = np.zeros((len(clips), Y.shape[1]), bool)
        is_given[np.arange(len(clips)), tags] = True
    else:
        clips = np.arange(len(Y))
        is_given = np.random.default_rng(seed).random(Y.shape) < float(known)
    labels = Y[clips]
    return Questions(
        clips=clips,
        given=np.where(is_given, labels, np.float32(np.nan)),
        asked=np.where(is_given, np.float32(np.nan), labels),
    )


def answers(model: Model, X: Floats, asked: Questions) -> Floats:
    """Scores of all tags, (n_questions, n_tags); a model that takes no tags goes by sound."""
    if isinstance(model, CrossFitted):
        return mean_of_members([answers(member, X, asked) for member in model.members])
    complete = getattr(model, "complete", None)
    if complete is not None and not np.isnan(asked.given).all():
        return cast(Floats, complete(X[asked.clips], asked.given))
    return predict(model, X)[asked.clips]


def plain_and_corrected(model: Model, X: Floats, asked: Questions) -> tuple[Floats, Floats]:
    """The answers before and after the model's own correction; the same if it has none."""
    correction = getattr(model, "recalibration_", None)
    if correction is None:
        plain = answers(model, X, asked)
        return plain, plain
    corrected_model = cast(Any, model)
    corrected_model.recalibration_ = None  # slow inference is done once
    try:
        plain = answers(model, X, asked)
    finally:
        corrected_model.recalibration_ = correction
    share = observed_fraction(asked.given) if hasattr(model, "complete") else None
    return plain, correction(plain, share)


def judge(model: Model, X: Floats, Y: Floats, known: Known, seed: Sequence[int]) -> dict[str, Any]:
    """The measures of a model on some clips, by name; None if one is not defined.

    "auc" is a list by tag; decisions are those of all questions; the others are means over clips.
    A clip that is asked about several
    times counts as one, with the mean of its questions. "reliability" exists for probabilities:
    numbers, sums of probabilities and positives by bin, before and after the model's correction.
    """
    asked = questions(Y, known, seed)
    plain, scores = plain_and_corrected(model, X, asked)
    aucs = auc_per_tag(asked.asked, scores).values.tolist()
    by_clip = {
        "clip_auc": auc_per_clip(asked.asked, scores),
        "clip_precision_at_3": precision_at_k_per_clip(asked.asked, scores, k=3),
        "coverage_error": coverage_error_per_clip(asked.asked, scores),
        "ranking_precision": ranking_precision_per_clip(asked.asked, scores),
    }
    decisions = asdict(evaluate_decisions(asked.asked, scores >= thresholds(model, scores)))
    measures: dict[str, Any] = {"auc": [None if np.isnan(auc) else auc for auc in aucs]}
    for name in MEASURES:
        if name in by_clip:
            measures[name] = _mean_over_clips(asked.clips, by_clip[name])
        else:
            measures[name] = None if np.isnan(decisions[name]) else decisions[name]
    if are_probabilities(plain):
        measures["reliability"] = {
            "plain": _reliability_lists(asked.asked, plain),
            "corrected": _reliability_lists(asked.asked, scores),
        }
    return measures


def thresholds(model: Model, scores: Floats) -> Any:
    """From where a model gives a tag: its own thresholds; without such, p = 0.5 or a score of 0."""
    own = getattr(model, "thresholds_", None)
    if own is not None:
        return own
    return 0.5 if are_probabilities(scores) else 0.0


def _reliability_lists(labels: Floats, scores: Floats) -> list[list[float]]:
    """A reliability diagram for JSON."""
    diagram = reliability(labels, scores)
    return [diagram.n.tolist(), diagram.scores.tolist(), diagram.positives.tolist()]


def validation_score(
    model: Model, X: Floats, Y: Floats, known: Sequence[Known], seed: Sequence[int]
) -> float:
    """The score that chooses settings: the mean AUC over the ways of asking.

    With one tag given it is the AUC within a clip, else the mean AUC over tags.
    """
    means = []
    for share in known:
        measures = judge(model, X, Y, share, seed)
        aucs = [measures["clip_auc"]] if share == ONE else measures["auc"]
        defined = [auc for auc in aucs if auc is not None]
        if defined:
            means.append(np.mean(defined))
    return float(np.mean(means)) if means else float("nan")


def _mean_over_clips(clips: Places, result: MetricResult) -> float | None:
    """The mean over clips of the mean over each clip's questions, if defined."""
    values = result.values
    defined = ~np.isnan(values)
    if not defined.any():
        return None
    number = np.bincount(clips[defined])
    total = np.bincount(clips[defined], weights=values[defined])
    return float(np.mean(total[number > 0] / number[number > 0]))
