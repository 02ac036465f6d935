"""Writing what was planned, and the record that undoes it."""

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, Self, TypeAlias

from harmonium.errors import FileTagError
from harmonium.library.filetags.delta import Delta, difference
from harmonium.library.filetags.formats.base import Format, Values
from harmonium.library.filetags.formats.detect import format_of
from harmonium.library.filetags.music_file import FileProblem, content_digest
from harmonium.library.filetags.plan import FileChange
from harmonium.library.filetags.read import sound_digest
from harmonium.library.filetags.replace_file import replace_file

_MARK = b"HMU1"
_NUMBER = 4


@dataclass(frozen=True, kw_only=True)
class UndoRecord:
    """The way back from a file that was written to: to the byte, and by its values."""

    change: FileChange
    before: str
    """The SHA-256 digest of the file as it was, in hexadecimal digits."""
    after: str
    """That of the file as it became."""
    audio: str
    """`audio_digest` of both."""
    delta: Delta
    """What turns the latter into the former."""

    def to_bytes(self) -> bytes:
        """For the store; compressed."""
        head = json.dumps(
            {
                "change": self.change.to_dict(),
                "before": self.before,
                "after": self.after,
                "audio": self.audio,
                "steps": self.delta.steps,
            },
            separators=(",", ":"),
        ).encode()
        data = len(head).to_bytes(_NUMBER) + head + self.delta.literal
        return _MARK + zlib.compress(data, 9)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """From what `to_bytes` gave.

        Raises
        ------
        FileTagError
            where it did not
        """
        if not data.startswith(_MARK):
            raise FileTagError(
                "This is not the record of a change of tags, or one of a newer version."
            )
        try:
            plain = zlib.decompress(data[len(_MARK) :])
            end = _NUMBER + int.from_bytes(plain[:_NUMBER])
            head: dict[str, Any] = json.loads(plain[_NUMBER:end])
            steps = tuple((start, length) for start, length in head.pop("steps"))
            change = FileChange.from_dict(head.pop("change"))
            return cls(change=change, delta=Delta(steps, plain[end:]), **head)
        except (zlib.error, ValueError, LookupError, TypeError) as error:
            raise FileTagError(f"The record of a change of tags is damaged: {error}.") from error


KeepRecord: TypeAlias = Callable[[UndoRecord], object]


def apply_change(
    change: FileChange, *, keep: KeepRecord | None = None, keep_times: bool = False
) -> UndoRecord | None:
    """Write a change that `plan_write` gave.

    The new file is written beside the old one, read again and compared: its fields must hold what
    was planned, and its sound must be the same. Only then does it take the old one's place. When
    this process dies on the way, there is the old file or the new one.

    Parameters
    ----------
    change : what to write
    keep : given what undoes the change, just before it takes place: whoever stores that here can
        undo the change even if the process dies right after
    keep_times : whether the file keeps its time of modification; players would not notice

    Returns
    -------
    what undoes it; None where nothing changes and nothing was written

    Raises
    ------
    FileTagError
        where the file cannot be written, or is not as it was when the change was planned; it is
        then as it was
    """
    if not change:
        return None

    def produce(old: BinaryIO, new: BinaryIO) -> UndoRecord:
        found = format_of(old)
        _check_fields(found, old, change, after=False)
        found.write(old, new, _edits(change), change.id3)
        return _checked_undo(found, old, new, change)

    return replace_file(change.path, produce, keep=keep, keep_times=keep_times)


def _edits(change: FileChange) -> dict[str, Values]:
    """Place → what is to be there."""
    edits: dict[str, Values] = {}
    for one in change.fields:
        edits |= dict.fromkeys(one.places[1:], ()) | {one.places[0]: one.after}
    return edits


def _checked_undo(found: Format, old: BinaryIO, new: BinaryIO, change: FileChange) -> UndoRecord:
    """What undoes a change, if it turned out as it was planned."""
    again = format_of(new)
    if again.name != found.name:
        raise FileProblem("the written file is not what it should be; the file was left as it is")
    _check_fields(again, new, change, after=True)
    audio = sound_digest(found, old)
    if sound_digest(again, new) != audio:
        raise FileProblem("writing would have changed its sound; it was left as it is")
    return UndoRecord(
        change=change,
        before=content_digest(old),
        after=content_digest(new),
        audio=audio,
        delta=difference(old, new),
    )


def _check_fields(found: Format, file: BinaryIO, change: FileChange, *, after: bool) -> None:
    """That the fields are as they were when the change was planned, or as they should become."""
    contents = found.read(file, change.id3)
    for one in change.fields:
        there = contents.at(one.places)
        if there != (one.after if after else one.before):
            unread = "the tags cannot be read back; it was left as it is"
            reason = unread if after else "it was changed since; plan again"
            raise FileProblem(f"{reason} ({one.field}: {', '.join(there)!r})")
