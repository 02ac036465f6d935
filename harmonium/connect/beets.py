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
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from harmonium.data.tag_names import normalise_tag
from harmonium.errors import DataError, NoLibraryError
from harmonium.files import absolute_path
from harmonium.library import Library, tagger
from harmonium.library.filetags import Values, changed_fields
from harmonium.library.filetags.formats import GIVEN
from harmonium.library.filetags.rules import tags_in_comment
from harmonium.library.imports import ImportReport, import_rows
from harmonium.library.store.schema import EXTRACTOR
from harmonium.library.tagging import TaggedFile, tag_files
from harmonium.library.write import (
    RULES_SETTING,
    ScoredTags,
    library_rules,
    wanted_tags,
    without_known,
)

FIELDS = {"genre": "genres", "mood": "mood", "grouping": "grouping", "comment": "comments"}
"""A file's field → the field in beets."""
LISTS = ("genre", "mood")  # those that are lists in beets


class TaggedItem(NamedTuple):
    """What is known about a file."""

    path: str
    tags: ScoredTags
    features: Mapping[str, float]
    problem: str | None = None  # why it could not be read


class ItemTagger:
    """Tags beets' items with a library's model, or with the built-in one.

    place : the library; by default the usual one, if it exists
    precision : the precision that predictions must have; None or 0: the thresholds of `tag`
    """

    def __init__(
        self, place: str | None = None, precision: float | None = tagger.USUAL_PRECISION
    ) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        try:
            self.library = Library.open(place, create=False)
        except NoLibraryError:
            if place is not None:
                raise
            # An empty library answers like one in which nobody has tagged anything.
            self._folder = TemporaryDirectory(prefix="harmonium-")
            self.library = Library.open(Path(self._folder.name) / "library.db")
            self.library.settings.set(EXTRACTOR, tagger.builtin_extractor())
        self._precision = precision or None
        self.library.tag_new(learn=False)
        model = tagger.use_builtin(self.library) or tagger.builtin_model()
        self._thresholds = tagger.write_thresholds(model, self._precision)
        self._rules = library_rules(self.library, [self.library.settings.get(RULES_SETTING, {})])

    def close(self) -> None:
        """Close the library; delete it if it was temporary."""
        self.library.close()
        if self._folder is not None:
            self._folder.cleanup()

    def tag(self, paths: Sequence[str]) -> Iterator[TaggedItem]:
        """The tags and audio features of files, starting with those in the library."""
        library = self.library
        found = {path: library.tracks.find(absolute_path(path)) for path in paths}
        tracks = {path: one.id for path, one in found.items() if one and one.state == "present"}
        wanted = wanted_tags(library, [*tracks.values()], precision=self._precision)
        for path, number in tracks.items():
            yield TaggedItem(path, wanted.get(number, {}), library.audio_features(number))
        others = [path for path in paths if path not in tracks]
        there = [path for path in others if Path(path).is_file()]
        missing = sorted({*others} - {*there})
        yield from (TaggedItem(path, {}, {}, "is missing") for path in missing)
        if there:
            tagged = tag_files(library, there, sound_only=True, lowest=True)
            for file in tagged:
                yield TaggedItem(file.path, self._likely(file), file.features)
            for failure in tagged.failures:
                yield TaggedItem(failure.path, {}, {}, failure.reason)

    def _likely(self, file: TaggedFile) -> ScoredTags:
        """The tags that reach their thresholds, the likeliest first."""
        p, hidden = file.probabilities[: len(self._thresholds)], self.library.snapshot().hidden
        places = np.flatnonzero(p >= self._thresholds)
        tags = {file.tagger.tags[j]: float(p[j]) for j in places[np.argsort(-p[places])]}
        return {tag: score for tag, score in tags.items() if tag not in hidden}

    def new_values(self, item: Any, tagged: TaggedItem) -> dict[str, Any]:
        """The fields that change for an item in beets, and their new values."""
        snapshot, before, given = self.library.snapshot(), _values(item), list(item.get(GIVEN, ()))
        rejected = {normalise_tag(tag) for tag in given} - _present(before)
        tags = {tag: p for tag, p in tagged.tags.items() if tag not in rejected}
        spelt: dict[str, str] = {}
        if self._rules.mode == "merge":
            tags, spelt = without_known(tags, before, snapshot)
        spelt = {tag: spelt.get(tag, snapshot.shown(tag)) for tag in tags}
        new: dict[str, Any] = {name: round(p, 2) for name, p in tagged.features.items()}
        wanted, _ = self._rules.sort(tags, spelt)
        for change in changed_fields(before, wanted, {}, self._rules):
            if change.field in FIELDS:
                after = [*change.after] if change.field in LISTS else "; ".join(change.after)
                # nobody rejected what is overwritten now
                lost = {*change.before, *tags_in_comment(change.before)}.difference(change.after)
                given = [*(tag for tag in given if tag not in lost), *change.added]
                new |= {FIELDS[change.field]: after, GIVEN: given}
        return new


def _values(item: Any) -> dict[str, Values]:
    """A file's field → what a beets item has in it: a list, or one text."""
    found = {name: item.get(field) or () for name, field in FIELDS.items()}
    return {name: (x,) if isinstance(x, str) else tuple(x) for name, x in found.items()}


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

        path, folder = path or config["library"].as_filename(), config["directory"].as_filename()
    except ImportError:
        if path is None:
            raise DataError(
                "beets is not installed here. Name its library: harmonium import --from-beets FILE"
            ) from None
    report = ImportReport()
    rows: list[dict[str, str]] = []
    for item in _read_items(Path(path).expanduser()):
        whole = str(Path(folder, item["path"]))  # newer beets store only its end
        place = whole if library.tracks.find(whole) else item["path"]
        values, given = _values(item), {normalise_tag(tag): tag for tag in item[GIVEN]}
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
    for number, path, *values in rows:
        item = {"path": os.fsdecode(path), **dict(zip(fixed, values, strict=True))}
        item |= {key: flexible.get((key, number)) for key in ("mood", GIVEN)}
        for key in ("genres", "mood", GIVEN):
            item[key] = [part for part in re.split(r"\\␀|; ", item[key] or "") if part]
        items.append(item)
    return items
