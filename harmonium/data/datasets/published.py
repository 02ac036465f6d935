"""The files of public datasets: where they are, whether they are the known ones, and reading them.

The data folder is the one given. Where none is given, the folder that the environment variable
HARMONIUM_DATA names is searched, and then the user's own. A data folder has one subfolder per
dataset; a dataset's own folder will do, too.

Published files do not change, so they are checked by their SHA-256 alone and then parsed. Another
version of a file gets a warning; a file that cannot be parsed is a DataError that names it.
"""

import hashlib
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from harmonium.arrays import Arrays
from harmonium.data.datasets.dataset import DIGESTS, DatasetInfo
from harmonium.errors import DataError, DatasetNotFoundError, DataWarning, HarmoniumError
from harmonium.files import user_data_folder

ENVIRONMENT = "HARMONIUM_DATA"


def data_folders(folder: str | Path | None = None) -> list[Path]:
    """The folders that are searched, in this order."""
    if folder is not None:
        return [Path(folder).expanduser()]
    named = os.environ.get(ENVIRONMENT)
    return [*([Path(named).expanduser()] if named else []), user_data_folder()]


def is_found(info: DatasetInfo, folder: str | Path | None = None) -> Path | None:
    """The folder of the dataset's first files, or None where any file is missing."""
    try:
        return _folders(info, folder)[0]
    except DatasetNotFoundError:
        return None


def locate(info: DatasetInfo, folder: str | Path | None = None) -> list[Path]:
    """The folder of each of the dataset's subfolders, with a warning about unknown versions.

    Raises DatasetNotFoundError where a file is missing, saying where it was looked for.
    """
    found = _folders(info, folder)
    known = set(DIGESTS.values())
    files = [
        path / name
        for path, names in zip(found, info.files.values(), strict=True)
        for name in {one for name in names for one in name.split("|")} & known
        if (path / name).is_file()
    ]
    strange = sorted(str(file) for file in files if digest_of(file) not in DIGESTS)
    if strange:
        warnings.warn(
            f"Dataset '{info.name}': {', '.join(strange)} differ by SHA-256 from the published "
            f"files that Harmonium was tested with, so other numbers may follow. {info.how_to_get}",
            DataWarning,
            stacklevel=4,  # the caller of load
        )
    return found


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def reading(
    what: str | Path, way_out: str = "It is damaged, or not the published file."
) -> Iterator[None]:
    """Turn any failure to parse a published file into a DataError that names it."""
    try:
        yield
    except (HarmoniumError, Warning):
        raise
    except Exception as error:  # NumPy, zipfile, polars and others raise all kinds at damage
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise DataError(f"{what} cannot be read: {reason}. {way_out}") from error


def read_table(
    path: Path, columns: Sequence[str] | None = None, *, separator: str = "\t", quote: str = ""
) -> pl.DataFrame:
    """A table of text; without names of its columns, the first line has them."""
    with reading(path):
        raw = path.read_bytes()
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = raw.decode("latin-1")  # the tags of HetRec
        table = pl.read_csv(
            text.encode(),
            has_header=columns is None,
            new_columns=columns,
            separator=separator,
            quote_char=quote or None,
            infer_schema=False,
        )
        blank = pl.all_horizontal(pl.all().is_null())
        return table.rename(str.strip).remove(blank).fill_null("")


def read_arrays(path: Path, names: Sequence[str]) -> Arrays:
    """The named arrays of an .npz file."""
    # Opened here: np.load leaves a file open that turns out to be no archive.
    with reading(path), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return {name: archive[name] for name in names}


def strings(values: Any) -> pl.Series:
    """An array of text as a series, (n,)."""
    return pl.Series(values.tolist(), dtype=pl.String)


def check_option(name: str, value: str | None, allowed: Sequence[str]) -> None:
    """Raise DataError unless a loader's option has one of the allowed values, or None."""
    if value not in (*allowed, None):
        listed = ", ".join(map(repr, allowed))
        raise DataError(f"'{name}' must be {listed} or None, got {value!r}.")


def _folders(info: DatasetInfo, folder: str | Path | None) -> list[Path]:
    found = []
    for subfolder, files in info.files.items():
        tails = dict.fromkeys([subfolder, Path(subfolder).name, "."])  # a/b, b and the root itself
        candidates = [root / tail for root in data_folders(folder) for tail in tails]
        complete = [path for path in candidates if not _missing(path, files)]
        if not complete:
            raise DatasetNotFoundError(_not_found(info, files, candidates))
        found.append(complete[0])
    return found


def _missing(path: Path, files: Sequence[str]) -> list[str]:
    return [
        file
        for file in files
        if not any((path / alternative).is_file() for alternative in file.split("|"))
    ]


def _not_found(info: DatasetInfo, files: Sequence[str], candidates: list[Path]) -> str:
    # The nearest candidate tells most: a folder with one of two files, say.
    nearest = min(candidates, key=lambda path: (len(_missing(path, files)), not path.is_dir()))
    wanted = ", ".join(file.replace("|", " or ") for file in _missing(nearest, files))
    places = "".join(f"\n  {path}" for path in dict.fromkeys(candidates))
    return (
        f"Dataset '{info.name}' was not found: no {wanted} in any of{places}\n"
        f"{info.how_to_get} Homepage: {info.homepage}\n"
        f"If it is elsewhere, name the data folder: with --folder, with folder=... in Python, or "
        f"with the environment variable {ENVIRONMENT}."
    )
