"""What a trained model is asked, and how well it answers.

A model predicts the tags of clips from their sound alone, or some tags are given to it first:

- a share of a clip's known tags, present or absent, drawn by chance;
- "one": one true tag, as a person would begin. Every clip with at least two of them is asked about
  once for each, so that chance has no part in it.

The answers are judged on the tags that were not given.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.estimators.calibration import observed_fraction
from harmonium.evaluation import (
    MetricResult,
    auc_per_clip,
    auc_per_tag,
    precision_at_k_per_clip,
    reliability,
)
from harmonium.evaluation.metrics import are_probabilities
from harmonium.experiments.models import Matrix
from harmonium.experiments.recipe import ONE, Known

CLIP_MEASURES = ("clip_auc", "clip_precision_at_3")
"""How a clip's other tags are ranked: means over clips."""


class Questions(NamedTuple):
    """Clips to give the tags of, each once or several times."""

    clips: NDArray[np.intp]
    """(n_questions,) the clip of each question."""
    given: Matrix
    """(n_questions, n_tags) the tags that the model is given; NaN for the others."""
    asked: Matrix
    """(n_questions, n_tags) the true labels of the others; NaN where given or unknown."""


def questions(Y: Matrix, known: Known, seed: Sequence[int]) -> Questions:
    """The questions about clips with the labels Y (n_clips, n_tags), of which so much is given."""
    if known == ONE:
        clips, tags = np.nonzero((Y == 1) & (np.sum(Y == 1, axis=1, keepdims=True) >= 2))
        is_given = np.zeros((len(clips), Y.shape[1]), bool)
        is_given[np.arange(len(clips)), tags] = True
    else:
        clips = np.arange(len(Y))
        is_given = np.random.default_rng(seed).random(Y.shape) < float(known)
    nan, labels = np.float32(np.nan), Y[clips]
    return Questions(clips, np.where(is_given, labels, nan), np.where(is_given, nan, labels))


def answers(model: Any, X: Matrix, about: Questions) -> Matrix:
    """Scores of all tags, (n_questions, n_tags); a model that takes no tags goes by sound."""
    if hasattr(model, "complete") and not np.isnan(about.given).all():
        return model.complete(X[about.clips], about.given)
    predict = model.predict_proba if hasattr(model, "predict_proba") else model.decision_function
    return predict(X)[about.clips]


def plain_and_corrected(model: Any, X: Matrix, about: Questions) -> tuple[Matrix, Matrix]:
    """The answers before and after the model's own correction; the same where it has none."""
    correction = getattr(model, "recalibration_", None)
    if correction is None:
        plain = answers(model, X, about)
        return plain, plain
    model.recalibration_ = None  # inference, which takes time, is done once
    try:
        plain = answers(model, X, about)
    finally:
        model.recalibration_ = correction
    share = observed_fraction(about.given) if hasattr(model, "complete") else None
    return plain, correction(plain, share)


def judge(model: Any, X: Matrix, Y: Matrix, known: Known, seed: Sequence[int]) -> dict[str, Any]:
    """The measures of a model on some clips, by name; None where one is not defined.

    "auc" is a list by tag, the others are means over clips. A clip that is asked about several
    times counts as one, with the mean of its questions. "reliability" is there for probabilities:
    numbers, sums of probabilities and positives by bin, before and after the model's correction.
    """
    about = questions(Y, known, seed)
    labels = about.asked
    plain, scores = plain_and_corrected(model, X, about)
    aucs = auc_per_tag(labels, scores).values.tolist()
    found: dict[str, Any] = {
        "auc": [None if np.isnan(auc) else auc for auc in aucs],
        "clip_auc": _mean_over_clips(about.clips, auc_per_clip(labels, scores)),
        "clip_precision_at_3": _mean_over_clips(
            about.clips, precision_at_k_per_clip(labels, scores, k=3)
        ),
    }
    if are_probabilities(plain):
        parts = {"plain": reliability(labels, plain), "corrected": reliability(labels, scores)}
        found["reliability"] = {
            name: [part.n.tolist(), part.scores.tolist(), part.positives.tolist()]
            for name, part in parts.items()
        }
    return found


def validation_score(
    model: Any, X: Matrix, Y: Matrix, known: Sequence[Known], seed: Sequence[int]
) -> float:
    """What settings are chosen by: the mean of an AUC for each of the ways to be asked.

    With one tag given it is the AUC within a clip, else the mean AUC over tags.
    """
    found = []
    for share in known:
        judged = judge(model, X, Y, share, seed)
        aucs = [judged["clip_auc"]] if share == ONE else judged["auc"]
        defined = [auc for auc in aucs if auc is not None]
        found += [np.mean(defined)] if defined else []
    return float(np.mean(found)) if found else float("nan")


def _mean_over_clips(clips: NDArray[np.intp], result: MetricResult) -> float | None:
    """The mean over clips of the mean over the questions about each, where they are defined."""
    values = result.values
    defined = ~np.isnan(values)
    if not defined.any():
        return None
    number = np.bincount(clips[defined])
    total = np.bincount(clips[defined], weights=values[defined])
    return float(np.mean(total[number > 0] / number[number > 0]))
