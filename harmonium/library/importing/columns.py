"""Which columns of a table of tags hold what: as they are named, or as their names suggest."""

from collections.abc import Mapping, Sequence

from harmonium.data.coded_rows import USUAL_NAMES, find_columns
from harmonium.errors import DataError


def choose_columns(
    named: Mapping[str, str | int | None],
    names: Sequence[str],
    *,
    source: str,
    has_person: bool,
    n_columns: int = 0,
) -> dict[str, str | int]:
    """Role → column, for all roles that are named or are recognised by the columns' names.

    Parameters
    ----------
    named : role ("item", "artist", "title", "tag", "user", "value") → what a person named, or None
    names : of the columns of the file; empty where it has no header
    source : the file's name, for messages
    has_person : whether it is said otherwise whose tags they are
    n_columns : how many there are, where that is known

    Raises
    ------
    DataError
        where it is not clear what is tagged, with what, or by whom
    """
    chosen = {role: column for role, column in named.items() if column is not None}
    if names:
        find_columns(chosen, names, source=source)  # a misspelt name is the first thing to say
    by_names = "item" in chosen or "title" in chosen
    folded = {name.strip().casefold(): name for name in reversed(names)}
    for role, usual in USUAL_NAMES.items():
        guessed = next((folded[name] for name in usual if name in folded), None)
        taken = guessed in chosen.values() or (role in ("item", "title", "artist") and by_names)
        if role == "user" and has_person:
            continue
        if role not in chosen and guessed is not None and not taken:
            chosen[role] = guessed
    if not names and not chosen:
        roles = ("item", "tag") if has_person else ("user", "item", "tag")
        if 0 < n_columns < len(roles):
            raise DataError(
                f"{source} has {n_columns} columns, and without a header they must be "
                f"{', '.join(roles)}. --item 0 --tag 1 says otherwise, counted from 0; --person "
                "says whose tags they are where there is no such column."
            )
        return {role: position for position, role in enumerate(roles)}
    _check_clear(chosen, names, source, has_person)
    return chosen


def _check_clear(
    chosen: Mapping[str, str | int], names: Sequence[str], source: str, has_person: bool
) -> None:
    there = f" Its columns: {', '.join(map(repr, names))}." if names else ""
    if "item" not in chosen and "title" not in chosen:
        raise DataError(
            f"It is not clear which column of {source} says what is tagged.{there} Name it with "
            "--item (paths or numbers), or with --title and --artist."
            + (" If its first line is no header, pass --no-header." if names else "")
        )
    if "tag" not in chosen:
        raise DataError(
            f"It is not clear which column of {source} holds the tags.{there} Name it with --tag."
        )
    if "user" not in chosen and not has_person:
        raise DataError(
            f"It is not clear whose tags {source} holds.{there} Name the column of people with "
            "--user, or the one person with --person."
        )
