"""Features of many files: in parallel, and from a cache if they were computed before.

A file that cannot be used is a reason in the result, not an exception. docs/features.md says what
happens to files that change or vanish during the run, and to decoders that crash or hang.

The cache is one SQLite database, which several processes may use at once. A file is identified by
the SHA-256 digest of its content, or of its sound alone if the caller knows that. The cache also
remembers which content a path had: while the file's status stays the same, it is not read.
"""

import hashlib
import os
import pickle
import sqlite3
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from harmonium.arrays import Floats, Ids
from harmonium.audio.decoding import Sound, SpreadWindows, Window, decode_windows, quoted
from harmonium.audio.extractors import Extractor, extractor_key, get_extractor
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
from harmonium.errors import AudioError, DataError, HarmoniumError, readable
from harmonium.files import PathLike, atomic_file, check_writable, enable_write_ahead_log, open_file

GivenFile = PathLike | tuple[str, bytes, int, int]
"""A path; or a path, the SHA-256 digest of its content or of its sound alone, and the size and time
of change in nanoseconds that the file had then. The digest is used while these stay the same."""
FileProgress = Callable[[int, int], None]  # called with (files done, total)

TIME_LIMIT = 300.0  # seconds after which a file's decoder counts as hanging
MAX_ATTEMPTS = 3  # how often to read a file that changes while it is read
OUTPUT_FORMATS = (".parquet", ".csv", ".npz")

PLACES = 30  # the most windows of a file to hear over time

CACHE_FILE = "features.sqlite"
CACHE_FORMAT = 1  # version of the tables; a cache with a later one is refused
BUSY_SECONDS = 60  # how long to wait for another process that is writing
STOPPED = "was not read to its end"  # this says nothing about the file, so it is tried again
SETTLED_NS = 2_000_000_000
"""How old a file's last change must be before its status is trusted: some file systems count time
in steps of 2 seconds, and would not show a second change within a step."""

TABLES = """
CREATE TABLE contents (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, size INTEGER NOT NULL);
CREATE INDEX contents_by_size ON contents (size);
CREATE TABLE recipes (id INTEGER PRIMARY KEY, version TEXT NOT NULL UNIQUE);
CREATE TABLE vectors (
    recipe INTEGER NOT NULL REFERENCES recipes,
    content INTEGER NOT NULL REFERENCES contents,
    vector BLOB NOT NULL,
    UNIQUE (content, recipe)
);
CREATE TABLE files (
    path BLOB PRIMARY KEY,
    size INTEGER NOT NULL, modified INTEGER NOT NULL, changed INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    content INTEGER NOT NULL REFERENCES contents
) WITHOUT ROWID;
"""

FileStatus = tuple[int, int, int, int]
"""The size of a file, when its content and its status last changed, in nanoseconds, and its inode.
Programs cannot set the third back."""


@dataclass(frozen=True)
class FileFeatures:
    """One file's features, or the reason why it has none."""

    path: str  # as given
    position: int = 0  # its place among the paths given, from 0
    vector: Floats | None = None  # (n_features,)
    heads: Floats | None = None  # (n_heads,) tag probabilities, if the extractor gives any
    reason: str = ""  # why there are no features, in words that follow the file's name
    cached: bool = False  # whether the features were in the cache


@dataclass(frozen=True)
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
    **options: Any,
) -> Extraction:
    """The features of files, as a matrix.

    Parameters
    ----------
    paths : the files; a path may be there twice
    extractor : "paper", another name, or an extractor
    progress : called with (files done, files) now and then
    options : ``jobs``, ``engine``, ``cache``, ``start`` and ``time_limit``, as in `iterate_files`

    EngineError or DataError if the engine, the extractor or the cache cannot be used.
    """
    files = [os.fspath(path) for path in paths]
    extractor = get_extractor(extractor)
    found: list[FileFeatures] = []
    for one in iterate_files(files, extractor=extractor, **options):
        found.append(one)
        if progress:
            progress(len(found), len(files))
    found.sort(key=lambda one: one.position)
    usable = [one for one in found if one.vector is not None]
    n_features, n_heads = len(extractor.feature_names), len(extractor.head_names)
    features = np.array([one.vector for one in usable], np.float32)
    heads = np.array([one.heads for one in usable], np.float32)
    return Extraction(
        features=features.reshape(len(usable), n_features),
        paths=tuple(one.path for one in usable),
        rows=np.array([one.position for one in usable], np.int64),
        feature_names=extractor.feature_names,
        failures=tuple(one for one in found if one.vector is None),
        n_cached=sum(one.cached for one in usable),
        heads=heads.reshape(len(usable), n_heads),
    )


def features_over_time(
    path: Sound,
    extractor: Extractor,
    *,
    cache: PathLike,
    key: str = "",
    progress: FileProgress | None = None,
) -> tuple[Floats, Floats]:
    """Features of windows in the middle of equal parts of a file, which do not overlap.

    Returns where they begin and end, (n, 2) in seconds, and their features, (n, n_features); n is
    at most `PLACES`. They are kept in the folder ``cache``, by the ``key`` of the sound if there is
    one. Raises an AudioError if the file has none.
    """
    kept = Path(cache) / "over-time" / f"{key}-{PLACES}-{extractor_key(extractor)[-12:]}.npy"
    with suppress(OSError, ValueError, EOFError):  # missing or damaged
        found = np.load(kept)
        if found.shape[1:] == (2 + len(extractor.feature_names),):
            return found[:, :2], found[:, 2:]
    one = SpreadWindows(1, round(extractor.seconds * extractor.rate))
    spread = extractor.windows if isinstance(extractor.windows, SpreadWindows) else one
    windows: list[Window] = []

    def plan(length: int | None, start: int | None) -> list[Window]:
        count = PLACES if length is None else min(PLACES, max(1, length // one.n_samples))
        windows[:] = replace(spread, count=count)(length, start)
        return windows

    rows: list[list[float]] = []
    for number, clip in enumerate(clips := decode_windows(path, plan, rate=extractor.rate)):
        try:
            features = extractor(clip, extractor.rate)
        except DataError as error:
            raise AudioError(f"{quoted(path)} has no features: {error}") from error.__cause__
        rows.append([*(at / extractor.rate for at in windows[number]), *features])
        if progress:
            progress(number + 1, len(clips))
    found = np.array(rows, np.float32)
    if key.isalnum():  # without a key, the file's sound is unknown
        with suppress(OSError):  # perhaps the disk is full; then it is heard again
            kept.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(kept) as file:
                np.save(file, found)
    return found[:, :2], found[:, 2:]


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
    files : paths, or `GivenFile`s
    extractor : its name, or an extractor
    jobs : how many processes; by default one for each core
    engine : "processes", "serial" or the address of a Dask scheduler, such as "tcp://host:8786"
    cache : the folder of cached features; None for no cache
    start : where in the files the window begins, in seconds; None for the middle
    time_limit : seconds that one file may take; None for no limit
    """
    extractor = get_extractor(extractor)
    n_features = len(extractor.feature_names)
    serial = engine == "serial" or isinstance(engine, Serial)
    # Pickled once, not for each file.
    sent = extractor if serial else pickled(extractor, f"The extractor '{extractor.name}'")
    read = partial(_read, sent, start)
    where = "the middle" if start is None else f"{start:g} s"
    recipe = f"{extractor.version}; from {where}"
    under_way: dict[int, tuple[str, Steps]] = {}
    with (
        nullcontext() if cache is None else FeatureCache(cache, recipe) as kept,
        Runner[Request, Answer](read, engine=engine, jobs=jobs, time_limit=time_limit) as runner,
    ):

        def go_on(position: int, answer: Answer | None = None) -> Iterator[FileFeatures]:
            """Submit what a file needs next, or yield its features."""
            path, steps = under_way[position]
            try:
                runner.submit((position, os.path.abspath(path), *steps.send(answer)))  # noqa: PTH100
            except StopIteration as done:
                del under_way[position]
                numbers, cached, reason = done.value
                vector, heads = (None, None) if reason else np.split(numbers, [n_features])
                yield FileFeatures(path, position, vector, heads, reason, cached)

        for position, file in enumerate(files):
            while runner.full:
                yield from go_on(*_taken(runner))
            path, *known = file if isinstance(file, tuple) else (os.fspath(file),)
            steps = _steps(path, tuple(known), kept, extractor.n_numbers)
            under_way[position] = path, steps
            yield from go_on(position)
        while runner.pending:
            yield from go_on(*_taken(runner))


Request = tuple[int, str, bool, bool]  # position, whole path, features wanted, digest wanted
Answer = tuple[Floats | None, bytes | None, str]
"""The features and heads (n_numbers,), the digest, and why the file cannot be used."""
Steps = Generator[tuple[bool, bool], Any, tuple[Floats | None, bool, str]]


def _steps(path: str, known: tuple, cache: "FeatureCache | None", n_numbers: int) -> Steps:
    """What to ask workers for a file, step by step: its features, its digest, or both.

    Each answer is sent. Returns the features and heads, whether the cache had them, and why there
    are none. ``known`` is the digest, and the size and time of change that it is for; or empty.
    """

    def found(numbers: Floats | None) -> bool:
        return numbers is not None and len(numbers) == n_numbers

    full_path = os.path.abspath(path)  # noqa: PTH100
    status = None
    if cache is not None:
        with suppress(OSError, ValueError):  # a worker will say what is wrong
            status = file_status(full_path)
    if cache is None or status is None:
        numbers, _, reason = yield True, False
        return numbers, False, reason
    if found(numbers := cache.find_by_path(full_path, status)):
        return numbers, True, ""
    digest: Any = known[0] if known and known[1:] == status[:2] else None
    if digest and found(numbers := cache.find_by_content(digest)):
        cache.put(full_path, status, digest)
        return numbers, True, ""
    # The cache can know this content only if it knows one of this size: then the digest is first.
    possible = cache.has_size(status[0])
    wanted = not possible, possible or digest is None
    attempts = 1
    while True:
        numbers, new_digest, reason = yield wanted
        digest = new_digest or digest
        if reason:
            return None, False, reason
        try:
            now = file_status(full_path)
        except OSError:
            return None, False, "vanished while it was read."
        if now != status:
            if attempts == MAX_ATTEMPTS:
                return None, False, f"changed while it was read, {MAX_ATTEMPTS} times."
            attempts += 1
            status, digest, wanted = now, None, (True, True)
        elif numbers is not None:
            cache.put(full_path, status, digest, numbers)
            return numbers, False, ""
        elif found(numbers := cache.find_by_content(digest)):
            cache.put(full_path, status, digest)
            return numbers, True, ""
        else:
            wanted = True, False


def _taken(runner: Runner[Request, Answer]) -> tuple[int, Answer]:
    """The next worker's answer, and the position of its file."""
    outcome = runner.next()
    reason = reason_of(outcome)
    return outcome.task[0], (None, None, reason) if reason else outcome.result  # type: ignore[return-value]


def reason_of(outcome: TaskOutcome[Any, Any]) -> str:
    """Why a worker could not read a file, or ""; any other error is raised."""
    error = outcome.error
    if isinstance(error, WorkerDied) and error.exit_code in (-9, -15):  # SIGKILL, SIGTERM
        return f"{STOPPED}: {error}."
    if isinstance(error, WorkerDied | TimedOut):
        does = "crash" if isinstance(error, WorkerDied) else "hang"
        return f"makes the decoder {does}: {error}."
    if isinstance(error, HarmoniumError):
        raise error
    if error is not None:
        raise EngineError(f"A worker failed: {type(error).__name__}: {error}") from error
    return ""


def _read(extractor: Extractor | bytes, start: float | None, request: Request) -> Answer:
    """Read a file, in a worker; a problem with the file becomes a reason, any other raises."""
    if isinstance(extractor, bytes):
        extractor = _unpickled(extractor)
    _, path, wants_numbers, wants_digest = request
    try:
        # The features first, since they reveal files that are not music.
        numbers = extractor.extract(path, start) if wants_numbers else None
        return numbers, file_digest(path) if wants_digest else None, ""
    except OSError as error:
        return None, None, f"cannot be read: {error.strerror or error}."
    except AudioError as error:
        return None, None, str(error).removeprefix(f"{quoted(path)} ")
    except MemoryError:
        return None, None, "needs more memory than there is."


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


def write_features(path: PathLike, extraction: Extraction) -> None:
    """Write the matrix with the path of each row, in the format of the file's ending.

    - .parquet, .csv: a column ``path``, then one for each feature. A byte of a path that is not
      UTF-8 is written as ``\\xNN``; Parquet then has all paths as they are in ``path_bytes``.
    - .npz: ``path`` (n,), ``X`` (n, n_features) and ``columns`` (n_features,)

    DataError for another ending or a folder that cannot be written to; OSError for a full disk.
    """
    import polars as pl

    check_writable(path, OUTPUT_FORMATS)
    ending = Path(path).suffix.lower()
    paths, X, names = extraction.paths, extraction.features, list(extraction.feature_names)
    columns = [pl.Series("path", map(readable, paths), pl.String)]
    if ending == ".parquet" and any(readable(name) != name for name in paths):
        columns.append(pl.Series("path_bytes", map(os.fsencode, paths), pl.Binary))
    with atomic_file(Path(path)) as file:
        if ending == ".npz":
            np.savez(file, path=np.array(paths, str), X=X, columns=np.array(names, str))
            return
        frame = pl.DataFrame(columns).hstack(pl.DataFrame(X, schema=names))
        (frame.write_csv if ending == ".csv" else frame.write_parquet)(file)


def write_failures(path: PathLike, failures: Iterable[FileFeatures]) -> None:
    """Write a CSV file of the columns path and reason."""
    import polars as pl

    rows = [(readable(failure.path), failure.reason) for failure in failures]
    schema = {"path": pl.String, "reason": pl.String}
    with atomic_file(Path(path)) as file:
        pl.DataFrame(rows, schema=schema, orient="row").write_csv(file)


def file_status(path: PathLike) -> FileStatus:
    """The status of a file, or an OSError."""
    found = os.stat(path)  # noqa: PTH116
    # SQLite's integers are signed, and some file systems use all 64 bits.
    inode = found.st_ino - (1 << 64) if found.st_ino >= 1 << 63 else found.st_ino
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, inode


def file_digest(path: PathLike) -> bytes:
    """The SHA-256 digest of a file's content, or an OSError."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").digest()  # type: ignore[arg-type]


class FeatureCache:
    """Features of files, by content and by extractor."""

    def __init__(self, folder: PathLike, recipe: str) -> None:
        self.file = Path(folder).expanduser() / CACHE_FILE
        with self._explained():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                self.file, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._prepare()
            query = "SELECT id FROM recipes WHERE version = ?"
            self._recipe = self._first(query, recipe)
            if self._recipe is None:
                self._first("INSERT OR IGNORE INTO recipes (version) VALUES (?)", recipe)
                self._recipe = self._first(query, recipe)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._database.close()

    def find_by_path(self, path: str, status: FileStatus) -> Floats | None:
        """The features of a file that has not changed since they were computed."""
        query = (
            "SELECT vector FROM files f JOIN vectors v ON v.content = f.content "
            "WHERE path = ? AND (size, modified, changed, inode) = (?, ?, ?, ?) AND recipe = ?"
        )
        return _vector(self._first(query, os.fsencode(path), *status, self._recipe))

    def find_by_content(self, digest: bytes) -> Floats | None:
        """The features of a content, wherever the file is."""
        query = (
            "SELECT vector FROM contents c JOIN vectors v ON v.content = c.id "
            "WHERE digest = ? AND recipe = ?"
        )
        return _vector(self._first(query, digest, self._recipe))

    def has_size(self, size: int) -> bool:
        """Whether there are features of any content of this size; if not, no such file is known."""
        query = (
            "SELECT 1 FROM contents c JOIN vectors v ON v.content = c.id "
            "WHERE size = ? AND recipe = ? LIMIT 1"
        )
        return self._first(query, size, self._recipe) is not None

    def put(
        self, path: str, status: FileStatus, digest: bytes, vector: Floats | None = None
    ) -> None:
        """Store which content a path has, and its features, durably."""
        with self._transaction():
            new = "INSERT OR IGNORE INTO contents (digest, size) VALUES (?, ?)"
            self._first(new, digest, status[0])
            content = self._first("SELECT id FROM contents WHERE digest = ?", digest)
            if max(status[1:3]) + SETTLED_NS < time.time_ns():  # another change would show
                insert = "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)"
                self._first(insert, os.fsencode(path), *status, content)
            if vector is not None:
                data = np.ascontiguousarray(vector, "<f4").tobytes()
                insert = "INSERT OR REPLACE INTO vectors (recipe, content, vector) VALUES (?, ?, ?)"
                self._first(insert, self._recipe, content, data)

    def _first(self, query: str, *values: Any) -> Any:
        """The first value of the first row, or None."""
        with self._explained():
            row = self._database.execute(query, values).fetchone()
        return row and row[0]

    def _prepare(self) -> None:
        enable_write_ahead_log(self._database, BUSY_SECONDS)
        # It is never damaged; a power cut may lose some entries.
        self._database.execute("PRAGMA synchronous = NORMAL")
        if self._first("PRAGMA user_version") == CACHE_FORMAT:
            return
        with self._transaction():
            version = self._first("PRAGMA user_version")
            if version > CACHE_FORMAT:
                raise DataError(
                    f"The cache {self.file} was written by a newer version of Harmonium. Upgrade "
                    "Harmonium, or name another folder for the cache."
                )
            if version < CACHE_FORMAT:
                for statement in filter(str.strip, TABLES.split(";")):
                    self._database.execute(statement)
                self._database.execute(f"PRAGMA user_version = {CACHE_FORMAT}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._explained(), self._database:
            self._database.execute("BEGIN IMMEDIATE")  # switching from reading to writing may fail
            yield

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the last: damaged names
            raise DataError(
                f"The cache of features {self.file} cannot be used: {error}. Name another folder "
                "for it, work without a cache, or delete it; it will be rebuilt."
            ) from error


def _vector(data: bytes | None) -> Floats | None:
    """The numbers; None if they are missing or damaged, so that they are computed again."""
    if not isinstance(data, bytes) or len(data) % 4:
        return None
    vector = np.frombuffer(data, "<f4").astype(np.float32)
    return vector if np.isfinite(vector).all() else None
