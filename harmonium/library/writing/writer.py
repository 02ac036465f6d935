"""A library's writer (`library.writer`): plans writes to music files, does and undoes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from harmonium import stopping
from harmonium.errors import FileTagError, LibraryError, counted
from harmonium.library import filetags
from harmonium.library.filetags import Rules
from harmonium.library.model import USUAL_PRECISION
from harmonium.library.store.changes import Change, UndoReport
from harmonium.library.store.database import LibraryPart
from harmonium.library.store.models import Owner
from harmonium.library.writing import restore
from harmonium.library.writing.file_plans import PlannedFile, WritePlan, plan_writes
from harmonium.library.writing.outline import WriteOutline, outline_writes
from harmonium.library.writing.rules import (
    library_rules,
    remember_fields,
    remembered_rules,
    write_fields,
)
from harmonium.library.writing.undoable import UndoableWrites, settle_writes
from harmonium.library.writing.wanted import ALL_SOURCES, TagSources, WantedTags, wanted_tags

if TYPE_CHECKING:
    from harmonium.library.library import Library, Progress, TrackName


@dataclass(kw_only=True)
class WriteReport:
    """What was written."""

    change: int | None = None  # its number; None if no file was written
    paths: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)  # path → why it could not be used
    n_tags: int = 0  # tags that were new to their files


class Writer(LibraryPart):
    """Writes tags to music files."""

    def rules(self, rules: Rules | Mapping[str, Any] | None = None) -> Rules:
        """The rules for writing; a mapping is combined with those that the library remembers."""
        if isinstance(rules, Rules):
            return rules
        return library_rules(self._library, [remembered_rules(self._library), rules or {}])

    def fields(self) -> dict[str, str]:
        """Kind of tags, or tag → the field that it is written to."""
        return write_fields(self._library)

    def set_fields(self, fields: Mapping[str, str | None]) -> None:
        """Set the fields of kinds or tags, and remember them; None restores the default field."""
        remember_fields(self._library, fields)

    def wanted(
        self, ids: Sequence[int], sources: TagSources = ALL_SOURCES
    ) -> dict[int, WantedTags]:
        """Track → the tags that its file should get."""
        return wanted_tags(self._library, ids, sources)

    def plan(
        self,
        *tracks: TrackName,
        query: str | None = None,
        precision: float | None = USUAL_PRECISION,
        people: bool = True,
        predicted: bool = True,
        owner: Owner | None = None,
        rules: Rules | Mapping[str, Any] | None = None,
        skip: Collection[int] = (),
        progress: Progress | None = None,
    ) -> WritePlan:
        """What writing tags to files would change; the files are read, and nothing is written.

        Parameters
        ----------
        tracks : tracks, and folders of files; by default all
        query : only tracks that this search finds with 50 % or more
        precision : the precision that predictions must have; None or 0: `tag`'s thresholds
        people, predicted : whether to write people's tags, and predictions
        owner : whose predictions: "own", "built-in", or None for both
        rules : how to write; a mapping is combined with the rules saved in the library
        skip : numbers of tracks to leave out
        """
        ids, files = self._library.find_tracks(*tracks, query=query)
        return plan_writes(
            self._library,
            _without(ids, skip),
            self.rules(rules),
            TagSources(
                people=people, predicted=predicted, owner=owner, precision=precision or None
            ),
            only_to=files,
            progress=progress,
        )

    def outline(
        self,
        *,
        query: str | None = None,
        precision: float | None = USUAL_PRECISION,
        people: bool = True,
        predicted: bool = True,
        owner: Owner | None = None,
        rules: Rules | Mapping[str, Any] | None = None,
        skip: Collection[int] = (),
    ) -> WriteOutline:
        """What `plan` would add, tag by tag, from what the library knows about the files.

        The parameters are those of `plan`.
        """
        ids, _ = self._library.find_tracks(query=query)
        return outline_writes(
            self._library,
            _without(ids, skip),
            self.rules(rules),
            TagSources(
                people=people, predicted=predicted, owner=owner, precision=precision or None
            ),
        )

    def write(self, plan: WritePlan, *, progress: Progress | None = None) -> WriteReport:
        """Write what was planned, file by file, as one change that can be undone."""
        return write_planned(self._library, plan.files, progress=progress)

    def settle(self) -> None:
        """Forget the records of writes that did not happen since a process was killed."""
        settle_writes(self._library)

    def last_change(self) -> Change:
        """The change that `undo` undoes by default."""
        return restore.last_change(self._library)

    def undo(
        self, change: int, *, exact: bool = True, progress: Progress | None = None
    ) -> UndoReport:
        """Undo a change: people's tags, and its files to the byte.

        Files that were changed since stay as they are, and the report says so; with
        ``exact=False``, their fields that still have what was written get their former values back.
        If it is interrupted, undoing the same change again resumes it.
        """
        return restore.undo_change(self._library, change, exact=exact, progress=progress)


def _without(ids: Sequence[int], skipped: Collection[int]) -> list[int]:
    left_out = set(skipped)
    return [number for number in ids if number not in left_out]


@stopping.stoppable
def write_planned(
    library: Library, files: Sequence[PlannedFile], *, progress: Progress | None = None
) -> WriteReport:
    """Write what was planned, file by file, as one change that can be undone."""
    settle_writes(library)
    report = WriteReport()
    writes = UndoableWrites(library, n_files=len(files))
    try:
        for n_done, planned in enumerate(files, 1):
            stopping.check()
            change = planned.change
            try:
                writes.write(planned.track, change.path, partial(filetags.apply_change, change))
                report.paths.append(change.path)
                report.n_tags += len(planned.added)
            except FileTagError as error:
                report.failures[change.path] = str(error)
            if progress is not None:
                progress(n_done, len(files))
    except LibraryError as error:  # its disk is full, say, or the change is being undone
        if not report.paths:
            raise
        for planned in files[len(report.paths) + len(report.failures) :]:
            report.failures[planned.change.path] = f"It was not written. {error}"
    finally:
        report.change = writes.change
        # After a LibraryError, `index` reads the last file, and the summary stays.
        with stopping.shielded(), suppress(LibraryError):
            writes.finish()
            if writes.change is not None:
                n_tags = counted(report.n_tags, "tag")
                n_files = counted(len(report.paths), "file")
                library.changes.describe(writes.change, f"{n_tags} written to {n_files}")
    return report
