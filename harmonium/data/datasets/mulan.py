"""Multi-label benchmarks in Mulan's form: values in ARFF, the labels named in XML.

Any set in this form can be read, so errors in your own name the line. In ARFF, a value is a number,
one of a nominal attribute's values, or "?" if it is missing; sparse rows leave out zeros: the
number 0, or the first nominal value.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Literal, NamedTuple
from xml.etree import ElementTree

import numpy as np
import polars as pl
import scipy.sparse as sp

from harmonium.arrays import Codes, Floats, Places
from harmonium.data.counts import TagCounts
from harmonium.data.datasets.dataset import TABLES, Dataset, DatasetInfo, locate, reading
from harmonium.errors import DataError, DataWarning

PREFIX = "mulan:"
_LIBRARY = (
    "Tsoumakas, Spyromitros-Xioufis, Vilcek, Vlahavas (2011), Mulan: A Java library for "
    "multi-label learning, Journal of Machine Learning Research 12, 2411-2414"
)


class Attribute(NamedTuple):
    """A column of an ARFF file."""

    name: str
    kind: Literal["number", "nominal", "text"]
    values: tuple[str, ...] = ()  # of a nominal attribute


class ArffTable(NamedTuple):
    """The content of an ARFF file."""

    attributes: list[Attribute]
    rows: Floats  # (n, n_attributes); a nominal value is its place, missing or text is NaN


def info(name: str) -> DatasetInfo:
    """What is known about `mulan:NAME`, for any NAME; more for those in datasets.toml."""
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

    With an official split, the rows of the training file come first, then those of the test file.
    docs/datasets.md says what becomes of nominal and missing values.
    """
    dataset_info = info(name)
    (path,) = locate(dataset_info, folder)
    labels = _label_names(path / f"{name}.xml")
    table, splits = _read_rows(path, name)
    matrix = sp.csr_array(_labels(table, labels, source=path))
    features, feature_names = _features(table, labels, source=path)
    items = pl.Series([f"{name} {row:05d}" for row in range(len(table.rows))])
    return Dataset(
        info=dataset_info,
        items=items,
        counts=TagCounts(items=items, tags=pl.Series(labels), matrix=matrix),
        features=features,
        feature_names=feature_names,
        splits=splits,
    )


def _read_rows(path: Path, name: str) -> tuple[ArffTable, dict[str, Places]]:
    """All rows of a set, and the rows of each split; without an official split, none."""
    train_file = path / f"{name}-train.arff"
    test_file = path / f"{name}-test.arff"
    if not train_file.is_file() or not test_file.is_file():
        return read_arff(path / f"{name}.arff"), {}
    train = read_arff(train_file)
    test = read_arff(test_file)
    if train.attributes != test.attributes:
        raise DataError(f"{path}: the attributes of {name}-train.arff and {name}-test.arff differ.")
    table = ArffTable(train.attributes, np.concatenate([train.rows, test.rows]))
    n_train = len(train.rows)
    splits = {"train": np.arange(n_train), "test": np.arange(n_train, len(table.rows))}
    return table, splits


def _label_names(path: Path) -> list[str]:
    """The names of all <label> elements, nested ones included, in the file's order."""
    with reading(path, "It must be an XML file with <label name=...> elements."):
        elements = ElementTree.parse(path).getroot().iter()
        names = []
        for element in elements:
            if element.tag.split("}")[-1] == "label":
                names.append(_unescaped(element.attrib["name"]))
    if not names or len(set(names)) != len(names):
        raise DataError(f"{path} must hold <label name=...> elements with different names.")
    return names


def _labels(table: ArffTable, names: Sequence[str], *, source: Path) -> Codes:
    """1 if the label's value is "1", (n, n_labels)."""
    column_of = {attribute.name: i for i, attribute in enumerate(table.attributes)}
    labels = []
    for name in names:
        if name not in column_of:
            raise DataError(f"{source}: label '{name}' of the XML file is not an attribute.")
        values = table.attributes[column_of[name]].values
        column = table.rows[:, column_of[name]]
        if sorted(values) != ["0", "1"] or np.isnan(column).any():
            raise DataError(f"{source}: label '{name}' must be 0 or 1 in every row.")
        labels.append(column == values.index("1"))
    return np.stack(labels, axis=1).astype(np.int32)


def _features(table: ArffTable, labels: Sequence[str], *, source: Path) -> tuple[Floats, pl.Series]:
    """The columns that are not labels as numbers, (n, D), and their names."""
    columns: dict[str, Floats] = {}
    for attribute, column in zip(table.attributes, table.rows.T, strict=True):
        if attribute.kind == "text":
            warnings.warn(
                f"{source}: the text attribute '{attribute.name}' is left out of the features.",
                DataWarning,
                stacklevel=4,
            )
        elif attribute.name not in labels:
            columns |= _as_columns(attribute, column)
    if not columns:
        raise DataError(f"{source}: there are no features, only labels.")
    return np.stack(list(columns.values()), axis=1), pl.Series([*columns])


def _as_columns(attribute: Attribute, column: Floats) -> dict[str, Floats]:
    """An attribute as one or more columns of numbers by name.

    Nominal values that are numbers become these; of two others, one is 0 and the other 1; of more,
    each gets a column.
    """
    name, kind, values = attribute
    if kind == "number" or not values:
        return {name: column}
    is_missing = np.isnan(column)
    place = np.where(is_missing, 0, column).astype(np.intp)
    try:
        numbers = np.array(values, dtype=np.float32)
    except ValueError:
        if len(values) == 2:
            return {name: column}
        is_value = np.eye(len(values), dtype=np.float32)[place].T  # (n_values, n)
        rows = np.where(is_missing, np.float32(nan), is_value)
        names = [f"{name}={value}" for value in values]
        return dict(zip(names, rows, strict=True))
    return {name: np.where(is_missing, np.float32(nan), numbers[place])}


def read_arff(path: Path) -> ArffTable:
    """The columns of an ARFF file and its rows."""
    from harmonium.scikit_learn import parse_arff  # scikit-learn is slow to import

    with reading(path, "It must be an ARFF file in UTF-8."):
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        first_row = re.search(r"^@data\s*(%.*\s+)*\{", text, re.IGNORECASE | re.MULTILINE)
        is_sparse = first_row is not None
        parsed = parse_arff(text, is_sparse=is_sparse)
    attributes = [_attribute(name, kind) for name, kind in parsed["attributes"]]
    rows = np.zeros((len(parsed["data"]), len(attributes)))
    for row, values in zip(rows, parsed["data"], strict=True):
        for place, value in values.items() if is_sparse else enumerate(values):
            row[place] = nan if value is None or isinstance(value, str) else value
    too_large = np.argwhere(np.abs(rows) > np.finfo(np.float32).max)
    if len(too_large):
        row_number, place = too_large[0]
        name = attributes[place].name
        raise DataError(f"{path}, row {row_number + 1}: '{name}' must be a finite number.")
    if not rows.size:
        raise DataError(f"{path} has no @attribute line, or no rows after @data.")
    return ArffTable(attributes, rows.astype(np.float32))


def _unescaped(name: str) -> str:
    """Without the backslashes before quotation marks, which ARFF and Mulan's XML files have."""
    return re.sub(r"\\(.)", r"\1", name)


def _attribute(name: str, kind: str | Sequence[str]) -> Attribute:
    """An attribute as the reader gives it."""
    name = _unescaped(name)
    if kind == "STRING":
        return Attribute(name, "text")
    if isinstance(kind, str):
        return Attribute(name, "number")
    return Attribute(name, "nominal", tuple(kind))
