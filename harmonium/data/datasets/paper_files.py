"""The paper's own MTurk and MajorMiner files, as published with MLPython.

They are multi-label libsvm files: `label,label feature:value feature:value ...`, one item a line.
Labels count from 0 and features from 1. An item may have no label: its line then begins with a
space, or with its first feature. Features that are left out are 0.

The files do not say which clips are of one track. In their stead, `CLIPS_PER_TRACK` lines that
follow each other in a file are taken as one: if the clips of a track stand together, as they would
if nobody shuffled them, few tracks are parted.
"""

import re
from pathlib import Path

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.data.datasets.checksums import check_digest
from harmonium.data.datasets.dataset import INFOS, Dataset
from harmonium.data.datasets.locate import locate
from harmonium.data.datasets.published_files import LARGEST, fault, read_text
from harmonium.data.tag_counts import TagCounts
from harmonium.errors import DataError

N_FEATURES = 389
CLIPS_PER_TRACK = 5
"""As many clips as the paper's MTurk data has of a track."""
SIZES = {
    "mturk": {"train": 597, "valid": 123, "test": 195},
    "majmin": {"train": 1587, "valid": 471, "test": 480},
}


def file_name(name: str, split: str) -> str:
    """The name of the file of one split."""
    return f"{name}_{split}.libsvm"


def read_split(
    path: Path, name: str, split: str, *, check_sizes: bool
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Features and labels of one file, which must have its published number of rows."""
    X, Y = read_libsvm(path, n_features=N_FEATURES, n_labels=INFOS[name].tags or 0)
    published = SIZES[name][split]
    if check_sizes and len(X) != published:
        problem = f"{len(X)} rows where the published file has {published}. Fetch it again."
        raise fault(path, None, problem)
    return X, Y


def load(name: str, folder: str | Path | None = None, *, check_sizes: bool = True) -> Dataset:
    """Read `NAME_{train,valid,test}.libsvm`; check_sizes=False allows a part of the rows."""
    info = INFOS[name]
    path = locate(info, folder)[name]
    features, labels, names, tracks, splits, start = [], [], [], [], {}, 0
    for split in SIZES[name]:
        file = path / file_name(name, split)
        check_digest(file, fetch_again=f"harmonium data fetch {name} --force")
        X, Y = read_split(file, name, split, check_sizes=check_sizes)
        features.append(X)
        labels.append(Y)
        names += [f"{split} {row:04d}" for row in range(len(X))]
        tracks += [f"{split} {row // CLIPS_PER_TRACK:04d}" for row in range(len(X))]
        splits[split] = np.arange(start, start := start + len(X))
    items = pl.Series(names, dtype=pl.String)
    tags = pl.Series([f"tag {tag:02d}" for tag in range(info.tags or 0)])
    matrix = sp.csr_array(np.concatenate(labels).astype(np.int32))
    return Dataset(
        info=info,
        items=items,
        counts=TagCounts(items, tags, matrix),
        features=np.concatenate(features),
        tracks=pl.Series(tracks, dtype=pl.String),
        splits=splits,
    )


def read_libsvm(
    path: Path, *, n_features: int, n_labels: int
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Features (n, n_features) and labels (n, n_labels) of a file."""
    lines = read_text(path).rstrip("\r\n").split("\n")
    features = np.zeros((len(lines), n_features), dtype=np.float32)
    labels = np.zeros((len(lines), n_labels), dtype=np.bool_)
    for row, line in enumerate(lines):
        try:
            given, described = _halves(line)
            labels[row, _label_ids(given, n_labels)] = True
            index, value = _features(described, n_features)
            features[row, index] = value
        except DataError as error:
            raise fault(path, row + 1, str(error)) from None
    return features, labels


def _halves(line: str) -> tuple[str, str]:
    """The labels' part and the features' part of a line; either may be empty."""
    if not line.strip():
        raise DataError("the line is empty.")
    first, *rest = line.split(maxsplit=1)
    if line[0].isspace() or ":" in first:
        return "", line
    return first, "".join(rest)


def _label_ids(text: str, n_labels: int) -> list[int]:
    """The ids of a comma-separated list, each in 0..n_labels-1."""
    ids = []
    for token in text.split(",") if text else ():
        if not re.fullmatch("[0-9]{1,9}", token) or int(token) >= n_labels:
            raise DataError(f"a label must be a number from 0 to {n_labels - 1}, got '{token}'.")
        ids.append(int(token))
    return ids


def _features(text: str, n_features: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Columns, counted from 0, and values of `feature:value` pairs."""
    numbers: list[int] = []
    values: list[float] = []
    for token in text.split():
        try:
            number, value = token.split(":")
            numbers.append(int(number))
            values.append(float(value))
        except ValueError:
            raise DataError(f"'{token}' is not of the form feature:value.") from None
        if not 1 <= numbers[-1] <= n_features:
            raise DataError(f"a feature must be a number from 1 to {n_features}, got {number}.")
    index, features = np.array(numbers, dtype=np.intp), np.array(values, dtype=np.float64)
    if not (right := np.abs(features) <= LARGEST).all():
        raise DataError(f"feature {index[~right][0]} is not a finite number.")
    if len(np.unique(index)) != len(index):
        raise DataError(f"feature {np.flatnonzero(np.bincount(index) > 1)[0]} is given twice.")
    return index - 1, features
