"""Downloading the paper's own files."""

from __future__ import annotations

import contextlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from harmonium.data.datasets.libsvm import read_libsvm
from harmonium.data.datasets.locate import data_folders
from harmonium.data.datasets.paper import INFOS, N_FEATURES, SIZES, URL, check_size, file_name
from harmonium.errors import DataError, DatasetNotFoundError

Progress = Callable[[str, int, int | None], None]
_CHUNK = 1 << 16
_TIMEOUT_S = 30


def fetch(
    name: str,
    folder: str | Path | None = None,
    *,
    url: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> list[Path]:
    """Download the three files of "mturk" or "majmin" into the data folder; returns their paths.

    Parameters
    ----------
    folder : the data folder; by default the one that HARMONIUM_DATA names, else the per-user one
    url : where the folder of the dataset is on the network, if not at its publisher's
    force : whether files that are already there are fetched again
    progress : called with a file's name, the bytes received so far, and the bytes in all or None

    A file takes its name only when it is complete and has the published number of rows.
    """
    if name not in SIZES:
        raise DataError(
            f"Only {' and '.join(SIZES)} can be fetched, got '{name}'. "
            "See docs/datasets.md for how to get the other datasets."
        )
    target = data_folders(folder)[0] / name
    paths = []
    for split in SIZES[name]:
        path = target / file_name(name, split)
        if force or not path.is_file():
            _fetch_file(
                name, split, f"{(url or URL).rstrip('/')}/{name}/{path.name}", path, progress
            )
        paths.append(path)
    return paths


def _fetch_file(name: str, split: str, url: str, path: Path, progress: Progress | None) -> None:
    """Download to a temporary name, check, and rename: no half file is ever taken for a whole."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _download(url, part, path.name, progress)
        _check(name, split, part, url)
        part.replace(path)
    except (
        urllib.error.URLError,
        http.client.HTTPException,
        TimeoutError,
        ConnectionError,
    ) as error:
        raise DatasetNotFoundError(
            f"{url} could not be downloaded: {_reason(error)}. Check the network and try again, "
            f"or put {path.name} from elsewhere into {path.parent}."
        ) from None
    except OSError as error:
        raise DatasetNotFoundError(
            f"{path} could not be written: {error.strerror or error}. Name a folder of your own "
            "with --folder or HARMONIUM_DATA."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _download(url: str, part: Path, label: str, progress: Progress | None) -> None:
    if not url.startswith(("http://", "https://")):
        raise DataError(f"'url' must begin with http:// or https://, got '{url}'.")
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response, part.open("wb") as out:
        length = response.headers.get("Content-Length")
        total = int(length) if length else None
        received = 0
        while chunk := response.read(_CHUNK):
            out.write(chunk)
            received += len(chunk)
            if progress:
                progress(label, received, total)
    if total is not None and received != total:
        raise http.client.IncompleteRead(b"", total - received)


def _check(name: str, split: str, part: Path, url: str) -> None:
    try:
        X, _ = read_libsvm(part, n_features=N_FEATURES, n_labels=INFOS[name].tags or 0)
        check_size(part, INFOS[name], split, len(X))
    except DataError as error:
        problem = str(error).replace(str(part), "the file")
        raise DataError(f"{url} is not what was published: {problem}") from None


def _reason(error: Exception) -> str:
    """What went wrong on the network, in words."""
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        return str(error)
    if isinstance(error, urllib.error.URLError):
        return getattr(error.reason, "strerror", None) or str(error.reason)
    if isinstance(error, http.client.IncompleteRead):
        return "the connection ended too early"
    return str(error) or type(error).__name__
