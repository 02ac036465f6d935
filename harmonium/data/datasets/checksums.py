"""The SHA-256 of fetched files, kept beside them as `sha256sum` writes and checks it."""

import hashlib
import re
from pathlib import Path

from harmonium.data.datasets.published_files import fault, read_text
from harmonium.errors import DataError
from harmonium.files import write_atomically

FILE = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def keep_digest(path: Path, digest: str) -> None:
    """Write down what the file was when it was fetched, in place of what is there about it."""
    digests = {**_kept(path.parent), path.name: digest}
    lines = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    write_atomically(path.parent / FILE, lines.encode())


def check_digest(path: Path, *, fetch_again: str) -> None:
    """Raise DataError if the file is not what was fetched; nothing is known of other files.

    `fetch_again` is the command that fetches it again.
    """
    kept = _kept(path.parent).get(path.name)
    if kept is not None and (digest := digest_of(path)) != kept:
        raise DataError(
            f"{path} is not what was fetched: its SHA-256 is {digest}, not {kept}. Fetch it again "
            f"with `{fetch_again}`, or, if you changed it yourself, delete its line in {FILE}."
        )


def _kept(folder: Path) -> dict[str, str]:
    """File name -> digest."""
    path = folder / FILE
    digests = {}
    for number, line in enumerate(read_text(path).splitlines() if path.is_file() else (), start=1):
        match = _LINE.fullmatch(line)
        if not match:
            problem = "a line must be 64 hexadecimal digits, two spaces and a file name."
            raise fault(path, number, f"{problem} Delete the line.")
        digests[match[2]] = match[1]
    return digests
