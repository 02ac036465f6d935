"""beets: tags and audio features for its items, and what people corrected there.

`beetsplug/harmonium.py` is the plugin, thin over `ItemTagger`. The tags are those that `harmonium
write` would write, in the same fields: genre and mood are lists in beets, grouping and comment are
texts. The item's field `GIVEN` keeps what Harmonium gave it. If a given tag is gone, somebody
rejected it: it is not given again, and `import_from_beets` tells the library.
"""

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from harmonium.data.tag_names import normalise_tag
from harmonium.errors import (
    DataError,
    LibraryReadOnlyError,
    LibraryUnavailableError,
    NoLibraryError,
    readable,
)
from harmonium.files import absolute_path
from harmonium.library import Library
from harmonium.library.filetags import FileTags, PlainLayout, Values
from harmonium.library.filetags.contents import GIVEN
from harmonium.library.filetags.rules import tags_in_comment
from harmonium.library.imports import ImportReport, import_rows
from harmonium.library.model import USUAL_PRECISION
from harmonium.library.model.builtin import builtin_extractor
from harmonium.library.store.schema import EXTRACTOR
from harmonium.library.tagging import TaggedFile, tag_files
from harmonium.library.writing.plan import FilePlanner, TagNames
from harmonium.library.writing.wanted import NO_TAGS, TagSources, WantedTags

FIELDS = {"genre": "genres", "mood": "mood", "grouping": "grouping", "comment": "comments"}
"""A file's field → the field in beets."""
LISTS = ("genre", "mood")  # those that are lists in beets


@dataclass(frozen=True, kw_only=True)
class TaggedItem:
    """What is known about a file."""

    path: str
    tags: WantedTags = NO_TAGS
    features: Mapping[str, float] = field(default_factory=dict)
    problem: str | None = None  # why it could not be read


class ItemTagger:
    """Tags beets' items with a library's model, or with the built-in one.

    place : the library; by default the usual one, if it exists
    precision : the precision that predictions must have; None or 0: the thresholds of `tag`
    """

    def __init__(self, place: str | None = None, precision: float | None = USUAL_PRECISION) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        try:
            self.library = Library.open(place, create=False)
        except NoLibraryError:
            if place is not None:
                raise
            # An empty library answers like one in which nobody has tagged anything.
            self._folder = TemporaryDirectory(prefix="harmonium-")
            self.library = Library.open(Path(self._folder.name) / "library.db")
            self.library.settings.set(EXTRACTOR, builtin_extractor())
        self._precision = precision or None
        self._problem = ""  # why the library's new tracks could not be tagged
        with self.library.learner.paused():
            try:
                self.library.tag_new()
            except (LibraryUnavailableError, LibraryReadOnlyError) as error:
                self._problem = str(error)
        self._rules = self.library.writer.rules()

    def close(self) -> None:
        """Close the library; delete it if it was temporary."""
        self.library.close()
        if self._folder is not None:
            self._folder.cleanup()

    def tag(self, paths: Sequence[str]) -> Iterator[TaggedItem]:
        """The tags and audio features of files, starting with those in the library."""
        library = self.library
        known = {}
        for path in paths:
            track = library.tracks.find(absolute_path(path))
            if track is not None and track.state == "present":
                known[path] = track.id
        others = [path for path in paths if path not in known]
        untagged = self._untagged([*known.values()])
        for path in [path for path, number in known.items() if number in untagged]:
            yield TaggedItem(path=path, problem=f"is not tagged yet. {self._problem}")
            del known[path]
        sources = TagSources(precision=self._precision)
        wanted = library.writer.wanted([*known.values()], sources)
        for path, number in known.items():
            yield TaggedItem(
                path=path,
                tags=wanted.get(number, NO_TAGS),
                features=library.audio_features(number),
            )
        files = [path for path in others if Path(path).is_file()]
        for path in sorted({*others} - {*files}):
            yield TaggedItem(path=path, problem="is missing")
        if files:
            yield from self._tag_files(files)

    def _untagged(self, ids: Sequence[int]) -> set[int]:
        """The tracks without predictions, if new ones could not be tagged."""
        if not self._problem:
            return set()
        model = self.library.models.current(whole=False)
        if model is None:
            return {*ids}
        tagged, _ = self.library.predictions.columns(model.id, [0], refined=False)
        return {*ids}.difference(tagged.tolist())

    def _tag_files(self, paths: Sequence[str]) -> Iterator[TaggedItem]:
        """The tags and audio features of files that are not in the library."""
        tagged = tag_files(self.library, paths, sound_only=True, lowest=True)
        for file in tagged:
            yield TaggedItem(path=file.path, tags=self._likely(file), features=file.features)
        for failure in tagged.failures:
            yield TaggedItem(path=failure.path, problem=failure.reason)

    def _likely(self, file: TaggedFile) -> WantedTags:
        """The tags that reach their thresholds, the likeliest first."""
        likely = {}
        for tag in file.table.trained:
            threshold = tag.written(self._precision).threshold
            probability = float(file.probabilities[tag.place])
            if threshold is not None and probability >= threshold:
                likely[tag.name] = probability
        by_probability = sorted(likely, key=lambda name: -likely[name])
        return WantedTags(predicted={name: likely[name] for name in by_probability})

    def new_values(self, item: Any, tagged: TaggedItem) -> dict[str, Any]:
        """The fields that change for an item in beets, and their new values."""
        before = _values(item)
        given = list(item.get(GIVEN, ()))
        rejected = {normalise_tag(tag) for tag in given} - _present(before)
        file = FileTags.known(PlainLayout(), None, before, self._rules.id3)
        planner = FilePlanner(file, self._rules, TagNames.of(self.library.snapshot()))
        new: dict[str, Any] = {name: round(p, 2) for name, p in tagged.features.items()}
        for change in planner.file_change(tagged.path, tagged.tags.without(rejected)).fields:
            if change.field in FIELDS:
                after: list[str] | str = "; ".join(change.after)
                if change.field in LISTS:
                    after = list(change.after)
                # nobody rejected what is overwritten now
                lost = {*change.before, *tags_in_comment(change.before)}.difference(change.after)
                given = [*(tag for tag in given if tag not in lost), *change.added]
                new |= {FIELDS[change.field]: after, GIVEN: given}
        return new


def _values(item: Any) -> dict[str, Values]:
    """A file's field → what a beets item has in it: a list, or one text."""
    values = {}
    for name, beets_field in FIELDS.items():
        value = item.get(beets_field) or ()
        values[name] = (value,) if isinstance(value, str) else tuple(value)
    return values


def _present(values: Mapping[str, Values]) -> set[str]:
    """The tags that an item has in any of its fields."""
    texts = tuple(text for some in values.values() for text in some)
    return {normalise_tag(tag) for tag in (*texts, *tags_in_comment(texts))}


def import_from_beets(
    library: Library, path: str | Path | None = None, *, person: str = "beets", **how: Any
) -> ImportReport:
    """Import the genres, moods and groupings in beets' library, but not what Harmonium gave.

    A tag that it gave and somebody removed becomes a rejected tag.

    Parameters
    ----------
    path : the file of beets' library, which is only read; by default the one in beets' settings
    person, how : whose tags they are, and the other options of `imports.import_rows`
    """
    folder = ""
    try:
        from beets import config

        path = path or config["library"].as_filename()
        folder = config["directory"].as_filename()
    except ImportError:
        if path is None:
            raise DataError(
                "beets is not installed here. Name its library: harmonium import --from-beets FILE"
            ) from None
    report = ImportReport()
    rows: list[dict[str, str]] = []
    for item in _read_items(Path(path).expanduser()):
        whole = str(Path(folder, item["path"]))  # newer beets store only its end
        place = readable(whole if library.tracks.find(whole) else item["path"])
        values = _values(item)
        given = {normalise_tag(tag): tag for tag in item[GIVEN]}
        for name in ("genre", "mood", "grouping"):
            tags = values[name] if name in LISTS else tags_in_comment(values[name])
            new = [tag for tag in tags if normalise_tag(tag) not in given]
            report.n_own += len(tags) - len(new)
            column = name if name in LISTS else "tag"
            rows += [{"item": place, column: tag, "value": "1"} for tag in new]
        gone = given.keys() - _present(values)
        rows += [{"item": place, "tag": given[tag], "value": "0"} for tag in sorted(gone)]
    report.n_rows = len(rows) + report.n_own
    columns = dict.fromkeys(("item", "tag", *LISTS, "value"), pl.String)
    frame = pl.DataFrame(rows, schema=columns).fill_null("")
    return import_rows(library, frame, report, "beets", person=person, **how)


def _read_items(file: Path) -> list[dict[str, Any]]:
    """The items of beets' library: path, and the fields that may hold tags."""
    fixed = ("genres", "grouping", "comments")
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute(f"SELECT id, path, {', '.join(fixed)} FROM items").fetchall()
            more = database.execute("SELECT key, entity_id, value FROM item_attributes").fetchall()
    except sqlite3.Error as error:
        raise DataError(f"{file} cannot be read as a library of beets: {error}.") from None
    flexible = {(key, number): value for key, number, value in more if key in ("mood", GIVEN)}
    items = []
    for number, path, genres, grouping, comments in rows:
        if not isinstance(path, str | bytes):
            continue  # not an item of beets
        items.append(
            {
                "path": os.fsdecode(path),
                "genres": _parts(genres),
                "grouping": _text(grouping),
                "comments": _text(comments),
                "mood": _parts(flexible.get(("mood", number))),
                GIVEN: _parts(flexible.get((GIVEN, number))),
            }
        )
    return items


def _text(value: object) -> str:
    """A text of beets' library; SQLite's columns may hold values of any type."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return "" if value is None else str(value)


def _parts(value: object) -> list[str]:
    """The items of a list in beets' library."""
    return [part for part in re.split(r"\\␀|; ", _text(value)) if part]
