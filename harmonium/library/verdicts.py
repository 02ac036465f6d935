"""What people agree on: the one rule by which opinions become verdicts.

People agree that a track has a tag if more of them give it than deny it, and if these are at least
the share `MIN_SHARE` of all who have said anything about the track. They agree that it does not
have the tag if more deny it than give it. They leave open whatever is neither: one voice among very
many, or as many on either side.

Training, tagging, search, likeness, writing and the doctor all go by this rule. The labels to learn
from add two things: a tag that a track's people did not give it, or too few of them, is absent; but
if they gave it a tag that may mean several, such as "pop/rock", these are unknown.

Where a library has a tree of genres (`Library.genres`), whoever gives a track a genre gives it all
that this is a kind of, unless they deny that; and other names of a genre count as the genre.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.arrays import Floats, Ids, Mask
from harmonium.data.tag_names import GenreTree, possible_parts
from harmonium.errors import DataError
from harmonium.library.library import Library
from harmonium.library.store.database import LibraryVersion
from harmonium.library.store.opinions import people_of
from harmonium.library.store.schema import change, opinion, tag

MIN_SHARE = 0.2
"""Up to five people of a track, one of them is enough for a tag."""
MAX_TOUCHED = 5_000
"""Where a change touched more tracks, all are judged again."""
REVIEW = "review"
"""The command of changes whose answers were asked for, one tag each, and leave a track's others
open."""


def verdict(
    present: NDArray[Any],
    absent: NDArray[Any],
    people: NDArray[Any],
    *,
    min_count: int = 1,
    min_share: float = MIN_SHARE,
) -> Floats:
    """1 where people agree that a tag holds, 0 where they agree that it does not, else NaN; (n,).

    Parameters
    ----------
    present, absent : how many people give the tag, and how many deny it, (n,)
    people : how many have said anything of the track, (n,)
    min_count, min_share : how many of them must give the tag, and which share
    """
    enough = (present >= min_count) & (present >= min_share * people)
    holds = np.where((present > absent) & enough, 1, np.nan)
    return np.where(absent > present, 0, holds).astype(np.float32)


# From a table of opinions. -------------------------------------------------------------------


def judge(
    opinions: pl.DataFrame, *, min_count: int = 1, min_share: float = MIN_SHARE
) -> pl.DataFrame:
    """The verdict and the label for each track and tag of opinions (person, track_id, tag, value).

    The columns: track_id, tag, present and absent (how many say so), verdict, and label, which is
    the verdict, but 0 where too small a share gave the tag.
    """
    if min_count < 1:
        raise DataError(f"'min_count' must be at least 1, got {min_count}.")
    if not 0 <= min_share <= 1:
        raise DataError(f"'min_share' must be between 0 and 1, got {min_share}.")
    everyone = opinions.group_by("track_id").agg(people=pl.col("person").n_unique())
    votes = (
        opinions.group_by("track_id", "tag")
        .agg(present=(pl.col("value") > 0).sum(), absent=(pl.col("value") < 0).sum())
        .join(everyone, on="track_id")
        .sort("track_id", "tag")
    )
    present, absent, people = (votes[name].to_numpy() for name in ("present", "absent", "people"))
    verdicts = verdict(present, absent, people, min_count=min_count, min_share=min_share)
    labels = np.where(present < min_share * people, 0, verdicts).astype(np.float32)
    judged = votes.drop("people").with_columns(verdict=pl.Series(verdicts), label=pl.Series(labels))
    return _parts_unknown(judged)


def _parts_unknown(judged: pl.DataFrame) -> pl.DataFrame:
    """Without a label for what a tag of the track may mean, unless people speak of that itself."""
    names = [(name, part) for name in judged["tag"].unique() for part in possible_parts(name)]
    if not names:
        return judged
    schema = {"tag": pl.String, "part": pl.String}
    parts = pl.DataFrame(names, schema=schema, orient="row")
    meant = judged.filter(pl.col("label") == 1).join(parts, on="tag")
    key = ["track_id", "tag"]
    meant = meant.select("track_id", tag="part").unique(key)
    settled = judged.filter((pl.col("absent") > 0) | (pl.col("label") == 1))
    meant = meant.join(settled, on=key, how="anti")
    if not len(meant):
        return judged
    count = judged.schema["present"]
    meant = meant.join(judged.select(*key, "present"), on=key, how="left").with_columns(
        pl.col("present").fill_null(0).cast(count),
        absent=pl.lit(0, count),
        verdict=pl.lit(np.nan, pl.Float32),
        label=pl.lit(np.nan, pl.Float32),
    )
    others = judged.join(meant, on=key, how="anti")
    return pl.concat([others, meant.select(judged.columns)]).sort(key)


def with_kinds(opinions: pl.DataFrame, tree: GenreTree) -> pl.DataFrame:
    """The opinions, with what follows from them by a tree of genres."""
    if not tree or opinions.is_empty():
        return opinions
    names = opinions["tag"].unique()
    opinions = opinions.with_columns(
        pl.col("tag").replace_strict(
            names, pl.Series([tree.canonical(name) for name in names], dtype=pl.String)
        )
    )
    pairs = [(name, above) for name in opinions["tag"].unique() for above in tree.ancestors(name)]
    above = pl.DataFrame(pairs, schema={"tag": pl.String, "above": pl.String}, orient="row")
    implied = opinions.filter(pl.col("value") > 0).join(above, on="tag")
    implied = implied.with_columns(tag=pl.col("above")).select(opinions.columns)
    key = ["person", "track_id", "tag"]
    # what people say themselves comes first; of two names of one genre, a yes does
    said = opinions.sort("value", descending=True, maintain_order=True)
    return pl.concat([said, implied]).unique(key, keep="first", maintain_order=True).sort(key[1:])


def only_answered_tracks(library: Library, opinions: pl.DataFrame) -> Ids:
    """The tracks of which people have only answered questions, each about one tag.

    Nobody has said which tags such a track has, so those that were not asked about are unknown.
    What undoing brings back has the time of the change that it was first said in.
    """
    query = sa.select(change.c.at).where(change.c.command == REVIEW)
    times = pl.Series([row.at for row in library.fetch(query)], dtype=pl.Int64)
    answers = pl.col("at").cast(pl.Int64).is_in(times.implode())
    described = opinions.filter(~answers)["track_id"].to_numpy()
    return np.setdiff1d(opinions["track_id"].to_numpy(), described)


def label_matrix(
    judged: pl.DataFrame,
    ids: Ids,
    tags: Sequence[str],
    column: str = "label",
    only_answered: Ids | None = None,
) -> Floats:
    """The labels, or verdicts, of tracks with these sorted ids, (n, n_tags): 0 without a vote.

    Of the tracks ``only_answered`` (see `only_answered_tracks`) it is NaN without a vote.
    """
    Y = np.zeros((len(ids), len(tags)), np.float32)
    if only_answered is not None:
        Y[np.isin(ids, only_answered)] = np.nan
    places = pl.DataFrame(
        {"tag": list(tags), "place": np.arange(len(tags))}, schema_overrides={"tag": pl.String}
    )
    rows = judged.join(places, on="tag").filter(pl.col("track_id").is_in(pl.Series(ids).implode()))
    row = np.searchsorted(ids, rows["track_id"].to_numpy())
    Y[row, rows["place"].to_numpy()] = rows[column].to_numpy()
    return Y


def settled(opinions: pl.DataFrame, tree: GenreTree | None = None) -> pl.DataFrame:
    """Columns track_id, tag and holds, where people agree; of a track, the tags most said first.

    With a tree of genres, what follows by it is among them.
    """
    return (
        judge(opinions if tree is None else with_kinds(opinions, tree))
        .filter(pl.col("verdict").is_not_nan())
        .with_columns(said=pl.max_horizontal("present", "absent"))
        .sort("track_id", "said", "tag", descending=[False, True, False])
        .select("track_id", "tag", holds=pl.col("verdict") == 1)
    )


def agreed_tags(
    opinions: pl.DataFrame, tree: GenreTree | None = None
) -> dict[int, dict[str, bool]]:
    """Track → tag → whether it holds, where people agree on that; as of `settled`."""
    found: dict[int, dict[str, bool]] = {}
    for track, name, holds in settled(opinions, tree).iter_rows():
        found.setdefault(track, {})[name] = holds
    return found


# From the library, for a few tags of all tracks. -------------------------------------------------


class Agreement(NamedTuple):
    """The tracks of which people agree that a tag holds, and that it does not; ascending."""

    yes: Ids
    no: Ids


def agreed_tracks(library: Library, names: Sequence[str]) -> dict[str, Agreement]:
    """Tag → the tracks of which people agree on it; the names are normalised."""
    tree = library.genres()
    with library.connect() as connection:
        found = {}
        for name in names:
            kinds = tree.counts_for(name) - {name}
            found[name] = (
                _agreement_by_kinds(connection, name, kinds, tree)
                if kinds
                else _agreement(connection, name)
            )
        return found


def _agreement_by_kinds(
    connection: sa.Connection, name: str, kinds: set[str], tree: GenreTree
) -> Agreement:
    """What people agree on of a genre, by what they say of it and of its kinds."""
    columns = (opinion.c.person_id, opinion.c.track_id, tag.c.name, opinion.c.value)
    query = (
        sa.select(*columns)
        .join_from(opinion, tag)
        .where(opinion.c.ended_by.is_(None), tag.c.name.in_([name, *kinds]))
    )
    schema = {"person": pl.Int64, "track_id": pl.Int64, "tag": pl.String, "value": pl.Int8}
    rows = [tuple(row) for row in connection.execute(query)]
    said = with_kinds(pl.DataFrame(rows, schema=schema, orient="row"), tree)
    votes = (
        said.filter(pl.col("tag") == tree.canonical(name))
        .group_by("track_id")
        .agg(present=(pl.col("value") > 0).sum(), absent=(pl.col("value") < 0).sum())
        .sort("track_id")
    )
    tracks = votes["track_id"].to_numpy()
    present, absent = votes["present"].to_numpy(), votes["absent"].to_numpy()
    verdicts = verdict(present, absent, people_of(connection, tracks))
    return Agreement(tracks[verdicts == 1], tracks[verdicts == 0])


def _agreement(connection: sa.Connection, name: str) -> Agreement:
    signed = sa.cast(opinion.c.track_id * opinion.c.value, sa.String)  # -12: not of track 12
    query = (
        # as one text: thousands of rows would each become an object first
        sa.select(sa.func.aggregate_strings(signed, ","))
        .join_from(opinion, tag)
        .where(opinion.c.ended_by.is_(None), tag.c.name == name)
    )
    votes = np.fromstring(connection.scalar(query) or "", np.int64, sep=",")
    tracks, places = np.unique(np.abs(votes), return_inverse=True)
    present = np.bincount(places, votes > 0, len(tracks))
    absent = np.bincount(places, votes < 0, len(tracks))
    verdicts = verdict(present, absent, people_of(connection, tracks))
    return Agreement(tracks[verdicts == 1], tracks[verdicts == 0])


# All of a library, in memory. --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class VerdictTable:
    """Track, tag and whether it holds, where people agree on that; the rows in order of tracks.

    After a change, only the tracks that it touched are judged again: what people agree on about a
    track depends on nothing but what they say of it.
    """

    tree: GenreTree
    names: list[str]
    """The tags."""
    tracks: Ids
    """(n,) ascending; of one track the tag that most people speak of comes first."""
    tags: NDArray[np.int32]
    """(n,) places in ``names``"""
    holds: Mask
    """(n,)"""

    @classmethod
    def read(cls, library: Library) -> Self:
        """That of a library as it is now."""
        tree = library.genres()
        return cls._of(tree, settled(library.opinions.triples(), tree))

    @classmethod
    def _of(cls, tree: GenreTree, frame: pl.DataFrame) -> Self:
        names = frame["tag"].unique().sort().to_list()
        codes = frame["tag"].cast(pl.Enum(names)).to_physical().cast(pl.Int32)
        return cls(
            tree,
            names,
            frame["track_id"].to_numpy(),
            codes.to_numpy(),
            frame["holds"].to_numpy(),
        )

    def brought_up_to(self, library: Library, since: LibraryVersion) -> "VerdictTable":
        """The table as it is now, where this one is of the version ``since``."""
        if library.genres() != self.tree:
            return self.read(library)
        touched = _touched(library, since)
        if len(touched) > MAX_TOUCHED:
            return self.read(library)
        new = settled(library.opinions.triples(touched), self.tree)
        stay = ~np.isin(self.tracks, touched)
        names = np.array(self.names, object)
        old = pl.DataFrame(
            {
                "track_id": self.tracks[stay],
                "tag": pl.Series(names[self.tags[stay]], dtype=pl.String),
                "holds": self.holds[stay],
            }
        )
        joined = pl.concat([old, new]).sort("track_id", maintain_order=True)
        return self._of(self.tree, joined)

    def agreement(self, name: str) -> Agreement:
        """The tracks of which people agree on a tag."""
        place = self._places.get(self.tree.canonical(name))
        if place is None:
            nobody = np.empty(0, np.int64)
            return Agreement(nobody, nobody)
        rows = self._by_tag[self._starts[place] : self._starts[place + 1]]
        holds = self.holds[rows]
        return Agreement(self.tracks[rows[holds]], self.tracks[rows[~holds]])

    def of_track(self, track_id: int) -> dict[str, bool]:
        """Tag → whether it holds, the tags most said first."""
        begin, end = np.searchsorted(self.tracks, [track_id, track_id + 1])
        return {
            self.names[tag]: bool(holds)
            for tag, holds in zip(self.tags[begin:end], self.holds[begin:end], strict=True)
        }

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def _by_tag(self) -> NDArray[np.intp]:
        """Rows, tag after tag."""
        return np.argsort(self.tags, kind="stable")

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        """Where each tag begins in `_by_tag`, and the end."""
        return np.searchsorted(self.tags[self._by_tag], np.arange(len(self.names) + 1))


def _touched(library: Library, since: LibraryVersion) -> Ids:
    """The tracks of which opinions have begun or ended since then.

    Answers of one sitting go on being added to its change, so the last one is looked at again.
    """
    begun = sa.select(opinion.c.track_id).where(opinion.c.id > since.opinion)
    ended = sa.select(opinion.c.track_id).where(opinion.c.ended_by >= since.change)
    rows = [*library.fetch(begun), *library.fetch(ended)]
    return np.unique([row.track_id for row in rows]).astype(np.int64)
