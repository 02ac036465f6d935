"""A music file as bytes: opened with clear errors, read and copied in parts of any size."""

import hashlib
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias

from mutagen import MutagenError

from harmonium.errors import FileTagError
from harmonium.files import readable

PathLike: TypeAlias = str | os.PathLike[str]

BLOCK = 1 << 20
"""Bytes that are held in memory at a time."""

# What Mutagen and the parsing here raise where a file is not what its format says.
_DAMAGE = (MutagenError, EOFError, struct.error, ValueError, LookupError, ArithmeticError)


class FileProblem(Exception):
    """Why a file cannot be read or written, in words that follow its name and a colon."""


@contextmanager
def opened(path: PathLike) -> Iterator[BinaryIO]:
    """The file, open for reading, with `explained` errors."""
    with explained(path):
        # Opening a pipe would wait for whoever writes to it.
        if not stat.S_ISREG(Path(path).stat().st_mode) and not Path(path).is_dir():
            raise FileProblem("it is not a file")
        with Path(path).open("rb") as file:
            yield file


@contextmanager
def explained(path: PathLike) -> Iterator[None]:
    """Whatever goes wrong with a file, as one clear error."""
    try:
        yield
    except FileTagError:
        raise
    except FileNotFoundError:
        raise FileTagError(f"There is no file {readable(path)}.") from None
    except IsADirectoryError:
        raise FileTagError(f"{readable(path)} is a folder. Name a file in it.") from None
    except OSError as error:
        raise FileTagError(
            f"{readable(path)} cannot be read or written: {error.strerror or error}."
        ) from error
    except FileProblem as error:
        raise FileTagError(f"{readable(path)}: {error}.") from None
    except _DAMAGE as error:
        reason = str(error) or type(error).__name__
        raise FileTagError(f"{readable(path)} is damaged: {reason}.") from error


def size_of(file: BinaryIO) -> int:
    """Bytes of an open file."""
    return file.seek(0, os.SEEK_END)


def read_at(file: BinaryIO, start: int, count: int) -> bytes:
    """The bytes from ``start`` on; fewer than ``count`` where the file ends."""
    file.seek(start)
    return file.read(count)


def blocks(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """The bytes from ``start`` up to ``end`` or to the end of the file, in blocks."""
    while start < end:
        data = read_at(file, start, min(BLOCK, end - start))
        if not data:
            return
        start += len(data)
        yield data


def copy(source: BinaryIO, target: BinaryIO, start: int, end: int) -> None:
    """Append the bytes from ``start`` up to ``end`` of one file to another."""
    for data in blocks(source, start, end):
        target.write(data)


def content_digest(file: BinaryIO) -> str:
    """The SHA-256 digest of an open file's content, in hexadecimal digits."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
