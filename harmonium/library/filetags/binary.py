"""Opening music files, reading and copying their bytes, and clear errors for what goes wrong."""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, TypeAlias

from mutagen import MutagenError

from harmonium.errors import FileTagError, readable
from harmonium.files import open_file

PathLike: TypeAlias = str | os.PathLike[str]

BLOCK = 1 << 20  # bytes in memory at a time
DAMAGE = (
    MutagenError,
    EOFError,
    struct.error,
    ValueError,
    LookupError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)
"""What Mutagen and the parsing here raise if a file breaks its format."""


class FileProblem(Exception):
    """Why a file cannot be read or written, in words that follow its name and a colon."""


@contextmanager
def opened(path: PathLike) -> Iterator[BinaryIO]:
    """The file, open for reading, with `explained` errors."""
    with explained(path), open_file(path) as file:
        yield file


@contextmanager
def explained(path: PathLike) -> Iterator[None]:
    """Turn whatever goes wrong with a file into one clear error."""
    try:
        yield
    except FileTagError:
        raise
    except FileProblem as error:
        raise as_file_tag_error(path, error) from None
    except (OSError, *DAMAGE) as error:
        raise as_file_tag_error(path, error) from error


def as_file_tag_error(path: PathLike, error: Exception) -> FileTagError:
    """What went wrong with a file, with its name."""
    name = readable(path)
    if isinstance(error, FileProblem):
        return FileTagError(f"{name}: {error}.")
    if isinstance(error, OSError):
        return FileTagError(f"{name} cannot be read or written: {error.strerror or error}.")
    return FileTagError(f"{name} is damaged: {str(error) or type(error).__name__}.")


def size_of(file: BinaryIO) -> int:
    """Bytes of an open file."""
    return file.seek(0, os.SEEK_END)


def read_at(file: BinaryIO, start: int, count: int) -> bytes:
    """The bytes from ``start`` on; fewer than ``count`` at the end of the file."""
    file.seek(start)
    return file.read(count)


def blocks(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """The bytes from ``start`` up to ``end`` or to the end of the file, in blocks."""
    while start < end and (data := read_at(file, start, min(BLOCK, end - start))):
        start += len(data)
        yield data


def copy(source: BinaryIO, target: BinaryIO, start: int, end: int) -> None:
    """Append the bytes from ``start`` up to ``end`` of one file to another."""
    for data in blocks(source, start, end):
        target.write(data)


def decoded(data: bytes) -> str:
    """Text that should be UTF-8; if not, it is read as Latin-1."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
