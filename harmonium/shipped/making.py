"""How the shipped model is made: a discriminative RBM over the union of the collections' words.

Every figure that is shipped with it comes from held-out clips: of other artists for 4Q, of the
other part of the artist-filtered split for GTZAN, of other excerpts for Emotify.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.collection.learning.thresholds import NEVER, choose_thresholds, score_tags
from harmonium.estimators import DiscriminativeRBM
from harmonium.estimators.model_files import to_bytes
from harmonium.estimators.validation import matching_thresholds
from harmonium.evaluation import grouped_folds
from harmonium.shipped.corpus import Corpus, Floats
from harmonium.shipped.vocabulary import shared_vocabulary

EXTRACTOR = "musicnn"
N_FOLDS = 5
TOGETHER = 50
"""Hidden units that tell which tags go together, whatever the sound."""
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

Predictor = Callable[[Corpus, Floats], Floats]
"""Clips to learn from, and the features of others (n, 400) → their probabilities (n, C)."""


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


def held_out(
    corpus: Corpus,
    predict: Predictor,
    progress: Callable[[int, int], None] | None = None,
) -> Floats:
    """The probabilities (n, C) of every clip by a model that has not learnt from its artist."""
    P = np.full(corpus.Y.shape, np.nan, np.float32)
    splits = held_out_splits(corpus)
    for number, rows in enumerate(splits):
        others = np.setdiff1d(np.arange(len(P)), rows)
        P[rows] = predict(corpus.rows(others), corpus.X[rows])
        if progress:
            progress(number + 1, len(splits))
    return P


def predict_with_rbm(corpus: Corpus, X: Floats) -> Floats:
    """The shipped model's own way."""
    return fit(corpus).predict_proba(X)


@dataclass(frozen=True)
class ShippedModel:
    """The model with what is known about it."""

    model: DiscriminativeRBM
    together: DiscriminativeRBM
    """The same without sound: which tags go together."""
    report: dict[str, Any]
    """What JSON can hold: the collections and, by tag, its group, sources, scores, threshold."""

    def to_bytes(self) -> bytes:
        """As the file has it."""
        arrays, description = self.model._described()
        arrays["history.seconds"] = np.zeros_like(
            arrays["history.seconds"]
        )  # else no two are alike
        for name in "Ucd":
            arrays[f"together.{name}"] = getattr(self.together._params, name)
        arrays["together.steps"] = np.array([self.together.inference_steps])
        return to_bytes(arrays, description | {"shipped": self.report})


def make(
    corpus: Corpus,
    progress: Callable[[int, int], None] | None = None,
    *,
    predict: Predictor = predict_with_rbm,
) -> ShippedModel:
    """Fit the model to all clips, and judge it by held-out ones."""
    report = _report(corpus, held_out(corpus, predict, progress))
    without_sound = replace(corpus, X=np.zeros((len(corpus.X), 1), np.float32))
    return ShippedModel(fit(corpus), fit(without_sound, n_hidden=TOGETHER), report)


def _report(corpus: Corpus, P: Floats) -> dict[str, Any]:
    vocabulary = shared_vocabulary()
    people = np.flatnonzero(~np.isnan(corpus.Y).all(axis=0))
    scores = score_tags(corpus.Y[:, people], P[:, people])
    thresholds = choose_thresholds(corpus.Y[:, people], P[:, people], scores)
    tags: list[dict[str, Any]] = [
        {"tag": tag, "group": vocabulary.groups[tag]} for tag in corpus.tags
    ]
    for i, j in enumerate(people):
        asked = ~np.isnan(corpus.Y[:, j])
        tags[j] |= {
            "learnt_from": sorted(set(corpus.collection[asked].tolist())),
            "examples": int(scores.positives[i]),
            "rate": float(corpus.Y[asked, j].mean()),
            "auc": float(scores.auc[i]),
            "error": float(scores.error[i]),
            **_at_threshold(corpus.Y[asked, j], P[asked, j], float(thresholds[i])),
        }
    for j in np.setdiff1d(np.arange(len(tags)), people):
        tags[j] |= _as_the_networks_say(corpus.heads[:, j], P[:, j])
    return {
        "extractor": EXTRACTOR,
        "tags": tags,
        "aliases": {word: tag for word, tag in vocabulary.aliases.items() if tag in corpus.tags},
        "clips": {name: int((corpus.collection == name).sum()) for name in _names(corpus)},
    }


def _names(corpus: Corpus) -> list[str]:
    return list(dict.fromkeys(corpus.collection.tolist()))


def _at_threshold(y: Floats, p: Floats, threshold: float) -> dict[str, Any]:
    """What held-out clips say about a threshold: how many reach it, and the share that is right."""
    if threshold == NEVER:
        return {"threshold": None, "reached": 0, "precision": None}
    reached = p >= threshold
    right = float(y[reached].mean()) if reached.any() else None
    return {"threshold": threshold, "reached": int(reached.sum()), "precision": right}


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
