"""Which track a person means."""

import os
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from harmonium.collection.store.schema import loaded_path, stored_path, track
from harmonium.data.normalise import normalise_tag
from harmonium.errors import LibraryError
from harmonium.nearest_names import nearest_names

_SHOWN = 5  # tracks named in a message
_COLUMNS = (track.c.id, track.c.path, track.c.path_bytes, track.c.artist, track.c.title)


def resolve(connection: sa.Connection, text: str) -> int:
    """The number of the track: "#12", a path, its end with or without .mp3, "artist - title"."""
    if text.startswith("#") and text[1:].isdecimal():
        number = int(text[1:])
        if connection.scalar(sa.select(track.c.id).where(track.c.id == number)) is None:
            raise LibraryError(f"There is no track {text} in the library.")
        return number
    for found in (_by_path, _by_end, _by_stem, _by_name):
        rows = list(found(connection, text))
        if len(rows) == 1:
            return int(rows[0].id)
        if rows:
            raise LibraryError(
                f"{text!r} could be any of {len(rows):,} tracks: {_listed(rows)}. Name one by its "
                "number, or by more of its path."
            )
    raise LibraryError(f"There is no track {text!r} in the library.{_near(connection, text)}")


def ends_with(path: str, end: str) -> bool:
    """Whether a path ends with these parts of one."""
    path, end = path.replace(os.sep, "/"), end.replace(os.sep, "/").removeprefix("./")
    return bool(end) and (path == end or path.endswith(f"/{end.lstrip('/')}"))


def _by_path(connection: sa.Connection, text: str) -> Iterable[Any]:
    full = os.path.abspath(os.path.expanduser(text))  # noqa: PTH100, PTH111
    query = sa.select(*_COLUMNS).where(track.c.path == stored_path(full)["path"])
    return (row for row in connection.execute(query) if loaded_path(row) == full)


def _by_end(connection: sa.Connection, text: str) -> Iterable[Any]:
    end = stored_path(text)["path"].removeprefix("./")
    query = sa.select(*_COLUMNS).where(track.c.path.endswith(end, autoescape=True))
    return (row for row in connection.execute(query) if ends_with(row.path, end))


def _by_stem(connection: sa.Connection, text: str) -> Iterable[Any]:
    """By the end of the path without the ending of the file's name."""
    end = stored_path(text)["path"].removeprefix("./")
    query = sa.select(*_COLUMNS).where(track.c.path.contains(f"{end}.", autoescape=True))
    rows = connection.execute(query)
    return (row for row in rows if ends_with(os.path.splitext(row.path)[0], end))  # noqa: PTH122


def _by_name(connection: sa.Connection, text: str) -> Iterable[Any]:
    wanted = normalise_tag(text)
    query = sa.select(*_COLUMNS).where(track.c.title.is_not(None))
    for row in connection.execute(query):
        if wanted in (normalise_tag(f"{row.artist or ''} {row.title}"), normalise_tag(row.title)):
            yield row


def _near(connection: sa.Connection, text: str) -> str:
    """The tracks whose names are most like the text."""
    names: dict[str, Any] = {}
    for row in connection.execute(sa.select(*_COLUMNS).order_by(track.c.id)):
        names.setdefault(row.path.rpartition("/")[2].casefold(), row)
        if row.title:
            names.setdefault(f"{row.artist or ''} - {row.title}".casefold(), row)
    file = text.replace("\\", "/").rpartition("/")[2]
    near = [
        *nearest_names(file, names, n=3),
        *nearest_names(text, names, n=3),
    ]
    rows = list({names[name].id: names[name] for name in near}.values())
    return f" Near it: {_listed(rows)}." if rows else " `harmonium index FOLDER` adds music."


def _listed(rows: list[Any]) -> str:
    shown = ", ".join(f"#{row.id} {row.path}" for row in rows[:_SHOWN])
    more = f" and {len(rows) - _SHOWN:,} more" if len(rows) > _SHOWN else ""
    return shown + more
