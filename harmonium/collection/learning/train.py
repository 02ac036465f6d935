"""Learning a library's tags: from what people say and how it sounds to a stored model."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium import __version__
from harmonium.collection.answering.stored_tagger import keep_compiled
from harmonium.collection.learning.beside_shipped import ShippedSays
from harmonium.collection.learning.first_model import MOST_TRACKS as MOST_FIRST
from harmonium.collection.learning.first_model import LinearFit, fit_first, mean_auc
from harmonium.collection.learning.fitting import (
    N_FOLDS,
    Candidate,
    Fitted,
    TrainingProgress,
    fit,
)
from harmonium.collection.learning.smoothing import can_smooth, smooth_labels
from harmonium.collection.learning.thresholds import choose_thresholds, score_tags
from harmonium.collection.learning.training_set import TrainingSet
from harmonium.collection.learning.vocabulary import (
    ExcludedTag,
    Vocabulary,
    choose_vocabulary,
)
from harmonium.collection.library import Library
from harmonium.collection.precision import (
    USUAL_PRECISION,
    PrecisionCurve,
    curves_from_arrays,
    curves_to_arrays,
    make_curves,
    threshold_for,
)
from harmonium.collection.store.models import NEVER, StoredModel
from harmonium.collection.store.schema import EXTRACTOR, GENRES
from harmonium.collection.store.tracks import Track
from harmonium.collection.verdicts import (
    MIN_SHARE,
    judge,
    label_matrix,
    only_answered_tracks,
    with_kinds,
)
from harmonium.data.artists import artist_key
from harmonium.data.genre_tree import GenreTree
from harmonium.engine import Engine
from harmonium.errors import DataError

MOST_TRACKS = 50_000
"""Tracks to learn from, at most; where there are more, a random choice of them."""


@dataclass(frozen=True)
class TrainingOptions:
    """How to train."""

    min_examples: int | None = None
    """Tracks that a tag needs; None: 10, or 5 where fewer than 100 tracks are tagged."""
    max_tags: int = 200
    min_count: int = 1
    """People who must give a track a tag,"""
    min_share: float = MIN_SHARE
    """and their share of the people who tagged the track."""
    smooth: bool = True
    """Whether to try smoothed tags, where several people have tagged the same tracks."""
    seed: int = 0
    genres: GenreTree | None = None
    """A tree of genres to use from now on, see `verdicts`; None: that of the library, if any."""


def train(
    library: Library,
    options: TrainingOptions | None = None,
    *,
    progress: TrainingProgress | None = None,
    use: bool = True,
    first: Callable[[StoredModel], object] | None = None,
    engine: str | Engine = "serial",
    jobs: int | None = None,
) -> StoredModel:
    """Learn from a library's tagged tracks, store the model and use it from now on.

    A first answer, a logistic regression, is stored after a few seconds; ``first`` is called with
    it. It is in use at once, unless a model of the library's own is. The model takes its place in
    one step when it is complete. Without ``use``, a model that is in use stays so, and the new one
    waits for `use_model`.

    ``engine`` and ``jobs``, as for `make_executor`, say where the many fits of the model are done.
    The model is the same wherever that is.

    Raises
    ------
    DataError
        where there is too little to learn from; it says how much is missing
    EngineError
        where the engine cannot be used, or no longer works; the first answer is stored then
    """
    options = options or TrainingOptions()
    if progress:
        progress("Reading", 0, 0)
    task = _Task.read(library, options)
    if progress:
        progress("First model", 0, 0)
    in_use = library.models.current(whole=False)
    linear, answer = task.first_answer()
    with library.begin():
        if options.genres is not None:
            library.settings.set(GENRES, options.genres.to_dict())
        number = library.models.add(answer, use=use and (in_use is None or not in_use.n_own))
    if first:
        first(replace(answer, id=number))
    if options.smooth and can_smooth(task.opinions):
        if progress:
            progress("Smoothing", 0, 0)
        task = task.smoothed()
    few = len(task.ids) <= MOST_FIRST
    fitted = fit(
        task.examples,
        seed=options.seed,
        beside_l2=linear.hyperparameters.l2 if few else None,
        progress=progress,
        engine=engine,
        jobs=jobs,
    )
    stored = task.stored(fitted, "DiscriminativeRBM")
    with library.begin():
        stored = replace(stored, id=library.models.add(stored, use=use))
        library.models.remove(number, instead=stored.id)
    return stored


@dataclass(frozen=True, eq=False)
class _Task:
    """What is learnt from: the tracks that people have tagged, and what is known of them."""

    library: Library
    options: TrainingOptions
    extractor: str
    ids: NDArray[np.int64]
    opinions: pl.DataFrame
    judged: pl.DataFrame
    answered: NDArray[np.int64]
    vocabulary: Vocabulary
    groups: list[str]
    grouped_by: str
    examples: TrainingSet
    says: ShippedSays | None
    more: dict[str, NDArray[Any]] = field(default_factory=dict)
    """Further arrays of the model."""
    began: float = field(default_factory=time.perf_counter)

    @classmethod
    def read(cls, library: Library, options: TrainingOptions) -> "_Task":
        began, extractor = time.perf_counter(), _extractor(library)
        ids, X, opinions = _tagged_tracks(library, extractor, options.seed)
        answered = only_answered_tracks(library, opinions)
        opinions = with_kinds(opinions, _tree(library, options))
        opinions = opinions.filter(~pl.col("tag").is_in(list(library.hidden_tags())))
        judged = judge(opinions, min_count=options.min_count, min_share=options.min_share)
        vocabulary = choose_vocabulary(
            judged,
            len(ids) - len(answered),
            min_examples=options.min_examples,
            max_tags=options.max_tags,
        )
        Y = label_matrix(judged, ids, vocabulary.tags, only_answered=answered)
        keep_compiled()
        from harmonium.evaluation import grouped_folds

        groups, grouped_by = group_tracks(library.tracks.many(ids))
        folds = grouped_folds(groups, Y, n_folds=N_FOLDS, seed=options.seed)
        says = ShippedSays.of(extractor, X)
        more_inputs = None if says is None else says.inputs
        examples = TrainingSet(X, Y, folds, vocabulary.tags, None, more_inputs)
        of_tracks = (ids, opinions, judged, answered, vocabulary, groups, grouped_by, examples)
        return cls(library, options, extractor, *of_tracks, says, began=began)

    def smoothed(self) -> "_Task":
        """The same with smoothed labels to try."""
        labels, together = smooth_labels(
            self.opinions, self.judged, self.ids, self.vocabulary.tags, seed=self.options.seed
        )
        alone = np.isin(self.ids, self.answered)
        labels[alone] = self.examples.Y[alone]
        more = {f"together.{name}": array for name, array in together._asdict().items()}
        return replace(self, examples=replace(self.examples, smoothed=labels), more=more)

    def some(self, most: int) -> "_Task":
        """A random choice of the tracks, where there are more."""
        if len(self.ids) <= most:
            return self
        rng = np.random.default_rng(self.options.seed)
        rows = np.sort(rng.permutation(len(self.ids))[:most])
        says = None if self.says is None else self.says.rows(rows)
        groups = [self.groups[row] for row in rows]
        return replace(
            self, ids=self.ids[rows], groups=groups, examples=self.examples.rows(rows), says=says
        )

    def first_answer(self) -> tuple[LinearFit, StoredModel]:
        """A logistic regression of the tracks, or of some of them."""
        task = self.some(MOST_FIRST)
        linear, correction, corrected = fit_first(task.examples)
        auc = mean_auc(task.examples.Y, linear.held_out)
        candidate = Candidate(linear.hyperparameters, auc, 0)
        fitted = Fitted(linear.model, corrected, linear.held_out, (candidate,))
        more = {f"recalibration.{name}": part for name, part in correction._asdict().items()}
        return linear, replace(task, more=more).stored(fitted, "ExactLogisticTagger")

    def stored(self, fitted: Fitted, name: str) -> StoredModel:
        """A fitted model with its report."""
        says, more = self.says, dict(self.more)
        if says is not None:
            fitted, weights = says.as_prior(self.examples, fitted)
        thresholds, arrays, scores = _scores(
            self.examples, fitted, self.groups, self.vocabulary.left_out
        )
        report = {
            "tracks": len(self.ids),
            "people": self.opinions["person"].n_unique(),
            **scores,
            "folds": N_FOLDS,
            "grouped_by": self.grouped_by,
            "min_count": self.options.min_count,
            "min_share": self.options.min_share,
            "seed": self.options.seed,
            "genres": bool(_tree(self.library, self.options)),
            "seconds": time.perf_counter() - self.began,
            "version": __version__,
        }
        stored = StoredModel(
            name=name,
            vocabulary=list(self.vocabulary.tags),
            thresholds=thresholds,
            extractor=self.extractor,
            bytes=b"",
            report=report,
        )
        if says is not None:
            stored, shipped = says.joined(stored, weights, curves_from_arrays(arrays) or [])
            stored = stored.without(self.library.hidden_tags(), self.library.renamed_tags())
            more |= shipped
        data = fitted.to_bytes({"held_out.ids": self.ids, **arrays, **more})
        return replace(stored, bytes=data)


def _tree(library: Library, options: TrainingOptions) -> GenreTree:
    """The tree of genres that is used from now on."""
    return library.genres() if options.genres is None else options.genres


def _scores(
    examples: TrainingSet,
    fitted: Fitted,
    groups: Sequence[str],
    left_out: Sequence[ExcludedTag],
) -> tuple[NDArray[np.float32], dict[str, NDArray[Any]], dict[str, Any]]:
    """What held-out probabilities tell: thresholds, arrays to store, and a part of the report."""
    from harmonium.evaluation import reliability

    scores = score_tags(examples.Y, fitted.held_out)
    thresholds = choose_thresholds(examples.Y, fitted.held_out, scores)
    arrays = {
        "held_out.probabilities": fitted.held_out.astype(np.float16),
        "rates": scores.positives / np.maximum(scores.positives + scores.negatives, 1),
    }
    curves = make_curves(examples.Y, fitted.held_out, groups)
    arrays |= curves_to_arrays(curves)
    tags = [
        {
            "tag": tag,
            "examples": int(scores.positives[j]),
            "auc": _number(scores.auc[j]),
            "error": _number(scores.error[j]),
            "learnt": bool(scores.learnt[j]),
            "threshold": float(thresholds[j]) if scores.learnt[j] else None,
            **(_promise(curves[j], float(thresholds[j])) if scores.learnt[j] else {}),
        }
        for j, tag in enumerate(examples.tags)
    ]
    defined = scores.auc[np.isfinite(scores.auc)]
    before, after = (reliability(examples.Y, P) for P in (fitted.uncorrected, fitted.held_out))
    return (
        thresholds,
        arrays,
        {
            "mean_auc": _number(defined.mean()) if len(defined) else None,
            "tags": tags,
            "calibration": {
                "error": after.error,
                "uncorrected": before.error,
                "edges": after.edges,
                "n": after.n.tolist(),
                "mean_probability": _means(after.scores, after.n),
                "share_true": _means(after.positives, after.n),
            },
            "left_out": [excluded._asdict() for excluded in left_out],
            "smoothing_tried": examples.smoothed is not None,
            "smoothed": fitted.candidates[0].hyperparameters.smoothed,
            "beside": fitted.beside is not None,
            "shipped_inputs": fitted.candidates[0].hyperparameters.more_inputs,
            "trials": [
                {**hyperparameters._asdict(), "auc": auc, "epochs": epochs}
                for hyperparameters, auc, epochs in fitted.candidates
            ],
        },
    )


def _promise(curve: PrecisionCurve, threshold: float) -> dict[str, float | None]:
    """How often a tag is right from its threshold on, and from where on it is to be written."""
    rank, low = curve.at(threshold), curve.bounds[0]
    write_from = threshold_for(curve, USUAL_PRECISION)
    return {
        "precision": None if rank is None else float(curve.precision[rank]),
        "precision_at_least": None if rank is None else float(low[rank]),
        "recall": None if rank is None else float(curve.recall[rank]),
        "write_from": write_from if write_from < NEVER else None,
    }


def _extractor(library: Library) -> str:
    """The key of the extractor that a library was indexed with."""
    key = library.settings.get(EXTRACTOR)
    if key is None:
        raise DataError(
            "The library has no features to learn from. `harmonium index FOLDER` computes those "
            "of the music in a folder."
        )
    return str(key)


def _tagged_tracks(
    library: Library, extractor: str, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], pl.DataFrame]:
    """The tracks to learn from, ascending, their features, and the opinions on them."""
    opinions = library.opinions.triples()
    tagged = np.unique(opinions["track_id"].to_numpy().astype(np.int64))
    if len(tagged) > MOST_TRACKS:
        chosen = np.random.default_rng(seed).choice(tagged, MOST_TRACKS, replace=False)
        tagged = np.sort(chosen)
    ids, X = library.tracks.features(tagged, extractor=extractor)
    return ids, X, opinions.filter(pl.col("track_id").is_in(pl.Series(ids).implode()))


def group_tracks(tracks: Sequence[Track]) -> tuple[list[str], str]:
    """What no two folds share: the artist, else the album, else the title; and which it is.

    Tracks of one artist sound alike, and a model that has heard one has half heard the others. If
    artists are too few or one has too many tracks to make folds of, albums have to do.
    """
    for by in ("artist", "album", "title"):
        names = [_group(track, by) for track in tracks]
        _, sizes = np.unique(names, return_counts=True)
        if len(sizes) >= 2 * N_FOLDS and sizes.max() <= len(tracks) / N_FOLDS:
            known = sum(getattr(track, by) is not None for track in tracks)
            return names, by if 2 * known > len(tracks) else "track"
    return [str(track.id) for track in tracks], "track"


def _group(track: Track, by: str) -> str:
    value = getattr(track, by)
    if not value:
        return f"#{track.id}"
    artist = artist_key(track.artist or "")
    return f"artist {artist}" if by == "artist" else f"{by} {artist}\n{value.strip().casefold()}"


def _means(sums: NDArray[np.float64], n: NDArray[np.int64]) -> list[float | None]:
    """Sums divided by n; None where n is 0."""
    return [_number(total / count) if count else None for total, count in zip(sums, n, strict=True)]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
