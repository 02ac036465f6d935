"""The paper's own MTurk and MajorMiner files, as published with MLPython, and their download.

They are multi-label libsvm files: `label,label feature:value feature:value ...`, one item a line.
Labels count from 0 and features from 1; an item may have no label.

The files do not say which clips are of one track, so `CLIPS_PER_TRACK` lines in a row are taken as
one: if nobody shuffled them, few tracks are split.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl
import scipy.sparse as sp

from harmonium.arrays import Floats, Mask
from harmonium.data.datasets.dataset import INFOS, Dataset, data_folders, locate, reading
from harmonium.data.triples import TagCounts
from harmonium.errors import DataError, DatasetNotFoundError
from harmonium.files import atomic_file

N_FEATURES = 389
CLIPS_PER_TRACK = 5  # the paper's MTurk data has as many clips of a track
SIZES = {  # the published number of rows
    "mturk": {"train": 597, "valid": 123, "test": 195},
    "majmin": {"train": 1587, "valid": 471, "test": 480},
}

ReceivedBytes = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes received so far, and the bytes in all or None."""
_CHUNK_BYTES = 1 << 16
_TIMEOUT_S = 30


def load(name: str, folder: str | Path | None = None, *, check_sizes: bool = True) -> Dataset:
    """Read `NAME_{train,valid,test}.libsvm`; check_sizes=False allows a part of the rows."""
    (path,) = locate(INFOS[name], folder)
    features, labels, names, tracks, splits, start = [], [], [], [], {}, 0
    for split, n_rows in SIZES[name].items():
        file = path / f"{name}_{split}.libsvm"
        X, Y = read_split(file, name, n_rows if check_sizes else None)
        features.append(X)
        labels.append(Y)
        names += [f"{split} {row:04d}" for row in range(len(X))]
        tracks += [f"{split} {row // CLIPS_PER_TRACK:04d}" for row in range(len(X))]
        splits[split] = np.arange(start, start := start + len(X))
    items = pl.Series(names, dtype=pl.String)
    Y = np.concatenate(labels)
    tags = pl.Series([f"tag {tag:02d}" for tag in range(Y.shape[1])])
    return Dataset(
        info=INFOS[name],
        items=items,
        counts=TagCounts(items, tags, sp.csr_array(Y.astype(np.int32))),
        features=np.concatenate(features),
        tracks=pl.Series(tracks, dtype=pl.String),
        splits=splits,
    )


def read_split(path: Path, name: str, n_rows: int | None) -> tuple[Floats, Mask]:
    """Features and labels of one file, which must have ``n_rows`` rows."""
    from sklearn.datasets import load_svmlight_file

    with reading(path):
        X, given = load_svmlight_file(
            str(path), n_features=N_FEATURES, dtype=np.float32, multilabel=True, zero_based=False
        )
        labels = np.zeros((len(given), INFOS[name].tags or 0), dtype=np.bool_)
        for row, ids in enumerate(given):
            labels[row, np.array(ids, dtype=np.intp)] = True
    if n_rows not in (None, len(labels)):
        raise DataError(f"{path} has {len(labels)} rows where the published file has {n_rows}.")
    return X.toarray(), labels


def download(
    name: str,
    folder: str | Path | None = None,
    *,
    url: str | None = None,
    force: bool = False,
    progress: ReceivedBytes | None = None,
) -> list[Path]:
    """Download the three files of "mturk" or "majmin" into the data folder; returns their paths.

    A file takes its name only when it is complete and has the published number of rows. A file
    that is there already is kept unless ``force``. ``url`` is a mirror's folder of datasets.
    """
    if name not in SIZES:
        raise DataError(
            f"Only {' and '.join(SIZES)} can be downloaded, got '{name}'. "
            "See docs/datasets.md for how to get the other datasets."
        )
    target = data_folders(folder)[0] / name
    paths = {target / f"{name}_{split}.libsvm": rows for split, rows in SIZES[name].items()}
    source = f"{url.rstrip('/')}/{name}/" if url else INFOS[name].homepage
    if not source.startswith(("http://", "https://")):
        raise DataError(f"'url' must begin with http:// or https://, got '{url}'.")
    for path, n_rows in paths.items():
        if force or not path.is_file():
            _download_file(name, n_rows, source + path.name, path, progress)
    return list(paths)


def _download_file(
    name: str, n_rows: int, url: str, path: Path, progress: ReceivedBytes | None
) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            _receive(url, file, path.name, progress)
            try:
                read_split(Path(file.name), name, n_rows)
            except DataError as error:
                problem = str(error).replace(file.name, "the file")
                raise DataError(f"{url} is not what was published: {problem}") from None
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = getattr(getattr(error, "reason", error), "strerror", None) or error
        raise DatasetNotFoundError(
            f"{url} could not be downloaded and written to {path}: {reason}. Check the network and "
            f"try again, put {path.name} from elsewhere there, or name a folder of your own with "
            "--folder or HARMONIUM_DATA."
        ) from None


def _receive(url: str, file: BinaryIO, label: str, progress: ReceivedBytes | None) -> None:
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response:
        length = response.headers.get("Content-Length")
        total = int(length) if length else None
        received = 0
        while chunk := response.read(_CHUNK_BYTES):
            file.write(chunk)
            received += len(chunk)
            if progress:
                progress(label, received, total)
    if total is not None and received != total:
        raise http.client.IncompleteRead(b"", total - received)
    file.flush()
