"""Searches with a name, which find their tracks anew each time; and their playlists in a folder.

Navidrome reads two kinds of files: .m3u8, a list of paths, and .nsp, rules on fields of the files
that it applies itself. A search becomes rules if it is a query of tags, and each tag is the genre,
mood or grouping of some file; the rest needs Harmonium.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

from harmonium.data.tag_names import normalise_tag
from harmonium.errors import DataError, HarmoniumError, NotInLibraryError, did_you_mean
from harmonium.files import write_atomically
from harmonium.library.export import write_playlist
from harmonium.library.library import Library, Progress
from harmonium.library.search import Query
from harmonium.library.snapshot import Question, SearchResult
from harmonium.library.store.database import storable
from harmonium.library.store.schema import SAVED

MAX_NAME = 200  # letters of a name
RULE_FIELDS = ("genre", "mood", "grouping")  # that Navidrome reads as several values
_NOT_IN_NAMES = re.compile(r'[/\\:*?"<>|\x00-\x1f\x7f\ud800-\udfff]')


@dataclass(frozen=True)
class SavedSearch:
    """A search with a name."""

    name: str
    question: Question  # its ``stops`` are how many tracks it finds at most

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
    n_tracks: int | None  # None for rules, which Navidrome applies
    problem: str | None = None  # why it was not written


def saved_searches(library: Library) -> list[SavedSearch]:
    """All, by name."""
    found = library.settings.beginning_with(SAVED)
    return [
        SavedSearch(name, Question(**one))
        for name, one in sorted(found.items(), key=lambda pair: pair[0].casefold())
    ]


def saved_search(library: Library, name: str) -> SavedSearch:
    """The search of a name, or a LibraryError."""
    found = {one.name: one for one in saved_searches(library)}
    if name not in found:
        hint = did_you_mean(name, found, examples=5)
        raise NotInLibraryError(f"There is no saved search {name!r}.{hint}")
    return found[name]


def save(library: Library, name: str, question: Question) -> int | None:
    """Save a search, in place of one with this name; the number of the change, None if the same."""
    name = _checked(name)
    library.snapshot().search(question, 1)  # or an error
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
        raise DataError(f"There is a saved search {new!r} already. Choose another name.")
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
    rules: bool = False,
    relative: bool = False,
    progress: Progress | None = None,
) -> Iterator[WrittenPlaylist]:
    """Write each saved search as .m3u8, or with ``rules`` as .nsp where Navidrome's suffice."""
    folder.mkdir(parents=True, exist_ok=True)
    searches, taken = saved_searches(library), set[str]()
    spelt = _spellings(library) if rules and searches else {}
    for done, one in enumerate(searches):
        safe = _NOT_IN_NAMES.sub("_", one.name).strip(". ") or "_"
        names = chain([safe], (f"{safe} {n}" for n in count(2)))
        stem = next(name for name in names if name.casefold() not in taken)
        taken.add(stem.casefold())
        rule = navidrome_rules(library, one, spelt) if rules else None
        path = folder / f"{stem}{'.m3u8' if rule is None else '.nsp'}"
        try:
            if rule is not None:
                write_atomically(path, json.dumps(rule, indent=1, ensure_ascii=False).encode())
                yield WrittenPlaylist(one.name, str(path), None)
            else:
                tracks = [hit.track for hit in one.run(library)]
                write_playlist(path, tracks, relative=relative)
                yield WrittenPlaylist(one.name, str(path), len(tracks))
        except HarmoniumError as error:
            yield WrittenPlaylist(one.name, None, None, str(error))
        if progress:
            progress(done + 1, len(searches))


def navidrome_rules(
    library: Library, saved: SavedSearch, spelt: Mapping[str, set[tuple[str, str]]]
) -> dict[str, Any] | None:
    """The rules of a .nsp file; None if Navidrome's cannot express the search.

    ``spelt`` is tag → (field, spelling) in the files.
    """
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


def _rule(
    query: Query, spelt: Mapping[str, set[tuple[str, str]]], negated: bool = False
) -> dict[str, Any]:
    """The rule of a query; a KeyError if a part of it is in no file."""
    if query.operator == "NOT":
        return _rule(query.parts[0], spelt, not negated)
    if query.operator in ("AND", "OR"):
        parts = [_rule(part, spelt, negated) for part in query.parts]
        return {"any" if (query.operator == "OR") != negated else "all": parts}
    kind = "isNot" if negated else "is"
    parts = [{kind: {field: spelling}} for field, spelling in sorted(spelt[query.tag])]
    return parts[0] if len(parts) == 1 else {"all" if negated else "any": parts}


def _spellings(library: Library) -> dict[str, set[tuple[str, str]]]:
    """Tag → (field, spelling) of the files that have it."""
    found: dict[str, set[tuple[str, str]]] = {}
    for track in library.tracks.all():
        for name in RULE_FIELDS:
            for spelling in track.file_tags.get(name, ()):
                found.setdefault(normalise_tag(spelling), set()).add((name, spelling))
    return found
