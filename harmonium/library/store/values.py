"""How values are stored: text, paths, times and JSON.

Text holds neither NUL nor lone surrogates, which PostgreSQL rejects: `storable` replaces them, and
`stored_path` keeps paths that are not UTF-8.
"""

import json
import os
from datetime import UTC, datetime, timedelta
from typing import Any

from harmonium.library.store.failures import damaged

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> int:
    """The current time, in microseconds since 1970."""
    return to_microseconds(datetime.now(UTC))


def to_datetime(microseconds: int) -> datetime:
    """A stored time."""
    return _EPOCH + timedelta(microseconds=microseconds)


def to_microseconds(time: datetime) -> int:
    """A time as it is stored; one without a zone counts as UTC."""
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def storable(text: str) -> str:
    """Text that both databases accept: NUL becomes a space, invalid Unicode a replacement mark."""
    return text.replace("\0", " ").encode(errors="replace").decode()


def stored_path(path: str) -> dict[str, Any]:
    """The columns of a path: readable text, and the bytes if the text is not enough."""
    raw = os.fsencode(path)
    text = raw.decode(errors="backslashreplace")
    return {"path": text, "path_bytes": None if text == path else raw}


def loaded_path(row: Any) -> str:
    """The original path, from a row with the columns of `stored_path`."""
    return str(row.path) if row.path_bytes is None else os.fsdecode(bytes(row.path_bytes))


def stored_json(text: str) -> Any:
    """The value of a JSON column."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise damaged(f"a stored value is not JSON ({error})") from error
