"""What writing would change in the tracks' files, read from the files themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harmonium import stopping
from harmonium.errors import FileTagError
from harmonium.library.filetags import FileChange, Rules, read_tags
from harmonium.library.filetags.binary import explained
from harmonium.library.filetags.replace import FileAccess
from harmonium.library.filetags.write import check_obstacle
from harmonium.library.store.database import batches
from harmonium.library.writing.files import distinct_files
from harmonium.library.writing.plan import AddedTag, FilePlanner, TagNames
from harmonium.library.writing.wanted import (
    ALL_SOURCES,
    NO_TAGS,
    TagSources,
    WantedTags,
    expected_precision,
    wanted_features,
    wanted_tags,
)

if TYPE_CHECKING:
    from harmonium.library.library import Library, Progress
    from harmonium.library.model.tag_table import TagTable
    from harmonium.library.store.tracks import Track


@dataclass(frozen=True, kw_only=True)
class PlannedFile:
    """What writing would do to a track's file."""

    track: Track
    change: FileChange
    added: tuple[AddedTag, ...] = ()  # the tags that are new to the file

    @property
    def new_guesses(self) -> dict[str, float]:
        """The new tags that the model predicts, as written → their probabilities."""
        return {tag.name: tag.probability for tag in self.added if tag.probability is not None}


@dataclass(kw_only=True)
class WritePlan:
    """What writing would do."""

    files: list[PlannedFile] = field(default_factory=list)  # those that change
    n_unchanged: int = 0
    failures: dict[str, str] = field(default_factory=dict)  # path → why it could not be used
    ids: Sequence[int] = ()  # the tracks it is about
    precision: Mapping[str, float] = field(default_factory=dict)
    """Tag → how often such predictions will be right, see `expected_precision`."""

    @property
    def predicted(self) -> list[AddedTag]:
        """The predicted tags that would be added, once for each file."""
        return [tag for file in self.files for tag in file.added if tag.probability is not None]

    @property
    def n_guessed(self) -> int:
        """How many predicted tags would be added to files."""
        return len(self.predicted)

    @property
    def expected_wrong(self) -> float:
        """How many of these will be wrong, by each tag's precision, or else by its probability."""
        return sum(
            1 - self.precision.get(tag.tag, tag.probability or 0.0) for tag in self.predicted
        )

    def count_predicted(self, tags: TagTable) -> int:
        """How many of the predicted tags to be added are predicted in a table, too."""
        names = {tag.name for tag in tags.predicted}
        return sum(added.tag in names for added in self.predicted)


def plan_writes(
    library: Library,
    ids: Sequence[int],
    rules: Rules,
    sources: TagSources = ALL_SOURCES,
    *,
    only_to: Collection[str] | None = None,
    progress: Progress | None = None,
) -> WritePlan:
    """What writing the tracks' tags to their files would change; nothing is written.

    A track's tags go to its file and all its copies, or with ``only_to`` only to these paths.
    """
    snapshot = library.snapshot()
    names = TagNames.of(snapshot)
    plan = WritePlan(ids=ids, precision=expected_precision(snapshot, sources))
    wanted = wanted_tags(library, ids, sources)
    features: dict[int, dict[str, float]] = {}
    if rules.features and sources.predicted:
        features = wanted_features(snapshot, ids)
    copies = library.tracks.copies(ids)
    access = FileAccess()
    tracks = (track for numbers in batches(ids) for track in library.tracks.many(numbers))
    for n_done, track in enumerate(tracks, 1):
        stopping.check()
        paths = [track.path, *copies.get(track.id, [])]
        if only_to is not None:
            paths = [path for path in paths if path in only_to]
        tags = wanted.get(track.id, NO_TAGS)
        values = features.get(track.id, {})
        for path in distinct_files(paths):
            try:
                planned = _plan_file(track, path, tags, values, rules, names, access)
            except FileTagError as error:
                plan.failures[path] = str(error)
                continue
            if planned is None:
                plan.n_unchanged += 1
            else:
                plan.files.append(planned)
        if progress is not None:
            progress(n_done, len(ids))
    return plan


def _plan_file(
    track: Track,
    path: str,
    wanted: WantedTags,
    features: Mapping[str, float],
    rules: Rules,
    names: TagNames,
    access: FileAccess,
) -> PlannedFile | None:
    """What writing changes in one file of a track; None if nothing."""
    if not wanted and not features:
        return None
    file = read_tags(path, options=rules.id3)
    planner = FilePlanner(file, rules, names)
    change = planner.file_change(path, wanted, features)
    if not change:
        return None
    with explained(path):
        check_obstacle(file.obstacle)
        access.check_replaceable(path)
    return PlannedFile(track=track, change=change, added=planner.additions(wanted).added)
