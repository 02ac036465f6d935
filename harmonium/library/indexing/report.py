"""What indexing found."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class IndexReport:
    """What became of the files of one run; paths are absolute.

    Each file that was found is in one of the lists, or counted as unchanged; what is missing was
    not found, and `unlisted` and `hidden` have folders.
    """

    new: list[str] = field(default_factory=list)
    """Files with a sound that was not known."""
    moved: list[tuple[str, str]] = field(default_factory=list)
    """(where it was, where it is)"""
    changed: list[str] = field(default_factory=list)
    """Files whose sound has changed; people's tags stayed with them."""
    retagged: list[str] = field(default_factory=list)
    """Files with the same sound that are otherwise not what they were."""
    back: list[str] = field(default_factory=list)
    """Files that were missing, and are there again."""
    missing: list[str] = field(default_factory=list)
    """Files that are gone."""
    copies: list[tuple[str, str]] = field(default_factory=list)
    """(a file with the sound of a track, the track's own file)"""
    known_copies: set[str] = field(default_factory=set)
    """Those of them that were known before."""
    forgotten: list[str] = field(default_factory=list)
    """Files of tracks that were taken out of the library; they stay out of it."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """File → why it cannot be used."""
    still_unreadable: dict[str, str] = field(default_factory=dict)
    """The same for files that could not be used before either, and have not changed."""
    unlisted: dict[str, str] = field(default_factory=dict)
    """Folder → why it could not be searched."""
    hidden: list[str] = field(default_factory=list)
    """Folders that were passed over, as their names begin with one dot."""
    unchanged: int = 0
    """Files that are what they were: most were not read, and some read and found to be the same."""
    heard: int = 0
    """Tracks that got features."""
    cached: int = 0
    """How many of these features were in the cache."""
    tagged: int | None = None
    """Tracks that were tagged; None where there is no model for their features."""

    @property
    def complete(self) -> bool:
        """Whether every file could be used that is new, or has changed, or was tried again."""
        return not self.unreadable and not self.unlisted

    @property
    def n_files(self) -> int:
        """How many files were found."""
        singles = (self.new, self.changed, self.retagged, self.back, self.forgotten)
        pairs = (self.moved, self.copies)
        listed = sum(map(len, singles)) + sum(map(len, pairs)) + len(self.unreadable)
        listed += len(self.still_unreadable)
        return listed + self.unchanged

    def give_up(self, path: str, reason: str) -> None:
        """A file that was counted otherwise turns out to be unusable."""
        for names in (self.new, self.changed, self.retagged, self.back):
            if path in names:
                names.remove(path)
                break
        else:
            moved = [pair for pair in self.moved if pair[1] != path]
            self.unchanged -= len(moved) == len(self.moved)
            self.moved = moved
        self.unreadable[path] = reason

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        lists = ("new", "changed", "retagged", "back", "missing", "forgotten")
        return {
            **{name: getattr(self, name) for name in lists},
            "moved": [{"from": old, "to": new} for old, new in self.moved],
            "copies": [{"path": path, "of": of} for path, of in self.copies],
            "unreadable": [{"path": p, "reason": r} for p, r in self.unreadable.items()],
            "still_unreadable": [
                {"path": p, "reason": r} for p, r in self.still_unreadable.items()
            ],
            "unlisted": [{"path": p, "reason": r} for p, r in self.unlisted.items()],
            "hidden": self.hidden,
            "unchanged": self.unchanged,
            "heard": self.heard,
            "cached": self.cached,
        }
