"""Learning a library's tags: from people's tags and features to a stored model.

The built-in model's log-odds are offered to training as additional inputs, and it is a prior for
tags that both know (`learning.prior`). If several people tagged the same tracks, labels are also
smoothed: what would a new person say?
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from harmonium import __version__, stopping
from harmonium.arrays import Arrays, Ids
from harmonium.engine import Engine
from harmonium.files import temporary_folder
from harmonium.library.learning.examples import TrainingSet, read_training_set
from harmonium.library.learning.fitting import (
    MAX_FIRST,
    FittedModel,
    TrainingProgress,
    enable_jax_cache,
    fit,
    fit_first,
)
from harmonium.library.learning.labels import TaggedTracks, TrainingOptions, row_blocks
from harmonium.library.learning.prior import (
    NO_CURVE,
    builtin_tags_beside,
    known_tags,
    with_prior,
)
from harmonium.library.learning.report import NONE_KNOWN, Evaluation, KnownTag, evaluate
from harmonium.library.learning.scores import curves_to_arrays
from harmonium.library.learning.smoothing import can_smooth, learn_smoothing
from harmonium.library.library import Library
from harmonium.library.model.builtin import builtin_model
from harmonium.library.model.precision import OTHER_CURVES
from harmonium.library.store.models import StoredModel
from harmonium.library.store.reports import ModelReport
from harmonium.library.store.schema import GENRES

MAX_IN_MEMORY = 50_000  # up to this many tracks, features are in memory; above, in files
MAX_KEPT = 50_000  # tracks whose held-out probabilities are kept; with more, a random sample


@stopping.stoppable
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
        stopping.check()
        if progress is not None:
            progress(what, 0, 0)

    with ExitStack() as stack:
        step("Reading")
        training = _Training.read(library, options)
        folder = None
        if len(training.tracks.ids) > MAX_IN_MEMORY:
            folder = stack.enter_context(temporary_folder("harmonium-train-"))
        examples = read_training_set(library, training.tracks, folder)
        step("First model")
        number = training.store_first(examples, use=use, tell=first)
        arrays: Arrays = {}
        if options.smooth and can_smooth(training.tracks.opinions):
            step("Smoothing")
            examples, arrays = training.smoothed(examples)
        fitted = fit(examples, seed=options.seed, progress=progress, engine=engine, jobs=jobs)
        stored = training.stored(examples, training.tracks.ids, fitted, arrays)
    with library.begin():
        stored = replace(stored, id=library.models.add(stored, use=use))
        library.models.remove(number, instead=stored.id)
    return stored


@dataclass(frozen=True, kw_only=True, eq=False)
class _Training:
    """A training of a library's model."""

    library: Library
    options: TrainingOptions
    tracks: TaggedTracks
    began: float

    @classmethod
    def read(cls, library: Library, options: TrainingOptions) -> "_Training":
        """Read what people say; JAX is imported after this."""
        began = time.perf_counter()
        tracks = TaggedTracks.read(library, options)
        enable_jax_cache()
        return cls(library=library, options=options, tracks=tracks, began=began)

    def store_first(
        self,
        examples: TrainingSet,
        *,
        use: bool,
        tell: Callable[[StoredModel], object] | None,
    ) -> int:
        """Store a logistic regression on the tracks, or on a sample of them; its number."""
        in_use = self.library.models.current(whole=False)
        rng = np.random.default_rng(self.options.seed)
        rows = np.sort(rng.permutation(len(examples))[:MAX_FIRST])
        sample = examples.rows(rows)
        fitted = fit_first(sample, self.options.seed)
        model = self.stored(sample, self.tracks.ids[rows], fitted, fitted.arrays)
        with self.library.begin():
            if self.options.genres is not None:
                self.library.settings.set(GENRES, self.options.genres.to_dict())
            has_own = in_use is not None and in_use.has_own
            number = self.library.models.add(model, use=use and not has_own)
        if tell is not None:
            tell(replace(model, id=number))
        return number

    def smoothed(self, examples: TrainingSet) -> tuple[TrainingSet, Arrays]:
        """The examples with smoothed labels to try, and what smoothing learnt for the model."""
        tracks = self.tracks
        smoothing = learn_smoothing(
            tracks.opinions, tracks.judged, tracks.tags, seed=self.options.seed
        )
        blocks = row_blocks(len(tracks.ids), MAX_IN_MEMORY)
        labels = np.concatenate([smoothing.labels(tracks.ids[block]) for block in blocks])
        only_answered = np.isin(tracks.ids, tracks.only_answered)
        labels[only_answered] = examples.Y[only_answered]
        together = smoothing.together._asdict()
        arrays = {f"together.{name}": array for name, array in together.items()}
        return replace(examples, smoothed=labels), arrays

    def stored(
        self, examples: TrainingSet, ids: Ids, fitted: FittedModel, arrays: Arrays
    ) -> StoredModel:
        """A fitted model of tracks (n,), with what its held-out probabilities show.

        ``arrays`` are stored with it. If it takes the built-in model's features, it has that
        model's tags, too.
        """
        held_out = fitted.held_out
        arrays = dict(arrays)
        known: Mapping[str, KnownTag] = NONE_KNOWN
        if examples.n_builtin:
            known = known_tags()
            mixed = with_prior(examples, held_out, builtin_model().vocabulary)
            held_out = mixed.held_out
            arrays["own_weight"] = mixed.own_weight
        shown = evaluate(examples, held_out, fitted.folds, known)
        curves = shown.curves
        stored = StoredModel(
            name=type(fitted.estimator).__name__,
            vocabulary=list(examples.tags),
            thresholds=shown.thresholds,
            extractor=self.tracks.extractor,
            bytes=b"",
            report=self._report(examples, fitted, shown),
        )
        if examples.n_builtin:
            builtin = builtin_tags_beside(examples, lambda tag: self.tracks.genre_labels(ids, tag))
            elsewhere = [known[tag].curve if tag in known else None for tag in examples.tags]
            others = [*(curve or NO_CURVE for curve in elsewhere), *builtin.checks]
            curves = [*curves, *builtin.curves]
            arrays |= builtin.arrays | curves_to_arrays(others, OTHER_CURVES)
            stored = builtin.added_to(stored).renamed(self.library.tags.renamed())
        rng = np.random.default_rng(self.options.seed)
        kept = np.sort(rng.permutation(len(ids))[:MAX_KEPT])
        arrays |= {
            "rates": shown.rates,
            **curves_to_arrays(curves),
            "held_out.ids": ids[kept],
            "held_out.probabilities": held_out[kept].astype(np.float16),
        }
        return replace(stored, bytes=fitted.estimator.to_bytes(arrays))

    def _report(self, examples: TrainingSet, fitted: FittedModel, shown: Evaluation) -> ModelReport:
        chosen = fitted.candidates[0].hyperparameters
        return ModelReport(
            tracks=len(examples),
            people=self.tracks.opinions["person"].n_unique(),
            mean_auc=shown.mean_auc,
            tags=shown.tags,
            left_out=tuple(self.tracks.excluded),
            calibration=shown.calibration,
            smoothing_tried=examples.smoothed is not None,
            smoothed=chosen.smoothed,
            shipped_inputs=chosen.more_inputs,
            trials=tuple(candidate.report() for candidate in fitted.candidates),
            folds=int(fitted.folds.max()) + 1,
            grouped_by=examples.grouped_by,
            min_count=self.options.min_count,
            min_share=self.options.min_share,
            seed=self.options.seed,
            genres=bool(self.options.tree(self.library)),
            seconds=time.perf_counter() - self.began,
            version=__version__,
        )
