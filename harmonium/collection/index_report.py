"""What indexing found."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class IndexReport:
    """What became of the files of one run; paths are absolute."""

    new: list[str] = field(default_factory=list)
    """Files with a sound that was not known."""
    moved: list[tuple[str, str]] = field(default_factory=list)
    """(where it was, where it is)"""
    changed: list[str] = field(default_factory=list)
    """Files whose sound is another now; people's tags stayed with them."""
    retagged: list[str] = field(default_factory=list)
    """Files with the same sound that are otherwise not what they were."""
    back: list[str] = field(default_factory=list)
    """Files that were missing, and are there again."""
    missing: list[str] = field(default_factory=list)
    """Files that are gone."""
    copies: list[tuple[str, str]] = field(default_factory=list)
    """(a file with the sound of a track, the track's own file)"""
    unreadable: dict[str, str] = field(default_factory=dict)
    """File → why it cannot be used."""
    unlisted: dict[str, str] = field(default_factory=dict)
    """Folder → why it could not be searched."""
    unchanged: int = 0
    """Files that were not read, as they are what they were."""
    heard: int = 0
    """Tracks that got features."""
    cached: int = 0
    """How many of these features were in the cache."""

    @property
    def complete(self) -> bool:
        """Whether every file could be used."""
        return not self.unreadable and not self.unlisted

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        lists = ("new", "changed", "retagged", "back", "missing")
        return {
            **{name: getattr(self, name) for name in lists},
            "moved": [{"from": old, "to": new} for old, new in self.moved],
            "copies": [{"path": path, "of": of} for path, of in self.copies],
            "unreadable": [{"path": p, "reason": r} for p, r in self.unreadable.items()],
            "unlisted": [{"path": p, "reason": r} for p, r in self.unlisted.items()],
            "unchanged": self.unchanged,
            "heard": self.heard,
            "cached": self.cached,
        }
