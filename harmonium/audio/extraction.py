"""Features of many files: in parallel, and from a cache if they were computed before.

A file that cannot be used is a reason in the result, not an exception. docs/features.md says what
happens to files that change or vanish during the run, and to decoders that crash or hang.
"""

import os
import pickle
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harmonium.arrays import Floats, Ids
from harmonium.audio.cache import FeatureCache, FileStatus, file_digest, file_status
from harmonium.audio.decoding import quoted
from harmonium.audio.extractors import Extractor, get_extractor
from harmonium.engine import (
    Engine,
    EngineError,
    Runner,
    Serial,
    TaskOutcome,
    TimedOut,
    WorkerDied,
    pickled,
)
from harmonium.errors import AudioError, HarmoniumError, readable
from harmonium.files import PathLike, atomic_file, check_writable
from harmonium.spreadsheets import guarded_frame

FileProgress = Callable[[int, int], None]  # called with (files done, total)

TIME_LIMIT = 300.0  # seconds after which a file's decoder counts as hanging
MAX_ATTEMPTS = 3  # how often to read a file that changes while it is read
OUTPUT_FORMATS = (".parquet", ".csv", ".npz")
STOPPED = "was not read to its end"  # this says nothing about the file, so it is tried again


class KnownFile(NamedTuple):
    """A file whose content is known. It counts while the size and the time of change stay."""

    path: str
    digest: bytes  # SHA-256 of its content, or of its sound alone
    size: int
    modified: int  # nanoseconds


GivenFile = PathLike | KnownFile


@dataclass(frozen=True, kw_only=True)
class FileFeatures:
    """One file's features, or the reason why it has none."""

    path: str  # as given
    position: int = 0  # its place among the paths given, from 0
    vector: Floats | None = None  # (n_features,)
    heads: Floats | None = None  # (n_heads,) tag probabilities, if the extractor gives any
    reason: str = ""  # why there are no features, in words that follow the file's name
    cached: bool = False  # whether the features were in the cache


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """The features of many files, in the order of their paths."""

    features: Floats  # (n_usable, n_features)
    paths: tuple[str, ...]  # the file of each row
    rows: Ids  # (n_usable,) the place of each row's file among the paths given
    feature_names: tuple[str, ...]  # what each column is
    failures: tuple[FileFeatures, ...]  # the files that could not be used, in order, with reasons
    n_cached: int  # how many rows came from the cache
    heads: Floats  # (n_usable, n_heads) the tag probabilities of the extractor, if it is a tagger


def extract_files(
    paths: Iterable[PathLike],
    *,
    extractor: str | Extractor = "paper",
    progress: FileProgress | None = None,
    jobs: int | None = None,
    engine: str | Engine = "processes",
    cache: PathLike | None = None,
    start: float | None = None,
    time_limit: float | None = TIME_LIMIT,
) -> Extraction:
    """The features of files, as a matrix.

    Parameters
    ----------
    paths : the files; a path may be there twice
    extractor : "paper", another name, or an extractor
    progress : called with (files done, files) now and then
    jobs, engine, cache, start, time_limit : as in `iterate_files`

    EngineError or DataError if the engine, the extractor or the cache cannot be used.
    """
    files = [os.fspath(path) for path in paths]
    extractor = get_extractor(extractor)
    results: list[FileFeatures] = []
    for result in iterate_files(
        files,
        extractor=extractor,
        jobs=jobs,
        engine=engine,
        cache=cache,
        start=start,
        time_limit=time_limit,
    ):
        results.append(result)
        if progress:
            progress(len(results), len(files))
    results.sort(key=lambda result: result.position)
    usable = [result for result in results if result.vector is not None]
    features = np.array([result.vector for result in usable], np.float32)
    heads = np.array([result.heads for result in usable], np.float32)
    return Extraction(
        features=features.reshape(len(usable), len(extractor.feature_names)),
        paths=tuple(result.path for result in usable),
        rows=np.array([result.position for result in usable], np.int64),
        feature_names=extractor.feature_names,
        failures=tuple(result for result in results if result.vector is None),
        n_cached=sum(result.cached for result in usable),
        heads=heads.reshape(len(usable), len(extractor.head_names)),
    )


def iterate_files(
    files: Iterable[GivenFile],
    *,
    extractor: str | Extractor,
    jobs: int | None = None,
    engine: str | Engine = "processes",
    cache: PathLike | None = None,
    start: float | None = None,
    time_limit: float | None = TIME_LIMIT,
) -> Iterator[FileFeatures]:
    """The features of files one by one, in the order in which they are ready.

    Files are taken as workers become free, and nothing is kept, so there can be any number of
    files. Features are in the cache before they are yielded.

    Parameters
    ----------
    files : paths, or `KnownFile`s
    extractor : its name, or an extractor
    jobs : how many processes; by default one for each core
    engine : "processes", "serial" or the address of a Dask scheduler, such as "tcp://host:8786"
    cache : the folder of cached features; None for no cache
    start : where in the files the window begins, in seconds; None for the middle
    time_limit : seconds that one file may take; None for no limit
    """
    extractor = get_extractor(extractor)
    is_serial = engine == "serial" or isinstance(engine, Serial)
    # Pickled once, not for each file.
    sent = extractor if is_serial else pickled(extractor, f"The extractor '{extractor.name}'")
    read = partial(_read, sent, start)
    where = "the middle" if start is None else f"{start:g} s"
    recipe = f"{extractor.version}; from {where}"
    under_way: dict[int, _FileUnderWay] = {}
    with (
        nullcontext() if cache is None else FeatureCache(cache, recipe) as feature_cache,
        Runner[Request, Answer](read, engine=engine, jobs=jobs, time_limit=time_limit) as runner,
    ):

        def advance(position: int, answer: Answer | None) -> Iterator[FileFeatures]:
            """Submit what a file needs next, or yield its features."""
            file = under_way[position]
            try:
                needed = next(file.steps) if answer is None else file.steps.send(answer)
            except StopIteration as finished:
                del under_way[position]
                yield _features(extractor, file.path, position, finished.value)
                return
            runner.submit(
                Request(
                    position=position,
                    path=os.path.abspath(file.path),  # noqa: PTH100
                    needed=needed,
                )
            )

        for position, file in enumerate(files):
            while runner.full:
                yield from advance(*_next_answer(runner))
            if isinstance(file, tuple):
                known = KnownFile(*file)
                path = known.path
            else:
                known = None
                path = os.fspath(file)
            steps = _steps(path, known, feature_cache, extractor.n_numbers)
            under_way[position] = _FileUnderWay(path, steps)
            yield from advance(position, None)
        while runner.pending:
            yield from advance(*_next_answer(runner))


def _features(extractor: Extractor, path: str, position: int, outcome: "Outcome") -> FileFeatures:
    """A file's features from its numbers, or its reason."""
    if outcome.reason:
        return FileFeatures(path=path, position=position, reason=outcome.reason)
    assert outcome.numbers is not None
    n_features = len(extractor.feature_names)
    return FileFeatures(
        path=path,
        position=position,
        vector=outcome.numbers[:n_features],
        heads=outcome.numbers[n_features:],
        cached=outcome.cached,
    )


# One file, step by step


class Needed(NamedTuple):
    """What a worker has to find out about a file."""

    numbers: bool  # its features and heads
    digest: bool


class Request(NamedTuple):
    """A worker's task."""

    position: int
    path: str  # whole
    needed: Needed


class Answer(NamedTuple):
    """A worker's answer: what was needed, or why the file cannot be used."""

    numbers: Floats | None = None  # (n_numbers,)
    digest: bytes | None = None
    reason: str = ""


class Outcome(NamedTuple):
    """What became of a file."""

    numbers: Floats | None = None  # (n_numbers,) the features and heads
    cached: bool = False  # whether the cache had them
    reason: str = ""  # why there are none


Steps = Generator[Needed, Answer, Outcome]


class _FileUnderWay(NamedTuple):
    path: str
    steps: Steps


def _steps(path: str, known: KnownFile | None, cache: FeatureCache | None, n_numbers: int) -> Steps:
    """What to ask workers for a file, step by step. Each answer is sent."""
    full_path = os.path.abspath(path)  # noqa: PTH100
    status = None
    if cache is not None:
        with suppress(OSError, ValueError):  # a worker will say what is wrong
            status = file_status(full_path)
    if cache is None or status is None:
        answer = yield Needed(numbers=True, digest=False)
        return Outcome(numbers=answer.numbers, reason=answer.reason)

    numbers = _usable(cache.find_by_path(full_path, status), n_numbers)
    if numbers is not None:
        return Outcome(numbers=numbers, cached=True)
    digest = None
    if known is not None and (known.size, known.modified) == (status.size, status.modified):
        digest = known.digest
        numbers = _usable(cache.find_by_content(digest), n_numbers)
        if numbers is not None:
            cache.put(full_path, status, digest)
            return Outcome(numbers=numbers, cached=True)

    # The cache can know this content only if it knows one of this size: then the digest is first.
    if cache.has_size(status.size):
        needed = Needed(numbers=False, digest=True)
    else:
        needed = Needed(numbers=True, digest=digest is None)
    return (yield from _read_steps(full_path, status, digest, needed, cache, n_numbers))


def _read_steps(
    full_path: str,
    status: FileStatus,
    digest: bytes | None,
    needed: Needed,
    cache: FeatureCache,
    n_numbers: int,
) -> Steps:
    """What to ask workers until the file has stayed the same while it was read."""
    n_attempts = 1
    while True:
        answer = yield needed
        if answer.reason:
            return Outcome(reason=answer.reason)
        digest = answer.digest or digest
        assert digest is not None
        try:
            status_now = file_status(full_path)
        except OSError:
            return Outcome(reason="vanished while it was read.")
        if status_now != status:
            if n_attempts == MAX_ATTEMPTS:
                return Outcome(reason=f"changed while it was read, {MAX_ATTEMPTS} times.")
            n_attempts += 1
            status = status_now
            digest = None
            needed = Needed(numbers=True, digest=True)
            continue
        if answer.numbers is not None:
            cache.put(full_path, status, digest, answer.numbers)
            return Outcome(numbers=answer.numbers)
        numbers = _usable(cache.find_by_content(digest), n_numbers)
        if numbers is not None:
            cache.put(full_path, status, digest)
            return Outcome(numbers=numbers, cached=True)
        needed = Needed(numbers=True, digest=False)


def _usable(numbers: Floats | None, n_numbers: int) -> Floats | None:
    """The cached numbers, unless there are none or too few."""
    if numbers is None or len(numbers) != n_numbers:
        return None
    return numbers


def _next_answer(runner: Runner[Request, Answer]) -> tuple[int, Answer]:
    """The next worker's answer, and the position of its file."""
    outcome = runner.next()
    reason = reason_of(outcome)
    if reason:
        return outcome.task.position, Answer(reason=reason)
    assert outcome.result is not None
    return outcome.task.position, outcome.result


def reason_of(outcome: TaskOutcome[Any, Any]) -> str:
    """Why a worker could not read a file, or ""; any other error is raised."""
    error = outcome.error
    if isinstance(error, WorkerDied) and error.exit_code in (-9, -15):  # SIGKILL, SIGTERM
        return f"{STOPPED}: {error}."
    if isinstance(error, WorkerDied):
        return f"makes the decoder crash: {error}."
    if isinstance(error, TimedOut):
        return f"makes the decoder hang: {error}."
    if isinstance(error, HarmoniumError):
        raise error
    if error is not None:
        raise EngineError(f"A worker failed: {type(error).__name__}: {error}") from error
    return ""


# In the worker


def _read(extractor: Extractor | bytes, start: float | None, request: Request) -> Answer:
    """Read a file; a problem with the file becomes a reason, any other raises."""
    if isinstance(extractor, bytes):
        extractor = _unpickled(extractor)
    numbers = None
    digest = None
    try:
        # The features first, since they reveal files that are not music.
        if request.needed.numbers:
            numbers = extractor.extract(request.path, start)
        if request.needed.digest:
            digest = file_digest(request.path)
    except OSError as error:
        return Answer(reason=f"cannot be read: {error.strerror or error}.")
    except AudioError as error:
        return Answer(reason=str(error).removeprefix(f"{quoted(request.path)} "))
    except MemoryError:
        return Answer(reason="needs more memory than there is.")
    return Answer(numbers=numbers, digest=digest)


@lru_cache(maxsize=4)
def _unpickled(data: bytes) -> Extractor:
    """The extractor in a worker; the same object for all files, so that it can keep things."""
    try:
        extractor = pickle.loads(data)
    except Exception as error:
        raise EngineError(
            f"The workers cannot load the extractor ({type(error).__name__}: "
            f"{error}). Install the package that defines it there."
        ) from error
    assert isinstance(extractor, Extractor)
    return extractor


# Tables


def write_features(path: PathLike, extraction: Extraction, *, raw: bool = False) -> None:
    """Write the matrix with the path of each row, in the format of the file's ending.

    - .parquet, .csv: a column ``path``, then one for each feature. A byte of a path that is not
      UTF-8 is written as ``\\xNN``; Parquet then has all paths as they are in ``path_bytes``.
      In CSV, texts that a spreadsheet would run begin with an apostrophe, unless ``raw``.
    - .npz: ``path`` (n,), ``X`` (n, n_features) and ``columns`` (n_features,)

    DataError for another ending or a folder that cannot be written to; OSError for a full disk.
    """
    check_writable(path, OUTPUT_FORMATS)
    ending = Path(path).suffix.lower()
    if ending == ".npz":
        _write_arrays(Path(path), extraction)
    else:
        _write_table(Path(path), extraction, ending, raw=raw)


def _write_arrays(path: Path, extraction: Extraction) -> None:
    with atomic_file(path) as file:
        np.savez(
            file,
            path=np.array(extraction.paths, str),
            X=extraction.features,
            columns=np.array(extraction.feature_names, str),
        )


def _write_table(path: Path, extraction: Extraction, ending: str, *, raw: bool) -> None:
    import polars as pl

    paths = extraction.paths
    columns = [pl.Series("path", map(readable, paths), pl.String)]
    if ending == ".parquet" and any(readable(name) != name for name in paths):
        columns.append(pl.Series("path_bytes", map(os.fsencode, paths), pl.Binary))
    features = pl.DataFrame(extraction.features, schema=list(extraction.feature_names))
    table = pl.DataFrame(columns).hstack(features)
    with atomic_file(path) as file:
        if ending == ".csv":
            (table if raw else guarded_frame(table)).write_csv(file)
        else:
            table.write_parquet(file)


def write_failures(path: PathLike, failures: Iterable[FileFeatures], *, raw: bool = False) -> None:
    """Write a CSV file of the columns path and reason; ``raw`` as in `write_features`."""
    import polars as pl

    rows = [(readable(failure.path), failure.reason) for failure in failures]
    schema = {"path": pl.String, "reason": pl.String}
    with atomic_file(Path(path)) as file:
        table = pl.DataFrame(rows, schema=schema, orient="row")
        (table if raw else guarded_frame(table)).write_csv(file)
