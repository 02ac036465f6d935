"""Which column of a table says what."""

from collections.abc import Mapping, Sequence

from harmonium.data.tables import USUAL_NAMES, find_columns
from harmonium.data.tag_names import KINDS
from harmonium.errors import DataError, counted

COLUMN_KINDS = {
    **{name: name for name in ("genre", "mood", "instrument", "voice", "era")},
    **{"style": "genre", "emotion": "mood", "vocal": "voice", "decade": "era"},
}
"""Names of columns, also in the plural, that say which kind of tags they hold."""
TRACK_ROLES = ("item", "artist", "title")  # of the columns that say which track a row is about
_UNCLEAR = {  # a column's role → what the column says, and how to name it
    "item": (
        "which track a row is about",
        "Name it with --item (paths or numbers), or with --title and --artist.",
    ),
    "tag": ("which tag it has", "Name it with --tag."),
}
_INSTEAD = {"item": ("title",), "tag": tuple(KINDS)}  # a role → roles that serve in its place


def choose_columns(
    named: Mapping[str, str | int | None],
    needed: Sequence[str],
    source: str,
    names: Sequence[str],
    n_columns: int = 0,
) -> dict[str, str | int]:
    """Role → column, for all roles that are named or recognised from the columns' names.

    A column of tags that is named after a kind, such as mood, has that kind as its role. There may
    be several such columns, unless a column of tags is named or is called tag.

    named : role ("item", "artist", "title", "tag", "user", "value") → what a person named, or None
    needed : the roles without which the table cannot be used, in the order in which a file without
        a header has them, perhaps after the user; a title does for an item
    names, n_columns : of the file's columns; no names without a header
    """
    chosen = {role: column for role, column in named.items() if column is not None}
    if names:
        find_columns(chosen, names, source=source)  # a misspelt name is reported first
        chosen = _with_usual_names(chosen, named, names)
    if "tag" in named:
        chosen = _with_kinds(chosen, names, only_named=named["tag"] is not None)
    if not names and not chosen:
        return _by_position(named, needed, source, n_columns)
    for role in needed:
        if role not in chosen and chosen.keys().isdisjoint(_INSTEAD.get(role, ())):
            raise DataError(_unclear(role, source, names))
    return chosen


def _with_usual_names(
    chosen: Mapping[str, str | int], named: Mapping[str, str | int | None], names: Sequence[str]
) -> dict[str, str | int]:
    """The chosen columns, and those that have the usual name of another role."""
    columns = dict(chosen)
    has_track = "item" in chosen or "title" in chosen
    folded = {name.strip().casefold(): name for name in reversed(names)}
    for role, usual_names in USUAL_NAMES.items():
        is_settled = role in columns or (role in TRACK_ROLES and has_track)
        if role not in named or is_settled:
            continue
        for usual in usual_names:
            if usual in folded:
                if folded[usual] not in columns.values():
                    columns[role] = folded[usual]
                break
    return columns


def _with_kinds(
    chosen: Mapping[str, str | int], names: Sequence[str], *, only_named: bool
) -> dict[str, str | int]:
    """The chosen columns; those named after a kind of tags replace the column of tags.

    With ``only_named``, just the chosen column of tags.
    """
    others = {role: column for role, column in chosen.items() if role != "tag"}
    column = chosen.get("tag")
    if isinstance(column, int) and column < len(names):
        column = names[column]
    kinds: dict[str, str | int] = {}
    for name in [column] if only_named else names:
        if name is None or name in others.values():
            continue
        word = str(name).strip().casefold()
        kind = COLUMN_KINDS.get(word, COLUMN_KINDS.get(word.removesuffix("s")))
        if kind is not None:
            kinds.setdefault(kind, name)
    if column is None or column in kinds.values():
        return others | kinds
    return dict(chosen)


def _by_position(
    named: Mapping[str, str | int | None], needed: Sequence[str], source: str, n_columns: int
) -> dict[str, str | int]:
    """The columns of a file without a header, of which none is named."""
    if 0 < n_columns < len(needed):
        raise DataError(
            f"{source} has {counted(n_columns, 'column')}; without a header it must have "
            f"{', '.join(needed)}. For another order, number them from 0, as in --item 0 --tag 1."
        )
    users = ["user"] if "user" in named and n_columns > len(needed) else []
    return {role: position for position, role in enumerate([*users, *needed])}


def _unclear(role: str, source: str, names: Sequence[str]) -> str:
    """What to say if no column has a role."""
    meaning, way_out = _UNCLEAR[role]
    listed = f" Its columns: {', '.join(map(repr, names))}." if names else ""
    message = f"It is not clear which column of {source} says {meaning}.{listed} {way_out}"
    if names and role == "item":
        message += " If its first line is not a header, pass --no-header."
    return message
