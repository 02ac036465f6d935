"""Tags of the library's tracks into their files.

What undoes a write is in the library before the file changes, so that it can be undone however the
process ends. A write that was interrupted goes on when it is started again: files that have their
tags already do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from harmonium.collection.filetags import (
    FIELDS,
    Change,
    FileTags,
    Rules,
    Undo,
    apply_change,
    plan_write,
    read_tags,
)
from harmonium.collection.store.tracks import Track
from harmonium.collection.writing.recorded_files import Failure, Keep, Recorder
from harmonium.collection.writing.wanted_tags import BOTH, Source, Tags, wanted_tags
from harmonium.data import normalise_tag
from harmonium.errors import DataError, FileTagError

if TYPE_CHECKING:
    from harmonium.collection.library import Library

Progress = Callable[[int, int], object]


class Planned(NamedTuple):
    """What writing would do to the file of a track."""

    track: Track
    change: Change


@dataclass
class Plan:
    """What writing would do."""

    files: list[Planned] = field(default_factory=list)
    """Those that change."""
    n_unchanged: int = 0
    failures: list[Failure] = field(default_factory=list)


@dataclass
class Written:
    """What was written."""

    change: int | None = None
    """Its number; None where no file was written."""
    paths: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


def plan_writes(
    library: Library,
    ids: Sequence[int],
    rules: Rules,
    *,
    source: Source = BOTH,
    progress: Progress | None = None,
) -> Plan:
    """What writing the tracks' tags to their files would change; nothing is written."""
    plan = Plan()
    for done, (track, tags) in enumerate(_with_tags(library, ids, source), 1):
        try:
            planned = Planned(track, _planned(track, tags, rules))
        except (FileTagError, DataError) as error:
            plan.failures.append(Failure(track.path, str(error)))
        else:
            if planned.change:
                plan.files.append(planned)
            else:
                plan.n_unchanged += 1
        if progress is not None:
            progress(done, len(ids))
    return plan


def write_planned(
    library: Library, files: Sequence[Planned], *, progress: Progress | None = None
) -> Written:
    """Write what was planned, one file after the other, as one change that can be undone."""
    result = Written()
    summary = f"tags written to {count_files(len(files))}, but not to all"
    recorder = Recorder(library, lambda: library.changes.begin("write", summary))
    try:
        for done, (track, change) in enumerate(files, 1):
            try:
                recorder.write(track, track.path, partial(_apply, change))
                result.paths.append(track.path)
            except FileTagError as error:
                result.failures.append(Failure(track.path, str(error)))
            if progress is not None:
                progress(done, len(files))
    finally:
        recorder.finish()
        result.change = recorder.change
        _conclude(library, result)
    return result


def _apply(change: Change, keep: Keep) -> Undo | None:
    return apply_change(change, keep=keep)


def _conclude(library: Library, result: Written) -> None:
    """Say what was done, or that nothing was."""
    if result.change is not None:
        written = f"tags written to {count_files(len(result.paths))}"
        library.changes.describe(result.change, written)


def _with_tags(
    library: Library, ids: Sequence[int], source: Source
) -> Iterator[tuple[Track, Tags]]:
    """The tracks with their tags, read some at a time."""
    for start in range(0, len(ids), 1000):
        some = [int(number) for number in ids[start : start + 1000]]
        tracks = library.tracks.many(some)
        for track, (_, tags) in zip(tracks, wanted_tags(library, some, source), strict=True):
            yield track, tags


def _planned(track: Track, tags: Tags, rules: Rules) -> Change:
    if rules.mode == "merge" and tags:
        rules = _spelling_as(read_tags(track.path), tags, rules)
    return plan_write(track.path, tags, rules)


def _spelling_as(there: FileTags, tags: Tags, rules: Rules) -> Rules:
    """Rules that write a tag as the file spells it, where it has it: Hip-Hop for hip hop."""
    spellings = {normalise_tag(v): v for name in FIELDS for v in getattr(there, name)}
    found = {tag: spellings[normalise_tag(tag)] for tag in tags if normalise_tag(tag) in spellings}
    return replace(rules, aliases={**found, **rules.aliases}) if found else rules


def count_files(n: int) -> str:
    """1 file, 2 files …"""
    return f"{n:,} {'file' if n == 1 else 'files'}"
