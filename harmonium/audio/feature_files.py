"""Features of files as a file: Parquet, CSV or NumPy's .npz."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl

from harmonium.audio.extraction import Extraction, UnusableFile
from harmonium.errors import DataError
from harmonium.files import atomic_file, check_writable, readable


def write_features(path: str | os.PathLike[str], extraction: Extraction) -> None:
    """Write the matrix with the path of each row; the format is that of the file's ending.

    - .parquet, .csv: a column ``path``, then one for each feature. A byte of a path that is not
      UTF-8 is written as ``\\xNN``; Parquet then has all paths as they are in ``path_bytes``.
    - .npz: ``path`` (n,), ``X`` (n, n_features) and ``columns`` (n_features,)

    The file is there whole or not at all.

    Raises
    ------
    DataError
        for another ending, or where the file cannot be written
    """
    check_output(path)
    write = _WRITERS[Path(path).suffix.lower()]
    _replace(Path(path), lambda file: write(file, extraction))


def write_failures(path: str | os.PathLike[str], failures: Iterable[UnusableFile]) -> None:
    """Write a CSV file of the columns path and reason."""
    rows = list(failures)
    table = pl.DataFrame(
        {"path": [readable(row.path) for row in rows], "reason": [row.reason for row in rows]},
        schema={"path": pl.String, "reason": pl.String},
    )
    _replace(Path(path), table.write_csv)


def check_output(path: str | os.PathLike[str]) -> None:
    """Refuse a file that `write_features` could not write."""
    file = Path(path)
    if file.suffix.lower() not in _WRITERS:
        raise DataError(
            f"The name of the output must end in {', '.join(_WRITERS)}, got '{readable(file)}'."
        )
    check_writable(file)


def _frame(extraction: Extraction) -> pl.DataFrame:
    columns = {"path": [readable(path) for path in extraction.paths]}
    frame = pl.DataFrame(columns, schema={"path": pl.String})
    features = pl.DataFrame(extraction.features, schema=list(extraction.feature_names))
    return frame.hstack(features)


def _write_parquet(file: BinaryIO, extraction: Extraction) -> None:
    frame = _frame(extraction)
    if any(readable(path) != path for path in extraction.paths):
        names = [os.fsencode(path) for path in extraction.paths]
        frame = frame.insert_column(1, pl.Series("path_bytes", names, pl.Binary))
    frame.write_parquet(file)


def _write_npz(file: BinaryIO, extraction: Extraction) -> None:
    np.savez(
        file,
        path=np.array(extraction.paths, str),
        X=extraction.features,
        columns=np.array(extraction.feature_names, str),
    )


_WRITERS: dict[str, Callable[[BinaryIO, Extraction], None]] = {
    ".parquet": _write_parquet,
    ".csv": lambda file, extraction: _frame(extraction).write_csv(file),
    ".npz": _write_npz,
}


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    try:
        with atomic_file(path) as file:
            write(file)
    except OSError as error:
        raise DataError(
            f"'{readable(path)}' cannot be written: {error.strerror or error}."
        ) from error
