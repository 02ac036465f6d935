"""What an import did; and keeping it as one change, which can be undone.

An import is done as a whole or not at all. What is in force already is not added again, so
importing the same table twice does nothing.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import polars as pl

from harmonium.data.parting import fragments
from harmonium.errors import LibraryError, counted
from harmonium.library.library import Library

LONGEST = 100
"""Characters that a tag from a file may have; what is longer is a text and not a tag."""


@dataclass
class ImportReport:
    """What was imported, and what was not."""

    change: int | None = None
    """The number of the change; None where nothing was new, or it was a trial."""
    n_rows: int = 0
    """Rows of the table, or tags in files."""
    n_matched: int = 0
    """Rows whose track was found."""
    n_added: int = 0
    """Opinions that are new, or were taken back; on a trial, those that would be."""
    people: list[str] = field(default_factory=list)
    n_tracks: int = 0
    n_tags: int = 0
    unmatched: pl.DataFrame = field(default_factory=lambda: _no_unmatched())
    """What was not found: item, artist, title, reason and rows, the most frequent first."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Reason → rows that could not be used at all."""
    n_own: int = 0
    """Tags in files that Harmonium wrote there itself."""
    parted: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Text → the several tags that it was taken for."""
    whole: dict[str, int] = field(default_factory=dict)
    """Text that may hold several tags and was taken for one → how often."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Former name of a tag → the name under which it was imported."""

    @property
    def complete(self) -> bool:
        """Whether every row could be used."""
        return not len(self.unmatched) and not self.left_out


def note_parting(report: ImportReport, text: str, parts: Sequence[str]) -> None:
    """Remember what a text was taken for, if that is not plain."""
    if len(parts) > 1:
        report.parted[text] = tuple(parts)
    elif parts and fragments(text) and len(parts[0]) <= LONGEST:
        report.whole[parts[0]] = report.whole.get(parts[0], 0) + 1


def check_has_tracks(library: Library) -> None:
    """Refuse to import into an empty library: nothing would be found in it."""
    if not library.tracks.count():
        raise LibraryError(
            f"The library {library.place} has no tracks yet. `harmonium index FOLDER` comes first."
        )


def keep_import(
    library: Library,
    frame: pl.DataFrame,
    report: ImportReport,
    source: str,
    *,
    kind: str,
    replace: bool,
    dry_run: bool,
) -> ImportReport:
    """Add the rows as one change, unless it is a trial or there is nothing new.

    Tags that were renamed have their new names.
    """
    frame = _renamed(frame, library.renamed_tags(), report)
    report.people = sorted(frame["person"].unique()) if len(frame) else []
    report.n_tracks, report.n_tags = frame["track_id"].n_unique(), frame["tag"].n_unique()
    tags, tracks = counted(report.n_matched, "tag"), counted(report.n_tracks, "track")
    summary = f"{source}: {tags} of {tracks}"
    with suppress(_TrialEnds), library.begin():
        number = library.changes.begin("import", summary)
        report.n_added = library.opinions.add_triples(
            frame, change=number, kind=kind, replace=replace
        )
        if dry_run:
            raise _TrialEnds  # and takes all of it back
        if report.n_added:
            report.change = number
        else:  # nothing to undo, so nothing to tell of
            library.changes.drop(number)
    return report


def _renamed(frame: pl.DataFrame, now: Mapping[str, str], report: ImportReport) -> pl.DataFrame:
    """The rows with the names that tags have now."""
    is_old = frame["tag"].is_in(list(now))
    if not is_old.any():
        return frame
    report.renamed = {old: now[old] for old in frame["tag"].filter(is_old).unique().sort()}
    return frame.with_columns(
        pl.col("tag").replace(now),
        pl.when(~is_old).then(pl.col("spelling")),  # the old spelling is not that of the new name
    )


class _TrialEnds(Exception):
    """The end of a transaction that is not to be kept."""


def _no_unmatched() -> pl.DataFrame:
    texts = dict.fromkeys(("item", "artist", "title", "reason"), pl.String)
    return pl.DataFrame(schema={**texts, "rows": pl.Int64})
