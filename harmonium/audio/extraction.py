"""Features of many files: in parallel, from a cache where they were computed before.

A file that cannot be used is a reason in the result, not an exception. docs/features.md says what
becomes of files that change or vanish meanwhile, and of decoders that crash or hang.
"""

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from harmonium.arrays import Floats, Ids
from harmonium.audio.cache import FeatureCache, FileStatus, file_digest, file_status
from harmonium.audio.decoding import quoted
from harmonium.audio.extractors import Extractor, get_extractor
from harmonium.engine import Engine, EngineError, Runner, Serial, TaskOutcome, TimedOut, WorkerDied
from harmonium.errors import AudioError, DataError, HarmoniumError
from harmonium.files import atomic_file, check_writable, readable

if TYPE_CHECKING:
    import polars as pl

PathLike = str | os.PathLike[str]
GivenFile = PathLike | tuple[str, bytes, int, int]
"""A path; or a path, the SHA-256 digest of its content or of its sound alone, and the size and time
of change in nanoseconds that the file had then. The digest is used while these stay the same."""
FileProgress = Callable[[int, int], None]
"""Called with how many files are done, and how many there are."""

TIME_LIMIT = 300.0
"""Seconds that a file may take before its decoder is taken to hang."""
MAX_ATTEMPTS = 3
"""How often a file is read that changes while it is read."""
OUTPUT_FORMATS = (".parquet", ".csv", ".npz")


@dataclass(frozen=True)
class FileFeatures:
    """One file's features, or the reason why it has none."""

    path: str
    """As given."""
    position: int = 0
    """Its place among the paths given, from 0."""
    vector: Floats | None = None
    """(n_features,)"""
    heads: Floats | None = None
    """(n_heads,) the tag probabilities that the extractor gives besides, if it does."""
    reason: str = ""
    """Why there are no features, in words that follow the file's name."""
    cached: bool = False
    """Whether the features were in the cache."""


@dataclass(frozen=True)
class Extraction:
    """The features of many files, in the order of their paths."""

    features: Floats
    """(n_usable, n_features)"""
    paths: tuple[str, ...]
    """The file of each row."""
    rows: Ids
    """(n_usable,) the place of each row's file among the paths given."""
    feature_names: tuple[str, ...]
    """What each column is."""
    failures: tuple[FileFeatures, ...]
    """The files that could not be used, in order, with the reasons."""
    n_cached: int
    """How many rows came from the cache."""
    heads: Floats
    """(n_usable, n_heads) the tag probabilities that the extractor gives besides; often none."""


def extract_files(
    paths: Iterable[PathLike],
    *,
    extractor: str | Extractor = "paper",
    jobs: int | None = None,
    engine: str | Engine = "processes",
    cache: PathLike | None = None,
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
    engine : "processes", "serial" or the address of a Dask scheduler, such as "tcp://host:8786"
    cache : a folder in which features are kept and looked for; None for none
    progress : called with (files done, files) now and then
    start : where in the files the window begins, in seconds; None for the middle
    time_limit : seconds that one file may take; None for no limit

    EngineError or DataError where the engine, the extractor or the cache cannot be used.
    """
    files = [os.fspath(path) for path in paths]
    extractor = get_extractor(extractor)
    matrix = np.empty((len(files), len(extractor.feature_names)), np.float32)
    heads = np.empty((len(files), len(extractor.head_names)), np.float32)
    usable = np.zeros(len(files), bool)
    failures = []
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
            failures.append(found)
        else:
            matrix[found.position], usable[found.position] = found.vector, True
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
        failures=tuple(sorted(failures, key=lambda failure: failure.position)),
        n_cached=n_cached,
        heads=heads if usable.all() else heads[rows],
    )


def iterate_files(
    files: Iterable[GivenFile],
    *,
    extractor: str | Extractor = "paper",
    jobs: int | None = None,
    engine: str | Engine = "processes",
    cache: PathLike | None = None,
    start: float | None = None,
    time_limit: float | None = TIME_LIMIT,
) -> Iterator[FileFeatures]:
    """The features of files one by one, in the order in which they are ready.

    Files are taken as they can be worked on, and nothing is kept: for any number of files. Features
    are in the cache before they are yielded. The parameters are those of `extract_files`.
    """
    extractor = get_extractor(extractor)
    serial = engine == "serial" or isinstance(engine, Serial)
    read = partial(_read, extractor if serial else _pickled(extractor), start)
    with (
        nullcontext() if cache is None else FeatureCache(cache) as kept,
        Runner[_Task, _Answer](read, engine=engine, jobs=jobs, time_limit=time_limit) as runner,
    ):
        steps = _Steps(kept, extractor, start)
        for position, file in enumerate(files):
            while runner.full:
                yield from _take_outcome(runner, steps)
            path, *known = file if isinstance(file, tuple) else (os.fspath(file),)
            full_path = os.path.abspath(path)  # noqa: PTH100
            task = _Task(position, path, full_path, tuple(known))
            if found := steps.begin(task):
                yield found
            else:
                runner.submit(task)
        while runner.pending:
            yield from _take_outcome(runner, steps)


@dataclass
class _Task:
    """A file on its way through the cache and the workers."""

    position: int
    path: str
    full_path: str
    known: tuple  # its digest, and the size and time of change that it had then; or nothing
    wants_numbers: bool = True
    wants_digest: bool = False
    status: FileStatus | None = None
    digest: bytes | None = None
    attempt: int = 1

    def failed(self, reason: str) -> FileFeatures:
        return FileFeatures(self.path, self.position, reason=reason)


_Answer = tuple[Floats | None, bytes | None, str | None]
# The features and heads (n_numbers,), the digest, and why the file cannot be used.


class _Steps:
    """What to do next for a file; each step gives its features, or None: submit the task."""

    def __init__(
        self, cache: FeatureCache | None, extractor: Extractor, start: float | None
    ) -> None:
        self.cache = cache
        self.extractor = extractor
        self.recipe = (
            f"{extractor.version}; from {'the middle' if start is None else f'{start:g} s'}"
        )

    def begin(self, task: _Task) -> FileFeatures | None:
        if self.cache is None:
            return None
        try:
            task.status = status = file_status(task.full_path)
        except (OSError, ValueError):
            return None  # a worker finds the words for it
        numbers = self.cache.find_by_path(task.full_path, status, self.recipe)
        if found := self._cached(task, numbers):
            return found
        if task.known and task.known[1:] == status[:2]:
            task.digest = task.known[0]
            if found := self._find_content(task, status, task.digest):
                return found
        # This content can be known only if some of its size is: then its digest comes first.
        possible = self.cache.has_size(status.size, self.recipe)
        task.wants_digest = possible or task.digest is None
        task.wants_numbers = not possible
        return None

    def go_on(self, task: _Task, answer: _Answer) -> FileFeatures | None:
        numbers, digest, reason = answer
        digest = digest or task.digest
        if reason:
            return task.failed(reason)
        if self.cache is None or task.status is None or digest is None:
            return self._done(task, numbers)
        try:
            status = file_status(task.full_path)
        except OSError:
            return task.failed("vanished while it was read.")
        if status != task.status:
            if task.attempt == MAX_ATTEMPTS:
                return task.failed(f"changed while it was read, {MAX_ATTEMPTS} times.")
            task.attempt += 1
            task.status, task.digest = status, None
            task.wants_numbers = task.wants_digest = True
            return None
        if numbers is not None:
            self.cache.put(task.full_path, status, digest, self.recipe, numbers)
            return self._done(task, numbers)
        task.digest, task.wants_numbers, task.wants_digest = digest, True, False
        return self._find_content(task, status, digest)

    def _find_content(self, task: _Task, status: FileStatus, digest: bytes) -> FileFeatures | None:
        """The features of a content, if the cache has them; it then knows the path, too."""
        assert self.cache is not None
        found = self._cached(task, self.cache.find_by_content(digest, self.recipe))
        if found:
            self.cache.remember(task.full_path, status, digest)
        return found

    def _cached(self, task: _Task, numbers: Floats | None) -> FileFeatures | None:
        """What the cache has, if that are as many numbers as the extractor gives."""
        right = numbers is not None and len(numbers) == self.extractor.n_numbers
        return self._done(task, numbers, cached=True) if right else None

    def _done(self, task: _Task, numbers: Floats | None, cached: bool = False) -> FileFeatures:
        assert numbers is not None
        vector, heads = np.split(numbers, [len(self.extractor.feature_names)])
        return FileFeatures(task.path, task.position, vector, heads, cached=cached)


def _take_outcome(runner: Runner[_Task, _Answer], steps: _Steps) -> Iterator[FileFeatures]:
    """Wait for a worker's answer, and yield the features that it gives, if it does."""
    outcome = runner.next()
    if found := steps.go_on(outcome.task, _answer(outcome)):
        yield found
    else:
        runner.submit(outcome.task)


def _answer(outcome: TaskOutcome[_Task, _Answer]) -> _Answer:
    error = outcome.error
    if isinstance(error, WorkerDied):
        return None, None, f"makes the decoder crash: {error}."
    if isinstance(error, TimedOut):
        return None, None, f"makes the decoder hang: {error}."
    if isinstance(error, HarmoniumError):
        raise error
    if error is not None:
        raise EngineError(f"A worker failed: {type(error).__name__}: {error}") from error
    assert outcome.result is not None
    return outcome.result


def _read(extractor: Extractor | bytes, start: float | None, task: _Task) -> _Answer:
    """Read a file, in a worker; what is wrong with it is a reason, what else is wrong raises."""
    if isinstance(extractor, bytes):
        extractor = _unpickled(extractor)
    numbers = digest = None
    try:
        if task.wants_numbers:  # first, as that knows what is not a music file
            numbers = extractor.hear_file(task.full_path, start)
        if task.wants_digest:
            digest = file_digest(task.full_path)
    except OSError as error:
        return None, None, f"cannot be read: {error.strerror or error}."
    except AudioError as error:
        return None, None, str(error).removeprefix(f"{quoted(task.full_path)} ")
    except MemoryError:
        return None, None, "needs more memory than there is."
    return numbers, digest, None


def _pickled(extractor: Extractor) -> bytes:
    """The extractor as it goes to workers: pickled once, not for each file."""
    try:
        return pickle.dumps(extractor)
    except Exception as error:
        raise EngineError(
            f"The extractor '{extractor.name}' cannot be sent to other processes ({error}). Define "
            "its function at the top of a module, or work in this process with engine='serial'."
        ) from error


@lru_cache(maxsize=4)
def _unpickled(data: bytes) -> Extractor:
    """The extractor in a worker; the same object for all files, so that it can keep things."""
    try:
        extractor = pickle.loads(data)
    except Exception as error:
        raise EngineError(
            f"The extractor cannot be loaded where the workers are ({type(error).__name__}: "
            f"{error}). Install there the package that defines it."
        ) from error
    assert isinstance(extractor, Extractor)
    return extractor


def write_features(path: PathLike, extraction: Extraction) -> None:
    """Write the matrix with the path of each row; the format is that of the file's ending.

    - .parquet, .csv: a column ``path``, then one for each feature. A byte of a path that is not
      UTF-8 is written as ``\\xNN``; Parquet then has all paths as they are in ``path_bytes``.
    - .npz: ``path`` (n,), ``X`` (n, n_features) and ``columns`` (n_features,)

    DataError for another ending, or where the file cannot be written.
    """
    check_output(path)
    ending = Path(path).suffix.lower()
    with _new_file(path) as file:
        if ending == ".npz":
            names, paths = (np.array(x, str) for x in (extraction.feature_names, extraction.paths))
            np.savez(file, path=paths, X=extraction.features, columns=names)
        elif ending == ".csv":
            _frame(extraction).write_csv(file)
        else:
            _frame(extraction, path_bytes=True).write_parquet(file)


def write_failures(path: PathLike, failures: Iterable[FileFeatures]) -> None:
    """Write a CSV file of the columns path and reason."""
    import polars as pl

    rows = [(readable(failure.path), failure.reason) for failure in failures]
    schema = {"path": pl.String, "reason": pl.String}
    with _new_file(path) as file:
        pl.DataFrame(rows, schema=schema, orient="row").write_csv(file)


def check_output(path: PathLike) -> None:
    """Refuse a file that `write_features` could not write."""
    if Path(path).suffix.lower() not in OUTPUT_FORMATS:
        formats = ", ".join(OUTPUT_FORMATS)
        raise DataError(f"The name of the output must end in {formats}, got '{readable(path)}'.")
    check_writable(path)


def _frame(extraction: Extraction, path_bytes: bool = False) -> "pl.DataFrame":
    import polars as pl

    columns = [pl.Series("path", [readable(path) for path in extraction.paths], pl.String)]
    if path_bytes and any(readable(path) != path for path in extraction.paths):
        names = [os.fsencode(path) for path in extraction.paths]
        columns.append(pl.Series("path_bytes", names, pl.Binary))
    features = pl.DataFrame(extraction.features, schema=list(extraction.feature_names))
    return pl.DataFrame(columns).hstack(features)


@contextmanager
def _new_file(path: PathLike) -> Iterator[BinaryIO]:
    try:
        with atomic_file(Path(path)) as file:
            yield file
    except OSError as error:
        raise DataError(
            f"'{readable(path)}' cannot be written: {error.strerror or error}."
        ) from error
