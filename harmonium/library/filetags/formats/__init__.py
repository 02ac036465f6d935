"""The formats of music files: what each of them offers, and what they share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Self, TypeAlias

from mutagen import MutagenError

LIST_FIELDS = ("genre", "mood", "grouping")
"""The fields that hold a list of tags."""
COMMENT = "comment"
"""The field that is a text: people's own words, perhaps with tags in it."""
FIELDS = (*LIST_FIELDS, COMMENT)
"""The fields that tags are read from and written to."""
SCORE_FIELDS = tuple(f"harmonium_{name}" for name in FIELDS)
"""The fields that hold the scores of the tags in each."""

Values: TypeAlias = tuple[str, ...]
Edits: TypeAlias = Mapping[str, Values]
"""Place, such as "TCON", "GENRE" or "©gen" → its values."""


@dataclass(frozen=True, kw_only=True)
class Id3Options:
    """What ID3 leaves open; `Rules` says what each means."""

    version: int = 4
    grouping: str = "TIT1"
    separator: str = "; "


@dataclass(frozen=True, kw_only=True)
class TagContents:
    """What the tag of a file says."""

    version: str | None
    """The kind of tag, such as "ID3v2.3"; None where there is none."""
    values: Edits = field(default_factory=dict)
    duration: float | None = None
    """Seconds."""
    notes: tuple[str, ...] = ()
    """What is odd about the tag."""
    obstacle: str | None = None
    """Why the file cannot be written to, although it can be read."""

    @classmethod
    def damaged(
        cls, reason: str, *, duration: float | None = None, notes: tuple[str, ...] = ()
    ) -> Self:
        """The contents of a file whose tag cannot be read, so that nothing can be written to it."""
        return cls(version=None, duration=duration, notes=(*notes, reason), obstacle=reason)

    def at(self, places: tuple[str, ...]) -> Values:
        """The values of all these places, each once."""
        return tuple(dict.fromkeys(v for place in places for v in self.values.get(place, ())))


class Format(ABC):
    """A format of music files. Its methods raise `FileProblem`."""

    name: str
    """What people call it."""

    @abstractmethod
    def read(self, file: BinaryIO, options: Id3Options) -> TagContents:
        """What the tag says."""

    @abstractmethod
    def places(self, version: str | None, options: Id3Options) -> dict[str, tuple[str, ...]]:
        """Field → the places where it may be.

        It is written to the first; what is in the others is then moved there.
        """

    def refusal(self, place: str, value: str, version: str | None, options: Id3Options) -> str:
        """Why a value cannot be kept in a place, or "": most formats keep any text."""
        return ""

    @abstractmethod
    def write(self, source: BinaryIO, target: BinaryIO, edits: Edits, options: Id3Options) -> None:
        """Write the file ``source`` to the empty file ``target``, with new values in some places.

        A place without values is removed.
        """

    @abstractmethod
    def sound(self, file: BinaryIO) -> Iterator[bytes]:
        """The bytes that are the sound and not the tag."""


def decoded(data: bytes) -> str:
    """Text that should be UTF-8; where it is not, it was written as Latin-1."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def duration_of(info: Callable[[BinaryIO], Any], file: BinaryIO) -> float | None:
    """Seconds, as Mutagen's class for a format tells; None where it cannot."""
    file.seek(0)
    try:
        return float(info(file).length)
    except (MutagenError, EOFError, ArithmeticError, ValueError, LookupError):
        return None


def with_new_items(
    items: Iterable[bytes], key: Callable[[bytes], str], new: Mapping[str, list[bytes]]
) -> tuple[bytes, ...]:
    """The items with new ones for some keys, where the first old one was or at the end."""
    pending = dict(new)
    kept: list[bytes] = []
    for item in items:
        name = key(item)
        kept += pending.pop(name, []) if name in new else [item]
    return (*kept, *(item for some in pending.values() for item in some))
