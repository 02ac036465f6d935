"""Rows as they were read, and an account of those that cannot be used."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.data.codes import Coded, compact, encode, encode_batches
from harmonium.data.name_columns import Column, as_strings
from harmonium.errors import DataError, DataWarning, nearest_names

Mask: TypeAlias = NDArray[np.bool_]

_PLACES_SHOWN = 5  # per reason
_COLUMNS_SHOWN = 20  # in a message


USUAL_NAMES = {
    "item": (
        *("path", "file", "filename", "file_name", "location"),
        *("item", "clip", "track", "track_id", "song", "id"),
    ),
    "artist": ("artist", "artist_name", "performer"),
    "title": ("title", "track_title", "song_title", "track_name", "name"),
    "tag": ("tag", "tags", "label", "genre", "mood"),
    "user": ("user", "person", "listener", "user_id", "username", "who", "annotator"),
}
"""Role → names that columns usually have, the likeliest first."""


@dataclass(frozen=True)
class CodedRows:
    """Rows of a file or of sequences, one coded column per role.

    Attributes
    ----------
    columns : role ("user", "item", "tag", "count", "alias") -> codes (n,) and names
    source : where the rows come from, for messages
    unit : what `locate` counts in: "line", "row" or "position"
    locate : row indices -> where these rows are in the source; called only if rows are bad
    left_out : reason -> where the rows are that the reader has left out already
    """

    columns: Mapping[str, Coded]
    source: str = "the columns"
    unit: str = "position"
    locate: Callable[[NDArray[np.intp]], NDArray[Any]] = lambda rows: rows
    left_out: Mapping[str, list[int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())).codes)

    @classmethod
    def from_columns(cls, columns: Mapping[str, Column], **attributes: Any) -> "CodedRows":
        """Rows of sequences of equal length, by role, with the attributes named above."""
        strings = {
            role: as_strings(values, name=role, fractions=role == "count")
            for role, values in columns.items()
        }
        lengths = {role: len(values) for role, values in strings.items()}
        if len(set(lengths.values())) > 1:
            given = ", ".join(f"{length:,} for '{role}'" for role, length in lengths.items())
            raise DataError(f"The columns must be of equal length, got {given}.")
        return cls(encode_batches(lambda: [strings], list(strings)), **attributes)

    def values(self, role: str) -> pl.Series:
        """The column of a role as strings, (n,)."""
        codes, names = self.columns[role]
        return names.gather(codes)

    def respelt(self, role: str, spell: Callable[[pl.Series], pl.Series]) -> "CodedRows":
        """The rows with the names of a role spelt anew; names that come out equal are merged."""
        codes, names = self.columns[role]
        new_code, names = encode(spell(names))
        return replace(self, columns={**self.columns, role: Coded(new_code[codes], names)})

    def usable(self, faults: Mapping[str, tuple[str, Mask]] | None = None) -> "CodedRows":
        """The rows without an empty name and without these faults, each a role and its bad names.

        Rows left out get one warning, which counts them by reason and says where the first are; it
        is an error if no row is left.
        """
        empty = {
            f"an empty {role}": (role, (column.names.str.strip_chars() == "").to_numpy())
            for role, column in self.columns.items()
        }
        good = np.ones(len(self), dtype=np.bool_)
        left_out = dict(self.left_out)
        for reason, (role, bad_names) in {**empty, **(faults or {})}.items():
            if bad_names.any():
                bad = np.flatnonzero(bad_names[self.columns[role].codes] & good)
                good[bad] = False
                left_out |= {reason: self.locate(bad).tolist()} if len(bad) else {}
        if not left_out:
            return self
        self._report(left_out, n_good=int(good.sum()))
        kept = {
            role: compact(Coded(codes[good], names))
            for role, (codes, names) in self.columns.items()
        }
        return CodedRows(kept, self.source)

    def _report(self, left_out: Mapping[str, list[int]], *, n_good: int) -> None:
        n_bad = sum(len(where) for where in left_out.values())
        account = ", ".join(self._account(*reason) for reason in left_out.items())
        if not n_good:
            raise DataError(f"None of the {n_bad:,} rows of {self.source} can be used: {account}.")
        verb = "was" if n_bad == 1 else "were"
        warnings.warn(
            f"{n_bad:,} of {n_bad + n_good:,} rows of {self.source} {verb} left out: {account}.",
            DataWarning,
            stacklevel=5,  # the caller of read_triples, Triples.from_columns and the like
        )

    def _account(self, reason: str, where: list[int]) -> str:
        """For example "2 with an empty tag (lines 5, 17)"."""
        shown = ", ".join(f"{number:,}" for number in where[:_PLACES_SHOWN])
        more = f" and {len(where) - _PLACES_SHOWN:,} more" if len(where) > _PLACES_SHOWN else ""
        plural = "s" if len(where) > 1 else ""
        return f"{len(where):,} with {reason} ({self.unit}{plural} {shown}{more})"


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

    A role that is to be found by its own name, such as "user", may have another of `USUAL_NAMES`.
    """
    roles = {role: _usual(role, wanted, names, roles) for role, wanted in roles.items()}
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


def _usual(
    role: str, wanted: str | int, names: Sequence[str], roles: Mapping[str, str | int]
) -> str | int:
    """The name that a column has instead of that of its role; else what was wanted."""
    folded = {name.strip().casefold(): name for name in reversed(names)}
    if wanted != role or any(name.strip() == wanted for name in names):
        return wanted
    others = (name for name in USUAL_NAMES.get(role, ()) if name not in roles.values())
    return next((folded[name] for name in others if name in folded), wanted)


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
    use = "" if wanted == role else f" for '{role}'"
    guess = f" The nearest is {near[0]!r}." if near else ""
    if len(names) == 1:
        guess += " If that is not one column, name the delimiter (--delimiter; delimiter=)."
    return (
        f"{source} has no column {wanted!r}{use}. Its columns: {_listed(names)}.{guess} "
        f"Name the right one (--{role}; in Python, {role}=), or say that the file has no header "
        "(--no-header; header=False)."
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _COLUMNS_SHOWN:,} more" if len(names) > _COLUMNS_SHOWN else ""
    return ", ".join(repr(name) for name in names[:_COLUMNS_SHOWN]) + more
