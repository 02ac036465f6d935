"""What a change sets besides opinions and files, with what it was before.

A value has a kind and a key: the state of a track, a tag of a model, a setting of the library.
Undoing a change sets each value back that is still what the change made it.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from harmonium.library.store.database import stored_json
from harmonium.library.store.schema import changed_value, model, setting, track
from harmonium.library.store.versions import TRACKS, count_on

TRACK_STATE, MODEL_TAG, SETTING = "track", "model", "setting"
"""The kinds; the key is the number of a track, that of a model and a place in its vocabulary
("3:17"), or the name of a setting."""


class UndoneValues(NamedTuple):
    """What became of the values of a change."""

    restored: dict[str, int]
    """Kind → how many are what they were before."""
    conflicts: dict[int, int]
    """Later change → how many values it set, so that they were left as they are."""
    left: dict[str, str]
    """Value → why it is left, where no change set it."""


def set_value(
    connection: sa.Connection, change: int, kind: str, key: int | str, value: Any
) -> bool:
    """Set a value as part of a change; whether it was another before."""
    read, write = _KINDS[kind]
    before = read(connection, str(key))
    if before == value:
        return False
    _keep(connection, change, kind, str(key), (json.dumps(before), json.dumps(value)))
    write(connection, str(key), value)
    return True


def undo_values(connection: sa.Connection, change: int, by: int) -> UndoneValues:
    """Set back what a change had set, as part of the change `by`."""
    undone = UndoneValues({}, {}, {})
    query = sa.select(changed_value).where(changed_value.c.change_id == change)
    for row in connection.execute(query.order_by(changed_value.c.id.desc())).all():
        read, write = _KINDS[row.kind]
        before, after = stored_json(row.before), stored_json(row.after)
        if read(connection, row.key) == after:
            _keep(connection, by, row.kind, row.key, (row.after, row.before))
            write(connection, row.key, before)
            undone.restored[row.kind] = undone.restored.get(row.kind, 0) + 1
        elif (later := _later(connection, row)) is not None:
            undone.conflicts[later] = undone.conflicts.get(later, 0) + 1
        else:
            undone.left[f"{row.kind} {row.key}"] = "it is no longer what this change made it"
    return undone


def count_values(connection: sa.Connection, change: int) -> int:
    """How many values a change set."""
    query = sa.select(sa.func.count()).where(changed_value.c.change_id == change)
    return int(connection.scalar(query) or 0)


def _keep(
    connection: sa.Connection, change: int, kind: str, key: str, values: tuple[str, str]
) -> None:
    row = {"change_id": change, "kind": kind, "key": key, "before": values[0], "after": values[1]}
    connection.execute(sa.insert(changed_value).values(row))


def _later(connection: sa.Connection, row: Any) -> int | None:
    """The last later change that set the same value."""
    same = (changed_value.c.kind == row.kind, changed_value.c.key == row.key)
    query = sa.select(sa.func.max(changed_value.c.change_id))
    return connection.scalar(query.where(*same, changed_value.c.id > row.id))


# How each kind is read and written. -----------------------------------------------------------


def _read_state(connection: sa.Connection, key: str) -> Any:
    return connection.scalar(sa.select(track.c.state).where(track.c.id == int(key)))


def _write_state(connection: sa.Connection, key: str, value: Any) -> None:
    connection.execute(sa.update(track).where(track.c.id == int(key)).values(state=value))
    count_on(connection, TRACKS)


def _tags(connection: sa.Connection, number: int) -> tuple[list[str], list[float]]:
    """A model's vocabulary, and the thresholds of these tags; empty where the model is gone."""
    query = sa.select(model.c.vocabulary, model.c.thresholds).where(model.c.id == number)
    row = connection.execute(query).one_or_none()
    if row is None:
        return [], []
    return stored_json(row.vocabulary), np.frombuffer(row.thresholds, "<f4").tolist()


def _read_tag(connection: sa.Connection, key: str) -> Any:
    """The tag at a place of a model's vocabulary, and its threshold."""
    number, place = map(int, key.split(":"))
    return [value for values in _tags(connection, number) for value in values[place : place + 1]]


def _write_tag(connection: sa.Connection, key: str, value: Any) -> None:
    number, place = map(int, key.split(":"))
    tags, thresholds = _tags(connection, number)
    tags[place], thresholds[place] = value
    values = {"vocabulary": json.dumps(tags), "thresholds": np.array(thresholds, "<f4").tobytes()}
    connection.execute(sa.update(model).where(model.c.id == number).values(values))


def _read_setting(connection: sa.Connection, key: str) -> Any:
    text = connection.scalar(sa.select(setting.c.value).where(setting.c.key == key))
    return None if text is None else stored_json(text)


def _write_setting(connection: sa.Connection, key: str, value: Any) -> None:
    connection.execute(sa.delete(setting).where(setting.c.key == key))
    if value is not None:
        connection.execute(sa.insert(setting).values(key=key, value=json.dumps(value)))


_KINDS: dict[str, tuple[Callable[..., Any], Callable[..., None]]] = {
    TRACK_STATE: (_read_state, _write_state),
    MODEL_TAG: (_read_tag, _write_tag),
    SETTING: (_read_setting, _write_setting),
}
