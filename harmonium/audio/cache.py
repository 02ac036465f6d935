"""Features that were computed before, by the content of the file and by how they were computed.

One SQLite database, which several processes may use at once. Each result is written in a
transaction of its own, to a write-ahead log: it stays whole when a process is killed.

A file is known by the SHA-256 digest of its content, or of its sound alone where the caller knows
that. The cache also remembers which content a path had, with the file's `FileStatus`: as long as
that is the same, the file counts as unchanged and is not read.
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

FILE_NAME = "features.sqlite"
FORMAT = 1
"""Version of the tables; a cache with a later one is refused."""

BUSY_SECONDS = 60
"""How long to wait for another process that is writing."""
SETTLED_NS = 2_000_000_000
"""How old a file's last change must be before its status is trusted: some file systems count time
in steps of 2 seconds, and would not show a second change within a step."""

_TABLES = """
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
    """What the file system says about a file; it changes with the content."""

    size: int
    modified: int  # nanoseconds
    changed: int  # nanoseconds; programs cannot set it back
    inode: int

    @property
    def is_settled(self) -> bool:
        """Whether a further change would show."""
        return max(self.modified, self.changed) + SETTLED_NS < time.time_ns()


def file_status(path: str | os.PathLike[str]) -> FileStatus:
    """The status of a file, or an OSError."""
    found = os.stat(path)  # noqa: PTH116
    # SQLite's integers are signed, and some file systems use all 64 bits.
    inode = found.st_ino - (1 << 64) if found.st_ino >= 1 << 63 else found.st_ino
    return FileStatus(found.st_size, found.st_mtime_ns, found.st_ctime_ns, inode)


def file_digest(path: str | os.PathLike[str]) -> bytes:
    """The SHA-256 digest of a file's content, or an OSError."""
    with open(path, "rb") as file:  # noqa: PTH123
        return hashlib.file_digest(file, "sha256").digest()


class FeatureCache:
    """Vectors by content and recipe, in a folder; DataError where that cannot be used.

    A recipe is a text of all that the numbers depend on besides the file.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.file = Path(folder).expanduser() / FILE_NAME
        self._recipes: dict[str, int] = {}
        with self._explained():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                self.file, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._prepare()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def find_by_path(self, path: str, status: FileStatus, recipe: str) -> Floats | None:
        """The features of a file that is as it was when they were computed."""
        query = (
            "SELECT vector FROM files f JOIN vectors v ON v.content = f.content "
            "WHERE path = ? AND (size, modified, changed, inode) = (?, ?, ?, ?) AND recipe = ?"
        )
        return _vector(self._first(query, os.fsencode(path), *status, self._recipe(recipe)))

    def find_by_content(self, digest: bytes, recipe: str) -> Floats | None:
        """The features of a content, wherever the file is."""
        query = (
            "SELECT vector FROM contents c JOIN vectors v ON v.content = c.id "
            "WHERE digest = ? AND recipe = ?"
        )
        return _vector(self._first(query, digest, self._recipe(recipe)))

    def has_size(self, size: int, recipe: str) -> bool:
        """Whether there are features of any content of this size; if not, no such file is known."""
        query = (
            "SELECT 1 FROM contents c JOIN vectors v ON v.content = c.id "
            "WHERE size = ? AND recipe = ? LIMIT 1"
        )
        return self._first(query, size, self._recipe(recipe)) is not None

    def put(
        self, path: str, status: FileStatus, digest: bytes, recipe: str, vector: Floats
    ) -> None:
        """Keep the features of a file; when this returns, they survive the process."""
        data = np.ascontiguousarray(vector, "<f4").tobytes()
        with self._transaction():
            content = self._remember(path, status, digest)
            insert = "INSERT OR REPLACE INTO vectors (recipe, content, vector) VALUES (?, ?, ?)"
            self._first(insert, self._recipe(recipe), content, data)

    def remember(self, path: str, status: FileStatus, digest: bytes) -> None:
        """Keep which content a path has."""
        with self._transaction():
            self._remember(path, status, digest)

    def _remember(self, path: str, status: FileStatus, digest: bytes) -> int:
        """The number of the content; that a path has it is kept if a further change would show."""
        new = "INSERT OR IGNORE INTO contents (digest, size) VALUES (?, ?)"
        self._first(new, digest, status.size)
        content: int = self._first("SELECT id FROM contents WHERE digest = ?", digest)
        if status.is_settled:
            insert = "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)"
            self._first(insert, os.fsencode(path), *status, content)
        return content

    def _recipe(self, version: str) -> int:
        if version not in self._recipes:
            self._first("INSERT OR IGNORE INTO recipes (version) VALUES (?)", version)
            found = self._first("SELECT id FROM recipes WHERE version = ?", version)
            self._recipes[version] = found
        return self._recipes[version]

    def _first(self, query: str, *values: Any) -> Any:
        """The first value of the first row, or None."""
        with self._explained():
            row = self._database.execute(query, values).fetchone()
        return row and row[0]

    def _prepare(self) -> None:
        """Bring the database into shape, if no other process has done so."""
        execute = self._database.execute
        self._use_log()
        execute("PRAGMA synchronous = NORMAL")  # whole whatever happens; a power cut may lose some
        if execute("PRAGMA user_version").fetchone()[0] == FORMAT:
            return
        with self._transaction():
            version = execute("PRAGMA user_version").fetchone()[0]
            if version > FORMAT:
                raise DataError(
                    f"The cache {self.file} was written by a newer version of Harmonium. Upgrade "
                    "Harmonium, or name another folder for the cache."
                )
            if version < FORMAT:
                for statement in filter(str.strip, _TABLES.split(";")):
                    execute(statement)
                execute(f"PRAGMA user_version = {FORMAT}")

    def _use_log(self) -> None:
        """Switch to the write-ahead log, for which SQLite does not always wait by itself."""
        end = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._database.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing; and immediate, since one that turns from reading to writing may fail."""
        with self._explained(), self._database:
            self._database.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the last: damaged names
            raise DataError(
                f"The cache of features {self.file} cannot be used: {error}. Name another folder "
                "for it, work without a cache, or delete it: it will be made again."
            ) from error


def _vector(data: bytes | None) -> Floats | None:
    """The numbers; None where they are missing or damaged, so that they are computed again."""
    if not isinstance(data, bytes) or len(data) % 4:
        return None
    vector = np.frombuffer(data, "<f4").astype(np.float32)
    return vector if np.isfinite(vector).all() else None
