"""The cache of features: one SQLite database, which several processes may use at once.

A file is identified by the SHA-256 digest of its content, or of its sound alone if the caller knows
that. The cache also remembers which content a path had: while the file's status stays the same, it
is not read.
"""

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from harmonium.arrays import Floats
from harmonium.errors import DataError
from harmonium.files import PathLike, enable_write_ahead_log, open_file

CACHE_FILE = "features.sqlite"
CACHE_FORMAT = 1  # version of the tables; a cache with a later one is refused
BUSY_SECONDS = 60  # how long to wait for another process that is writing
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


class FileStatus(NamedTuple):
    """What shows whether a file has changed."""

    size: int
    modified: int  # when its content last changed, in nanoseconds
    changed: int  # when its status last changed, which programs cannot set back
    inode: int


def file_status(path: PathLike) -> FileStatus:
    """The status of a file, or an OSError."""
    status = os.stat(path)  # noqa: PTH116
    inode = status.st_ino
    if inode >= 1 << 63:
        # SQLite's integers are signed, and some file systems use all 64 bits.
        inode -= 1 << 64
    return FileStatus(
        size=status.st_size, modified=status.st_mtime_ns, changed=status.st_ctime_ns, inode=inode
    )


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
            insert = "INSERT OR IGNORE INTO contents (digest, size) VALUES (?, ?)"
            self._first(insert, digest, status.size)
            content = self._first("SELECT id FROM contents WHERE digest = ?", digest)
            last_change = max(status.modified, status.changed)
            if last_change + SETTLED_NS < time.time_ns():  # another change would show
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
        return row[0] if row else None

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
