"""Import of features that another program computed: a row of numbers for each track."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.errors import DataError
from harmonium.library.imports import check_has_tracks, choose_columns, match_tracks
from harmonium.library.library import Library
from harmonium.library.store.schema import EXTRACTOR

PREFIX = "imported:"
"""How the names of imported features begin."""


@dataclass
class FeatureReport:
    """What was imported, and what was not."""

    name: str
    """What the features are called in the library."""
    n_features: int
    n_rows: int
    n_tracks: int = 0
    """Tracks that have features now."""
    unmatched: dict[str, str] = field(default_factory=dict)
    """What a row says → why it means no track."""


def import_features(
    library: Library,
    path: str | Path,
    *,
    item: str | int | None = None,
    artist: str | int | None = None,
    title: str | int | None = None,
    dry_run: bool = False,
) -> FeatureReport:
    """Make the rows of a table the features of a library, in place of those in use.

    Tracks are found as `import_table` finds them. Former features stay for the models that use
    them.

    Parameters
    ----------
    path : a .csv, .tsv or .parquet file with a column for each number, or one of lists; or an .npz
        file with an array of names (n,) and one of numbers (n, n_features)
    item, artist, title : columns, by name or by position from 0; by default recognised

    Raises
    ------
    DataError
        where the table cannot be used, or none of its rows means a track
    """
    file = Path(path).expanduser()
    frame = _read(file)
    named = {"item": item, "artist": artist, "title": title}
    chosen = choose_columns(named, ("item",), file.name, frame.columns)
    columns = {role: frame.columns[x] if isinstance(x, int) else x for role, x in chosen.items()}
    words = frame.select(pl.col(name).cast(pl.String).alias(role) for role, name in columns.items())
    X = _numbers(frame.drop(columns.values()), file.name)
    check_has_tracks(library)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    report = FeatureReport(f"{PREFIX}{file.stem}", X.shape[1], len(X))
    rows: dict[int, int] = {}
    for row, found in enumerate(match_tracks(library, words)):
        if isinstance(found, int):
            rows[found] = row  # of several rows for a track, the last
        else:
            report.unmatched[" - ".join(filter(None, words.row(row)))] = found
    report.n_tracks = len(rows)
    if not rows:
        raise DataError(f"No row of {file.name} means a track of the library.")
    if not dry_run:
        with library.begin():
            key = f"{report.name}@{digest}"
            library.tracks.put_features([*rows], X[[*rows.values()]], extractor=key)
            library.settings.set(EXTRACTOR, key)
    return report


def _read(file: Path) -> pl.DataFrame:
    try:
        if file.suffix == ".npz":
            return _of_arrays(file)
        if file.suffix in (".parquet", ".pq"):
            return pl.read_parquet(file)
        if file.suffix in (".csv", ".tsv"):
            return pl.read_csv(file, separator="\t" if file.suffix == ".tsv" else ",")
    except (Exception, pl.exceptions.PanicException) as error:  # readers raise all kinds of them
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{file} cannot be read: {reason}.") from error
    raise DataError(f"Features are read from .csv, .tsv, .parquet and .npz files, got {file.name}.")


def _of_arrays(file: Path) -> pl.DataFrame:
    # Opened here: np.load leaves a file open that turns out to be no archive.
    with file.open("rb") as opened, np.load(opened) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    texts = {
        name: a.astype(str) for name, a in found.items() if a.ndim == 1 and a.dtype.kind in "US"
    }
    numbers = [a for a in found.values() if a.ndim == 2 and a.dtype.kind in "fiu"]
    if not texts or len(numbers) != 1:
        raise ValueError("it must have an array of names (n,) and one of numbers (n, n_features)")
    columns = {f"feature {j}": column for j, column in enumerate(numbers[0].T)}
    return pl.DataFrame({**texts, **columns})


def _numbers(frame: pl.DataFrame, source: str) -> NDArray[np.float32]:
    """The features, (n, n_features): all columns of numbers, or the only column of lists."""
    lists = [name for name in frame.columns if frame[name].dtype in (pl.List, pl.Array)]
    try:
        if len(lists) == 1:
            given = np.array(frame[lists[0]].to_list(), np.float64)
        else:
            given = frame.select(pl.col(pl.Float64, pl.Float32, pl.Int64, pl.Int32)).to_numpy()
        with np.errstate(over="ignore"):
            X = given.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"The lists of {source} must be of one length, and of numbers.") from error
    if X.ndim != 2 or not X.size:
        raise DataError(f"{source} has no columns of numbers that could be features.")
    wrong = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if len(wrong):
        raise DataError(
            f"Features must be finite numbers; {len(wrong):,} rows of {source} have others, first "
            f"row {wrong[0] + 1}. Leave them out."
        )
    return X
