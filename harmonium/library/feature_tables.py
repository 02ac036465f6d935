"""Import of features that another program computed: a row of numbers for each track."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.data.table_files import USUAL_NAMES, find_columns
from harmonium.errors import DataError
from harmonium.library.imports import check_has_tracks
from harmonium.library.library import Library
from harmonium.library.store.schema import EXTRACTOR, FOLDERS
from harmonium.library.store.track_finder import TrackFinder

PREFIX = "imported:"
"""How the names of imported features begin."""
ROLES = ("item", "artist", "title")


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
    chosen = {role: given for role, given in named.items() if given is not None}
    places = find_columns(chosen, frame.columns, source=file.name)
    columns = {role: frame.columns[place] for role, place in places.items()}
    columns = columns or _recognised(frame, file.name)
    X = _numbers(frame.drop(columns.values()), file.name)
    check_has_tracks(library)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    report = FeatureReport(f"{PREFIX}{file.stem}", X.shape[1], len(X))
    rows: dict[int, int] = {}
    with library.connect() as connection:
        finder = TrackFinder(connection, library.settings.get(FOLDERS, []))
    for row, names in enumerate(frame.select(pl.col([*columns.values()]).cast(pl.String)).rows()):
        words = dict(zip(columns, names, strict=True))
        found = finder.match(
            words.get("item"), artist=words.get("artist"), title=words.get("title")
        )
        if isinstance(found, int):
            rows[found] = row  # of several rows for a track, the last
        else:
            report.unmatched[" - ".join(filter(None, names))] = found
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


def _recognised(frame: pl.DataFrame, source: str) -> dict[str, str]:
    folded = {name.strip().casefold(): name for name in reversed(frame.columns)}
    found = {
        role: next((folded[n] for n in USUAL_NAMES[role] if n in folded), None) for role in ROLES
    }
    columns = {role: name for role, name in found.items() if name is not None}
    if "item" not in columns and "title" not in columns:
        raise DataError(
            f"It is not clear which column of {source} says which track a row is of. Name it with "
            "--item (paths or numbers), or with --title and --artist."
        )
    return columns


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
