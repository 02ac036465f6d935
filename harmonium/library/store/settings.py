"""The settings of a library: names with values that JSON can hold."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from harmonium.library.store.database import LibraryPart, replace_rows
from harmonium.library.store.failures import damaged
from harmonium.library.store.models import CURRENT
from harmonium.library.store.schema import EXTRACTOR, setting
from harmonium.library.store.values import stored_json

_TYPES = {EXTRACTOR: str, CURRENT: int}  # of settings without a default


class Settings(LibraryPart):
    """Names with values that JSON can hold."""

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or the default."""
        with self._library.connect() as connection:
            text = connection.scalar(sa.select(setting.c.value).where(setting.c.key == key))
        value = default if text is None else stored_json(text)
        expected = _TYPES.get(key, object) if default is None else type(default)
        if value is not None and not isinstance(value, expected):
            raise damaged(f"the setting {key} is {text}")
        return value

    def beginning_with(self, prefix: str) -> dict[str, Any]:
        """The rest of each name with this prefix → its value."""
        query = sa.select(setting.c.key, setting.c.value)
        rows = self._library.fetch(query.where(setting.c.key.startswith(prefix, autoescape=True)))
        return {row.key.removeprefix(prefix): stored_json(row.value) for row in rows}

    def set(self, key: str, value: Any) -> None:
        """Set a name's value; None removes it."""
        rows = [] if value is None else [{"key": key, "value": json.dumps(value)}]
        with self._library.begin() as connection:
            replace_rows(connection, setting, rows, setting.c.key == key)
