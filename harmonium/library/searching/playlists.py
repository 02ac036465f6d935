"""The playlists of saved searches, in a folder.

Navidrome reads two kinds of files: .m3u8, a list of paths, and .nsp, rules on the files' fields
that it applies itself. A search becomes rules if it is a query of tags, and each tag is the genre,
mood or grouping of some file; other searches need Harmonium.

The library remembers what it wrote into each folder. A file that somebody else wrote or changed is
left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harmonium import stopping
from harmonium.data.tag_names import normalise_tag
from harmonium.errors import (
    DataError,
    HarmoniumError,
    LibraryReadOnlyError,
    LibraryUnavailableError,
    readable,
)
from harmonium.files import absolute_path, check_writable, write_atomically
from harmonium.library.export import playlist
from harmonium.library.search import Query
from harmonium.library.searching.saved import SavedSearch
from harmonium.library.snapshot import Question

if TYPE_CHECKING:
    from harmonium.library.library import Library, Progress

RULE_FIELDS = ("genre", "mood", "grouping")  # Navidrome reads these as several values
PLAYLISTS = "playlists"  # the setting: folder → (file → digests, whether rules, whether relative)
MAX_NAME_BYTES = 255  # of a file's name, on the usual file systems
ENDINGS = (".nsp", ".m3u8")
_NOT_IN_NAMES = re.compile(r'[/\\:*?"<>|\x00-\x1f\x7f\ud800-\udfff]')
_ROOM = len("..m3u8.00000000.part")  # for the ending, and while the file is written

Spellings = dict[str, set[tuple[str, str]]]
"""Tag → (field, spelling) of the files that have it."""


@dataclass(frozen=True)
class WrittenPlaylist:
    """The file of a saved search."""

    name: str
    path: str | None  # None if it was not written
    n_tracks: int | None = None
    kind: str = "tracks"  # or "rules", which Navidrome applies, or "removed" with its search
    problem: str | None = None  # why it was not written


def write_playlists(
    library: Library,
    folder: Path,
    *,
    rules: bool | None = None,
    relative: bool | None = None,
    progress: Progress | None = None,
) -> Iterator[WrittenPlaylist]:
    """Write each saved search as .m3u8, or with ``rules`` as .nsp where Navidrome's rules allow.

    None means as last time in this folder. Files of deleted searches are removed. A file that
    somebody else wrote or changed is left alone.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise DataError(
            f"'{readable(folder)}' is a file. Name a folder for the playlists."
        ) from None
    written = _Folder(library, folder, rules=rules, relative=relative)
    searches = library.searches.list()
    spellings = _spellings_in_files(library) if written.rules and searches else None
    taken: set[str] = set()  # names of files, without their endings
    kept: set[str] = set()  # names of files
    for n_done, search in enumerate(searches, 1):
        stopping.check()
        stem = _free_name(search.name, taken)
        taken.add(stem.casefold())
        try:
            file = _contents(library, search, spellings, folder if written.relative else None)
            path = written.write(f"{stem}{file.ending}", file.content)
        except (HarmoniumError, OSError) as error:
            kept.update(f"{stem}{ending}" for ending in ENDINGS)
            yield WrittenPlaylist(name=search.name, path=None, problem=_problem(error))
        else:
            kept.add(path.name)
            kind = "rules" if file.n_tracks is None else "tracks"
            yield WrittenPlaylist(search.name, str(path), n_tracks=file.n_tracks, kind=kind)
        if progress:
            progress(n_done, len(searches))
    for path in written.remove_all_but(kept):
        yield WrittenPlaylist(path.stem, str(path), kind="removed")


class _Folder:
    """What the library wrote into a folder."""

    def __init__(
        self, library: Library, folder: Path, *, rules: bool | None, relative: bool | None
    ) -> None:
        self._library = library
        self._folder = folder
        self._place = absolute_path(folder)
        files, last_rules, last_relative = library.settings.get(PLAYLISTS, {}).get(
            self._place, ({}, False, False)
        )
        self._digests: dict[str, str] = files  # name of a file → digests of what it may hold
        self.rules: bool = last_rules if rules is None else rules
        self.relative: bool = last_relative if relative is None else relative

    def write(self, name: str, content: bytes) -> Path:
        """Write a file, but not over what somebody else wrote."""
        path = self._folder / name
        check_writable(path)
        new = sha256(content).hexdigest()
        present = _digest(path)
        ours = self._digests.get(name, "").split()
        if present not in (None, new, *ours):
            raise DataError(
                f"'{readable(path)}' was written or changed by another program. Rename or remove "
                "the file, or rename the search."
            )
        if present != new:
            either = f"{present or ''} {new}"  # should the process end here
            self._remember(self._digests | {name: either})
            write_atomically(path, content)
        self._digests[name] = new
        return path

    def remove_all_but(self, kept: set[str]) -> Iterator[Path]:
        """Remove our other files, unless somebody changed them; the removed ones."""
        for name in sorted(self._digests.keys() - kept):
            path = self._folder / name
            if _digest(path) in self._digests.pop(name).split():
                path.unlink()
                yield path
        # On a full disk, what was stored before the last file was written is enough.
        with suppress(LibraryUnavailableError, LibraryReadOnlyError):
            self._remember(self._digests)

    def _remember(self, digests: dict[str, str]) -> None:
        """Store what our files may hold, before one of them is written."""
        folders = self._library.settings.get(PLAYLISTS, {})
        state = [digests, self.rules, self.relative]
        if folders.get(self._place) != state:
            self._library.settings.set(PLAYLISTS, folders | {self._place: state})
        self._digests = digests


def _digest(path: Path) -> str | None:
    return sha256(path.read_bytes()).hexdigest() if path.exists() else None


def _free_name(name: str, taken: set[str]) -> str:
    """A name for a file, without its ending, that no other search has."""
    safe = _NOT_IN_NAMES.sub("_", name).strip(". ") or "_"
    numbers = chain([""], (f" {number}" for number in count(2)))
    names = (_shortened(safe, number) for number in numbers)
    return next(free for free in names if free.casefold() not in taken)


def _shortened(name: str, number: str) -> str:
    """A name with a number that leaves room for an ending in a file's name."""
    most = MAX_NAME_BYTES - _ROOM - len(number)
    return name.encode()[:most].decode(errors="ignore").rstrip(". ") + number


def _problem(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"It was not written: {error.strerror or error}."
    return str(error)


class _Contents(NamedTuple):
    """What a search's file holds."""

    ending: str
    content: bytes
    n_tracks: int | None  # None for rules


def _contents(
    library: Library, search: SavedSearch, spellings: Spellings | None, relative_to: Path | None
) -> _Contents:
    """What to write for a search: rules if there are ``spellings`` and it can be said so."""
    if spellings is not None:
        rules = navidrome_rules(library, search, spellings)
        if rules is not None:
            text = json.dumps(rules, indent=1, ensure_ascii=False)
            return _Contents(".nsp", text.encode(), n_tracks=None)
    tracks = [hit.track for hit in search.run(library)]
    return _Contents(".m3u8", playlist(tracks, relative_to), n_tracks=len(tracks))


def navidrome_rules(
    library: Library, search: SavedSearch, spellings: Spellings
) -> dict[str, Any] | None:
    """The rules of a .nsp file; None if Navidrome's rules cannot express the search."""
    question = search.question
    only_tags = Question(
        question.text, min_probability=question.min_probability, stops=question.stops
    )
    if not question.text or question != only_tags:
        return None
    try:
        rule = _rule(library.snapshot().parsed(question.text), spellings)
    except (KeyError, HarmoniumError):
        return None
    if not rule.keys() & {"all", "any"}:
        rule = {"all": [rule]}
    return {"name": search.name, "comment": question.text, **rule, "limit": question.stops}


def _rule(query: Query, spellings: Spellings, negated: bool = False) -> dict[str, Any]:
    """The rule for a query; a KeyError if no file has a part of it."""
    if query.operator == "NOT":
        return _rule(query.parts[0], spellings, not negated)
    if query.operator in ("AND", "OR"):
        parts = [_rule(part, spellings, negated) for part in query.parts]
        is_any = (query.operator == "OR") != negated
        return {"any" if is_any else "all": parts}
    comparison = "isNot" if negated else "is"
    parts = []
    for field, spelling in sorted(spellings[query.tag]):
        parts.append({comparison: {field: spelling}})
    if len(parts) == 1:
        return parts[0]
    return {"all" if negated else "any": parts}


def _spellings_in_files(library: Library) -> Spellings:
    spellings: Spellings = {}
    for track in library.tracks.all():
        for field in RULE_FIELDS:
            for spelling in track.file_tags.get(field, ()):
                spellings.setdefault(normalise_tag(spelling), set()).add((field, spelling))
    return spellings
