"""Importing features that another program computed."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from harmonium.arrays import Floats
from harmonium.audio.extractors import IMPORTED
from harmonium.data.tables import PARQUET, read_parquet
from harmonium.errors import DataError
from harmonium.library.imports.columns import choose_columns
from harmonium.library.imports.rows import match_tracks
from harmonium.library.library import Library
from harmonium.library.store.schema import EXTRACTOR
from harmonium.spreadsheets import unguarded_series


@dataclass
class FeatureReport:
    """What was imported, and what was not."""

    name: str  # the features' name in the library
    n_features: int
    n_rows: int
    n_tracks: int = 0  # tracks that have features now
    unmatched: dict[str, str] = field(default_factory=dict)  # a row → why it matches no track


def import_features(
    library: Library,
    path: str | Path,
    *,
    item: str | int | None = None,
    artist: str | int | None = None,
    title: str | int | None = None,
    dry_run: bool = False,
) -> FeatureReport:
    """Use the rows of a table as the library's features, instead of the current ones.

    Tracks are found as in `import_table`. Earlier features stay for the models that use them.

    Parameters
    ----------
    path : a .csv, .tsv or .parquet file with a column for each number, or one of lists; or an .npz
        file with an array of names (n,) and one of numbers (n, n_features)
    item, artist, title : columns, by name or by position from 0; by default recognised
    """
    file = Path(path).expanduser()
    table = _read(file)
    named = {"item": item, "artist": artist, "title": title}
    columns = {}
    for role, column in choose_columns(named, ("item",), file.name, table.columns).items():
        columns[role] = table.columns[column] if isinstance(column, int) else column
    words = pl.DataFrame(
        {role: unguarded_series(table[name].cast(pl.String)) for role, name in columns.items()}
    )
    X = _matrix(table.drop(columns.values()), file.name)
    report = FeatureReport(name=f"{IMPORTED}{file.stem}", n_features=X.shape[1], n_rows=len(X))
    matched = match_tracks(library, words.with_row_index("row"))
    unmatched = matched.filter(pl.col("track_id").is_null())
    for *texts, reason in unmatched.select(*columns, "reason").iter_rows():
        report.unmatched[" - ".join(filter(None, texts))] = reason
    rows = {}  # track → its row; of several, the last one
    for track_id, row in matched.drop_nulls("track_id").select("track_id", "row").iter_rows():
        rows[track_id] = row
    report.n_tracks = len(rows)
    if not rows:
        raise DataError(f"No row of {file.name} matches a track in the library.")
    if not dry_run:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
        key = f"{report.name}@{digest}"
        with library.begin():
            library.tracks.put_features(list(rows), X[list(rows.values())], extractor=key)
            library.settings.set(EXTRACTOR, key)
    return report


def _read(file: Path) -> pl.DataFrame:
    if file.suffix in PARQUET:
        return read_parquet(file)
    try:
        if file.suffix == ".npz":
            return _read_arrays(file)
        if file.suffix in (".csv", ".tsv"):
            return pl.read_csv(file, separator="\t" if file.suffix == ".tsv" else ",")
    except (Exception, pl.exceptions.PanicException) as error:  # readers raise all kinds of errors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{file} cannot be read: {reason}.") from error
    raise DataError(f"Features are read from .csv, .tsv, .parquet and .npz files, got {file.name}.")


def _read_arrays(file: Path) -> pl.DataFrame:
    """The table of an .npz file: its texts, and a column for each feature."""
    # Opened here: np.load leaves a file open if it is not an archive.
    with file.open("rb") as opened, np.load(opened) as archive:
        arrays = {name: archive[name] for name in archive.files}
    columns = {}
    matrices = []
    for name, array in arrays.items():
        if array.ndim == 1 and array.dtype.kind in "US":
            columns[name] = array.astype(str)
        elif array.ndim == 2 and array.dtype.kind in "fiu":
            matrices.append(array)
    if not columns or len(matrices) != 1:
        raise ValueError("it must have an array of names (n,) and one of numbers (n, n_features)")
    for place, numbers in enumerate(matrices[0].T):
        columns[f"feature {place}"] = numbers
    return pl.DataFrame(columns)


def _matrix(table: pl.DataFrame, source: str) -> Floats:
    """The features, (n, n_features): all columns of numbers, or the only column of lists."""
    lists = [name for name in table.columns if table[name].dtype in (pl.List, pl.Array)]
    try:
        if len(lists) == 1:
            numbers = np.array(table[lists[0]].to_list(), np.float64)
        else:
            numbers = table.select(pl.col(pl.Float64, pl.Float32, pl.Int64, pl.Int32)).to_numpy()
        with np.errstate(over="ignore"):
            X = numbers.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"The lists in {source} must hold numbers and be equally long.") from error
    if X.ndim != 2 or not X.size:
        raise DataError(f"{source} has no columns of numbers to use as features.")
    wrong = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if len(wrong):
        raise DataError(
            f"Features must be finite numbers; {len(wrong):,} rows of {source} have others, first "
            f"row {wrong[0] + 1}. Leave them out."
        )
    return X
