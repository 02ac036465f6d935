"""Writing the tags of the library's tracks into their files.

What undoes a write is in the library before the file changes, so that it can be undone however the
process ends. A write that was interrupted goes on when it is started again: files that have their
tags already do not change.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from harmonium.data import normalise_tag
from harmonium.data.parting import fragments
from harmonium.errors import DataError, FileTagError, counted
from harmonium.library.filetags import (
    LIST_FIELDS,
    FileChange,
    Rules,
    apply_change,
    plan_write,
    read_tags,
)
from harmonium.library.library import Library
from harmonium.library.store.tracks import Track
from harmonium.library.writing.undoable_writer import UndoableWriter
from harmonium.library.writing.wanted_tags import (
    EVERY_SOURCE,
    ScoredTags,
    TagSources,
    wanted_tags,
)


class PlannedFile(NamedTuple):
    """What writing would do to the file of a track."""

    track: Track
    change: FileChange
    guessed: Mapping[str, float] = {}
    """Tag, as it is written → its probability, for those that the model predicts."""

    @property
    def new_guesses(self) -> dict[str, float]:
        """Those that the file did not have."""
        both = [one.tags for one in self.change.fields]
        added = {tag for before, after in both for tag in after if tag not in before}
        return {tag: p for tag, p in self.guessed.items() if tag in added}


class FailedFile(NamedTuple):
    """A file that could not be read, written or restored."""

    path: str
    reason: str


@dataclass
class WritePlan:
    """What writing would do."""

    files: list[PlannedFile] = field(default_factory=list)
    """Those that change."""
    n_unchanged: int = 0
    failures: list[FailedFile] = field(default_factory=list)

    @property
    def n_guessed(self) -> int:
        """How many predicted tags would be added to files."""
        return sum(len(one.new_guesses) for one in self.files)

    @property
    def expected_wrong(self) -> float:
        """How many of them will be wrong, by their probabilities."""
        return sum(1 - p for one in self.files for p in one.new_guesses.values())


@dataclass
class WriteReport:
    """What was written."""

    change: int | None = None
    """Its number; None where no file was written."""
    paths: list[str] = field(default_factory=list)
    failures: list[FailedFile] = field(default_factory=list)


def plan_writes(
    library: Library,
    ids: Sequence[int],
    rules: Rules,
    *,
    source: TagSources = EVERY_SOURCE,
    only_to: Collection[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> WritePlan:
    """What writing the tracks' tags to their files would change; nothing is written.

    A track's tags go to its file and to all copies of it, or with ``only_to`` to those of these
    paths among them.
    """
    plan, spellings = WritePlan(), library.spellings()
    copies = library.tracks.copies(ids)
    for done, (track, tags) in enumerate(wanted_tags(library, ids, source), 1):
        for path in (track.path, *copies.get(track.id, [])):
            if only_to is None or path in only_to:
                _plan_file(plan, track, path, tags, rules, spellings)
        if progress is not None:
            progress(done, len(ids))
    return plan


def _plan_file(
    plan: WritePlan,
    track: Track,
    path: str,
    tags: ScoredTags,
    rules: Rules,
    spellings: Mapping[str, str],
) -> None:
    """Add to a plan what writing tags to one file of a track would change."""
    try:
        there: dict[str, str] = {}
        if rules.mode == "merge" and tags:
            tags, there = _as_in_file(path, tags)
        names = {**spellings, **there, **rules.aliases}
        change = plan_write(path, tags, replace(rules, aliases=names))
    except (FileTagError, DataError) as error:
        plan.failures.append(FailedFile(path, str(error)))
    else:
        if change:
            guessed = {names.get(tag, tag): p for tag, p in tags.items() if p < 1}
            plan.files.append(PlannedFile(track, change, guessed))
        else:
            plan.n_unchanged += 1


def write_planned(
    library: Library,
    files: Sequence[PlannedFile],
    *,
    progress: Callable[[int, int], object] | None = None,
) -> WriteReport:
    """Write what was planned, one file after the other, as one change that can be undone."""
    report = WriteReport()
    summary = f"tags written to {counted(len(files), 'file')}, but not to all"
    writer = UndoableWriter(library, lambda: library.changes.begin("write", summary))
    try:
        for done, (track, change, _) in enumerate(files, 1):
            try:
                writer.write(track, change.path, partial(apply_change, change))
                report.paths.append(change.path)
            except FileTagError as error:
                report.failures.append(FailedFile(change.path, str(error)))
            if progress is not None:
                progress(done, len(files))
    finally:
        writer.finish()
        report.change = writer.change
        if writer.change is not None:
            written = f"tags written to {counted(len(report.paths), 'file')}"
            library.changes.describe(writer.change, written)
    return report


def _as_in_file(path: str, tags: ScoredTags) -> tuple[ScoredTags, dict[str, str]]:
    """Tags to write, and how the file spells those that it has: Hip-Hop for hip hop.

    Tags that are in a longer text, such as jazz in "Jazz; Blues", are not among them.
    """
    there = read_tags(path)
    values = [value for name in LIST_FIELDS for value in getattr(there, name)]
    spellings = {normalise_tag(value): value for value in values}
    inside = {part for value in values for part in fragments(value)} - spellings.keys()
    tags = {tag: score for tag, score in tags.items() if normalise_tag(tag) not in inside}
    return tags, {
        tag: spellings[normalise_tag(tag)] for tag in tags if normalise_tag(tag) in spellings
    }
