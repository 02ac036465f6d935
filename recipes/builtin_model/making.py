"""Making the built-in model: members that are cross-fitted over several collections.

Each member learns from all folds but one, and their log-odds are averaged. No artist of 4Q, part of
GTZAN or excerpt of Emotify is in two folds. All figures in the file are for held-out clips: what
the member that has not learnt from a clip says about it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from builtin_model.corpus import Corpus, Floats
from builtin_model.vocabulary import FEATURE, shared_vocabulary
from harmonium.estimators import DiscriminativeRBM, LogisticTagger
from harmonium.estimators.model_files import rounded_to_half, to_bytes
from harmonium.estimators.validation import matching_thresholds
from harmonium.evaluation import reliability
from harmonium.library.learning.scores import (
    choose_thresholds,
    curves_to_arrays,
    make_curves,
    score_tags,
)
from harmonium.library.model import USUAL_PRECISION
from harmonium.library.model.builtin import BUILTIN
from harmonium.library.model.model_file import MUSIC, VALUES
from harmonium.library.model.precision import (
    MIN_EFFECTIVE,
    PrecisionCurve,
    threshold_for,
)
from harmonium.logistic import sigmoid

EXTRACTOR = "musicnn"
SETTINGS: dict[str, Any] = {
    "n_models": 5,
    "n_hidden": 200,
    "scale_features": "standard",
    "training_steps": 5,
    "init_scale": 0.3,
    "l2": 0.3,
    "l2_tags": 0.3,
    "learning_rate": 0.01,
    "batch_size": 50,
    "max_epochs": 100,
    "patience": 10,
    "random_state": 0,
}

ONE_MODEL: dict[str, Any] = SETTINGS | {
    "n_models": 1,
    "max_epochs": 80,
    "validation_fraction": 0.0,
}
TOGETHER: dict[str, Any] = ONE_MODEL | {"n_hidden": 50, "training_steps": 2, "l2_tags": 0.003}
"""The settings of the model of which tags go together, whatever the sound."""

FEATURES_L2, QUADRANTS_L2, MUSIC_L2 = 1e-5, 1e-4, 1e-5
"""The penalties of the linear parts."""
TRUST = 0.7
"""The weight of people's quadrants in energy and valence; VibeNet has the rest."""


def fit(corpus: Corpus, **settings: Any) -> DiscriminativeRBM:
    """The model of a corpus, and its ``held_out_`` probabilities."""
    named = pl.DataFrame(corpus.targets(), schema=list(corpus.tags))
    model = DiscriminativeRBM(**SETTINGS | settings)
    model.fit(corpus.X, named, groups=fold_groups(corpus), eval_y=corpus.Y)
    if model.recalibration_ is not None:
        _leave_uncorrected(model, corpus, np.flatnonzero(np.isnan(corpus.Y).all(axis=0)))
    return model


def _leave_uncorrected(model: DiscriminativeRBM, corpus: Corpus, places: NDArray[np.intp]) -> None:
    """Undo the correction of tags that people did not label; it came from the other tags."""
    assert model.recalibration_ is not None
    model.recalibration_.offsets[places] = 0
    model.recalibration_.slopes[places] = 1
    for fold, member in enumerate(model._members()):
        own = np.flatnonzero(model.folds_ == fold)
        model.held_out_[np.ix_(own, places)] = member.infer(corpus.X[own]).y[:, places]


def fold_groups(corpus: Corpus) -> list[str]:
    """(n,) each clip's group, which folds never split: artist, excerpt, or part of GTZAN.

    If the corpus has only one part of GTZAN, it is halved, so that most members learn from all of
    it, as with two parts.
    """
    groups, clips = corpus.group.astype(object), np.flatnonzero(corpus.collection == "gtzan")
    if len(np.unique(corpus.group[clips])) == 1:
        groups[clips] += np.where(np.arange(len(clips)) % 2, ", odd", ", even").astype(object)
    return groups.tolist()


def artists(corpus: Corpus) -> list[str]:
    """(n,) each clip's artist, or the clip itself if the artist is unknown (GTZAN)."""
    groups = enumerate(zip(corpus.collection.tolist(), corpus.group.tolist(), strict=True))
    return [f"{group}, {i}" if name == "gtzan" else group for i, (name, group) in groups]


@dataclass(frozen=True)
class BuiltinModel:
    """The model with what is known about it."""

    model: DiscriminativeRBM
    together: DiscriminativeRBM
    """The same without sound: which tags go together."""
    curves: list[PrecisionCurve]
    """How often each tag is right, by held-out clips."""
    heads: "Mapping[str, Head]"
    """Linear parts: audio features, and what tells music from other sounds."""
    report: dict[str, Any]
    """What JSON can hold: the collections and, by tag, its group, sources, scores, threshold."""

    @property
    def thresholds(self) -> Floats:
        """(C,) the probability at which a clip gets a tag."""
        tags = self.report["tags"][: len(self.model.tags_)]
        thresholds = [np.nan if tag["threshold"] is None else tag["threshold"] for tag in tags]
        return np.array(thresholds, np.float32)

    def to_bytes(self) -> bytes:
        """The bytes of the model file."""
        arrays, description = self.model._described()
        arrays["history.seconds"] *= 0  # otherwise no two builds would be the same
        for name in "Ucd":
            arrays[f"together.{name}"] = getattr(self.together._params, name)
        arrays["together.steps"] = np.array([self.together.training_steps])
        for prefix, head in self.heads.items():
            arrays |= {f"{prefix}W": head.W, f"{prefix}d": head.d}
        arrays |= curves_to_arrays(self.curves)
        return to_bytes(arrays, description | {BUILTIN: self.report})


def make(corpus: Corpus, not_music: Floats | None = None) -> BuiltinModel:
    """Fit the model, and judge it by its held-out probabilities.

    not_music : (n, 400) raw features of sounds that are not music
    """
    corpus, features = corpus.split()
    model = fit(corpus)
    curves = make_curves(corpus.Y, model.held_out_, artists(corpus))
    report = _report(corpus, model, curves)
    heads = {}
    if features.tags:
        heads[VALUES] = fit_features(features)
        curves += make_curves(features.Y * np.nan, features.heads)  # nothing is promised
        report["tags"] += _features_report(features, model.folds_)
        aliases = shared_vocabulary().aliases.items()
        report["aliases"] |= {word: tag for word, tag in aliases if tag in features.tags}
    if not_music is not None:
        others = not_music if corpus.volume is None else corpus.volume.taken_out(not_music)
        heads[MUSIC] = fit_music(corpus.X, others)
    scaling = model._scaling
    heads = {name: head.scaled(scaling.mean, scaling.scale) for name, head in heads.items()}
    if corpus.volume is not None:  # from here on, features are raw
        W = corpus.volume.unheard_by(model._params.W, scaling.scale)
        model._params = model._params._replace(W=rounded_to_half(W))
        heads = {
            name: head._replace(W=corpus.volume.unheard_by(head.W, scaling.scale))
            for name, head in heads.items()
        }
    without_sound = replace(corpus, X=np.zeros((len(corpus.X), 1), np.float32))
    return BuiltinModel(model, fit(without_sound, **TOGETHER), curves, heads, report)


# Linear parts: audio features, and what is music. -------------------------------------------------


class Head(NamedTuple):
    """Log-odds that are linear in the features: X @ W.T + d."""

    W: Floats  # (k, D)
    d: Floats  # (k,)

    @classmethod
    def of(cls, X: Floats, Y: Floats, l2: float) -> "Head":
        """Logistic regressions on labels (n, k), soft ones too; NaN unknown."""
        fitted = LogisticTagger(solver="newton", l2=l2).fit(X, Y)
        W = fitted._params.W / fitted._scaling.scale
        return cls(W, fitted._params.d - W @ fitted._scaling.mean)

    def __call__(self, X: Floats) -> Floats:
        """Probabilities, (n, k)."""
        return sigmoid(X @ self.W.T + self.d).astype(np.float32)

    def scaled(self, mean: Floats, scale: Floats) -> "Head":
        """The same for features that are centred and divided by a scale."""
        return Head(
            (self.W * scale).astype(np.float32), (self.d + self.W @ mean).astype(np.float32)
        )


def fit_features(features: Corpus) -> Head:
    """The audio features. If people gave quadrants, these and VibeNet both count."""
    by_networks = Head.of(features.X, features.heads, FEATURES_L2)
    asked = np.flatnonzero(~np.isnan(features.Y).all(axis=0))
    if not len(asked):
        return by_networks
    known = ~np.isnan(features.Y[:, asked]).any(axis=1)
    by_people = Head.of(features.X[known], features.Y[known][:, asked], QUADRANTS_L2)
    W, d = (array.copy() for array in by_networks)
    W[asked] += TRUST * (by_people.W - W[asked])
    d[asked] += TRUST * (by_people.d - d[asked])
    return Head(W, d)


def held_out_features(features: Corpus, folds: NDArray[np.integer]) -> Floats:
    """The values (n, 7) of every clip, learnt from the other folds."""
    P = np.empty(features.Y.shape, np.float32)
    for fold in np.unique(folds):
        own = folds == fold
        P[own] = fit_features(features.rows(~own))(features.X[own])
    return P


def fit_music(music: Floats, others: Floats) -> Head:
    """What tells music from other sounds, both (n, D); both classes count equally."""
    some = np.arange(len(music)) % len(others)
    X = np.concatenate([music, others[some]])
    y = (np.arange(len(X)) < len(music)).astype(np.float32)
    return Head.of(X, y[:, None], MUSIC_L2)


def _features_report(features: Corpus, folds: NDArray[np.integer]) -> list[dict[str, Any]]:
    """How each agrees with VibeNet's values and people's quadrants, on held-out clips."""
    P, found = held_out_features(features, folds), []
    scores = score_tags(features.Y, P)
    for j, tag in enumerate(features.tags):
        by_people = {"auc": float(scores.auc[j]), "error": float(scores.error[j])}
        asked = bool(scores.positives[j])
        found.append(
            {
                "tag": tag,
                "group": FEATURE,
                "learnt_from": ["VibeNet", *(["4q"] if asked else [])],
                "examples": int(scores.positives[j]),
                "rate": float(P[:, j].mean()),
                "agreement": float(np.corrcoef(features.heads[:, j], P[:, j])[0, 1]),
                "threshold": None,
                "reached": 0,
                "precision": None,
                **(by_people if asked else {}),
            }
        )
    return found


# The report. --------------------------------------------------------------------------------------


def _report(
    corpus: Corpus, model: DiscriminativeRBM, curves: Sequence[PrecisionCurve]
) -> dict[str, Any]:
    vocabulary, P = shared_vocabulary(), model.held_out_
    people = np.flatnonzero(~np.isnan(corpus.Y).all(axis=0))
    scores, doubted = score_tags(corpus.Y[:, people], P[:, people]), unconfirmed(corpus, P, curves)
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
            **_written(curves[j], bool(scores.learnt[i]) and corpus.tags[j] not in doubted),
        }
    for j in np.setdiff1d(np.arange(len(tags)), people):
        tags[j] |= _as_the_networks_say(corpus.heads[:, j], P[:, j])
    names = list(dict.fromkeys(corpus.collection.tolist()))
    rows = {name: corpus.collection == name for name in names}
    return {
        "extractor": EXTRACTOR,
        "members": int(model.folds_.max()) + 1,
        "tags": tags,
        "aliases": {word: tag for word, tag in vocabulary.aliases.items() if tag in corpus.tags},
        "unconfirmed": doubted,
        "clips": {name: int(own.sum()) for name, own in rows.items()},
        "calibration": {name: reliability(corpus.Y[r], P[r]).error for name, r in rows.items()},
    }


def unconfirmed(corpus: Corpus, P: Floats, curves: Sequence[PrecisionCurve]) -> list[str]:
    """The moods that do not reach `harmonium write`'s precision in at least two collections.

    People of different collections mean different things by the same mood.
    """
    groups, found = shared_vocabulary().groups, []
    for j, (tag, curve) in enumerate(zip(corpus.tags, curves, strict=True)):
        if groups[tag] != "mood" or not curve.positives:
            continue
        least = np.float32(threshold_for(curve, USUAL_PRECISION))
        chosen = (P[:, j] >= least) & ~np.isnan(corpus.Y[:, j])
        right = [
            corpus.Y[own, j].mean() >= USUAL_PRECISION
            for name in np.unique(corpus.collection)
            if (own := chosen & (corpus.collection == name)).sum() >= MIN_EFFECTIVE
        ]
        if sum(right) < 2:
            found.append(tag)
    return found


def _at_threshold(y: Floats, p: Floats, threshold: float) -> dict[str, Any]:
    """How many held-out clips reach a threshold, and the share that is right."""
    if np.isnan(threshold):
        return {"threshold": None, "reached": 0, "precision": None}
    reached = p >= threshold
    right = float(y[reached].mean()) if reached.any() else None
    return {"threshold": threshold, "reached": int(reached.sum()), "precision": right}


def _written(curve: PrecisionCurve, learnt: bool) -> dict[str, Any]:
    """From where on the tag is right as often as `harmonium write` asks, and how many reach it."""
    threshold = threshold_for(curve, USUAL_PRECISION) if learnt else None
    rank = None if threshold is None else curve.at(threshold)
    if threshold is None or rank is None:
        return {"write_from": None, "written": 0}
    return {"write_from": threshold, "written": int(curve.chosen[rank])}


def _as_the_networks_say(heads: Floats, p: Floats) -> dict[str, Any]:
    """A tag that no collection has: as many clips get it as the networks expect.

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
