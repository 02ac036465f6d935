"""What people agree on about tracks.

People agree that a track has a tag if more of them give it than reject it, and if they are at least
a share of `MIN_SHARE` of all who have said anything about the track. They agree that it does not
have the tag if more reject it than give it. Anything else stays open: one voice among very many, or
a tie.

Training, tagging, search, similarity, writing and the doctor all follow this rule. Training labels
add two things: a tag that a track's people did not give it, or too few of them, is absent; but if
they gave it a tag that may mean several, such as "pop/rock", these are unknown.

If a library has a genre tree (`Library.genres`), whoever gives a track a genre also gives it all
the genre's ancestors, unless they reject them; and other names of a genre count as the genre.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.arrays import Floats, Ids, Mask, Places
from harmonium.data.genres import GenreTree
from harmonium.data.splitting import possible_parts
from harmonium.errors import DataError
from harmonium.library.store.opinions import people_of

if TYPE_CHECKING:
    from harmonium.library.library import Library
    from harmonium.library.store.database import LibraryVersion

MIN_SHARE = 0.2  # with up to five people on a track, one of them is enough for a tag
MAX_TOUCHED = 5_000  # if a change touched more tracks, all are judged again
_NOWHERE: Places = np.empty(0, np.intp)
REVIEW = "review"  # the command for answers to questions: a track's other tags stay unknown


def verdict(
    present: NDArray[Any],
    absent: NDArray[Any],
    people: NDArray[Any],
    *,
    min_count: int = 1,
    min_share: float = MIN_SHARE,
) -> Floats:
    """1 if people agree that a tag holds, 0 if they agree that it does not, else NaN; (n,).

    present, absent : how many people give the tag, and how many reject it, (n,)
    people : how many have said anything about the track, (n,)
    min_count, min_share : how many of them, and what share, must give the tag
    """
    enough = (present >= min_count) & (present >= min_share * people)
    conditions = [absent > present, (present > absent) & enough]
    return np.select(conditions, [0.0, 1.0], np.nan).astype(np.float32)


@dataclass(frozen=True, eq=False, kw_only=True)
class Votes:
    """How many people give a track a tag, and how many reject it; a row for each track and tag."""

    names: pl.Series  # the tags, sorted
    tracks: Ids  # (n,) ascending
    tags: Ids  # (n,) places in ``names``; ascending within a track
    present: Ids  # (n,) how many give the tag
    absent: Ids  # (n,) how many reject it
    people: Ids  # (n,) how many have said anything about the track

    @classmethod
    def count(
        cls, opinions: pl.DataFrame, count_people: Callable[[Ids], Ids] | None = None
    ) -> Self:
        """Count opinions (person, track_id, tag, value).

        ``count_people`` says how many people tracks (n,) have, if more than those in the opinions.
        """
        names = opinions["tag"].unique().sort()
        codes = opinions["tag"].cast(pl.Enum(names)).to_physical().to_numpy()
        n_names = max(len(names), 1)
        keys = opinions["track_id"].to_numpy() * n_names + codes
        keys, rows = np.unique(keys, return_inverse=True)
        tracks, tags = np.divmod(keys, n_names)
        values = opinions["value"].to_numpy()
        if count_people is None:
            people = _count_people(opinions, tracks)
        else:
            people = count_people(tracks)
        return cls(
            names=names,
            tracks=tracks,
            tags=tags,
            present=np.bincount(rows[values > 0], minlength=len(keys)),
            absent=np.bincount(rows[values < 0], minlength=len(keys)),
            people=people,
        )


def _count_people(opinions: pl.DataFrame, tracks: Ids) -> Ids:
    """How many people have opinions about tracks, (n,)."""
    speaking = opinions.unique(["track_id", "person"])["track_id"].to_numpy()
    known, counts = np.unique(speaking, return_counts=True)
    return counts[np.searchsorted(known, tracks)]


def judge(
    opinions: pl.DataFrame,
    *,
    min_count: int = 1,
    min_share: float = MIN_SHARE,
    genres: Collection[str] = (),
    broader: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> pl.DataFrame:
    """The verdict and the label for each track and tag of opinions (person, track_id, tag, value).

    The columns: track_id, tag, present and absent (how many say so), verdict, and label, which is
    the verdict, but 0 if too small a share gave the tag. If a tag has one of the ``genres`` in its
    name, like poprock, that genre is left open. So are those that are ``broader``.
    """
    if min_count < 1:
        raise DataError(f"'min_count' must be at least 1, got {min_count}.")
    if not 0 <= min_share <= 1:
        raise DataError(f"'min_share' must be between 0 and 1, got {min_share}.")
    votes = Votes.count(opinions)
    verdicts = verdict(
        votes.present, votes.absent, votes.people, min_count=min_count, min_share=min_share
    )
    too_few = votes.present < min_share * votes.people
    judged = pl.DataFrame(
        {
            "track_id": votes.tracks,
            "tag": votes.names.gather(votes.tags),
            "present": votes.present,
            "absent": votes.absent,
            "verdict": verdicts,
            "label": np.where(too_few, 0, verdicts).astype(np.float32),
        }
    )
    return _with_open_parts(judged, genres, broader)


def _with_open_parts(
    judged: pl.DataFrame, genres: Collection[str], broader: Mapping[str, Collection[str]]
) -> pl.DataFrame:
    """The judged tags without labels for what a track's tag may mean.

    If people mention the tag itself, it keeps its label.
    """
    pairs = []
    for name in judged["tag"].unique():
        inside = {genre for genre in genres if genre in name and genre != name}
        for part in possible_parts(name) | inside | {*broader.get(name, ())}:
            pairs.append((name, part))
    if not pairs:
        return judged
    parts = pl.DataFrame(pairs, schema={"tag": pl.String, "part": pl.String}, orient="row")
    key = ["track_id", "tag"]
    mentioned = judged.filter((pl.col("absent") > 0) | (pl.col("label") == 1))
    possible = (
        judged.filter(pl.col("label") == 1)
        .join(parts, on="tag")
        .select("track_id", tag="part", is_open=pl.lit(True))
        .unique(key)
        .join(mentioned, on=key, how="anti")
    )
    unless_open = pl.when(pl.col("is_open").is_null()).then(pl.col("verdict", "label"))
    return (
        judged.join(possible, on=key, how="full", coalesce=True)
        .with_columns(
            pl.col("present", "absent").fill_null(0),
            unless_open.otherwise(pl.lit(np.nan, pl.Float32)),
        )
        .drop("is_open")
        .sort(key)
    )


def with_implied_genres(opinions: pl.DataFrame, tree: GenreTree) -> pl.DataFrame:
    """The opinions, with what follows from them by a genre tree."""
    if not tree or opinions.is_empty():
        return opinions
    canonical = {name: tree.canonical(name) for name in opinions["tag"].unique()}
    opinions = opinions.with_columns(pl.col("tag").replace_strict(canonical))
    pairs = []
    for name in opinions["tag"].unique():
        for ancestor in tree.ancestors(name):
            pairs.append((name, ancestor))
    ancestors = pl.DataFrame(pairs, schema={"tag": pl.String, "ancestor": pl.String}, orient="row")
    implied = (
        opinions.filter(pl.col("value") > 0)
        .join(ancestors, on="tag")
        .with_columns(tag=pl.col("ancestor"))
        .select(opinions.columns)
    )
    # What people say themselves comes first; for two names of one genre, giving it does.
    said = opinions.sort("value", descending=True, maintain_order=True)
    return (
        pl.concat([said, implied])
        .unique(["person", "track_id", "tag"], keep="first", maintain_order=True)
        .sort("track_id", "tag")
    )


def is_answer(library: Library) -> pl.Expr:
    """Whether opinions, with the column at, answer a question."""
    # An opinion that undo restores has the time of the change in which it was first said.
    times = pl.Series(library.changes.times_of(REVIEW), dtype=pl.Int64)
    return pl.col("at").cast(pl.Int64).is_in(times.implode())


def only_answered_tracks(library: Library, opinions: pl.DataFrame) -> Ids:
    """The tracks on which people have only answered questions, each about one tag."""
    # Nobody has said which tags such a track has, so those that were not asked about are unknown.
    described = opinions.filter(~is_answer(library))["track_id"].to_numpy()
    return np.setdiff1d(opinions["track_id"].to_numpy(), described)


def label_matrix(
    judged: pl.DataFrame,
    ids: Ids,
    tags: Sequence[str],
    column: str = "label",
    only_answered: Ids | None = None,
    unknown: Sequence[tuple[Ids, Mask]] = (),
) -> Floats:
    """The labels, or verdicts, for tracks with these sorted ids, (n, n_tags): 0 without a vote.

    For tracks in ``only_answered`` (see `only_answered_tracks`) it is NaN without a vote. So it is
    for each pair in ``unknown``: some tracks, and which tags are unknown there, (n_tags,).
    """
    Y = np.zeros((len(ids), len(tags)), np.float32)
    if only_answered is not None:
        Y[np.isin(ids, only_answered)] = np.nan
    for tracks, is_unknown in unknown:
        Y[np.ix_(np.isin(ids, tracks), is_unknown)] = np.nan
    places = pl.DataFrame(
        {"tag": list(tags), "place": np.arange(len(tags))}, schema_overrides={"tag": pl.String}
    )
    votes = judged.join(places, on="tag").filter(pl.col("track_id").is_in(pl.Series(ids).implode()))
    rows = np.searchsorted(ids, votes["track_id"].to_numpy())
    Y[rows, votes["place"].to_numpy()] = votes[column].to_numpy()
    return Y


def agreed_tags(
    opinions: pl.DataFrame, tree: GenreTree | None = None
) -> dict[int, dict[str, bool]]:
    """Track → tag → whether it holds, if people agree; the most mentioned tags first.

    opinions : all about the tracks; with a genre tree, what follows from it is added
    """
    table = VerdictTable.of(opinions, tree or GenreTree())
    return {track: table.of_track(track) for track in np.unique(table.tracks).tolist()}


class Agreement(NamedTuple):
    """The tracks that people agree have a tag, and those that do not have it; ascending."""

    yes: Ids
    no: Ids


@dataclass(frozen=True, eq=False)
class VerdictTable:
    """Track, tag and whether it holds, if people agree; the rows in order of tracks.

    After a change, only the tracks that it touched are judged again: what people agree on about a
    track depends only on what they say about it.
    """

    tree: GenreTree
    names: list[str]  # the tags
    tracks: Ids  # (n,) ascending; within a track, the tag that most people mention comes first
    tags: Ids  # (n,) places in ``names``
    holds: Mask  # (n,)

    @classmethod
    def read(cls, library: Library, names: Iterable[str] | None = None) -> Self:
        """The table of a library as it is now, for some tags or all."""
        tree = library.genres()
        if names is None:
            return cls.of(library.opinions.triples(), tree)
        wanted = set()
        for name in names:
            wanted.add(name)
            wanted.update(tree.counts_for(name))
        with library.reading(), library.connect() as connection:
            opinions = library.opinions.with_tags(wanted, people=bool(tree))
            return cls.of(opinions, tree, lambda tracks: people_of(connection, tracks))

    @classmethod
    def of(
        cls,
        opinions: pl.DataFrame,
        tree: GenreTree,
        count_people: Callable[[Ids], Ids] | None = None,
    ) -> Self:
        """The table of some opinions; ``count_people`` as in `Votes.count`."""
        votes = Votes.count(with_implied_genres(opinions, tree), count_people)
        verdicts = verdict(votes.present, votes.absent, votes.people)
        rows = np.flatnonzero(~np.isnan(verdicts))
        mentions = np.maximum(votes.present, votes.absent)[rows]
        rows = rows[np.lexsort((votes.tags[rows], -mentions, votes.tracks[rows]))]
        return cls(
            tree=tree,
            names=votes.names.to_list(),
            tracks=votes.tracks[rows],
            tags=votes.tags[rows],
            holds=verdicts[rows] == 1,
        )

    def updated(self, library: Library, since: LibraryVersion) -> VerdictTable:
        """The table as it is now, given that this one has the version ``since``."""
        touched = library.opinions.tracks_touched_since(since)
        if library.genres() != self.tree or len(touched) > MAX_TOUCHED:
            return self.read(library)
        new = self.of(library.opinions.triples(touched), self.tree)
        names = sorted({*self.names, *new.names})
        untouched = ~np.isin(self.tracks, touched)
        tracks = np.append(self.tracks[untouched], new.tracks)
        tags = np.append(self._tags_in(names)[untouched], new._tags_in(names))
        holds = np.append(self.holds[untouched], new.holds)
        order = np.argsort(tracks, kind="stable")
        return VerdictTable(
            tree=self.tree,
            names=names,
            tracks=tracks[order],
            tags=tags[order],
            holds=holds[order],
        )

    def agreement(self, name: str) -> Agreement:
        """The tracks where people agree on a tag."""
        rows = self.rows(name)
        holds = self.holds[rows]
        return Agreement(yes=self.tracks[rows[holds]], no=self.tracks[rows[~holds]])

    def rows(self, name: str) -> Places:
        """The rows of a tag, ascending."""
        return self._rows_by_name.get(self.tree.canonical(name), _NOWHERE)

    def of_track(self, track_id: int) -> dict[str, bool]:
        """Tag → whether it holds, the most mentioned tags first."""
        begin, end = np.searchsorted(self.tracks, [track_id, track_id + 1])
        return {
            self.names[tag]: bool(holds)
            for tag, holds in zip(self.tags[begin:end], self.holds[begin:end], strict=True)
        }

    def _tags_in(self, names: Sequence[str]) -> Ids:
        """The places of the rows' tags in other names, (n,)."""
        places = {name: place for place, name in enumerate(names)}
        return np.array([places[name] for name in self.names], np.int64)[self.tags]

    @cached_property
    def _rows_by_name(self) -> dict[str, Places]:
        # a stable sort of small integers takes a tenth of the time
        tags = self.tags.astype(np.min_scalar_type(len(self.names)))
        order = np.argsort(tags, kind="stable")
        ends = np.searchsorted(self.tags[order], np.arange(1, len(self.names)))
        return dict(zip(self.names, np.split(order, ends), strict=False))
