"""Where the files of a dataset are.

The data folder is the one given. Where none is given, the folder that the environment variable
HARMONIUM_DATA names is searched, and then the user's own; `harmonium data fetch` writes to the
first of these. A data folder has one subfolder per dataset; a dataset's own folder will do, too.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from harmonium.data.datasets.dataset import DatasetInfo
from harmonium.errors import DatasetNotFoundError
from harmonium.files import user_data_folder

ENVIRONMENT = "HARMONIUM_DATA"


def data_folders(folder: str | Path | None = None) -> list[Path]:
    """The folders that are searched, in this order."""
    if folder is not None:
        return [Path(folder).expanduser()]
    named = os.environ.get(ENVIRONMENT)
    return [*([Path(named).expanduser()] if named else []), user_data_folder()]


def locate(info: DatasetInfo, folder: str | Path | None = None) -> dict[str, Path]:
    """The folder that holds the files of each of the dataset's subfolders.

    Raises DatasetNotFoundError where a file is missing, saying where it was looked for.
    """
    found = {}
    for subfolder, files in info.files.items():
        candidates = _candidates(subfolder, folder)
        complete = [path for path in candidates if not _missing(path, files)]
        if not complete:
            raise DatasetNotFoundError(_not_found(info, files, candidates))
        found[subfolder] = complete[0]
    return found


def is_found(info: DatasetInfo, folder: str | Path | None = None) -> Path | None:
    """The folder of the dataset's first files, or None where any file is missing."""
    try:
        return next(iter(locate(info, folder).values()))
    except DatasetNotFoundError:
        return None


def _candidates(subfolder: str, folder: str | Path | None) -> list[Path]:
    """root/a/b, root/b and root itself, for subfolder a/b and each root."""
    tails = {subfolder, Path(subfolder).name}
    ordered = sorted(tails, key=len, reverse=True)
    return [root / tail for root in data_folders(folder) for tail in [*ordered, "."]]


def _missing(path: Path, files: Sequence[str]) -> list[str]:
    return [
        file
        for file in files
        if not any((path / alternative).is_file() for alternative in file.split("|"))
    ]


def _not_found(info: DatasetInfo, files: Sequence[str], candidates: list[Path]) -> str:
    # The candidate that comes closest tells most: a folder with one of two files, say.
    nearest = min(candidates, key=lambda path: (len(_missing(path, files)), not path.is_dir()))
    wanted = ", ".join(file.replace("|", " or ") for file in _missing(nearest, files))
    places = "".join(f"\n  {path}" for path in dict.fromkeys(candidates))
    return (
        f"Dataset '{info.name}' was not found: no {wanted} in any of{places}\n"
        f"{info.how_to_get} Homepage: {info.homepage}\n"
        f"If it is elsewhere, name the data folder: with --folder, with folder=... in Python, or "
        f"with the environment variable {ENVIRONMENT}."
    )
