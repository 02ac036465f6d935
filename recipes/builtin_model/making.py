"""How the shipped model is made: a discriminative RBM over the union of the collections' words.

Every figure that is shipped with it comes from held-out clips: of other artists for 4Q, of the
other part of the artist-filtered split for GTZAN, of other excerpts for Emotify.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from builtin_model.corpus import Corpus, Floats
from builtin_model.vocabulary import shared_vocabulary
from harmonium.estimators import DiscriminativeRBM
from harmonium.estimators.calibration import (
    Question,
    ask,
    fit_recalibration,
    matching_thresholds,
)
from harmonium.estimators.model_files import Recalibration, to_bytes
from harmonium.evaluation import grouped_folds, reliability
from harmonium.library.learning.fitting import (
    UNREACHABLE,
    choose_thresholds,
    curves_to_arrays,
    make_curves,
    score_tags,
)
from harmonium.library.tagger import USUAL_PRECISION, PrecisionCurve, threshold_for

EXTRACTOR = "musicnn"
N_FOLDS = 5
SETTINGS: dict[str, Any] = {
    "n_hidden": 200,
    "training": "multi_prediction",
    "training_steps": 5,
    "likelihood_weight": 0.0,
    "inference": "mean_field",
    "inference_steps": 5,
    "init_scale": 0.3,
    "l2": 0.3,
    "l2_tags": 0.3,
    "calibrate": False,
    "learning_rate": 0.01,
    "batch_size": 50,
    "max_epochs": 80,
    "validation_fraction": 0.0,
    "random_state": 0,
}

TOGETHER: dict[str, Any] = SETTINGS | {
    "n_hidden": 50,
    "training_steps": 2,
    "inference_steps": 2,
    "l2_tags": 0.003,
}
"""Those of the model that tells which tags go together, whatever the sound."""

Answers = Callable[[Floats, Floats], Floats]
"""Features (n, 400), and the tags told (n, C), NaN where none is → probabilities (n, C)."""
Learner = Callable[[Corpus], Answers]
"""Clips to learn from → what was learnt."""


def fit(corpus: Corpus, **settings: Any) -> DiscriminativeRBM:
    """The model of a corpus."""
    named = pl.DataFrame(corpus.targets(), schema=list(corpus.tags))
    return DiscriminativeRBM(**SETTINGS | settings).fit(corpus.X, named)


def held_out_splits(corpus: Corpus, seed: int = 0) -> list[NDArray[np.intp]]:
    """The clips to hold out, one set after the other; together they are all clips.

    Artists never straddle two folds of 4Q. The two parts of GTZAN, which share no artist, are held
    out in turn.
    """
    splits = []
    folded = np.flatnonzero(corpus.collection != "gtzan")
    if len(folded):
        Y = np.nan_to_num(corpus.Y[folded])
        folds = grouped_folds(corpus.group[folded], Y, n_folds=N_FOLDS, seed=seed)
        splits += [folded[folds == fold] for fold in range(N_FOLDS)]
    for part in ("valid", "train"):
        splits.append(np.flatnonzero(corpus.group == f"gtzan: {part}"))
    return [rows for rows in splits if len(rows)]


def artists(corpus: Corpus) -> list[str]:
    """(n,) the artist of each clip, or the clip itself where the artist is not known (GTZAN)."""
    groups = enumerate(zip(corpus.collection.tolist(), corpus.group.tolist(), strict=True))
    return [f"{group}, {i}" if name == "gtzan" else group for i, (name, group) in groups]


def learnt_from_others(
    corpus: Corpus, learn: Learner, progress: Callable[[int, int], None] | None = None
) -> Iterator[tuple[NDArray[np.intp], Answers]]:
    """The clips to hold out, and what was learnt from all others; one set after the other."""
    splits = held_out_splits(corpus)
    for number, rows in enumerate(splits):
        others = np.setdiff1d(np.arange(len(corpus.X)), rows)
        yield rows, learn(corpus.rows(others))
        if progress:
            progress(number + 1, len(splits))


def held_out(corpus: Corpus, learn: Learner) -> Floats:
    """The probabilities (n, C) of every clip by a model that has not learnt from its artist."""
    nothing = np.full(corpus.Y.shape, np.nan, np.float32)
    P = nothing.copy()
    for rows, answers in learnt_from_others(corpus, learn):
        P[rows] = answers(corpus.X[rows], nothing[rows])
    return P


def learn_rbm(corpus: Corpus) -> Answers:
    """The shipped model's own way, before its probabilities are corrected."""
    return fit(corpus).complete


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What models say of clips whose artists they have not heard."""

    uncorrected: Floats
    """(n, C) as the model has it,"""
    corrected: Floats
    """corrected by what is true of all clips, which leaves each tag's order as it is,"""
    by_others: Floats
    """and by what is true of the clips of other artists: by this, the correction is judged."""
    correction: Recalibration


def judge(
    corpus: Corpus,
    learn: Learner = learn_rbm,
    progress: Callable[[int, int], None] | None = None,
) -> HeldOut:
    """Ask models about clips that they have not learnt from, as people ask."""
    rows, asked = [], []
    for held, answers in learnt_from_others(corpus, learn, progress):
        rows.append(held)
        asked.append(ask(partial(answers, corpus.X[held]), corpus.Y[held]))
    order = np.argsort(np.concatenate(rows))
    first, *told = (
        Question(*(np.concatenate(part)[order] for part in zip(*kind, strict=True)))
        for kind in zip(*asked, strict=True)
    )
    questions = [first._replace(Y=corpus.judged()), *told]
    folds = grouped_folds(artists(corpus), np.nan_to_num(corpus.Y), n_folds=N_FOLDS)
    by_others = np.empty_like(first.P)
    for fold in range(N_FOLDS):
        here, others = folds == fold, folds != fold
        parts = [Question(*(part[others] for part in question)) for question in questions]
        by_others[here] = fit_recalibration(parts)(first.P[here])
    correction = fit_recalibration(questions)
    return HeldOut(first.P, correction(first.P), by_others, correction)


@dataclass(frozen=True)
class ShippedModel:
    """The model with what is known about it."""

    model: DiscriminativeRBM
    together: DiscriminativeRBM
    """The same without sound: which tags go together."""
    curves: list[PrecisionCurve]
    """How often each tag is right, by held-out clips."""
    report: dict[str, Any]
    """What JSON can hold: the collections and, by tag, its group, sources, scores, threshold."""

    @property
    def thresholds(self) -> Floats:
        """(C,) from which probability on a clip has a tag."""
        found = [tag["threshold"] for tag in self.report["tags"]]
        return np.array([UNREACHABLE if one is None else one for one in found], np.float32)

    def to_bytes(self) -> bytes:
        """As the file has it."""
        arrays, description = self.model._described()
        arrays["history.seconds"] = np.zeros_like(
            arrays["history.seconds"]
        )  # else no two are alike
        for name in "Ucd":
            arrays[f"together.{name}"] = getattr(self.together._params, name)
        arrays["together.steps"] = np.array([self.together.inference_steps])
        arrays |= curves_to_arrays(self.curves)
        return to_bytes(arrays, description | {"shipped": self.report})


def make(
    corpus: Corpus,
    progress: Callable[[int, int], None] | None = None,
    *,
    learn: Learner = learn_rbm,
) -> ShippedModel:
    """Fit the model to all clips, and judge it by held-out ones."""
    said = judge(corpus, learn, progress)
    curves = make_curves(corpus.Y, said.corrected, artists(corpus))
    without_sound = replace(corpus, X=np.zeros((len(corpus.X), 1), np.float32))
    model = fit(corpus)
    if corpus.volume is not None:  # from here on, features are heard as they are
        W = corpus.volume.unheard_by(model._params.W, model._scaling.scale)
        model._params = model._params._replace(W=W)
    model.recalibration_ = said.correction
    together = fit(without_sound, **TOGETHER)
    return ShippedModel(model, together, curves, _report(corpus, said, curves))


def _report(corpus: Corpus, said: HeldOut, curves: Sequence[PrecisionCurve]) -> dict[str, Any]:
    vocabulary, P = shared_vocabulary(), said.corrected
    people = np.flatnonzero(~np.isnan(corpus.Y).all(axis=0))
    scores = score_tags(corpus.Y[:, people], P[:, people])
    thresholds = choose_thresholds(corpus.Y[:, people], P[:, people], scores)
    tags: list[dict[str, Any]] = [
        {"tag": tag, "group": vocabulary.groups[tag]} for tag in corpus.tags
    ]
    for i, j in enumerate(people.tolist()):
        asked = ~np.isnan(corpus.Y[:, j])
        tags[j] |= {
            "learnt_from": sorted(set(corpus.collection[asked].tolist())),
            "examples": int(scores.positives[i]),
            "rate": float(corpus.Y[asked, j].mean()),
            "auc": float(scores.auc[i]),
            "error": float(scores.error[i]),
            **_at_threshold(corpus.Y[asked, j], P[asked, j], float(thresholds[i])),
            **_written(curves[j], bool(scores.learnt[i])),
        }
    for j in np.setdiff1d(np.arange(len(tags)), people):
        tags[j] |= _as_the_networks_say(corpus.heads[:, j], P[:, j])
    return {
        "extractor": EXTRACTOR,
        "tags": tags,
        "aliases": {word: tag for word, tag in vocabulary.aliases.items() if tag in corpus.tags},
        "clips": {name: int((corpus.collection == name).sum()) for name in _names(corpus)},
        "calibration": calibration_errors(corpus, said),
    }


def calibration_errors(corpus: Corpus, said: HeldOut) -> dict[str, tuple[float, float]]:
    """Collection → expected calibration error of its tags before and after the correction."""
    errors = {}
    for name in _names(corpus):
        rows = corpus.collection == name
        asked = ~np.isnan(corpus.Y[rows]).all(axis=0)
        before, after = (
            reliability(corpus.Y[rows][:, asked], P[rows][:, asked]).error
            for P in (said.uncorrected, said.by_others)
        )
        errors[name] = (before, after)
    return errors


def _names(corpus: Corpus) -> list[str]:
    return list(dict.fromkeys(corpus.collection.tolist()))


def _at_threshold(y: Floats, p: Floats, threshold: float) -> dict[str, Any]:
    """What held-out clips say about a threshold: how many reach it, and the share that is right."""
    if threshold == UNREACHABLE:
        return {"threshold": None, "reached": 0, "precision": None}
    reached = p >= threshold
    right = float(y[reached].mean()) if reached.any() else None
    return {"threshold": threshold, "reached": int(reached.sum()), "precision": right}


def _written(curve: PrecisionCurve, learnt: bool) -> dict[str, Any]:
    """From where on the tag is right as often as `harmonium write` asks, and how many reach it."""
    threshold = threshold_for(curve, USUAL_PRECISION) if learnt else UNREACHABLE
    rank = curve.at(threshold)
    if threshold == UNREACHABLE or rank is None:
        return {"write_from": None, "written": 0}
    return {"write_from": threshold, "written": int(curve.chosen[rank])}


def _as_the_networks_say(heads: Floats, p: Floats) -> dict[str, Any]:
    """A tag that no collection was asked for: as many clips have it as the networks expect.

    Precision is what the networks expect of those clips; nobody has checked it.
    """
    wanted = max(1, round(float(heads.sum())))
    one = (np.arange(len(p)) < wanted).astype(np.float32)[:, None]
    threshold = float(matching_thresholds(one, p[:, None])[0])
    reached = p >= threshold
    return {
        "learnt_from": ["musicnn"],
        "examples": 0,
        "rate": float(heads.mean()),
        "agreement": float(np.corrcoef(heads, p)[0, 1]),
        "threshold": float(np.clip(threshold, 0.01, 0.99)),
        "reached": int(reached.sum()),
        "precision": float(heads[reached].mean()),
    }
