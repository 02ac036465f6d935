"""Multi-label benchmarks in Mulan's form: values in ARFF, the labels named in XML."""

import warnings
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.data.datasets.arff import Arff, Attribute, read_arff
from harmonium.data.datasets.dataset import MULAN_SETS, Dataset, DatasetInfo
from harmonium.data.datasets.locate import locate
from harmonium.data.datasets.published_files import fault
from harmonium.data.tag_counts import TagCounts
from harmonium.errors import DataWarning

PREFIX = "mulan:"
_LIBRARY = "Tsoumakas, Spyromitros-Xioufis, Vilcek, Vlahavas (2011), Mulan: A Java library for "
_LIBRARY += "multi-label learning, Journal of Machine Learning Research 12, 2411-2414"


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
    return replace(generic, **MULAN_SETS.get(name.lower(), {}))


def load(name: str, folder: str | Path | None = None) -> Dataset:
    """Read NAME.xml with NAME-train.arff and NAME-test.arff, or with NAME.arff.

    Where both files of the official split are there, the rows are those of the training file and
    then those of the test file, and `splits` says which is which. Nominal features become their
    numbers where all their values are numbers, else one 0/1 column per value (one column where
    there are two). Missing values ("?") stay NaN in the features.
    """
    about = info(name)
    path = locate(about, folder)[f"mulan/{name}"]
    labels = _label_names(path / f"{name}.xml")
    parts = {split: path / f"{name}-{split}.arff" for split in ("train", "test")}
    if not all(file.is_file() for file in parts.values()):
        parts = {"all": path / f"{name}.arff"}
    tables = [read_arff(file) for file in parts.values()]
    if tables[-1].attributes != tables[0].attributes:
        raise fault(tables[-1].path, None, "its attributes are not those of the training file.")
    matrix = sp.csr_array(np.concatenate([_labels(table, labels) for table in tables]))
    features, names = _features(tables, set(labels))
    rows = np.split(np.arange(len(features)), np.cumsum([len(table.rows) for table in tables])[:-1])
    items = pl.Series([f"{name} {row:05d}" for row in range(len(features))])
    return Dataset(
        info=about,
        items=items,
        counts=TagCounts(items, pl.Series(labels), matrix),
        features=features,
        feature_names=names,
        splits=dict(zip(parts, rows, strict=True)) if "test" in parts else {},
    )


def _label_names(path: Path) -> list[str]:
    """The names of all <label> elements, nested ones included, in the file's order."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise fault(path, error.position[0], f"it is not well-formed XML: {error}.") from None
    names = [
        element.get("name", "") for element in root.iter() if element.tag.split("}")[-1] == "label"
    ]
    if not names or not all(names) or len(set(names)) != len(names):
        raise fault(path, None, "it must hold <label name=...> elements with different names.")
    return names


def _labels(table: Arff, names: list[str]) -> NDArray[np.int32]:
    """1 where the label's value is "1", (n, n_labels)."""
    column_of = {attribute.name: column for column, attribute in enumerate(table.attributes)}
    missing = [name for name in names if name not in column_of]
    if missing:
        problem = f"label '{missing[0]}' of the XML file is no attribute in it."
        raise fault(table.path, None, problem)
    labels = np.zeros((len(table.rows), len(names)), dtype=np.int32)
    for position, name in enumerate(names):
        attribute, values = table.attributes[column_of[name]], table.rows[:, column_of[name]]
        if sorted(attribute.values) != ["0", "1"]:
            raise fault(table.path, None, f"label '{name}' must have the values 0 and 1.")
        if np.isnan(values).any():
            line = table.lines[int(np.isnan(values).argmax())]
            raise fault(table.path, line, f"label '{name}' is missing.")
        labels[:, position] = values == attribute.values.index("1")
    return labels


def _features(tables: list[Arff], labels: set[str]) -> tuple[NDArray[np.float32], pl.Series]:
    """The columns that are not labels as numbers, (n, D), and their names."""
    rows = np.concatenate([table.rows for table in tables])
    columns: list[tuple[str, NDArray[np.float32]]] = []
    for attribute, values in zip(tables[0].attributes, rows.T, strict=True):
        if attribute.is_text:
            warnings.warn(
                f"{tables[0].path}: the text attribute '{attribute.name}' is left out of the "
                "features.",
                DataWarning,
                stacklevel=2,
            )
        elif attribute.name not in labels:
            columns += _as_columns(attribute, values)
    if not columns:
        raise fault(tables[0].path, None, "it has no features, only labels.")
    names, values = zip(*columns, strict=True)
    return np.stack(values, axis=1), pl.Series(names)


def _as_columns(
    attribute: Attribute, values: NDArray[np.float32]
) -> list[tuple[str, NDArray[np.float32]]]:
    """An attribute as one or more columns of numbers with their names."""
    if not attribute.values:
        return [(attribute.name, values)]
    numbers = _numbers(attribute)
    if numbers is None and len(attribute.values) == 2:
        return [(attribute.name, values)]
    nan, missing = np.float32(np.nan), np.isnan(values)
    code = np.where(missing, 0, values).astype(np.intp)
    if numbers is not None:
        return [(attribute.name, np.where(missing, nan, numbers[code]))]
    return [
        (f"{attribute.name}={value}", np.where(missing, nan, code == position).astype(np.float32))
        for position, value in enumerate(attribute.values)
    ]


def _numbers(attribute: Attribute) -> NDArray[np.float32] | None:
    """The values of a nominal attribute as numbers, or None where one of them is a word."""
    try:
        return np.array([float(value) for value in attribute.values], dtype=np.float32)
    except ValueError:
        return None
