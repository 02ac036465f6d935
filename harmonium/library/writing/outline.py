"""What writing would change in all files, as far as the library knows them.

It takes what the library remembers of each file, and plans with that just as `file_plans` does with
the files themselves, so that the numbers are the same as long as no other program has changed the
files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from harmonium.errors import FileTagError
from harmonium.library.filetags import FileTags, Rules, layout_of
from harmonium.library.filetags.binary import explained
from harmonium.library.filetags.formats import check_format
from harmonium.library.filetags.replace import FileAccess, problems_of
from harmonium.library.filetags.write import check_obstacle
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
    from harmonium.library.library import Library
    from harmonium.library.model.tag_table import WriteDecision
    from harmonium.library.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class WriteOutline:
    """What writing would add, as far as the library knows the files."""

    tracks: list[int]  # whose files would change
    n_files: int  # their files, with copies
    tags: list[OutlinedTag]  # most frequent first
    not_written: dict[str, WriteDecision]  # the predicted tags that are not, with the reason
    n_features: int  # files that would get audio features
    failures: dict[str, str] = field(default_factory=dict)
    """Path → why a file cannot be written to that should get something; it is counted nowhere."""

    @property
    def accepted(self) -> list[OutlinedTag]:
        """The tags that would be written."""
        return [tag for tag in self.tags if tag.accepted]


@dataclass
class _Count:
    """How many files a tag would be added to."""

    n_said: int = 0
    n_predicted: int = 0
    sum_of_probabilities: float = 0.0  # of the predicted ones

    def add(self, probability: float | None) -> None:
        if probability is None:
            self.n_said += 1
        else:
            self.n_predicted += 1
            self.sum_of_probabilities += probability


class _KnownFile(NamedTuple):
    """A file for which tags or audio features are wanted, and what writing would do to it."""

    track_id: int
    path: str
    obstacle: str | None  # why nothing can be written to it, as far as the library knows
    is_unread: bool  # whether its format may not be supported
    added: tuple[AddedTag, ...]
    refused: tuple[str, ...]  # tags that only the rules keep from the file
    changes: bool
    gets_features: bool


def outline_writes(
    library: Library, ids: Sequence[int], rules: Rules, sources: TagSources = ALL_SOURCES
) -> WriteOutline:
    """What `plan_writes` would add, without reading the files; with the tags that rules refuse."""
    snapshot = library.snapshot()
    wanted = wanted_tags(library, ids, sources)
    features: dict[int, dict[str, float]] = {}
    if rules.features and sources.predicted:
        features = wanted_features(snapshot, ids)
    files = _known_files(library, wanted, features, rules, TagNames.of(snapshot))
    failures = _failures(files)

    counts: dict[str, _Count] = {}
    tracks = set()
    n_files = n_features = 0
    for file in files:
        if file.path in failures:
            continue
        predicted = wanted.get(file.track_id, NO_TAGS).predicted
        for added in file.added:
            counts.setdefault(added.tag, _Count()).add(added.probability)
        for tag in file.refused:
            counts.setdefault(tag, _Count()).add(predicted.get(tag))
        if file.changes:
            tracks.add(file.track_id)
            n_files += 1
        n_features += file.gets_features
    return WriteOutline(
        tracks=sorted(tracks),
        n_files=n_files,
        tags=_outlined_tags(snapshot, rules, sources, counts),
        not_written=_not_written(snapshot, sources.precision),
        n_features=n_features,
        failures=failures,
    )


def _not_written(snapshot: Snapshot, precision: float | None) -> dict[str, WriteDecision]:
    decisions = snapshot.tags.written(precision)
    return {tag: decision for tag, decision in decisions.items() if decision.reason is not None}


def _known_files(
    library: Library,
    wanted: Mapping[int, WantedTags],
    features: Mapping[int, Mapping[str, float]],
    rules: Rules,
    names: TagNames,
) -> list[_KnownFile]:
    """The files of the tracks for which something is wanted, each once."""
    files = []
    planners: dict[object, FilePlanner] = {}
    unused = rules.unused_fields
    for contents, places in library.tracks.files([*(wanted.keys() | features.keys())]):
        values = {name: v for name, v in contents.file_tags.items() if name not in unused}
        alike = (contents.format, contents.tag_version, *values.items())
        if alike not in planners:
            layout = layout_of(contents.format)
            tags = FileTags.known(layout, contents.tag_version, values, rules.id3)
            planners[alike] = FilePlanner(tags, rules, names)
        planner = planners[alike]
        for track_id, path in places:
            its_tags = wanted.get(track_id, NO_TAGS)
            its_features = features.get(track_id, {})
            additions = planner.additions(its_tags)
            changes = bool(additions.added) or planner.changes_more(its_tags, its_features)
            gets_features = bool(its_features) and planner.changes_more(NO_TAGS, its_features)
            files.append(
                _KnownFile(
                    track_id=track_id,
                    path=path,
                    obstacle=contents.obstacle,
                    is_unread=contents.is_unread,
                    added=additions.added,
                    refused=additions.refused,
                    changes=changes,
                    gets_features=gets_features,
                )
            )
    return _without_links(files)


def _without_links(files: Sequence[_KnownFile]) -> list[_KnownFile]:
    """The files without links to others of the same track."""
    counts = Counter(file.track_id for file in files)
    paths: dict[int, list[str]] = {}
    for file in files:
        if counts[file.track_id] > 1:
            paths.setdefault(file.track_id, []).append(file.path)
    links = set()
    for its_paths in paths.values():
        links |= {*its_paths} - {*distinct_files(its_paths)}
    return [file for file in files if file.path not in links]


def _failures(files: Sequence[_KnownFile]) -> dict[str, str]:
    """Path → why a file cannot be written to, or not even read, for those that cannot."""
    access = FileAccess()
    unchanged = [file.path for file in files if not file.changes]
    failures = problems_of(unchanged, access.check_readable)
    for file in files:
        if file.changes and (file.obstacle or file.is_unread):
            try:
                with explained(file.path):
                    check_obstacle(file.obstacle)
                check_format(file.path)
            except FileTagError as error:
                failures[file.path] = str(error)
    changing = [file.path for file in files if file.changes and file.path not in failures]
    return failures | problems_of(changing, access.check_replaceable)


def _outlined_tags(
    snapshot: Snapshot, rules: Rules, sources: TagSources, counts: Mapping[str, _Count]
) -> list[OutlinedTag]:
    """The tags that files would get, most frequent first."""
    precisions = expected_precision(snapshot, sources)
    tags = []
    for name, count in counts.items():
        tag = snapshot.tags[name]
        right = None
        expected_wrong = 0.0
        if count.n_predicted:
            right = precisions.get(name, count.sum_of_probabilities / count.n_predicted)
            expected_wrong = (1 - right) * count.n_predicted
        tags.append(
            OutlinedTag(
                tag=name,
                shown=tag.spelling,
                kind=tag.kind,
                n=count.n_said + count.n_predicted,
                n_said=count.n_said,
                expected_wrong=expected_wrong,
                precision=right,
                accepted=not rules.place(name, tag.spelling).refused,
                elsewhere=count.n_predicted > 0 and tag.owner == "built-in",
            )
        )
    return sorted(tags, key=lambda tag: (-tag.n, tag.tag))
