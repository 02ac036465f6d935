"""Reading and copying parts of files of any size, a block at a time."""

import hashlib
import os
from collections.abc import Iterator
from typing import BinaryIO

BLOCK = 1 << 20
"""Bytes that are held in memory at a time."""


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


def digest_of(file: BinaryIO) -> str:
    """The SHA-256 digest of an open file's content, in hexadecimal digits."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
