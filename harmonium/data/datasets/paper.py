"""The paper's own MTurk and MajorMiner files, in libsvm form as published with MLPython."""

from pathlib import Path

import numpy as np
import polars as pl
import scipy.sparse as sp

from harmonium.data.counts import TagCounts
from harmonium.data.datasets.base import Dataset, DatasetInfo
from harmonium.data.datasets.files import fault
from harmonium.data.datasets.libsvm import read_libsvm
from harmonium.data.datasets.locate import locate

N_FEATURES = 389
SIZES = {
    "mturk": {"train": 597, "valid": 123, "test": 195},
    "majmin": {"train": 1587, "valid": 471, "test": 480},
}
URL = "http://www.cs.toronto.edu/~larocheh/public/datasets"


def _info(name: str, title: str, summary: str, tags: int) -> DatasetInfo:
    return DatasetInfo(
        name=name,
        title=title,
        summary=summary
        + " 389 features with rows of unit norm, as the paper used them. The files do not name "
        "their tags, tracks, artists or users.",
        files={name: tuple(file_name(name, split) for split in SIZES[name])},
        items=sum(SIZES[name].values()),
        tags=tags,
        features=N_FEATURES,
        citation="Mandel, Pascanu, Larochelle, Bengio (2011), Autotagging music with conditional "
        "restricted Boltzmann machines, arXiv:1103.2832",
        licence="None is stated; published for research with the MLPython library.",
        homepage=f"{URL}/{name}/",
        how_to_get=f"Download it with: harmonium data fetch {name}.",
    )


def file_name(name: str, split: str) -> str:
    """The name of the file of one split."""
    return f"{name}_{split}.libsvm"


MTURK = _info(
    "mturk",
    "Clips tagged by MTurk workers (the paper's)",
    "10-second clips described by workers of Amazon's Mechanical Turk.",
    95,
)
MAJMIN = _info(
    "majmin",
    "MajorMiner clips (the paper's own files)",
    "10-second clips with the tags that at least two players of the MajorMiner game agreed on.",
    96,
)
INFOS = {info.name: info for info in (MTURK, MAJMIN)}


def load_mturk(folder: str | Path | None = None, *, check_sizes: bool = True) -> Dataset:
    """Read `mturk_{train,valid,test}.libsvm`; check_sizes=False allows a part of the rows."""
    return _load(MTURK, folder, check_sizes)


def load_majmin(folder: str | Path | None = None, *, check_sizes: bool = True) -> Dataset:
    """Read `majmin_{train,valid,test}.libsvm`; check_sizes=False allows a part of the rows."""
    return _load(MAJMIN, folder, check_sizes)


def check_size(path: Path, info: DatasetInfo, split: str, rows: int) -> None:
    """Raise DataError unless the file of a split has its published number of rows."""
    published = SIZES[info.name][split]
    if rows != published:
        raise fault(
            path, None, f"{rows} rows where the published file has {published}. Fetch it again."
        )


def _load(info: DatasetInfo, folder: str | Path | None, check_sizes: bool) -> Dataset:
    path = locate(info, folder)[info.name]
    features, labels, names, splits, start = [], [], [], {}, 0
    for split in SIZES[info.name]:
        file = path / file_name(info.name, split)
        X, Y = read_libsvm(file, n_features=N_FEATURES, n_labels=info.tags or 0)
        if check_sizes:
            check_size(file, info, split, len(X))
        features.append(X)
        labels.append(Y)
        names += [f"{split} {row:04d}" for row in range(len(X))]
        splits[split] = np.arange(start, start := start + len(X))
    items = pl.Series(names, dtype=pl.String)
    tags = pl.Series([f"tag {tag:02d}" for tag in range(info.tags or 0)])
    matrix = sp.csr_array(np.concatenate(labels).astype(np.int32))
    return Dataset(
        info=info,
        items=items,
        counts=TagCounts(items, tags, matrix),
        features=np.concatenate(features),
        splits=splits,
    )
