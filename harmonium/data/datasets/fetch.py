"""Downloading the paper's own files.

Their publisher gives no checksums. So the SHA-256 of each file is kept once it has been fetched,
and `load` and `fetch` check that the file is still the same. A user may ask for a known digest.
"""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from harmonium.data.datasets.checksums import check_digest, digest_of, keep_digest
from harmonium.data.datasets.dataset import INFOS
from harmonium.data.datasets.locate import data_folders
from harmonium.data.datasets.paper_files import SIZES, file_name, read_split
from harmonium.errors import DataError, DatasetNotFoundError
from harmonium.files import atomic_file

ReceivedBytes = Callable[[str, int, int | None], None]
_CHUNK = 1 << 16
_TIMEOUT_S = 30


def fetch(
    name: str,
    folder: str | Path | None = None,
    *,
    url: str | None = None,
    force: bool = False,
    sha256: Mapping[str, str] | None = None,
    progress: ReceivedBytes | None = None,
) -> list[Path]:
    """Download the three files of "mturk" or "majmin" into the data folder; returns their paths.

    Parameters
    ----------
    folder : the data folder; by default the one that HARMONIUM_DATA names, else the per-user one
    url : where the folder of the dataset is on the network, if not at its publisher's
    force : whether files that are already there are fetched again
    sha256 : file name -> the SHA-256 that the file must have, in hexadecimal digits
    progress : called with a file's name, the bytes received so far, and the bytes in all or None

    A file takes its name only when it is complete, has the published number of rows, and has the
    SHA-256 that was asked for. A file that is there already must be what was fetched.
    """
    if name not in SIZES:
        raise DataError(
            f"Only {' and '.join(SIZES)} can be fetched, got '{name}'. "
            "See docs/datasets.md for how to get the other datasets."
        )
    target = data_folders(folder)[0] / name
    paths = {target / file_name(name, split): split for split in SIZES[name]}
    wanted = _wanted_digests(sha256 or {}, name, [path.name for path in paths])
    source = f"{url.rstrip('/')}/{name}/" if url else INFOS[name].homepage
    for path, split in paths.items():
        if force or not path.is_file():
            _fetch_file(name, split, source + path.name, path, wanted.get(path.name), progress)
        else:
            check_digest(path, fetch_again=f"harmonium data fetch {name} --force")
            _check_wanted(digest_of(path), str(path), wanted.get(path.name))
    return list(paths)


def _wanted_digests(sha256: Mapping[str, str], name: str, files: list[str]) -> dict[str, str]:
    """The digests asked for, in small letters."""
    for file, digest in sha256.items():
        if file not in files:
            listed = ", ".join(files)
            raise DataError(f"'sha256': {name} has no file '{file}'. Its files: {listed}.")
        if not re.fullmatch("[0-9a-fA-F]{64}", digest):
            raise DataError(f"'sha256' must be 64 hexadecimal digits for {file}, got '{digest}'.")
    return {file: digest.lower() for file, digest in sha256.items()}


def _fetch_file(
    name: str,
    split: str,
    url: str,
    path: Path,
    wanted: str | None,
    progress: ReceivedBytes | None,
) -> None:
    """Download, check, and only then give the file its name."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            _download(url, file, path.name, progress)
            digest = digest_of(Path(file.name))
            _check_wanted(digest, url, wanted)
            _check_content(name, split, Path(file.name), url)
        keep_digest(path, digest)
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


def _download(url: str, file: BinaryIO, label: str, progress: ReceivedBytes | None) -> None:
    if not url.startswith(("http://", "https://")):
        raise DataError(f"'url' must begin with http:// or https://, got '{url}'.")
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response:
        length = response.headers.get("Content-Length")
        total = int(length) if length else None
        received = 0
        while chunk := response.read(_CHUNK):
            file.write(chunk)
            received += len(chunk)
            if progress:
                progress(label, received, total)
    if total is not None and received != total:
        raise http.client.IncompleteRead(b"", total - received)
    file.flush()


def _check_content(name: str, split: str, part: Path, url: str) -> None:
    try:
        read_split(part, name, split, check_sizes=True)
    except DataError as error:
        problem = str(error).replace(str(part), "the file")
        raise DataError(f"{url} is not what was published: {problem}") from None


def _check_wanted(digest: str, place: str, wanted: str | None) -> None:
    """Raise DataError if the file at `place` is not the one asked for."""
    if wanted is not None and digest != wanted:
        raise DataError(
            f"{place} has the SHA-256 {digest}, not {wanted}. It is another file, or damaged: try "
            "--force or another --url, or ask for no --sha256."
        )


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
