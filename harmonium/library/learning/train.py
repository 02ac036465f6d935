"""Learning a library's tags: from what people say and how it sounds to a stored model."""

import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium import __version__
from harmonium.data.tag_names import GenreTree
from harmonium.engine import Engine
from harmonium.errors import DataError
from harmonium.library.learning.beside_shipped import ShippedSays
from harmonium.library.learning.first_model import MOST_TRACKS as MOST_FIRST
from harmonium.library.learning.first_model import LinearFit, fit_first, mean_auc
from harmonium.library.learning.fitting import (
    N_FOLDS,
    Candidate,
    Fitted,
    TrainingProgress,
    fit,
)
from harmonium.library.learning.reading import Source, in_files, in_memory
from harmonium.library.learning.smoothing import can_smooth, learn_smoothing
from harmonium.library.learning.thresholds import choose_thresholds, score_tags
from harmonium.library.learning.training_files import FoldTable, row_blocks
from harmonium.library.learning.training_set import TrainingSet
from harmonium.library.learning.vocabulary import (
    ExcludedTag,
    Vocabulary,
    choose_vocabulary,
)
from harmonium.library.library import Library
from harmonium.library.precision import (
    USUAL_PRECISION,
    PrecisionCurve,
    curves_from_arrays,
    curves_to_arrays,
    make_curves,
    threshold_for,
)
from harmonium.library.store.models import UNREACHABLE, StoredModel
from harmonium.library.store.opinions import MIN_SHARE, judge, only_answered_tracks, with_kinds
from harmonium.library.store.schema import EXTRACTOR, GENRES
from harmonium.library.tagger import keep_compiled

MOST_IN_MEMORY = 50_000
"""Tracks whose features are held in memory; those of more are in files, see `training_files`."""
MOST_KEPT = 50_000
"""Tracks whose held-out probabilities are kept with a model; of more, a random choice."""


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
    """A tree of genres to use from now on, see `store.opinions`; None: the library's, if any."""


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
    with TemporaryDirectory(prefix="harmonium-train-", ignore_cleanup_errors=True) as folder:
        if progress:
            progress("Reading", 0, 0)
        task = _Task.read(library, options, Path(folder))
        return _train(task, progress, use, first, {"engine": engine, "jobs": jobs})


def _train(
    task: "_Task",
    progress: TrainingProgress | None,
    use: bool,
    first: Callable[[StoredModel], object] | None,
    where: dict[str, Any],
) -> StoredModel:
    library, options = task.library, task.options
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
        **where,
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
    groups: NDArray[np.int64]
    """(n,) numbers of what no two folds share."""
    grouped_by: str
    examples: TrainingSet
    says: ShippedSays | None
    more: dict[str, NDArray[Any]] = field(default_factory=dict)
    """Further arrays of the model."""
    began: float = field(default_factory=time.perf_counter)

    @classmethod
    def read(cls, library: Library, options: TrainingOptions, folder: Path) -> "_Task":
        """Read what there is to learn from; large tables go to files in the folder."""
        began, extractor = time.perf_counter(), _extractor(library)
        opinions = library.opinions.triples()
        tagged = np.unique(opinions["track_id"].to_numpy().astype(np.int64))
        ids, n_features = library.tracks.with_features(tagged, extractor=extractor)
        opinions = opinions.filter(pl.col("track_id").is_in(pl.Series(ids).implode()))
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
        keep_compiled()
        read = in_memory if len(ids) <= MOST_IN_MEMORY else in_files
        source = Source(library, extractor, n_features, judged, answered, vocabulary.tags, folder)
        tables = read(source, ids, options.seed)
        people = (opinions, judged, answered, vocabulary)
        of_tracks = (ids[tables.order], *people, tables.groups, tables.grouped_by)
        return cls(
            library, options, extractor, *of_tracks, tables.examples, tables.says, began=began
        )

    def smoothed(self) -> "_Task":
        """The same with smoothed labels to try."""
        labels_of, together = learn_smoothing(
            self.opinions, self.judged, self.vocabulary.tags, seed=self.options.seed
        )
        examples, files = self.examples, self.examples.files
        alone, by_id = np.isin(self.ids, self.answered), np.argsort(self.ids)
        if files is None:
            labels = examples.new_table()
        else:
            table = FoldTable(files.folder / "smoothed", examples.folds, len(examples.tags))
            labels, files = table.values, replace(files, smoothed=table)
        for some in row_blocks(len(by_id), MOST_IN_MEMORY):
            rows = by_id[some]
            found = labels_of(self.ids[rows])
            found[alone[rows]] = examples.Y[rows[alone[rows]]]
            if files is None:
                labels[rows] = found
            else:
                table.put(rows, found)
        more = {f"together.{name}": array for name, array in together._asdict().items()}
        return replace(self, examples=replace(examples, smoothed=labels, files=files), more=more)

    def some(self, most: int) -> "_Task":
        """A random choice of the tracks, where there are more."""
        if len(self.ids) <= most:
            return self
        rng = np.random.default_rng(self.options.seed)
        rows = np.sort(rng.permutation(len(self.ids))[:most])
        says = None if self.says is None else self.says.rows(rows)
        ids, groups, examples = self.ids[rows], self.groups[rows], self.examples.rows(rows)
        return replace(self, ids=ids, groups=groups, examples=examples, says=says)

    def first_answer(self) -> tuple[LinearFit, StoredModel]:
        """A logistic regression of the tracks, or of some of them."""
        task = self.some(MOST_FIRST)
        linear, correction, corrected = fit_first(task.examples)
        auc = mean_auc(task.examples.Y, linear.held_out)
        candidate = Candidate(linear.hyperparameters, auc, 0)
        fitted = Fitted(linear.model, corrected, linear.held_out, (candidate,))
        return linear, replace(task, more=correction.arrays()).stored(fitted, "LogisticTagger")

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
        rng = np.random.default_rng(self.options.seed)
        kept = np.arange(len(self.ids))
        if len(kept) > MOST_KEPT:
            kept = rng.permutation(len(kept))[:MOST_KEPT]
        kept = kept[np.argsort(self.ids[kept])]
        arrays["held_out.ids"] = self.ids[kept]
        arrays["held_out.probabilities"] = fitted.held_out[kept].astype(np.float16)
        data = fitted.to_bytes({**arrays, **more})
        return replace(stored, bytes=data)


def _tree(library: Library, options: TrainingOptions) -> GenreTree:
    """The tree of genres that is used from now on."""
    return library.genres() if options.genres is None else options.genres


def _scores(
    examples: TrainingSet,
    fitted: Fitted,
    groups: NDArray[np.int64],
    left_out: Sequence[ExcludedTag],
) -> tuple[NDArray[np.float32], dict[str, NDArray[Any]], dict[str, Any]]:
    """What held-out probabilities tell: thresholds, arrays to store, and a part of the report."""
    from harmonium.evaluation import reliability

    scores = score_tags(examples.Y, fitted.held_out)
    thresholds = choose_thresholds(examples.Y, fitted.held_out, scores)
    arrays = {"rates": scores.positives / np.maximum(scores.positives + scores.negatives, 1)}
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
    before, after = (
        reduce(
            operator.add,
            (reliability(examples.Y[some], P[some]) for some in row_blocks(len(P), MOST_IN_MEMORY)),
        )
        for P in (fitted.uncorrected, fitted.held_out)
    )
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
        "write_from": write_from if write_from < UNREACHABLE else None,
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


def _means(sums: NDArray[np.float64], n: NDArray[np.int64]) -> list[float | None]:
    """Sums divided by n; None where n is 0."""
    return [_number(total / count) if count else None for total, count in zip(sums, n, strict=True)]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
