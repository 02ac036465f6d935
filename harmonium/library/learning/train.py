"""Learning a library's tags: from people's tags and features to a stored model.

The built-in model's log-odds are offered to training as additional inputs. If a tag is in both
vocabularies, the library's examples count, and the built-in model is a prior while they are few: n
examples weigh n / (n + 5) of the log-odds, if that ranks held-out tracks better.

If several people tagged the same tracks, labels are also smoothed: what would a new person say?
"""

import operator
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium import __version__
from harmonium.arrays import Arrays, Doubles, Floats, Ids, Mask
from harmonium.data.tag_names import NO_TAG, GenreTree, kind_of
from harmonium.engine import Engine
from harmonium.errors import DataError
from harmonium.files import temporary_folder
from harmonium.library import tagger
from harmonium.library.learning.examples import (
    MIN_EXAMPLES,
    ExcludedTag,
    TrainingSet,
    choose_vocabulary,
    count_without,
    read_training_set,
    row_blocks,
    tracks_with_only_genres,
    tracks_without_genre,
)
from harmonium.library.learning.fitting import (
    MAX_FIRST,
    Candidate,
    TrainingProgress,
    choose_thresholds,
    curves_to_arrays,
    fit,
    fit_first,
    interrupts_raise,
    make_curves,
    score_tags,
)
from harmonium.library.library import Library
from harmonium.library.store.models import UNREACHABLE, StoredModel
from harmonium.library.store.opinions import (
    MIN_SHARE,
    judge,
    label_matrix,
    only_answered_tracks,
    with_kinds,
)
from harmonium.library.store.schema import EXTRACTOR, GENRES
from harmonium.library.tags import MIN_PEOPLE

MAX_IN_MEMORY = 50_000  # up to this many tracks, features are in memory; above, in files
MAX_KEPT = 50_000  # tracks whose held-out probabilities are kept; with more, a random sample
PRIOR_STRENGTH = 5.0  # the weight of the built-in model, in examples
MIN_SHARED = 20  # smoothing needs two people who have tagged this many tracks in common
MIN_SHARED_FRACTION = 0.1  # smoothing needs several people on this share of the tracks
MAX_SMOOTHING = 2_000_000  # the most pairs of person and track, times passes over them


@dataclass(frozen=True)
class TrainingOptions:
    """How to train."""

    min_examples: int = MIN_EXAMPLES  # tracks with a tag, and without it, that it needs
    max_tags: int = 200
    min_count: int = 1  # how many people must give a track a tag
    min_share: float = MIN_SHARE  # the share of a track's people who must give it the tag
    smooth: bool = True  # whether to try smoothed tags, if people have tagged the same tracks
    seed: int = 0
    genres: GenreTree | None = None  # the tree to use from now on; by default the library's


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
    """Learn from a library's tagged tracks, see `Library.train`; store the model and use it.

    The first answer, a logistic regression, is used at once, unless the library already uses its
    own model. The final model replaces it in one step when it is complete. It is the same wherever
    it is fitted. A DataError says how much data is missing, and an EngineError that the engine
    cannot be used; the first answer is then already stored.
    """
    options = options or TrainingOptions()

    def step(what: str) -> None:
        if progress:
            progress(what, 0, 0)

    with ExitStack() as stack:
        step("Reading")
        task = _Task.read(library, options, stack)
        step("First model")
        in_use = library.models.current(whole=False)
        answer = task.first_answer()
        with library.begin():
            if options.genres is not None:
                library.settings.set(GENRES, options.genres.to_dict())
            number = library.models.add(answer, use=use and (in_use is None or not in_use.n_own))
        if first:
            first(replace(answer, id=number))
        if options.smooth and can_smooth(task.opinions):
            step("Smoothing")
            task = task.smoothed()
        model, candidates = fit(
            task.examples, seed=options.seed, progress=progress, engine=engine, jobs=jobs
        )
        stored = task.stored(model, candidates)
    with library.begin():
        stored = replace(stored, id=library.models.add(stored, use=use))
        library.models.remove(number, instead=stored.id)
    return stored


@dataclass(frozen=True, eq=False)
class _Task:
    """The training data: the tracks that people have tagged, and what is known about them."""

    library: Library
    options: TrainingOptions
    extractor: str
    opinions: pl.DataFrame
    judged: pl.DataFrame
    answered: Ids  # tracks on which people have only answered questions
    excluded: list[ExcludedTag]
    ids: Ids
    examples: TrainingSet
    grouped_by: str
    began: float
    more: Arrays = field(default_factory=dict)  # more arrays for the model

    @classmethod
    def read(cls, library: Library, options: TrainingOptions, stack: ExitStack) -> "_Task":
        """Read the training data; large tables go to a folder that the stack removes."""
        began, extractor = time.perf_counter(), library.settings.get(EXTRACTOR)
        if extractor is None:
            raise DataError(
                "The library has no features to learn from. `harmonium index FOLDER` computes them."
            )
        opinions, kinds = library.opinions.triples(), library.kinds()
        no_tags = [tag for tag in opinions["tag"].unique() if kind_of(tag, kinds) == NO_TAG]
        vague = opinions.filter(pl.col("tag").is_in(no_tags))["track_id"].to_numpy()
        opinions = opinions.filter(~pl.col("tag").is_in(no_tags))
        tagged = np.unique(opinions["track_id"].to_numpy().astype(np.int64))
        ids = library.tracks.with_features(tagged, extractor=extractor)
        opinions = opinions.filter(pl.col("track_id").is_in(pl.Series(ids).implode()))
        answered = only_answered_tracks(library, opinions)
        opinions = with_kinds(opinions, _tree(library, options))
        opinions = opinions.filter(~pl.col("tag").is_in(list(library.hidden_tags())))
        used = opinions["tag"].value_counts().filter(pl.col("count") >= options.min_examples)["tag"]
        judged = judge(
            opinions,
            min_count=options.min_count,
            min_share=options.min_share,
            genres=[tag for tag in used if kind_of(tag, kinds) == "genre"],
        )
        tags, excluded = choose_vocabulary(
            judged,
            len(ids) - len(answered),
            min_examples=options.min_examples,
            max_tags=options.max_tags,
        )
        tagger.keep_compiled()
        tracks = judged["track_id"].to_numpy()
        unknown: list[tuple[Ids, Mask]] = []
        for some, are_genres in (
            (tracks_without_genre(library, ids, judged, vague, kinds), True),
            (tracks_with_only_genres(library, opinions, kinds), False),
        ):
            # If nearly all other tracks have a tag, only these show what lacks it.
            n_without = count_without(judged, ids, np.union1d(some, answered))
            enough = [n_without[tag] >= options.min_examples for tag in tags]
            of_kind = [(kind_of(tag, kinds) == "genre") is are_genres for tag in tags]
            unknown.append((some, np.array(enough) & np.array(of_kind)))

        def labels(some: Ids) -> Floats:
            first, last = np.searchsorted(tracks, [some[0], some[-1] + 1])
            votes = judged.slice(int(first), int(last - first))
            return label_matrix(votes, some, tags, only_answered=answered, unknown=unknown)

        is_large = len(ids) > MAX_IN_MEMORY
        where = stack.enter_context(temporary_folder("harmonium-train-")) if is_large else None
        examples, grouped_by = read_training_set(library, extractor, ids, labels, tags, where)
        people = (opinions, judged, answered, excluded)
        return cls(library, options, extractor, *people, ids, examples, grouped_by, began)

    def smoothed(self) -> "_Task":
        """The same with smoothed labels to try."""
        examples = self.examples
        labels_of, together = learn_smoothing(
            self.opinions, self.judged, examples.tags, seed=self.options.seed
        )
        labels = np.concatenate(
            [labels_of(self.ids[some]) for some in row_blocks(len(self.ids), MAX_IN_MEMORY)]
        )
        alone = np.isin(self.ids, self.answered)
        labels[alone] = examples.Y[alone]
        more = {f"together.{name}": array for name, array in together._asdict().items()}
        return replace(self, examples=replace(examples, smoothed=labels), more=more)

    def first_answer(self) -> StoredModel:
        """A logistic regression on the tracks, or on a random sample of them."""
        rng = np.random.default_rng(self.options.seed)
        rows = np.sort(rng.permutation(len(self.ids))[:MAX_FIRST])
        task = replace(self, ids=self.ids[rows], examples=self.examples.rows(rows))
        model, candidates, correction = fit_first(task.examples, self.options.seed)
        return replace(task, more=correction.arrays()).stored(model, candidates)

    def stored(self, model: Any, candidates: list[Candidate]) -> StoredModel:
        """A fitted model with a report from its held-out probabilities."""
        examples, more = self.examples, dict(self.more)
        held_out, folds = model.held_out_, model.folds_
        if examples.n_more:
            held_out, more["own_weight"] = with_prior(
                examples, held_out, folds, tagger.builtin_model().vocabulary
            )
        thresholds, curves, rates, scores = _scores(examples, held_out, folds)
        chosen = candidates[0].hyperparameters
        stored = StoredModel(
            name=type(model).__name__,
            vocabulary=list(examples.tags),
            thresholds=thresholds,
            extractor=self.extractor,
            bytes=b"",
            report={
                "tracks": len(self.ids),
                "people": self.opinions["person"].n_unique(),
                **scores,
                "left_out": [excluded._asdict() for excluded in self.excluded],
                "smoothing_tried": examples.smoothed is not None,
                "smoothed": chosen.smoothed,
                "shipped_inputs": chosen.more_inputs,
                "trials": [
                    {**hyperparameters._asdict(), "auc": auc, "epochs": epochs}
                    for hyperparameters, auc, epochs in candidates
                ],
                "folds": int(folds.max()) + 1,
                "grouped_by": self.grouped_by,
                **{key: getattr(self.options, key) for key in ("min_count", "min_share", "seed")},
                "genres": bool(_tree(self.library, self.options)),
                "seconds": time.perf_counter() - self.began,
                "version": __version__,
            },
        )
        if examples.n_more:
            stored, curves, places = _with_builtin_tags(stored, curves)
            stored = stored.without(self.library.hidden_tags(), self.library.renamed_tags())
            more |= places
        rng = np.random.default_rng(self.options.seed)
        kept = np.sort(rng.permutation(len(self.ids))[:MAX_KEPT])
        more |= {
            "rates": rates,
            **curves_to_arrays(curves),
            "held_out.ids": self.ids[kept],
            "held_out.probabilities": held_out[kept].astype(np.float16),
        }
        return replace(stored, bytes=model.to_bytes(more))


def _tree(library: Library, options: TrainingOptions) -> GenreTree:
    """The genre tree to use from now on."""
    return library.genres() if options.genres is None else options.genres


def with_prior(
    examples: TrainingSet, held_out: Floats, folds: Ids, known: Sequence[str]
) -> tuple[Floats, Doubles]:
    """Held-out probabilities, with the built-in model as a prior where that helps, (n, C)."""
    # Also returns the weights of the library's examples, (C,). ``known``: the built-in model's
    # tags.
    weights, found = np.ones(len(examples.tags)), held_out.copy()
    for j, tag in enumerate(examples.tags):
        if tag not in known:
            continue
        n = float((examples.Y[:, j] == 1).sum())
        weight = np.float32(n / (n + PRIOR_STRENGTH))
        mixed = tagger.mix(found[:, j], examples.builtin(known.index(tag)), weight)
        both = np.stack([found[:, j], mixed], axis=1)
        alone, better = score_tags(np.repeat(examples.Y[:, [j]], 2, axis=1), both, folds).auc
        if better > alone:
            weights[j], found[:, j] = weight, mixed
    return found, weights


def _with_builtin_tags(
    stored: StoredModel, curves: list[tagger.PrecisionCurve]
) -> tuple[StoredModel, list[tagger.PrecisionCurve], Arrays]:
    """The model with the built-in model's other tags after its own, and with additional arrays."""
    known, own = tagger.builtin_model(), list(stored.vocabulary)
    new = [j for j, tag in enumerate(known.vocabulary) if tag not in own]
    tags = own + [known.vocabulary[j] for j in new]
    thresholds = np.concatenate([stored.thresholds, known.thresholds[new]])
    shared = {name: known.report[name] for name in ("aliases", "precision", "unconfirmed")}
    report = stored.report | {"own": len(own)} | shared
    known_curves = tagger.precision_curves(known)
    arrays = {
        tagger.PART: np.frombuffer(known.bytes, np.uint8),
        tagger.PLACES: np.array([tags.index(tag) for tag in known.vocabulary]),
    }
    stored = replace(stored, vocabulary=tags, thresholds=thresholds, report=report)
    return stored, [*curves, *(known_curves[j] for j in new)], arrays


def _scores(
    examples: TrainingSet, held_out: Floats, folds: Ids
) -> tuple[Floats, list[tagger.PrecisionCurve], NDArray[Any], dict[str, Any]]:
    """What held-out probabilities show: thresholds, precision, how common tags are, a report."""
    from harmonium.evaluation import reliability

    scores = score_tags(examples.Y, held_out, folds)
    thresholds = choose_thresholds(examples.Y, held_out, scores)
    rates = scores.positives / np.maximum(scores.positives + scores.negatives, 1)
    curves = make_curves(examples.Y, held_out, examples.groups)
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
    blocks = row_blocks(len(held_out), MAX_IN_MEMORY)
    found = reduce(operator.add, (reliability(examples.Y[b], held_out[b]) for b in blocks))
    report = {
        "mean_auc": _number(defined.mean()) if len(defined) else None,
        "tags": tags,
        "calibration": {
            "error": found.error,
            "edges": found.edges,
            "n": found.n.tolist(),
            "mean_probability": _means(found.scores, found.n),
            "share_true": _means(found.positives, found.n),
        },
    }
    return thresholds, curves, rates, report


def _promise(curve: tagger.PrecisionCurve, threshold: float) -> dict[str, float | None]:
    """The precision and recall at the threshold, and the threshold for writing."""
    rank, low = curve.at(threshold), curve.below()
    write_from = tagger.threshold_for(curve, tagger.USUAL_PRECISION)
    return {
        "precision": None if rank is None else float(curve.precision[rank]),
        "precision_at_least": None if rank is None else float(low[rank]),
        "recall": None if rank is None else float(curve.recall[rank]),
        "write_from": write_from if write_from < UNREACHABLE else None,
    }


def _means(sums: Doubles, n: Ids) -> list[float | None]:
    """Sums divided by n; None if n is 0."""
    return [_number(total / count) if count else None for total, count in zip(sums, n, strict=True)]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def can_smooth(opinions: pl.DataFrame) -> bool:
    """Whether enough tracks have been tagged by several people."""
    people = opinions.group_by("track_id").agg(pl.col("person").n_unique())["person"]
    shared = int((people > 1).sum())
    enough = opinions["person"].n_unique() >= MIN_PEOPLE
    return enough and shared >= max(MIN_SHARED, MIN_SHARED_FRACTION * len(people))


def learn_smoothing(
    opinions: pl.DataFrame, judged: pl.DataFrame, tags: tuple[str, ...], *, seed: int = 0
) -> tuple[Callable[[Ids], Floats], tagger.TagRBM]:
    """A function from sorted track ids to smoothed labels (n, n_tags); and what was learnt.

    What was learnt is which tags people give together, whatever the track. Every track has
    opinions, and ``judged`` has the verdicts on them. If people agree that a tag is absent, it
    stays so.
    """
    from harmonium.data import Triples
    from harmonium.estimators.smoother import TagSmoother

    given = opinions.filter((pl.col("value") > 0) & pl.col("tag").is_in(tags))
    triples = Triples.from_columns(
        given["person"], given["track_id"], given["tag"], normalise=False
    )
    seen = opinions.select("person", "track_id").unique(maintain_order=True)
    epochs = int(np.clip(MAX_SMOOTHING / len(seen), 8, 100))
    smoother = TagSmoother(
        max_epochs=epochs, refit=len(seen) * epochs < MAX_SMOOTHING, random_state=seed, n_jobs=-1
    )
    with interrupts_raise():
        smoother.fit(triples, pairs=(seen["person"], seen["track_id"]))
    columns = [smoother.tags_.tolist().index(tag) for tag in tags]
    denied = judged.filter(pl.col("verdict") == 0).with_columns(denied=pl.lit(1.0))

    def labels_of(ids: Ids) -> Floats:
        soft = smoother.smooth(ids).values[:, columns]
        soft[label_matrix(denied, ids, tags, "denied") == 1] = 0
        return soft

    U, c, d = (np.asarray(getattr(smoother.params_, k), np.float64) for k in "Ucd")
    return labels_of, tagger.TagRBM(U[:, columns], c, d[columns])
