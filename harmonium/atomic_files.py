"""Files that are whole or not there: written under another name, and renamed at the end."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from harmonium.errors import DataError
from harmonium.user_folders import readable


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A new binary file that takes the name ``path`` when the block ends and it is on the disk.

    Where the block raises, the old file stays, and nothing is left behind.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file; at any moment there is the old one or the new one."""
    with atomic_file(path) as file:
        file.write(content)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work, a file whose folder is not there or may not be written to."""
    file = Path(path)
    if file.is_dir():
        raise DataError(f"'{readable(file)}' is a folder. Give the name of a file in it.")
    if not file.parent.is_dir():
        raise DataError(
            f"'{readable(file)}' cannot be written: there is no folder '{readable(file.parent)}'. "
            "Create it first."
        )
    if not os.access(file.parent, os.W_OK):
        raise DataError(
            f"'{readable(file)}' cannot be written: the folder '{readable(file.parent)}' may not "
            "be written to. Choose another."
        )
