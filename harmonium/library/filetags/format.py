"""What a format of music files must provide; every module of a format has this outline.

A format recognises its files by their content, reads their tags, and writes a file with other
values in some places of the tag. It splits the tag into parts (frames, comments, items), replaces
those that change, and keeps all others to the byte. Undo does not depend on the format: it stores
the difference of the two files, and `sound` tells whether the rest of the file is the same.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from mutagen import MutagenError

from harmonium.library.filetags.contents import Edits, FileTags, Id3Options, TagLayout

FRONT_COVER = 3  # the kind of picture, as ID3 and FLAC number them
MAX_COVER = 5 << 20  # bytes of a picture


class Picture(NamedTuple):
    """A picture in a file."""

    kind: int  # such as `FRONT_COVER`
    data: bytes


class Format(TagLayout):
    """A format of music files. Its methods raise `FileProblem`."""

    name: str

    @abstractmethod
    def detect(self, file: BinaryIO) -> bool:
        """Whether a file has this format; only the beginning of the file is read.

        A FileProblem says that it may have, but is damaged.
        """

    @abstractmethod
    def read(self, file: BinaryIO, options: Id3Options) -> FileTags:
        """What the tag says."""

    @abstractmethod
    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Write the file ``source`` to the empty file ``target``, with new values in some places.

        A place without values is removed.
        """

    @abstractmethod
    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """The bytes that are the sound and not the tag; no write may change them."""

    @abstractmethod
    def pictures(self, file: BinaryIO) -> list[Picture]:
        """The pictures in the tag."""

    def sound_digest(self, file: BinaryIO) -> str:
        """The SHA-256 digest of an open file's sound."""
        digest = hashlib.sha256()
        for data in self.sound(file):
            digest.update(data)
        return digest.hexdigest()


def duration_of(info: Callable[[BinaryIO], Any], file: BinaryIO) -> float | None:
    """The duration in seconds from Mutagen's class for a format; None if unknown."""
    file.seek(0)
    try:
        return float(info(file).length)
    except (MutagenError, EOFError, ArithmeticError, ValueError, LookupError):
        return None


def with_new_items(
    items: Iterable[bytes], key: Callable[[bytes], str], new: Mapping[str, list[bytes]]
) -> list[bytes]:
    """The items with new ones for some keys, in place of the first old one or at the end."""
    pending = dict(new)
    result: list[bytes] = []
    for item in items:
        name = key(item)
        if name in new:
            result += pending.pop(name, [])
        else:
            result.append(item)
    for added in pending.values():
        result += added
    return result
