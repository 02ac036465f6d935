"""Which column of a file plays which role."""

from collections.abc import Mapping, Sequence

from harmonium.errors import DataError
from harmonium.nearest_names import nearest_names

_SHOWN = 20  # column names listed in a message


def find_columns(
    roles: Mapping[str, str | int], names: Sequence[str], *, source: str, header: bool = True
) -> dict[str, int]:
    """The position of each role's column.

    Parameters
    ----------
    roles : role -> the column's name, or its position counted from 0
    names : the names of all columns, in order
    source : the file's name, for messages
    header : whether the names stand in the file
    """
    found = {
        role: _at_position(role, wanted, names, source=source)
        if isinstance(wanted, int)
        else _by_name(role, wanted, names, source=source, header=header)
        for role, wanted in roles.items()
    }
    for position in found.values():
        twins = [other for other, at in found.items() if at == position]
        if len(twins) > 1:
            raise DataError(
                f"'{twins[0]}' and '{twins[1]}' are both column {position} of {source}, "
                f"{names[position]!r}. Name another column for one of them."
            )
    return found


def _at_position(role: str, position: int, names: Sequence[str], *, source: str) -> int:
    if isinstance(position, bool) or not 0 <= position < len(names):
        raise DataError(
            f"'{role}' must be a column's name or its position, here from 0 to {len(names) - 1}: "
            f"got {position}. The columns of {source}: {_listed(names)}."
        )
    return position


def _by_name(role: str, wanted: str, names: Sequence[str], *, source: str, header: bool) -> int:
    stripped = [name.strip() for name in names]
    exact = [i for i, name in enumerate(names) if name == wanted]
    matches = exact or [i for i, name in enumerate(stripped) if name == wanted.strip()]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise DataError(
            f"{source} has {len(matches)} columns named {wanted!r}. Give '{role}' by position: "
            f"{' or '.join(str(i) for i in matches)}."
        )
    if not header:
        raise DataError(
            f"{source} is read without a header, so '{role}' must be a position from 0 to "
            f"{len(names) - 1}, got {wanted!r}."
        )
    raise DataError(_missing(role, wanted, stripped, source=source))


def _missing(role: str, wanted: str, names: Sequence[str], *, source: str) -> str:
    near = nearest_names(wanted, names)
    guess = f" The nearest is {near[0]!r}." if near else ""
    if len(names) == 1:
        guess += " If that is not one column, name the delimiter (--delimiter; delimiter=)."
    return (
        f"{source} has no column {wanted!r} for '{role}'. Its columns: {_listed(names)}.{guess} "
        f"Name the right one (--{role}; in Python, {role}=), or say that the file has no header "
        "(--no-header; header=False)."
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + more
