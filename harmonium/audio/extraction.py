"""Features of many files: in parallel, from a cache where they were computed before.

A file that cannot be used is a reason in the result, not an exception. docs/extraction.md says what
becomes of files that change or vanish meanwhile, and of decoders that crash or hang.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonium.audio.cache import FeatureCache
from harmonium.audio.extractors import Extractor, get_extractor
from harmonium.audio.file_tasks import (
    CachedExtraction,
    DigestedFile,
    FileFeatures,
    FileReader,
    FileTask,
    WorkerAnswer,
    pickled_extractor,
)
from harmonium.engine import Engine, EngineError, Runner, Serial, TaskOutcome, TimedOut, WorkerDied
from harmonium.errors import HarmoniumError

PathLike = str | os.PathLike[str]
FileProgress = Callable[[int, int], None]
"""Called with how many files are done, and how many there are."""

TIME_LIMIT = 300.0
"""Seconds that a file may take before its decoder is taken to hang."""


@dataclass(frozen=True)
class UnusableFile:
    """A file without features."""

    path: str
    reason: str


@dataclass(frozen=True)
class Extraction:
    """The features of many files, in the order of their paths."""

    features: NDArray[np.float32]
    """(n_usable, n_features)"""
    paths: tuple[str, ...]
    """The file of each row."""
    rows: NDArray[np.int64]
    """(n_usable,) the place of each row's file among the paths given."""
    feature_names: tuple[str, ...]
    """What each column is."""
    failures: tuple[UnusableFile, ...]
    """The files that could not be used, in order."""
    n_cached: int
    """How many rows came from the cache."""
    heads: NDArray[np.float32]
    """(n_usable, n_heads) the tag probabilities that the extractor gives besides; often none."""


def extract_files(
    paths: Iterable[PathLike],
    *,
    extractor: str | Extractor = "paper",
    jobs: int | None = None,
    engine: str | Engine = "processes",
    cache: PathLike | FeatureCache | None = None,
    progress: FileProgress | None = None,
    start: float | None = None,
    time_limit: float | None = TIME_LIMIT,
) -> Extraction:
    """The features of files, as a matrix.

    Parameters
    ----------
    paths : the files; a path may be there twice
    extractor : "paper", another name, or an extractor
    jobs : how many processes; by default one for each core
    engine : "processes", "serial" or the address of a Dask scheduler, see `make_executor`
    cache : a folder in which features are kept and looked for; None for none
    progress : called with (files done, files) now and then
    start : where in the files the window begins, in seconds; None for the middle
    time_limit : seconds that one file may take; None for no limit

    Raises
    ------
    EngineError, DataError
        where the engine, the extractor or the cache cannot be used; never because of a file
    """
    files = [os.fspath(path) for path in paths]
    extractor = get_extractor(extractor)
    matrix = np.empty((len(files), len(extractor.feature_names)), np.float32)
    heads = np.empty((len(files), len(extractor.head_names)), np.float32)
    usable = np.zeros(len(files), bool)
    reasons: dict[int, str] = {}
    n_cached = 0
    results = iterate_files(
        files,
        extractor=extractor,
        jobs=jobs,
        engine=engine,
        cache=cache,
        start=start,
        time_limit=time_limit,
    )
    for n_done, found in enumerate(results, 1):
        if found.vector is None:
            reasons[found.position] = found.reason or ""
        else:
            matrix[found.position], usable[found.position] = found.vector, True
            if found.heads is not None:
                heads[found.position] = found.heads
            n_cached += found.cached
        if progress:
            progress(n_done, len(files))
    rows = np.flatnonzero(usable)
    return Extraction(
        features=matrix if usable.all() else matrix[rows],
        paths=tuple(files[i] for i in rows),
        rows=rows,
        feature_names=extractor.feature_names,
        failures=tuple(UnusableFile(files[i], reasons[i]) for i in sorted(reasons)),
        n_cached=n_cached,
        heads=heads if usable.all() else heads[rows],
    )


def iterate_files(
    paths: Iterable[PathLike],
    *,
    extractor: str | Extractor = "paper",
    jobs: int | None = None,
    engine: str | Engine = "processes",
    cache: PathLike | FeatureCache | None = None,
    start: float | None = None,
    time_limit: float | None = TIME_LIMIT,
) -> Iterator[FileFeatures]:
    """The features of files one by one, in the order in which they are ready.

    Paths are taken as they can be worked on, and nothing is kept: for any number of files. Features
    that were computed are in the cache before they are yielded. A path may be a `DigestedFile`, for
    which the cache needs no digest. The parameters are those of `extract_files`.
    """
    extractor = get_extractor(extractor)
    if extractor.check:
        extractor.check()
    with ExitStack() as stack:
        if cache is not None and not isinstance(cache, FeatureCache):
            cache = stack.enter_context(FeatureCache(cache))
        recipe = f"{extractor.version}; from {'the middle' if start is None else f'{start:g} s'}"
        steps = CachedExtraction(cache, recipe, extractor)
        here = engine == "serial" or isinstance(engine, Serial)
        read = FileReader(extractor if here else pickled_extractor(extractor), start)
        runner = Runner[FileTask, WorkerAnswer](
            read, engine=engine, jobs=jobs, time_limit=time_limit
        )
        stack.enter_context(runner)
        for position, path in enumerate(paths):
            while runner.full:
                yield from _act(runner, steps)
            name = os.fspath(path)
            full = os.path.abspath(name)  # noqa: PTH100
            digested = path if isinstance(path, DigestedFile) else None
            step = steps.first_step(FileTask(position, name, full, digested=digested))
            if isinstance(step, FileTask):
                runner.submit(step)
            else:
                yield step
        while runner.pending:
            yield from _act(runner, steps)


def _act(runner: Runner[FileTask, WorkerAnswer], steps: CachedExtraction) -> Iterator[FileFeatures]:
    """Wait for a worker's answer, and yield the features that it gives, if it does."""
    outcome = runner.next()
    step = steps.next_step(outcome.task, _answer(outcome))
    if isinstance(step, FileTask):
        runner.submit(step)
    else:
        yield step


def _answer(outcome: TaskOutcome[FileTask, WorkerAnswer]) -> WorkerAnswer:
    error = outcome.error
    if isinstance(error, WorkerDied):
        return WorkerAnswer(reason=f"makes the decoder crash: {error}.")
    if isinstance(error, TimedOut):
        return WorkerAnswer(reason=f"makes the decoder hang: {error}.")
    if isinstance(error, HarmoniumError):
        raise error
    if error is not None:
        raise EngineError(f"A worker failed: {type(error).__name__}: {error}") from error
    assert outcome.result is not None
    return outcome.result
