"""What is kept of a file that was written to, so that it can be made what it was."""

import json
import zlib
from dataclasses import dataclass
from typing import Any, Self

from harmonium.collection.filetags.delta import Delta
from harmonium.collection.filetags.records import Change
from harmonium.errors import FileTagError

_MARK = b"HMU1"
_NUMBER = 4


@dataclass(frozen=True, kw_only=True)
class Undo:
    """The way back from a file that was written to: to the byte, and by its values."""

    change: Change
    before: str
    """The SHA-256 digest of the file as it was, in hexadecimal digits."""
    after: str
    """That of the file as it became."""
    audio: str
    """`audio_digest` of both."""
    delta: Delta
    """What makes the former of the latter."""

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
            change = Change.from_dict(head.pop("change"))
            return cls(change=change, delta=Delta(steps, plain[end:]), **head)
        except (zlib.error, ValueError, LookupError, TypeError) as error:
            raise FileTagError(f"The record of a change of tags is damaged: {error}.") from error
