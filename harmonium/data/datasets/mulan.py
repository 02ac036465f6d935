"""Multi-label benchmarks in Mulan's form: values in ARFF, the labels named in XML.

Any set in this form can be read, so what is wrong with one's own is said with its line. In ARFF a
value is a number, one of the values of a nominal attribute, or "?" where it is missing; sparse
rows leave out what is 0: the number, or the first nominal value.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.arrays import Floats
from harmonium.data.datasets.dataset import TABLES, Dataset, DatasetInfo, locate, reading
from harmonium.data.triples import TagCounts
from harmonium.errors import DataError, DataWarning

PREFIX = "mulan:"
_LIBRARY = (
    "Tsoumakas, Spyromitros-Xioufis, Vilcek, Vlahavas (2011), Mulan: A Java library for "
    "multi-label learning, Journal of Machine Learning Research 12, 2411-2414"
)

Attribute: TypeAlias = tuple[str, tuple[str, ...] | None]
"""A column's name and its nominal values: () for a number, None for text."""

_MAX_NUMBER = float(np.finfo(np.float32).max)
_WORD = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_WORD}|\S+)\s+(.+)$", re.IGNORECASE)
_FIELD = re.compile(rf"\s*((?:{_WORD}|[^,'\"])*)(,|$)")


def info(name: str) -> DatasetInfo:
    """What is known of `mulan:NAME`, for any NAME; more for those in datasets.toml."""
    arff = (f"{name}.arff|{name}-train.arff", f"{name}.arff|{name}-test.arff")
    generic = DatasetInfo(
        name=f"{PREFIX}{name}",
        title=f"Mulan: {name}",
        summary="A multi-label benchmark in Mulan's ARFF and XML form.",
        files={f"mulan/{name}": (f"{name}.xml", *arff)},
        citation=_LIBRARY,
        licence="None is stated; published for research with the Mulan library.",
        homepage="https://mulan.sourceforge.net/datasets-mlc.html",
        how_to_get=f"Unpack {name} from its homepage into a folder mulan/{name}.",
    )
    return replace(generic, **TABLES["mulan"].get(name.lower(), {}))


def load(name: str, folder: str | Path | None = None) -> Dataset:
    """Read NAME.xml with NAME-train.arff and NAME-test.arff, or with NAME.arff.

    Of both files of the official split, the rows are those of the training file and then those of
    the test file. docs/datasets.md says what becomes of nominal and missing values.
    """
    about = info(name)
    (path,) = locate(about, folder)
    labels = _label_names(path / f"{name}.xml")
    files = {split: path / f"{name}-{split}.arff" for split in ("train", "test")}
    if not all(file.is_file() for file in files.values()):
        files = {"all": path / f"{name}.arff"}
    read = [read_arff(file) for file in files.values()]
    attributes = read[0][0]
    if read[-1][0] != attributes:
        raise DataError(f"{path}: the attributes of {name}-train.arff and {name}-test.arff differ.")
    rows = np.concatenate([part for _, part in read])
    matrix = sp.csr_array(_labels(attributes, rows, labels, source=path))
    features, names = _features(attributes, rows, labels, source=path)
    items = pl.Series([f"{name} {row:05d}" for row in range(len(rows))])
    parts = np.split(np.arange(len(rows)), [len(read[0][1])])
    return Dataset(
        info=about,
        items=items,
        counts=TagCounts(items, pl.Series(labels), matrix),
        features=features,
        feature_names=names,
        splits=dict(zip(files, parts, strict=True)) if "test" in files else {},
    )


def _label_names(path: Path) -> list[str]:
    """The names of all <label> elements, nested ones included, in the file's order."""
    with reading(path, "It must be an XML file with <label name=...> elements."):
        elements = ElementTree.parse(path).getroot().iter()
        names = [one.attrib["name"] for one in elements if one.tag.split("}")[-1] == "label"]
    if not names or len(set(names)) != len(names):
        raise DataError(f"{path} must hold <label name=...> elements with different names.")
    return names


def _labels(
    attributes: Sequence[Attribute], rows: Floats, names: Sequence[str], *, source: Path
) -> NDArray[np.int32]:
    """1 where the label's value is "1", (n, n_labels)."""
    columns = [name for name, _ in attributes]
    labels = []
    for name in names:
        if name not in columns:
            raise DataError(f"{source}: label '{name}' of the XML file is not an attribute.")
        at = columns.index(name)
        values = attributes[at][1] or ()
        if sorted(values) != ["0", "1"] or np.isnan(rows[:, at]).any():
            raise DataError(f"{source}: label '{name}' must be 0 or 1 in every row.")
        labels.append(rows[:, at] == values.index("1"))
    return np.stack(labels, axis=1).astype(np.int32)


def _features(
    attributes: Sequence[Attribute], rows: Floats, labels: Sequence[str], *, source: Path
) -> tuple[Floats, pl.Series]:
    """The columns that are not labels as numbers, (n, D), and their names."""
    columns: dict[str, Floats] = {}
    for (name, values), column in zip(attributes, rows.T, strict=True):
        if values is None:
            warnings.warn(
                f"{source}: the text attribute '{name}' is left out of the features.",
                DataWarning,
                stacklevel=4,
            )
        elif name not in labels:
            columns |= _as_columns(name, values, column)
    if not columns:
        raise DataError(f"{source}: there are no features, only labels.")
    return np.stack(list(columns.values()), axis=1), pl.Series([*columns])


def _as_columns(name: str, values: tuple[str, ...], column: Floats) -> dict[str, Floats]:
    """An attribute as one or more columns of numbers by name."""
    missing = np.isnan(column)
    code = np.where(missing, 0, column).astype(np.intp)
    try:
        numbers = np.array(values, dtype=np.float32)
    except ValueError:
        numbers = np.eye(len(values), dtype=np.float32)
    if not values or (numbers.ndim == 2 and len(values) == 2):
        return {name: column}
    names = [name] if numbers.ndim == 1 else [f"{name}={value}" for value in values]
    found = np.where(missing, np.float32(nan), numbers[code].T).reshape(len(names), -1)
    return dict(zip(names, found, strict=True))


def read_arff(path: Path) -> tuple[list[Attribute], Floats]:
    """The columns of an ARFF file and its rows, (n, n_attributes)."""
    # A nominal value is its position among the attribute's values; a missing one, or text, is NaN.
    with reading(path, "It must be an ARFF file in UTF-8."):
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    attributes: list[Attribute] = []
    rows: list[Floats] | None = None
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line.startswith("%"):
            continue
        try:
            if rows is not None:
                rows.append(_row(line, attributes))
            elif line.lower().startswith("@attribute"):
                attributes.append(_attribute(line))
            elif line.lower().startswith("@data"):
                rows = []
            elif not line.lower().startswith("@relation"):
                raise ValueError(f"'{line[:60]}' is not an ARFF declaration")
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}.") from None
    if not rows or not attributes:
        raise DataError(f"{path} has no @attribute line, or no rows after @data.")
    return attributes, np.stack(rows)


def _attribute(line: str) -> Attribute:
    if match := _ATTRIBUTE.match(line):
        name, kind = _unquoted(match[1]), match[2].strip()
        if kind.startswith("{") and kind.endswith("}"):
            return name, tuple(map(_unquoted, _fields(kind[1:-1])))
        if kind.lower() in ("numeric", "real", "integer"):
            return name, ()
        if kind.lower().startswith(("string", "date")):
            return name, None
    raise ValueError(f"'{line[:60]}' does not declare an attribute of a known type")


def _row(line: str, attributes: Sequence[Attribute]) -> Floats:
    """The values of a line, dense or sparse, (n_attributes,)."""
    row = np.zeros(len(attributes), dtype=np.float32)
    if not line.startswith("{"):
        values = dict(enumerate(_fields(line)))
        if len(values) != len(attributes):
            raise ValueError(f"{len(values)} values for {len(attributes)} attributes")
    elif not line.endswith("}"):
        raise ValueError("the sparse row does not end with '}'")
    else:
        pairs = [field.partition(" ") for field in _fields(line[1:-1])]
        values = {int(index): value.strip() for index, _, value in pairs}
    for index, text in values.items():
        if not 0 <= index < len(attributes):
            raise ValueError(f"there is no attribute {index}")
        row[index] = _value(_unquoted(text), attributes[index])
    return row


def _value(text: str, attribute: Attribute) -> float:
    name, values = attribute
    if text == "?" or values is None:
        return nan
    if values:
        if text not in values:
            raise ValueError(f"'{name}' must be one of {', '.join(values[:10])}; got '{text[:60]}'")
        return values.index(text)
    number = float(text)
    if not abs(number) <= _MAX_NUMBER:
        raise ValueError(f"'{name}' must be a finite number, got '{text[:60]}'")
    return number


def _fields(text: str) -> list[str]:
    """The comma-separated fields of a text, in which fields may be in quotes."""
    if not text.strip():
        return []
    if "'" not in text and '"' not in text:
        return [field.strip() for field in text.split(",")]
    fields, end = [], 0
    while match := _FIELD.match(text, end):
        fields.append(match[1].strip())
        if not match[2]:
            return fields
        end = match.end()
    raise ValueError(f"a quote is not closed: '{text[end : end + 60]}'")


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text
