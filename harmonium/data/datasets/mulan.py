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
from typing import TypeAlias
from xml.etree import ElementTree

import numpy as np
import polars as pl
import scipy.sparse as sp

from harmonium.arrays import Codes, Floats
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
) -> Codes:
    """1 if the label's value is "1", (n, n_labels)."""
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
    # A nominal value becomes its position among the attribute's values; missing or text is NaN.
    from sklearn.externals import _arff

    with reading(path, "It must be an ARFF file in UTF-8."):
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        is_sparse = re.search(r"^@data\s*(%.*\s+)*\{", text, re.IGNORECASE | re.MULTILINE)
        kind = _arff.LOD if is_sparse else _arff.DENSE
        found = _arff.load(text, encode_nominal=True, return_type=kind)
    # The reader leaves the backslash before a quotation mark in a name.
    named = [(re.sub(r"\\(.)", r"\1", name), kind) for name, kind in found["attributes"]]
    kinds: dict[str, tuple[str, ...] | None] = {
        name: () if isinstance(kind, str) else tuple(kind) for name, kind in named
    }
    kinds |= {name: None for name, kind in named if kind == "STRING"}
    rows = np.zeros((len(found["data"]), len(kinds)))
    for row, values in zip(rows, found["data"], strict=True):
        for at, value in values.items() if is_sparse else enumerate(values):
            row[at] = nan if value is None or isinstance(value, str) else value
    large = np.argwhere(np.abs(rows) > np.finfo(np.float32).max)
    if len(large):
        row, at = large[0]
        raise DataError(f"{path}, row {row + 1}: '{[*kinds][at]}' must be a finite number.")
    if not rows.size:
        raise DataError(f"{path} has no @attribute line, or no rows after @data.")
    return list(kinds.items()), rows.astype(np.float32)
