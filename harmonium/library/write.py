"""Write the tracks' tags to their files, and undo it.

A track's file gets what people say and what the model is sure enough of. The library stores how to
undo a write before the file changes, so it can be undone however the process ends. To resume an
interrupted write, start it again: files that already have their tags do not change.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import sqlalchemy as sa

from harmonium.arrays import Ids
from harmonium.data.tag_names import (
    KINDS,
    NO_TAG,
    normalise_tag,
    possible_parts,
)
from harmonium.errors import (
    DataError,
    FileChangedError,
    FileTagError,
    LibraryError,
    counted,
    readable,
)
from harmonium.library import filetags
from harmonium.library.filetags.rules import (
    KIND_FIELDS,
    NOWHERE,
    PlacedTag,
    combine,
    fold,
    join_layers,
    make_rules,
)
from harmonium.library.library import Library, Progress
from harmonium.library.store.changes import Change, UndoReport, WrittenFile
from harmonium.library.store.database import PAGE, batches, end_transactions, stored_path
from harmonium.library.store.models import Owner, StoredModel
from harmonium.library.store.opinions import agreed_tags
from harmonium.library.store.schema import change as change_table
from harmonium.library.store.schema import written_file
from harmonium.library.store.tracks import FORGOTTEN, Track
from harmonium.library.tagger import musical_tags

if TYPE_CHECKING:
    from harmonium.library.snapshot import Snapshot

ScoredTags = dict[str, float]  # tag → 1 if people say so, else its probability; in order

RULES_SETTING = "write_rules"  # where a library remembers its rules for writing


class PlannedFile(NamedTuple):
    """What writing would do to a track's file."""

    track: Track
    change: filetags.FileChange
    guessed: Mapping[str, float] = {}  # tag, as written → probability, where the model predicts it
    names: Mapping[str, str] = {}  # tag, as written → its name in the library

    @property
    def added(self) -> set[str]:
        """The tags that are new to the file, as written."""
        fields = (one for one in self.change.fields if one.field in filetags.FIELDS)
        return {tag for one in fields for tag in one.added}

    @property
    def new_guesses(self) -> dict[str, float]:
        """The new tags that the model predicts."""
        added = self.added
        return {tag: p for tag, p in self.guessed.items() if tag in added}


@dataclass
class WritePlan:
    """What writing would do."""

    files: list[PlannedFile] = field(default_factory=list)  # those that change
    n_unchanged: int = 0
    failures: dict[str, str] = field(default_factory=dict)  # path → why it could not be used
    ids: Sequence[int] = ()  # the tracks it is about
    precision: Mapping[str, float] = field(default_factory=dict)
    """Tag → how often it was right on held-out tracks, if known."""

    @property
    def n_guessed(self) -> int:
        """How many predicted tags would be added to files."""
        return sum(len(one.new_guesses) for one in self.files)

    @property
    def expected_wrong(self) -> float:
        """How many of these will be wrong, by each tag's precision, or else by p."""
        guesses = ((one.names[tag], p) for one in self.files for tag, p in one.new_guesses.items())
        return sum(1 - self.precision.get(tag, p) for tag, p in guesses)

    def count_predicted(self, model: StoredModel) -> int:
        """How many of the predicted tags to be added has this model learnt?"""
        names = {model.vocabulary[j] for j in np.flatnonzero(model.learnt)}
        return sum(one.names[tag] in names for one in self.files for tag in one.new_guesses)


@dataclass
class WriteReport:
    """What was written."""

    change: int | None = None  # its number; None if no file was written
    paths: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)  # path → why it could not be used
    n_tags: int = 0  # tags that were new to their files


def library_rules(library: Library, layers: Sequence[Mapping[str, Any]]) -> filetags.Rules:
    """Rules made from layers, on top of the default fields of each kind of tag.

    With a genre tree, genres below one on the whitelist are written as that one. If
    ``default_field`` is set, all tags that no rule names go there.
    """
    whole, snapshot = join_layers(layers), library.snapshot()
    for option in ("whitelist", "ignore"):
        if option in whole and not isinstance(whole[option], str):
            whole[option] = [snapshot.name(tag) for tag in whole[option]]
    tree, whitelist = library.genres(), whole.get("whitelist")
    aliases: dict[str, str] = {}
    if tree and whitelist:
        spellings = library.spellings()
        nearest = {tag: tree.in_list(tag, whitelist) or tag for tag in snapshot.known}
        aliases = {tag: spellings.get(name, name) for tag, name in nearest.items() if tag != name}
    fields = {} if "default_field" in whole else KIND_FIELDS
    return make_rules([{"fields": fields, "kinds": library.kinds(), "aliases": aliases}, whole])


def write_fields(library: Library, new: Mapping[str, str | None]) -> dict[str, str]:
    """Kind or tag → its field, as the library remembers; ``new`` is remembered first."""
    kept = library.settings.get(RULES_SETTING, {})
    if new:
        fields = {fold(name): field for name, field in kept.get("fields", {}).items()}
        fields |= {fold(name): field for name, field in new.items()}
        kept |= {"fields": {name: field for name, field in fields.items() if field is not None}}
        library_rules(library, [kept])
        library.settings.set(RULES_SETTING, kept)
    rules = library_rules(library, [kept])
    found = dict.fromkeys(KINDS, rules.default_field or NOWHERE) | dict(rules.fields)
    return {name: field for name, field in found.items() if name != NO_TAG}


def wanted_tags(
    library: Library,
    ids: Sequence[int],
    *,
    people: bool = True,
    predicted: bool = True,
    owner: Owner | None = None,
    precision: float | None = None,
) -> dict[int, ScoredTags]:
    """Track → the tags wanted in its file, for the tracks that have any.

    A tag is wanted if people agree that it fits. If they leave it open, it is wanted if the current
    model's probability reaches the tag's threshold for this precision, both as the model was
    trained, which is what held-out tracks measured, and with what it has learnt from answers since.
    Tags read from files do not count, since they are there already.

    Parameters
    ----------
    people, predicted : whether to take what people say, and what the model predicts
    owner : predict tags learnt from the library, built-in ones, or both
    precision : see `Snapshot.write_thresholds`
    """
    snapshot = library.snapshot()
    if predicted and not people and not snapshot.model.id:
        raise LibraryError(
            "There is no model, so there are no predictions to write. Run `harmonium train`, then "
            "`harmonium tag`."
        )
    from_files = [one.name for one in library.opinions.people() if one.kind == "file"]
    opinions = library.opinions.triples(ids)
    agreed = agreed_tags(opinions.filter(~pl.col("person").is_in(from_files)))
    guessed = _guessed(snapshot, ids, precision, owner) if predicted else {}
    has: dict[int, set[str]] = {}
    for number, tag in opinions.filter(pl.col("value") > 0).select("track_id", "tag").rows():
        has.setdefault(number, set()).add(tag)
    found: dict[int, ScoredTags] = {}
    hidden = snapshot.hidden
    for number in agreed.keys() | guessed.keys():
        said = agreed.get(number, {})
        said = {tag: holds for tag, holds in said.items() if tag not in hidden}
        tags = {tag: 1.0 for tag, holds in said.items() if holds and people}
        there = has.get(number, ())
        for tag, p in guessed.get(number, {}).items():
            if snapshot.has_synonym(tag, there) or _has_part(tag, there):
                continue
            if tag not in said or (said[tag] and not people):
                tags[tag] = p
        if tags:
            found[number] = tags
    return found


def _has_part(tag: str, tags: Collection[str]) -> bool:
    """Whether a tag such as pop/rock says no more than one of these tags."""
    ends = {end for one in tags for end in (one, one.rpartition(" ")[2])}  # hard rock is rock
    return "/" in tag and not ends.isdisjoint(tag.split("/"))


def _guessed(
    snapshot: Snapshot, ids: Sequence[int], precision: float | None, owner: Owner | None
) -> dict[int, ScoredTags]:
    """Track → the tags whose probability reaches their threshold, likeliest first."""
    thresholds = snapshot.write_thresholds(precision, owner)
    found: dict[int, ScoredTags] = {}
    for some in batches(ids, 10 * PAGE):
        trained = snapshot.probabilities(np.array(some), refined=False)
        if not trained.shape[1]:
            return {}
        refined = snapshot.probabilities(np.array(some))
        probabilities = np.minimum(trained, refined[:, : len(thresholds)])
        rows, tags = np.nonzero(probabilities >= thresholds)  # not where they are NaN
        p = probabilities[rows, tags]
        order = np.lexsort((-p, rows))
        columns = (one[order].tolist() for one in (rows, tags, p))
        for i, j, score in zip(*columns, strict=True):
            found.setdefault(some[i], {})[snapshot.model.vocabulary[j]] = score
    return found


def count_untagged(library: Library, ids: Sequence[int] | Ids) -> int:
    """How many of the tracks the current model has not tagged yet; 0 without a model."""
    model = library.models.current(whole=False)
    if model is None or model.id is None:
        return 0
    tagged, _ = library.predictions.columns(model.id, [0], refined=False)
    return int((~np.isin(np.asarray(ids, np.int64), tagged)).sum())


@dataclass(frozen=True)
class OutlinedTag:
    """A tag that would be added to files."""

    tag: str
    shown: str
    kind: str
    n: int  # files that would get it
    n_said: int  # how many of these because people say so; the model predicts the others
    expected_wrong: float  # how many of the model's will be wrong
    precision: float | None  # the share of the model's that will be right; None if it adds none
    accepted: bool  # whether the rules let it be written
    elsewhere: bool  # whether the built-in model adds it, having learnt it from other music


@dataclass(frozen=True)
class WriteOutline:
    """What writing would add, as far as the library knows the files."""

    tracks: list[int]  # whose files would change
    n_files: int  # their files, with copies
    tags: list[OutlinedTag]  # most frequent first
    not_reached: dict[str, float | None]  # see `Snapshot.not_reached`
    n_features: int  # files that would get audio features

    @property
    def accepted(self) -> list[OutlinedTag]:
        """The tags that would be written."""
        return [one for one in self.tags if one.accepted]


def outline_writes(
    library: Library, ids: Sequence[int], rules: filetags.Rules, precision: float | None
) -> WriteOutline:
    """What `plan_writes` would add, without reading the files; includes tags that the rules refuse.

    Copies of a file are assumed to have its tags.
    """
    snapshot, copies = library.snapshot(), library.tracks.copies(ids)
    wanted = wanted_tags(library, ids, precision=precision)
    features = _features(snapshot, ids, rules)
    every = sorted({tag for tags in wanted.values() for tag in tags})
    spelt = {tag: snapshot.shown(tag) for tag in every}
    places = {one.tag: one for one in rules.place(dict.fromkeys(every, 1.0), spelt)}
    alike = Counter((one.field, fold(one.name)) for one in places.values())
    # Unless a field is replaced, whether a file gets a tag does not depend on its other new tags.
    alone = rules.mode != "overwrite" and not rules.scores and {*alike.values()} <= {1}
    scores, changing, n_features = dict[str, list[float]](), dict[int, int](), 0
    for there, numbers in library.tracks.by_file_tags([*(wanted.keys() | features.keys())]):
        effect = partial(_effect, there, places=places, rules=rules, snapshot=snapshot)
        # All that matters about p is whether people say so (1) or the model does (0).
        one_by_one = cache(lambda tag, p, effect=effect: effect({tag: p}))
        for number in numbers:
            tags, n_files = wanted.get(number, {}), 1 + len(copies.get(number, ()))
            effects = (
                [one_by_one(tag, p // 1) for tag, p in tags.items()] if alone else [effect(tags)]
            )
            for tag in (tag for added, _ in effects for tag in added):
                scores.setdefault(tag, []).extend([tags[tag]] * n_files)
            values = features.get(number)
            gets = bool(values and filetags.changed_fields(there, {}, values, rules))
            n_features += n_files * gets
            if gets or any(changes for _, changes in effects):
                changing[number] = n_files
    right_shares, found = snapshot.write_precision(precision), []
    for tag, all_p in scores.items():
        guessed, n = [p for p in all_p if p < 1], len(all_p)
        right = right_shares.get(tag, sum(guessed) / len(guessed)) if guessed else None
        wrong = 0.0 if right is None else (1 - right) * len(guessed)
        about = (tag, snapshot.shown(tag), snapshot.kind(tag), n, n - len(guessed))
        elsewhere = bool(guessed) and snapshot.owner(tag) == "built-in"
        found.append(OutlinedTag(*about, wrong, right, not places[tag].refused, elsewhere))
    found.sort(key=lambda one: (-one.n, one.tag))
    n_files = sum(changing.values())
    return WriteOutline(
        sorted(changing), n_files, found, snapshot.not_reached(precision), n_features
    )


def _effect(
    there: Mapping[str, filetags.Values],
    tags: ScoredTags,
    places: Mapping[str, PlacedTag],
    rules: filetags.Rules,
    snapshot: Snapshot,
) -> tuple[list[str], bool]:
    """The tags that a file with these values would get, refused or not; whether it changes."""
    if rules.mode == "merge":
        tags, _ = without_known(tags, there, snapshot)
    new: list[str] = []
    written: dict[str, dict[str, float]] = {}
    first: dict[tuple[str | None, str], str] = {}  # field and name → the first tag with them
    for tag, p in tags.items():
        _, name, _, where, refused = places[tag]
        before = there.get(where or "", ())
        if not refused and where and first.setdefault((where, fold(name)), tag) == tag:
            written.setdefault(where, {})[name] = p
        elif refused and (not where or combine(before, (name,), rules.mode) != before):
            new.append(tag)
    fields = filetags.changed_fields(there, written, {}, rules)
    tagged = (one for one in fields if one.field in filetags.FIELDS)
    new += (first[one.field, fold(name)] for one in tagged for name in one.added)
    return new, bool(fields)


def _features(
    snapshot: Snapshot, ids: Sequence[int], rules: filetags.Rules
) -> dict[int, dict[str, float]]:
    """Track → the audio features that the rules send to its file, if it is music."""
    if not rules.features:
        return {}
    numbers, model = np.asarray(ids, np.int64), snapshot.model
    musical = musical_tags(model.vocabulary, model.is_own, model.features)
    P = snapshot.probabilities(numbers, np.flatnonzero(musical).tolist())
    is_music = np.median(P, axis=1) > 0 if musical.any() else np.ones(len(P), bool)
    found = zip(ids, snapshot.features(numbers), is_music, strict=True)
    return {number: values for number, values, music in found if values and music}


def without_known(
    tags: ScoredTags, there: Mapping[str, filetags.Values], snapshot: Snapshot
) -> tuple[ScoredTags, dict[str, str]]:
    """The tags that a file with these fields lacks, and tag → its spelling there.

    It does not lack tags inside a longer text, such as jazz in "Jazz; Blues", tags that it has
    under another name, or predicted ones that it has in part.
    """
    found, inside = _tags_in(tuple(v for name in filetags.LIST_FIELDS for v in there.get(name, ())))
    if not found:
        return tags, {}
    tags = {
        tag: score
        for tag, score in tags.items()
        if tag not in inside
        and not snapshot.has_synonym(tag, found)
        and not (score < 1 and _has_part(tag, found))
    }
    return tags, {tag: found[tag] for tag in tags if tag in found}


@lru_cache(maxsize=100_000)
def _tags_in(values: filetags.Values) -> tuple[dict[str, str], frozenset[str]]:
    """Tag → its spelling among a file's values; and the tags inside longer texts."""
    found = {normalise_tag(value): value for value in values}
    parts = {part for value in values for part in possible_parts(value)}
    return found, frozenset(parts - found.keys())


def plan_writes(
    library: Library,
    ids: Sequence[int],
    rules: filetags.Rules,
    *,
    only_to: Collection[str] | None = None,
    progress: Progress | None = None,
    **sources: Any,
) -> WritePlan:
    """What writing the tracks' tags to their files would change; nothing is written.

    A track's tags go to its file and all its copies, or with ``only_to`` only to these paths.
    ``sources`` are those of `wanted_tags`.
    """
    snapshot = library.snapshot()
    plan = WritePlan(ids=ids, precision=snapshot.write_precision(sources.get("precision")))
    features = _features(snapshot, ids, rules) if sources.get("predicted", True) else {}
    copies, wanted = library.tracks.copies(ids), wanted_tags(library, ids, **sources)
    tracks = (track for some in batches(ids) for track in library.tracks.many(some))
    for done, track in enumerate(tracks, 1):
        tags = wanted.get(track.id, {})
        for path in (track.path, *copies.get(track.id, [])):
            if only_to is not None and path not in only_to:
                continue
            try:
                found = features.get(track.id, {})
                planned = _plan_file(track, path, tags, found, rules, snapshot)
            except (FileTagError, DataError) as error:
                plan.failures[path] = str(error)
                continue
            plan.files += [planned] if planned.change else []
            plan.n_unchanged += not planned.change
        if progress is not None:
            progress(done, len(ids))
    return plan


def _plan_file(
    track: Track,
    path: str,
    tags: ScoredTags,
    features: Mapping[str, float],
    rules: filetags.Rules,
    snapshot: Snapshot,
) -> PlannedFile:
    """What writing tags and audio features to one file of a track would change.

    Tags are spelt as in the file: Hip-Hop for hip hop.
    """
    there: dict[str, str] = {}
    if rules.mode == "merge" and tags:
        file = filetags.read_tags(path)
        values = {name: getattr(file, name) for name in filetags.LIST_FIELDS}
        tags, there = without_known(tags, values, snapshot)
    spelt = {tag: there.get(tag, snapshot.shown(tag)) for tag in tags}
    change = filetags.plan_write(path, tags, rules, features, spelt)
    names = {one.name: one.tag for one in reversed([*rules.place(tags, spelt)])}
    guessed = {name: tags[tag] for name, tag in names.items() if tags[tag] < 1}
    return PlannedFile(track, change, guessed, names)


def write_planned(
    library: Library, files: Sequence[PlannedFile], *, progress: Progress | None = None
) -> WriteReport:
    """Write what was planned, file by file, as one change that can be undone."""
    report = WriteReport()
    writer = _UndoableWriter(library, len(files))
    try:
        for done, planned in enumerate(files, 1):
            track, change = planned[:2]
            try:
                writer.write(track, change.path, partial(filetags.apply_change, change))
                report.paths.append(change.path)
                report.n_tags += len(planned.added)
            except FileTagError as error:
                report.failures[change.path] = str(error)
            if progress is not None:
                progress(done, len(files))
    except LibraryError as error:  # its disk is full, say, or the change is being undone
        if not report.paths:
            raise
        rest = (one.change.path for one in files[len(report.paths) + len(report.failures) :])
        report.failures |= dict.fromkeys(rest, f"It was not written. {error}")
    except KeyboardInterrupt as interrupt:
        end_transactions(interrupt)
        raise
    finally:
        report.change = writer.change
        with suppress(LibraryError):  # then `index` reads the last file, and the summary stays
            writer.finish()
            if writer.change is not None:
                n_tags, files_written = counted(report.n_tags, "tag"), len(report.paths)
                summary = f"{n_tags} written to {counted(files_written, 'file')}"
                library.changes.describe(writer.change, summary)
    return report


class _UndoableWriter:
    """Writes files as one change.

    Each file costs one transaction: how to undo it is stored just before it changes, together with
    the new state of the file before it. If the process dies in between, `index` reads that one
    file again.
    """

    def __init__(self, library: Library, n_files: int = 0) -> None:
        """The change begins in the transaction of the first file, unless its number is set."""
        self.change: int | None = None
        self._library, self._n_files, self._n_kept = library, n_files, 0
        self._written: tuple[Track, str, os.stat_result] | None = None  # not in its row yet

    def write(
        self, track: Track | None, path: str, work: Callable[..., filetags.UndoRecord | None]
    ) -> bool:
        """Do work that changes a file, and store how to undo it; whether the file changed."""
        # ``work(keep=...)`` is `apply_change` or `undo` with all their other arguments given.
        changes = self._library.changes
        kept: list[int] = []

        def keep(record: filetags.UndoRecord) -> None:
            if self._n_files and track is not None and record.audio != track.sound:
                raise FileTagError(
                    f"{readable(path)} has another sound now. Run `harmonium index`."
                )
            with self._library.begin():
                number = self.change or changes.begin("write", "")
                changes.check_open(number)
                if self._n_files:  # true if the process ends here
                    self._n_kept += 1
                    done = f"tags written to {self._n_kept:,} of {counted(self._n_files, 'file')}"
                    changes.describe(number, done)
                self.finish()
                track_id = None if track is None else track.id
                kept.append(changes.keep_file(number, track_id, path, record.to_bytes()))
            self.change = number

        try:
            done = work(keep=keep)
        except FileTagError:
            for number in kept:
                changes.forget_file(number)
            raise
        if done is not None and track is not None and done.audio == track.sound:
            with suppress(OSError):  # now: what another program makes of it is for `index` to see
                self._written = (track, path, Path(path).stat())
        return done is not None

    def finish(self) -> None:
        """Store the state of the last file that was written."""
        if self._written is None:
            return
        (track, path, status), self._written = self._written, None
        try:
            about = filetags.read_tags(path).of_track
        except (FileTagError, OSError):
            return  # gone meanwhile; `index` will notice
        track = self._library.tracks.get(track.id)  # as it is by now
        now = replace(track, path=path, size=status.st_size, modified=status.st_mtime_ns)
        if path in self._library.tracks.copies([track.id]).get(track.id, []):
            self._library.tracks.put_copy(now)
        elif path == track.path and track.state != FORGOTTEN:
            if track.duration is not None:
                about["duration"] = track.duration
            self._library.tracks.replace(replace(now, **about, state="present", reason=None))


def last_change(library: Library) -> Change:
    """The last change that is not undone and does not undo another.

    Changes that were undone in part are skipped: their rest could not be undone. But an undo that
    was interrupted is resumed.
    """
    skipped = []
    for change in library.changes.list():
        if change.undone_by is None and change.undoes is None:
            if not change.left:
                return change
            skipped.append(change.id)
    hint = f" To try change {skipped[0]} again: harmonium undo {skipped[0]}" if skipped else ""
    raise LibraryError(f"There is nothing to undo.{hint}")


def undo_change(
    library: Library, change_id: int, *, exact: bool = True, progress: Progress | None = None
) -> UndoReport:
    """Undo a change: people's tags, and its files to the byte.

    Files that were changed since stay as they are, and the report says so; with ``exact=False``,
    their fields that still have what was written get their former values back. If it is
    interrupted, undoing the same change again resumes it.
    """
    writer, done, taken = _UndoableWriter(library), count(1), set[str]()
    total = 0 if progress is None else len(library.changes.files(change_id))

    def restore(file: WrittenFile, number: int, elsewhere: bool) -> bool:
        writer.change = number
        try:
            return _restore(library, writer, file, exact, taken, elsewhere)
        finally:
            if progress is not None and not elsewhere:
                progress(next(done), total)

    try:
        return library.changes.undo(change_id, restore=restore)
    except KeyboardInterrupt as interrupt:
        end_transactions(interrupt)
        raise
    finally:
        writer.finish()


def _restore(
    library: Library,
    writer: _UndoableWriter,
    file: WrittenFile,
    exact: bool,
    taken: set[str],
    elsewhere: bool,
) -> bool:
    """Restore a file; whether it changed. A FileTagError says why that is impossible.

    It is the file at its path, if that is as written or was restored since. With ``elsewhere``, it
    is any with its sound that is as written and not ``taken`` for another, or else a restored one.
    """
    loaded = filetags.UndoRecord.from_bytes
    record = loaded(file.record)
    tracks = library.tracks.with_sound(record.audio)
    if file.track_id is not None and file.track_id not in [one.id for one in tracks]:
        tracks.append(library.tracks.get(file.track_id))
    copies = library.tracks.copies([one.id for one in tracks])
    known = {path: one for one in tracks for path in (one.path, *copies.get(one.id, []))}
    changed_since, restored, problem = [], list[str](), None
    for path in dict.fromkeys([file.path, *(known if elsewhere else ())]):
        if path in taken or not os.path.lexists(path):
            continue
        try:
            changed = writer.write(known.get(path), path, partial(filetags.undo, path, record))
        except FileChangedError:
            changed_since.append(path)
        except FileTagError as error:
            problem = problem or error
        else:
            last = _later_records(library, file, path)[:1]
            made_so = [one.undoes for one in last if loaded(one.record).after == record.before]
            if changed or file.change_id in made_so or (made_so and path == file.path):
                taken.add(path)
                return changed
            if made_so or path == file.path:
                restored.append(path)
    if problem is not None:
        raise problem
    others = known.keys() & {*changed_since}  # it may be one of these; the rest sound different
    if elsewhere and restored and (restored[0] == file.path or not others):
        taken.add(restored[0])
        return False
    # One of several copies that are not as written need not be this file.
    found = next(iter(known)) if len(known) == 1 else file.path
    if found not in changed_since or (known and found not in known):
        raise FileTagError(
            "the file is gone. If it was moved, 'harmonium index' with its new folder finds it; "
            f"then: harmonium undo {file.change_id}"
        )
    if elsewhere and not exact:
        taken.add(found)
        undo = partial(filetags.undo, found, record, exact=False)
        return writer.write(known.get(found), found, undo)
    for one in _later_records(library, file, file.path):
        if one.track_id == file.track_id and one.undone_by is None and one.undoes is None:
            raise FileTagError(f"change {one.change_id} wrote to it later; undo that one first")
    raise FileTagError("it was changed since; --fields-only restores the fields that were written")


def _later_records(library: Library, file: WrittenFile, path: str) -> Sequence[Any]:
    """The records of later writes to a path, after this one, last first."""
    return library.fetch(
        sa.select(written_file, change_table.c.undoes, change_table.c.undone_by)
        .join_from(written_file, change_table, change_table.c.id == written_file.c.change_id)
        .where(written_file.c.path == stored_path(path)["path"], written_file.c.id > file.id)
        .order_by(written_file.c.id.desc())
    )
