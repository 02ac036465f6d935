"""Saved searches, which search again each time, and their playlists in a folder.

Navidrome reads two kinds of files: .m3u8, a list of paths, and .nsp, rules on the files' fields
that it applies itself. A search becomes rules if it is a query of tags, and each tag is the genre,
mood or grouping of some file; other searches need Harmonium.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import Any

from harmonium.data.tag_names import normalise_tag
from harmonium.errors import DataError, HarmoniumError, NotInLibraryError, did_you_mean, readable
from harmonium.files import absolute_path, check_writable, write_atomically
from harmonium.library.export import playlist
from harmonium.library.library import Library, Progress
from harmonium.library.search import Query
from harmonium.library.snapshot import Question, SearchResult
from harmonium.library.store.database import damaged, storable
from harmonium.library.store.schema import SAVED

MAX_NAME = 200  # maximum length of a name
RULE_FIELDS = ("genre", "mood", "grouping")  # Navidrome reads these as several values
PLAYLISTS = "playlists"  # the setting: folder → (file → digests, whether rules, whether relative)
_NOT_IN_NAMES = re.compile(r'[/\\:*?"<>|\x00-\x1f\x7f\ud800-\udfff]')

Spellings = dict[str, set[tuple[str, str]]]
"""Tag → (field, spelling) of the files that have it."""


@dataclass(frozen=True)
class SavedSearch:
    """A search with a name."""

    name: str
    question: Question  # ``stops`` is the most tracks that it finds

    @property
    def words(self) -> str:
        """What it finds, on one line."""
        asked = self.question
        parts = {
            asked.text: asked.text,
            f"“{asked.name}”": asked.name,
            f"like #{asked.like}": asked.like,
            f"from #{asked.start} to #{asked.end}": asked.start,
            f"sorted by {asked.order}": asked.order,
        }
        return ", ".join(words for words, given in parts.items() if given) or "all tracks"

    def run(self, library: Library) -> SearchResult:
        """The tracks that it finds now."""
        return library.snapshot().search(self.question, self.question.stops, count=False)


@dataclass(frozen=True)
class WrittenPlaylist:
    """The file of a saved search."""

    name: str
    path: str | None  # None if it was not written
    n_tracks: int | None = None
    kind: str = "tracks"  # or "rules", which Navidrome applies, or "removed" with its search
    problem: str | None = None  # why it was not written


def saved_searches(library: Library) -> list[SavedSearch]:
    """All saved searches, by name."""
    found = library.settings.beginning_with(SAVED)
    try:
        searches = [SavedSearch(name, Question(**one)) for name, one in found.items()]
    except TypeError as error:  # from a newer version, perhaps
        raise damaged(f"a saved search cannot be read ({error})") from None
    return sorted(searches, key=lambda one: one.name.casefold())


def saved_search(library: Library, name: str) -> SavedSearch:
    """The search with this name, or a LibraryError."""
    found = {one.name: one for one in saved_searches(library)}
    if name not in found:
        hint = did_you_mean(name, found, examples=5)
        raise NotInLibraryError(f"There is no saved search {name!r}.{hint}")
    return found[name]


def save(library: Library, name: str, question: Question) -> int | None:
    """Save a search, or replace the one with this name; the change, None if it is the same."""
    name = _checked(name)
    library.snapshot().search(question, 1)  # an invalid query is an error
    usual = Question()._asdict()
    asked = {key: one for key, one in question._asdict().items() if one != usual[key]}
    return library.changes.set_settings("save", f"search {name!r} saved", {SAVED + name: asked})


def delete(library: Library, name: str) -> int | None:
    """Delete a saved search; the number of the change."""
    saved_search(library, name)
    return library.changes.set_settings("save", f"search {name!r} deleted", {SAVED + name: None})


def rename(library: Library, old: str, new: str) -> int | None:
    """Give a saved search another name; the number of the change."""
    saved_search(library, old)
    new = _checked(new)
    if library.settings.get(SAVED + new) is not None:
        raise DataError(f"There is already a saved search {new!r}. Choose another name.")
    values = {SAVED + new: library.settings.get(SAVED + old), SAVED + old: None}
    return library.changes.set_settings("save", f"search {old!r} renamed to {new!r}", values)


def _checked(name: str) -> str:
    name = storable(name).strip()
    if not 1 <= len(name) <= MAX_NAME:
        raise DataError(f"The name of a search must have 1 to {MAX_NAME} letters, got {name!r}.")
    return name


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
    folders, place = library.settings.get(PLAYLISTS, {}), absolute_path(folder)
    files, *last = folders.get(place, ({}, False, False))
    rules = last[0] if rules is None else rules
    relative = last[1] if relative is None else relative
    searches, taken, kept = saved_searches(library), set[str](), set[str]()
    spelt = _spellings(library) if rules and searches else None

    def remember() -> None:
        library.settings.set(PLAYLISTS, folders | {place: (files, rules, relative)})

    for done, one in enumerate(searches):
        safe = _NOT_IN_NAMES.sub("_", one.name).strip(". ") or "_"
        names = chain([safe], (f"{safe} {n}" for n in count(2)))
        stem = next(name for name in names if name.casefold() not in taken)
        taken.add(stem.casefold())
        try:
            ending, content, n = _made(library, one, spelt, folder if relative else None)
            path = folder / f"{stem}{ending}"
            _write(path, content, files, remember)
            kept.add(path.name)
            yield WrittenPlaylist(one.name, str(path), n, "rules" if n is None else "tracks")
        except HarmoniumError as error:
            kept |= {f"{stem}.nsp", f"{stem}.m3u8"}
            yield WrittenPlaylist(one.name, None, problem=str(error))
        if progress:
            progress(done + 1, len(searches))
    for path in [folder / name for name in sorted(files.keys() - kept)]:
        if _digest(path) in files.pop(path.name).split():
            path.unlink()
            yield WrittenPlaylist(path.stem, str(path), kind="removed")
    remember()


def _made(
    library: Library, saved: SavedSearch, spelt: Spellings | None, folder: Path | None
) -> tuple[str, bytes, int | None]:
    """The ending of a search's file, what it holds, and how many tracks; None for rules."""
    if spelt is not None and (rule := navidrome_rules(library, saved, spelt)) is not None:
        return ".nsp", json.dumps(rule, indent=1, ensure_ascii=False).encode(), None
    tracks = [hit.track for hit in saved.run(library)]
    return ".m3u8", playlist(tracks, folder), len(tracks)


def _write(path: Path, content: bytes, files: dict[str, str], remember: Callable[[], None]) -> None:
    """Write a playlist, but not over what somebody else wrote."""
    check_writable(path)
    new, there, ours = sha256(content).hexdigest(), _digest(path), files.get(path.name, "")
    if there not in (None, new, *ours.split()):
        whose = f"'{readable(path)}' was written or changed by another program."
        raise DataError(f"{whose} Rename or remove the file, or rename the search.")
    if there != new:
        files[path.name] = f"{there or ''} {new}"  # one of these, should the process end here
        remember()
        write_atomically(path, content)
    files[path.name] = new


def _digest(path: Path) -> str | None:
    return sha256(path.read_bytes()).hexdigest() if path.exists() else None


def navidrome_rules(
    library: Library, saved: SavedSearch, spelt: Spellings
) -> dict[str, Any] | None:
    """The rules of a .nsp file; None if Navidrome's rules cannot express the search."""
    asked = saved.question
    plain = Question(asked.text, min_probability=asked.min_probability, stops=asked.stops)
    if not asked.text or asked != plain:
        return None
    try:
        rule = _rule(library.snapshot().parsed(asked.text), spelt)
    except (KeyError, HarmoniumError):
        return None
    (how, _), *_ = rule.items()
    rule = rule if how in ("all", "any") else {"all": [rule]}
    return {"name": saved.name, "comment": asked.text, **rule, "limit": asked.stops}


def _rule(query: Query, spelt: Spellings, negated: bool = False) -> dict[str, Any]:
    """The rule for a query; a KeyError if no file has a part of it."""
    if query.operator == "NOT":
        return _rule(query.parts[0], spelt, not negated)
    if query.operator in ("AND", "OR"):
        parts = [_rule(part, spelt, negated) for part in query.parts]
        return {"any" if (query.operator == "OR") != negated else "all": parts}
    kind = "isNot" if negated else "is"
    parts = [{kind: {field: spelling}} for field, spelling in sorted(spelt[query.tag])]
    return parts[0] if len(parts) == 1 else {"all" if negated else "any": parts}


def _spellings(library: Library) -> Spellings:
    found: Spellings = {}
    for track in library.tracks.all():
        for name in RULE_FIELDS:
            for spelling in track.file_tags.get(name, ()):
                found.setdefault(normalise_tag(spelling), set()).add((name, spelling))
    return found
