"""A library: the tracks of a collection, what people say of them, and what models predict.

with Library.open() as library:
    for track in library.tracks.all():
        print(track.path)
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa

from harmonium.data.genre_tree import GenreTree
from harmonium.errors import LibraryError, NoLibraryError
from harmonium.library.store import database
from harmonium.library.store.changes import Changes
from harmonium.library.store.models import Models
from harmonium.library.store.opinions import Opinions
from harmonium.library.store.predictions import Predictions
from harmonium.library.store.refinements import Refinements
from harmonium.library.store.schema import (
    GENRES,
    HIDDEN,
    RENAMED,
    VERSION,
    VERSION_TABLE,
    setting,
)
from harmonium.library.store.tracks import Tracks
from harmonium.library.store.versions import LibraryVersion, read_version


class Library:
    """An open library; `Library.open` opens one.

    Its parts are `tracks`, `opinions` (people's tags), `changes`, `models`, `predictions`,
    `refinements` and `settings`. Threads may share a library, and processes may open the same one.
    """

    def __init__(self, engine: sa.Engine, place: str) -> None:
        self.engine = engine
        self.place = place
        """Where it is, without a password."""
        self._here = _Here()
        self.tracks = Tracks(self)
        """The pieces of music."""
        self.opinions = Opinions(self)
        """What people say of them."""
        self.changes = Changes(self)
        """What was done, and how it is undone."""
        self.models = Models(self)
        """The models that were trained."""
        self.predictions = Predictions(self)
        """What the models say of the tracks."""
        self.refinements = Refinements(self)
        """What their tags gained from answers since they were trained."""
        self.settings = LibrarySettings(self)
        """Small things to remember."""

    @classmethod
    def open(cls, place: str | Path | None = None, *, create: bool = True) -> Self:
        """Open a library, and bring it up to date if an older version made it.

        Parameters
        ----------
        place : a file (SQLite), or postgresql://USER@HOST/DATABASE; by default what
            HARMONIUM_LIBRARY names, then library.db in the system's folder for users' data
        create : whether to make a library where there is none

        Raises
        ------
        LibraryError
            where there is none or it cannot be used, or a newer version of Harmonium made it
        """
        named = database.default_place() if place is None else str(place)
        if database.is_url(named):
            engine = database.postgresql_engine(named)
            library = cls(engine, engine.url.set(drivername="postgresql").render_as_string())
        else:
            library = cls(*_opened_file(Path(named).expanduser(), create=create))
        try:
            library._bring_up_to_date(create)
        except BaseException:
            library.close()
            raise
        return library

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back the connections; the library can be opened again."""
        self.engine.dispose()

    def genres(self) -> GenreTree:
        """The tree of genres that is in use, `harmonium train --genres`; empty where none is."""
        return GenreTree.from_dict(self.settings.get(GENRES, {}))

    def spellings(self) -> dict[str, str]:
        """Tag → how it is shown and written, where that is not its normalised name."""
        return {**self.genres().spellings, **self.opinions.spellings()}

    def version(self) -> LibraryVersion:
        """How far the library has come; it tells whether what was read before still holds."""
        with self.connect() as connection:
            return read_version(connection)

    def hidden_tags(self) -> set[str]:
        """The tags that are neither learnt nor predicted."""
        return set(self.settings.beginning_with(HIDDEN))

    def renamed_tags(self) -> dict[str, str]:
        """Former name → the name that a tag has now."""
        now = self.settings.beginning_with(RENAMED)
        for old, new in now.items():
            seen = {old}
            while new in now and new not in seen:
                seen.add(new)
                new = now[new]
            now[old] = new
        return now

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        """A connection for reading: all its queries see the library as it was at the first.

        Inside `begin` or `snapshot`, of the same thread, it is that one's.
        """
        if (here := self._here.writer or self._here.reader) is not None:
            yield here
            return
        with database.reading(self.engine, self.place) as connection:
            yield connection

    def fetch(self, query: sa.Select[Any]) -> Sequence[Any]:
        """All rows that a query finds."""
        with self.connect() as connection:
            return connection.execute(query).all()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that this thread reads inside sees one state of the library."""
        with self.connect() as connection:
            before, self._here.reader = self._here.reader, connection
            try:
                yield
            finally:
                self._here.reader = before

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """A connection for writing, in one transaction: all of it is kept, or nothing.

        Inside another, of the same thread, it is part of that one.
        """
        if self._here.writer is not None:
            yield self._here.writer
            return
        with database.writing(self.engine, self.place) as connection:
            self._here.writer = connection
            try:
                yield connection
            finally:
                self._here.writer = None

    def _bring_up_to_date(self, create: bool) -> None:
        with self.connect() as connection:
            version, is_empty = _version(connection)
        if version == VERSION:
            return
        if version is None:
            if not is_empty:
                raise LibraryError(
                    f"{self.place} is a database of another program. Name another place with "
                    "--library."
                )
            if not create:
                raise NoLibraryError(_nothing_there(self.place))
            with database.explained(self.place):
                database.use_write_ahead_log(self.engine)
        with self.begin() as connection:
            version, _ = _version(connection)  # another process may have been faster
            if version is not None and version > VERSION:
                raise LibraryError(
                    f"The library {self.place} was written by a newer version of Harmonium (its "
                    f"tables are version {version}, known here up to {VERSION}). Upgrade "
                    "Harmonium, or name another library with --library."
                )
            if version != VERSION:
                from harmonium.library.store.migrations import upgrade

                upgrade(connection)


class _Here(threading.local):
    """The connections that a thread has open."""

    writer: sa.Connection | None = None
    """In the transaction of `begin`."""
    reader: sa.Connection | None = None
    """Of `snapshot`."""


class LibrarySettings(database.LibraryPart):
    """Names with values that JSON can hold."""

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or the default."""
        with self._library.connect() as connection:
            text = connection.scalar(sa.select(setting.c.value).where(setting.c.key == key))
        return default if text is None else database.stored_json(text)

    def beginning_with(self, prefix: str) -> dict[str, Any]:
        """The rest of each name that begins so → its value."""
        query = sa.select(setting.c.key, setting.c.value)
        rows = self._library.fetch(query.where(setting.c.key.startswith(prefix, autoescape=True)))
        return {row.key.removeprefix(prefix): database.stored_json(row.value) for row in rows}

    def set(self, key: str, value: Any) -> None:
        """Give a name a value."""
        with self._library.begin() as connection:
            connection.execute(sa.delete(setting).where(setting.c.key == key))
            connection.execute(sa.insert(setting).values(key=key, value=json.dumps(value)))


def _opened_file(file: Path, *, create: bool) -> tuple[sa.Engine, str]:
    if not file.exists() and not create:
        raise NoLibraryError(_nothing_there(str(file)))
    if file.is_dir():
        raise LibraryError(
            f"{file} is a folder. Name a file for the library, such as {file / 'library.db'}."
        )
    with database.explained(str(file)):
        file.parent.mkdir(parents=True, exist_ok=True)
        return database.sqlite_engine(file), str(file)


def _version(connection: sa.Connection) -> tuple[str | None, bool]:
    """The version of the tables, None where there are none of ours; and whether there are none."""
    names = sa.inspect(connection).get_table_names()
    if VERSION_TABLE not in names:
        return None, not names
    return connection.scalar(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")), False


def _nothing_there(place: str) -> str:
    return (
        f"There is no library at {place} yet. `harmonium index FOLDER` makes one from the music in "
        "a folder; --library names one that is elsewhere."
    )
