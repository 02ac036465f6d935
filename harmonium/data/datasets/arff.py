"""Weka's ARFF files, dense and sparse, as arrays.

A value is a number, the position of a nominal value in its attribute's list, or NaN for "?".
In sparse rows what is left out is 0: the number, or the first nominal value.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harmonium.data.datasets.published_files import LARGEST, fault, read_text
from harmonium.errors import DataError

_WORD = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_WORD}|\S+)\s+(.+)$", re.IGNORECASE)
_FIELD = re.compile(rf"\s*((?:{_WORD}|[^,'\"])*)(,|$)")
_NUMERIC = ("numeric", "real", "integer")


@dataclass(frozen=True)
class Attribute:
    """A column: its name, and its values where it is nominal, () where it is a number."""

    name: str
    values: tuple[str, ...] = ()
    is_text: bool = False


@dataclass(frozen=True)
class Arff:
    """The columns of a file, its rows (n, n_attributes), and the line of each row (n,)."""

    path: Path
    attributes: tuple[Attribute, ...]
    rows: NDArray[np.float32]
    lines: tuple[int, ...]


def read_arff(path: Path) -> Arff:
    """Read an ARFF file; a fault is an error with its line."""
    lines = _lines(path)
    attributes = tuple(_header(path, lines))
    if not attributes:
        raise fault(path, None, "it has no @attribute line.")
    data = list(lines)
    if not data:
        raise fault(path, None, "it has no rows after @data.")
    rows = np.zeros((len(data), len(attributes)), dtype=np.float32)
    for row, (number, line) in enumerate(data):
        try:
            _fill(rows[row], line, attributes)
        except DataError as error:
            raise fault(path, number, str(error)) from None
    return Arff(path, attributes, rows, tuple(number for number, _ in data))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are neither blank nor comments, with their numbers."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        line = line.strip()
        if line and not line.startswith("%"):
            yield number, line


def _header(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[Attribute]:
    """The attributes, up to and including the @data line."""
    for number, line in lines:
        keyword = line.split(None, 1)[0].lower()
        if keyword == "@data":
            return
        if keyword == "@attribute":
            match = _ATTRIBUTE.match(line)
            if not match:
                raise fault(path, number, f"'{line[:60]}' is not '@attribute name type'.")
            yield _attribute(path, number, _unquote(match[1]), match[2].strip())
        elif keyword != "@relation":
            raise fault(path, number, f"'{line[:60]}' is not an ARFF declaration.")
    raise fault(path, None, "it has no @data line: it may have been cut off.")


def _attribute(path: Path, number: int, name: str, kind: str) -> Attribute:
    if kind.startswith("{") and kind.endswith("}"):
        return Attribute(name, tuple(_fields(kind[1:-1])))
    if kind.lower() in _NUMERIC:
        return Attribute(name)
    if kind.lower() == "string" or kind.lower().startswith("date"):
        return Attribute(name, is_text=True)
    raise fault(path, number, f"attribute '{name}' has the unknown type '{kind}'.")


def _fill(row: NDArray[np.float32], line: str, attributes: Sequence[Attribute]) -> None:
    """Write the values of a line into a row of zeros."""
    if line.startswith("{"):
        _fill_sparse(row, line, attributes)
        return
    fields = _fields(line)
    if len(fields) != len(attributes):
        raise DataError(f"{len(fields)} values for {len(attributes)} attributes.")
    row[:] = [_value(*pair) for pair in zip(fields, attributes, strict=True)]


def _fill_sparse(row: NDArray[np.float32], line: str, attributes: Sequence[Attribute]) -> None:
    if not line.endswith("}"):
        raise DataError("the sparse row does not end with '}'.")
    seen = set()
    for field in _fields(line[1:-1], unquote=False):
        index, _, value = field.partition(" ")
        if not re.fullmatch("[0-9]{1,9}", index) or int(index) >= len(attributes):
            raise DataError(
                f"a sparse value needs an attribute from 0 to {len(attributes) - 1} before it, "
                f"got '{field[:60]}'."
            )
        if int(index) in seen:
            raise DataError(f"attribute {index} is given twice.")
        seen.add(int(index))
        row[int(index)] = _value(_unquote(value.strip()), attributes[int(index)])


def _value(text: str, attribute: Attribute) -> float:
    """A field as a number: itself, the position of a nominal value, or NaN for "?" and text."""
    if text == "?" or attribute.is_text:
        return nan
    if attribute.values:
        if text not in attribute.values:
            listed = ", ".join(attribute.values[:10])
            raise DataError(f"'{attribute.name}' must be one of {listed}; got '{text[:60]}'.")
        return attribute.values.index(text)
    try:
        number = float(text)
    except ValueError:
        number = nan
    if not abs(number) <= LARGEST:
        raise DataError(f"'{attribute.name}' must be a finite number, got '{text[:60]}'.")
    return number


def _fields(text: str, *, unquote: bool = True) -> list[str]:
    """The comma-separated fields of a text, in which fields may be in quotes."""
    if not text.strip():
        return []
    if "'" not in text and '"' not in text:
        return [field.strip() for field in text.split(",")]
    fields, end = [], 0
    while True:
        match = _FIELD.match(text, end)
        if not match:
            raise DataError(f"a quote is not closed: '{text[end : end + 60]}'.")
        fields.append(_unquote(match[1].strip()) if unquote else match[1].strip())
        if not match[2]:
            return fields
        end = match.end()


def _unquote(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text
