"""What a trained model is asked, and how well it answers.

A model is asked for the tags of clips by their sound alone, or it is told some of them first:

- a share of a clip's known tags, present or absent, drawn by chance;
- "one": one tag that holds, as a person would begin. Every clip with at least two such tags is
  asked about once for each of them, so that chance has no part in it.

The answers are judged on the tags that were not told.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.estimators.recalibration import share_told
from harmonium.evaluation import (
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
    told: Matrix
    """(n_questions, n_tags) the tags told; NaN for the others."""
    asked: Matrix
    """(n_questions, n_tags) the true labels of the others; NaN where told or unknown."""


def questions(Y: Matrix, known: Known, seed: Sequence[int]) -> Questions:
    """The questions about clips with the labels Y (n_clips, n_tags), of which so much is told."""
    if known == ONE:
        clips, tags = np.nonzero((Y == 1) & (np.sum(Y == 1, axis=1, keepdims=True) >= 2))
        is_told = np.zeros((len(clips), Y.shape[1]), bool)
        is_told[np.arange(len(clips)), tags] = True
    else:
        clips = np.arange(len(Y))
        is_told = np.random.default_rng(seed).random(Y.shape) < float(known)
    nothing = np.float32(np.nan)
    of_clips = Y[clips]
    return Questions(
        clips, np.where(is_told, of_clips, nothing), np.where(is_told, nothing, of_clips)
    )


def answers(model: Any, X: Matrix, asked: Questions) -> Matrix:
    """Scores of all tags, (n_questions, n_tags); a model that cannot be told tags goes by sound."""
    if hasattr(model, "complete") and not np.isnan(asked.told).all():
        return model.complete(X[asked.clips], asked.told)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)[asked.clips]
    return model.decision_function(X)[asked.clips]


def plain_and_corrected(model: Any, X: Matrix, asked: Questions) -> tuple[Matrix, Matrix]:
    """The answers before and after the model's own correction; the same where it has none."""
    correction = getattr(model, "recalibration_", None)
    if correction is None:
        plain = answers(model, X, asked)
        return plain, plain
    model.recalibration_ = None  # inference, which takes time, is done once
    try:
        plain = answers(model, X, asked)
    finally:
        model.recalibration_ = correction
    told = share_told(asked.told) if hasattr(model, "complete") else None
    return plain, correction(plain, told)


def judge(model: Any, X: Matrix, Y: Matrix, known: Known, seed: Sequence[int]) -> dict[str, Any]:
    """The measures of a model on some clips, by name; None where one is not defined.

    "auc" is a list by tag, the others are means over clips. A clip that is asked about several
    times counts as one, with the mean of its questions. "reliability" is there for probabilities:
    numbers, sums of probabilities and positives by bin, before and after the model's correction.
    """
    asked = questions(Y, known, seed)
    plain, scores = plain_and_corrected(model, X, asked)
    found = (
        auc_per_clip(asked.asked, scores).values,
        precision_at_k_per_clip(asked.asked, scores, k=3).values,
    )
    means = (_mean_over_clips(asked.clips, values) for values in found)
    return {
        "auc": [_or_none(auc) for auc in auc_per_tag(asked.asked, scores).values],
        **dict(zip(CLIP_MEASURES, means, strict=True)),
        **_reliability(asked.asked, plain, scores),
    }


def _reliability(Y: Matrix, plain: Matrix, corrected: Matrix) -> dict[str, Any]:
    if not are_probabilities(plain):
        return {}
    found = {"plain": reliability(Y, plain), "corrected": reliability(Y, corrected)}
    sums = {k: [v.n.tolist(), v.scores.tolist(), v.positives.tolist()] for k, v in found.items()}
    return {"reliability": sums}


def validation_score(
    model: Any, X: Matrix, Y: Matrix, known: Sequence[Known], seed: Sequence[int]
) -> float:
    """What settings are chosen by: the mean of an AUC for each of the ways to be asked.

    With one tag told it is the AUC within a clip, else the mean AUC over tags.
    """
    found = []
    for much in known:
        judged = judge(model, X, Y, much, seed)
        aucs = [judged["clip_auc"]] if much == ONE else judged["auc"]
        defined = [auc for auc in aucs if auc is not None]
        found += [np.mean(defined)] if defined else []
    return float(np.mean(found)) if found else float("nan")


def _mean_over_clips(clips: NDArray[np.intp], values: NDArray[np.float64]) -> float | None:
    """The mean over clips of the mean over the questions about each, where they are defined."""
    defined = ~np.isnan(values)
    if not defined.any():
        return None
    number = np.bincount(clips[defined])
    total = np.bincount(clips[defined], weights=values[defined])
    return float(np.mean(total[number > 0] / number[number > 0]))


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
