"""What people say about tracks, and what they agree on.

An opinion in force is never overwritten: a change ends it and begins another instead. So every
change can be undone.

Two things are stored beside them: how many people have opinions about each track, in blocks of
`BLOCK` tracks (whoever begins or ends opinions calls `recount_people` in the same transaction); and
how people spell each tag, which is shown in its most frequent spelling.

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

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
import polars as pl
import sqlalchemy as sa
from numpy.typing import ArrayLike, NDArray

from harmonium.arrays import Codes, Floats, Ids, Mask, Places
from harmonium.data.tag_names import GenreTree, normalise_names, normalise_tag, possible_parts
from harmonium.errors import DataError, LibraryError
from harmonium.library.store import database
from harmonium.library.store.schema import BLOCK, opinion, people_count, spelling, tag
from harmonium.library.store.schema import change as change_table
from harmonium.library.store.schema import person as people_table

if TYPE_CHECKING:
    from harmonium.library.library import Library

Kind = Literal["person", "file", "import"]
TRIPLE = ["track_id", "tag_id", "person_id"]  # the columns that identify an opinion
MIN_SHARE = 0.2  # with up to five people on a track, one of them is enough for a tag
MAX_TOUCHED = 5_000  # if a change touched more tracks, all are judged again
REVIEW = "review"  # the command for answers to questions: a track's other tags stay unknown
_IN_FORCE = opinion.c.ended_by.is_(None)
_MAX_SINGLE_TRACKS = 500  # if more tracks of a block have new opinions, the whole block is counted
_SAME = " AND ".join(f"o.{name} = i.{name}" for name in TRIPLE)
_END_CONTRARY = f"""
UPDATE opinion SET ended_by = :change WHERE id IN (
    SELECT o.id FROM incoming i JOIN opinion o ON {_SAME} AND o.ended_by IS NULL
    WHERE o.value <> i.value
)"""
_BEGIN = f"""
INSERT INTO opinion (track_id, tag_id, person_id, value, at, begun_by)
SELECT i.track_id, i.tag_id, i.person_id, i.value, :at, :change
FROM incoming i LEFT JOIN opinion o ON {_SAME} AND o.ended_by IS NULL
WHERE o.id IS NULL
ORDER BY i.track_id, i.tag_id, i.person_id"""
_END_OTHERS = f"""
UPDATE opinion SET ended_by = :change
WHERE ended_by IS NULL AND person_id IN (SELECT DISTINCT person_id FROM kept)
AND NOT EXISTS (SELECT 1 FROM kept i WHERE {_SAME.replace("o.", "opinion.")})"""
_COUNT_SPELLING = """
INSERT INTO spelling (tag_id, kind, spelling, uses) VALUES (:tag_id, :kind, :spelling, :uses)
ON CONFLICT (tag_id, kind, spelling) DO UPDATE SET uses = spelling.uses + excluded.uses"""


@dataclass(frozen=True)
class Person:
    """Someone who has opinions."""

    id: int
    name: str
    kind: str  # "person", "file" (tags found in files) or "import" (a user of an imported table)
    n_tags: int  # number of different tags in use
    n_tracks: int  # number of tracks with opinions in force


class Opinions(database.LibraryPart):
    """What people say about the tracks of a library."""

    def people(self) -> list[Person]:
        """All people who ever said anything, in the order they were added."""
        counts = (_distinct(opinion.c.tag_id), _distinct(opinion.c.track_id))
        said = sa.and_(_IN_FORCE, opinion.c.person_id == people_table.c.id)
        query = (
            sa.select(people_table, *counts)
            .outerjoin_from(people_table, opinion, said)
            .group_by(people_table.c.id)
            .order_by(people_table.c.id)
        )
        return [Person(*row) for row in self._library.fetch(query)]

    def say(
        self,
        person: str,
        tracks: ArrayLike,
        present: Iterable[str] = (),
        absent: Iterable[str] = (),
        retract: Iterable[str] = (),
        *,
        change: int,
    ) -> int:
        """Let a person give tracks tags, reject others, and withdraw what they said about others.

        ``tracks`` are one number or several. The tags may be in any spelling. Opinions from the
        tracks' files that contradict this end. Returns how many opinions began or ended.
        """
        ids: list[int] = np.unique(np.asarray(tracks, np.int64)).tolist()
        given = {1: present, -1: absent, 0: retract}
        now = self._library.renamed_tags()
        spelt = [
            (database.storable(now.get(normalise_tag(name), name)), value)
            for value, names in given.items()
            for name in names
        ]
        said: dict[str, int] = {}
        for text, value in spelt:
            if not (name := normalise_tag(text)):
                raise LibraryError("A tag must have a name, got an empty text.")
            if said.setdefault(name, value) != value:
                raise LibraryError(
                    f"The tag {name!r} cannot be given, rejected and withdrawn at once. Choose one."
                )
        rows = [(person, id, name, value) for id in ids for name, value in spelt if value]
        schema = {"person": pl.String, "track_id": pl.Int64, "tag": pl.String, "value": pl.Int8}
        files = people_table.c.kind == "file"
        themselves = people_table.c.name == database.storable(person).strip()
        with self._library.begin() as connection:
            ended = 0
            for value, whose in ((1, files), (-1, files), (0, themselves)):
                tags = [name for name, spoken in said.items() if spoken == value]
                conditions = [
                    opinion.c.tag_id.in_(sa.select(tag.c.id).where(tag.c.name.in_(tags))),
                    opinion.c.person_id.in_(sa.select(people_table.c.id).where(whose)),
                    *([opinion.c.value == -value] if value else []),
                ]
                for some in database.batches(ids):
                    ended += _end(connection, change, opinion.c.track_id.in_(some), *conditions)
            frame = pl.DataFrame(rows, schema=schema, orient="row")
            began = self.add_triples(frame, change=change, kind="person")
            recount_people(connection, ids)
            return began + ended

    def end_tracks(self, ids: Iterable[int], *, change: int) -> int:
        """End all opinions about tracks; returns how many."""
        ended = 0
        with self._library.begin() as connection:
            for some in database.batches(map(int, ids)):
                ended += _end(connection, change, opinion.c.track_id.in_(some))
                recount_people(connection, some)
        return ended

    def rename_tag(self, old: str, new: str, *, change: int) -> tuple[int, int]:
        """Move all opinions from one tag to another; both in any spelling.

        If somebody used both for a track, what they said with the new one stays. Returns how many
        opinions moved to the new tag, and how many only ended.
        """
        with self._library.begin() as connection:
            before, after = _ids(connection, tag, pl.Series([old, new])).to_list()
            named = pl.DataFrame({"tag_id": [after], "spelling": [new]})
            _note_spellings(connection, named, "person", replace=False)
            other = opinion.alias()
            taken = sa.exists().where(
                *(other.c[name] == opinion.c[name] for name in ("track_id", "person_id")),
                other.c.tag_id == after,
                other.c.ended_by.is_(None),
            )
            columns = ("track_id", "person_id", "value", "at")
            moving = sa.select(
                *(opinion.c[name] for name in columns), sa.literal(after), sa.literal(change)
            ).where(_IN_FORCE, opinion.c.tag_id == before, ~taken)
            into = sa.insert(opinion).from_select([*columns, "tag_id", "begun_by"], moving)
            moved = connection.scalar(sa.select(sa.func.count()).select_from(moving.subquery()))
            connection.execute(into)
            ended = _end(connection, change, opinion.c.tag_id == before)
            return int(moved or 0), ended - int(moved or 0)

    def add_triples(
        self, frame: pl.DataFrame, *, change: int, kind: Kind = "import", replace: bool = False
    ) -> int:
        """Save opinions of many people at once.

        Opinions already in force are not added again; a person's contrary opinion about the same
        tag and track ends. If several rows have the same person, track and tag, the last one
        counts. Tags from files are not added if a person says the contrary.

        Parameters
        ----------
        frame : columns person, track_id, tag (in any spelling), and optionally value (1 it fits,
            -1 it does not) and spelling (if people spell the tag another way)
        change : the number of the change that this is part of, from `Changes.begin`
        kind : the kind of new people, see `Person.kind`
        replace : whether everything else that these people said ends

        Returns
        -------
        how many opinions began, and with `replace` also how many others ended
        """
        values = pl.col("value") if "value" in frame.columns else pl.lit(1)
        with self._library.begin() as connection:
            at = connection.scalar(sa.select(change_table.c.at).where(change_table.c.id == change))
            if at is None:
                raise LibraryError(f"There is no change {change}; `Changes.begin` makes one.")
            tag_ids = _ids(connection, tag, frame["tag"])
            coded = frame.select(
                pl.col("track_id").cast(pl.Int64),
                tag_ids,
                _ids(connection, people_table, frame["person"], kind=kind),
                values.cast(pl.Int8).alias("value"),
            )
            wrong = coded.filter(~pl.col("value").is_in([1, -1]))["value"]
            if len(wrong):
                raise LibraryError(
                    f"'value' must be 1 (the tag fits) or -1 (it does not), got {wrong[0]}."
                )
            coded = coded.drop_nulls().unique(TRIPLE, keep="last", maintain_order=True).sort(TRIPLE)
            if kind == "file" and len(coded):
                coded = _without_contrary_files(connection, coded)
            spelt = frame["spelling" if "spelling" in frame.columns else "tag"]
            said = pl.DataFrame({"tag_id": tag_ids, "spelling": spelt})
            _note_spellings(connection, said, kind, replace=replace)
            ended = _end_others(connection, coded, change) if replace else 0
            began = 0
            for some in coded.iter_slices(database.CHUNK):
                database.make_table(connection, some)
                connection.execute(sa.text(_END_CONTRARY), {"change": change})
                began += connection.execute(sa.text(_BEGIN), {"change": change, "at": at}).rowcount
                connection.exec_driver_sql("DROP TABLE incoming")
            recount_people(connection, coded["track_id"])
            if ended:
                touched = sa.select(opinion.c.track_id).where(opinion.c.ended_by == change)
                recount_people(connection, connection.execute(touched.distinct()).scalars())
            return ended + began

    def triples(self, track_ids: ArrayLike | None = None) -> pl.DataFrame:
        """The opinions in force: person, track_id, tag, value (1 or -1) and at (UTC)."""
        if track_ids is None:
            return self._frame()
        ids = np.asarray(track_ids, np.int64).ravel().tolist()
        pages = list(database.batches(ids, 10 * database.PAGE)) or [[]]
        return pl.concat([self._frame(opinion.c.track_id.in_(page)) for page in pages])

    def of_track(self, track_id: int) -> list[tuple[str, str, int]]:
        """(person, tag, value) of all opinions in force about one track; value is 1 or -1."""
        query = (
            sa.select(people_table.c.name, tag.c.name, opinion.c.value)
            .join_from(opinion, tag)
            .join(people_table)
            .where(_IN_FORCE, opinion.c.track_id == int(track_id))
            .order_by(opinion.c.id)
        )
        return [(who, name, value) for who, name, value in self._library.fetch(query)]

    def tags(self) -> pl.DataFrame:
        """The tags that people gave to tracks: tag, n_tracks, n_people; most used first."""
        query = (
            sa.select(tag.c.name, _distinct(opinion.c.track_id), _distinct(opinion.c.person_id))
            .join_from(opinion, tag)
            .where(_IN_FORCE, opinion.c.value == 1)
            .group_by(tag.c.name)
        )
        schema = {"tag": pl.String, "n_tracks": pl.Int64, "n_people": pl.Int64}
        with self._library.connect() as connection:
            frame = database.read_frame(connection, query, schema)
        return frame.sort("n_tracks", "tag", descending=[True, False])

    def spellings(self) -> dict[str, str]:
        """Tag → how people spell it, if that differs from its normalised name; files come first."""
        uses = sa.func.sum(spelling.c.uses)
        of_files = sa.func.max(sa.case((spelling.c.kind == "file", spelling.c.uses), else_=0))
        query = (
            sa.select(tag.c.name, spelling.c.spelling)
            .join_from(spelling, tag)
            .group_by(tag.c.name, spelling.c.spelling)
            .order_by(of_files, uses, sa.func.max(spelling.c.id))
        )
        best = {row.name: row.spelling for row in self._library.fetch(query)}
        return {name: text for name, text in best.items() if text != name}

    def _frame(self, *conditions: Any) -> pl.DataFrame:
        schema = dict.fromkeys(("person_id", "track_id", "tag_id", "value", "at"), pl.Int64)
        query = sa.select(*(opinion.c[name] for name in schema)).where(_IN_FORCE, *conditions)
        query = query.order_by(opinion.c.track_id, opinion.c.tag_id, opinion.c.person_id)
        with self._library.connect() as connection:
            people, tags = (
                database.pairs(connection, one.c.id, one.c.name) for one in (people_table, tag)
            )
            try:
                return database.read_frame(connection, query, schema).select(
                    person=pl.col("person_id").replace_strict(people, return_dtype=pl.String),
                    track_id="track_id",
                    tag=pl.col("tag_id").replace_strict(tags, return_dtype=pl.String),
                    value=pl.col("value").cast(pl.Int8),
                    at=pl.col("at").cast(pl.Datetime("us", "UTC")),
                )
            except (pl.exceptions.PolarsError, TypeError) as error:
                raise database.damaged("a tag refers to a missing person or name") from error


def _distinct(column: sa.Column[Any]) -> sa.Function[Any]:
    return sa.func.count(sa.distinct(column))


def _ids(connection: sa.Connection, table: sa.Table, names: pl.Series, **values: str) -> pl.Series:
    """The numbers of tags or people (n,), null for empty names; new names get new numbers."""
    distinct = names.unique(maintain_order=True)
    stored = pl.Series([database.storable(name).strip() for name in distinct], dtype=pl.String)
    if table is tag:
        stored = normalise_names(stored)
    known = database.pairs(connection, table.c.name, table.c.id)
    new = [name for name in stored.unique(maintain_order=True) if name and name not in known]
    if new:
        connection.execute(sa.insert(table), [{"name": name, **values} for name in new])
        known = database.pairs(connection, table.c.name, table.c.id)
    numbers = pl.Series([known.get(name) for name in stored], dtype=pl.Int64)
    return names.replace_strict(distinct, numbers, return_dtype=pl.Int64).alias(f"{table.name}_id")


def _end(connection: sa.Connection, change: int, *conditions: sa.ColumnElement[bool]) -> int:
    """End the opinions in force that meet these conditions; returns how many."""
    ending = sa.update(opinion).where(_IN_FORCE, *conditions)
    return connection.execute(ending.values(ended_by=change)).rowcount


def _without_contrary_files(connection: sa.Connection, coded: pl.DataFrame) -> pl.DataFrame:
    """What files say (track_id, tag_id, value …), unless a person says the contrary."""
    query = (
        sa.select(opinion.c.track_id, opinion.c.tag_id, -opinion.c.value)
        .join_from(opinion, people_table)
        .where(_IN_FORCE, people_table.c.kind == "person")
    )
    schema = {"track_id": pl.Int64, "tag_id": pl.Int64, "value": pl.Int8}
    contrary = database.read_frame(connection, query, schema)
    return coded.join(contrary, on=list(schema), how="anti", maintain_order="left")


def _end_others(connection: sa.Connection, rows: pl.DataFrame, change: int) -> int:
    """End these people's opinions about other tracks or tags; returns how many."""
    database.make_table(connection, rows.select(TRIPLE), "kept")
    connection.exec_driver_sql("CREATE INDEX kept_key ON kept (track_id, tag_id, person_id)")
    ended = connection.execute(sa.text(_END_OTHERS), {"change": change}).rowcount
    connection.exec_driver_sql("DROP TABLE kept")
    return ended


def _note_spellings(
    connection: sa.Connection, said: pl.DataFrame, kind: str, *, replace: bool
) -> None:
    """Count the spellings in a frame with tag_id and spelling.

    Counts from files are replaced for their tags, or for all tags with `replace`; counts from
    people and tables add up.
    """
    counted = said.drop_nulls().group_by("tag_id", "spelling", maintain_order=True).len("uses")
    if kind == "file":
        tags = counted["tag_id"].unique().to_list()
        mentioned = sa.true() if replace else spelling.c.tag_id.in_(tags)
        connection.execute(sa.delete(spelling).where(spelling.c.kind == kind, mentioned))
    rows = [
        {**row, "kind": kind, "spelling": " ".join(database.storable(row["spelling"]).split())}
        for row in counted.iter_rows(named=True)
    ]
    if rows:
        connection.execute(sa.text(_COUNT_SPELLING), rows)


def recount_people(connection: sa.Connection, track_ids: Iterable[int]) -> None:
    """Recount the people of tracks on which opinions have begun or ended."""
    touched = np.unique(np.fromiter(track_ids, np.int64))
    for block in np.unique(touched // BLOCK).tolist():
        ids = touched[touched // BLOCK == block]
        chosen = opinion.c.track_id.in_(ids.tolist())
        if len(ids) > _MAX_SINGLE_TRACKS:
            ids = block * BLOCK + np.arange(BLOCK)
            chosen = opinion.c.track_id.between(int(ids[0]), int(ids[-1]))
        people = _read_people(connection, [block]).get(block, np.zeros(BLOCK, "<i4"))
        people[ids % BLOCK] = 0
        counted = (
            sa.select(opinion.c.track_id, _distinct(opinion.c.person_id))
            .where(_IN_FORCE, chosen)
            .group_by(opinion.c.track_id)
        )
        for track_id, n_people in connection.execute(counted):
            people[track_id % BLOCK] = n_people
        values = {"block": block, "people": people.tobytes()}
        database.replace_rows(connection, people_count, [values], people_count.c.block == block)


def people_of(connection: sa.Connection, track_ids: Ids) -> Ids:
    """How many people have opinions about tracks, (n,)."""
    blocks = track_ids // BLOCK
    result = np.zeros(len(track_ids), np.int64)
    for block, people in _read_people(connection, np.unique(blocks).tolist()).items():
        here = blocks == block
        result[here] = people[track_ids[here] % BLOCK]
    return result


def _read_people(connection: sa.Connection, blocks: list[int]) -> dict[int, Codes]:
    query = sa.select(people_count).where(people_count.c.block.in_(blocks))
    rows = connection.execute(query)
    return {row.block: np.frombuffer(row.people, "<i4").copy() for row in rows}


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
    holds = np.where((present > absent) & enough, 1, np.nan)
    return np.where(absent > present, 0, holds).astype(np.float32)


def judge(
    opinions: pl.DataFrame,
    *,
    min_count: int = 1,
    min_share: float = MIN_SHARE,
    genres: Collection[str] = (),
) -> pl.DataFrame:
    """The verdict and the label for each track and tag of opinions (person, track_id, tag, value).

    The columns: track_id, tag, present and absent (how many say so), verdict, and label, which is
    the verdict, but 0 if too small a share gave the tag. If a tag has one of the ``genres`` in its
    name, like poprock, that genre is left open.
    """
    if min_count < 1:
        raise DataError(f"'min_count' must be at least 1, got {min_count}.")
    if not 0 <= min_share <= 1:
        raise DataError(f"'min_share' must be between 0 and 1, got {min_share}.")
    names, tracks, tags, present, absent, people = _votes(opinions)
    verdicts = verdict(present, absent, people, min_count=min_count, min_share=min_share)
    labels = np.where(present < min_share * people, 0, verdicts).astype(np.float32)
    columns = {"present": present, "absent": absent, "verdict": verdicts, "label": labels}
    judged = pl.DataFrame({"track_id": tracks, "tag": names.gather(tags), **columns})
    return _parts_unknown(judged, genres)


def _votes(
    opinions: pl.DataFrame, count_people: Callable[[Ids], Ids] | None = None
) -> tuple[pl.Series, Ids, Ids, Ids, Ids, Ids]:
    """How many people give a tag to a track, and how many reject it.

    ``count_people`` says how many people tracks have, if more than those in the opinions.
    Returns the names of the tags, and for each pair, in order: the track, the place of the tag
    among the names, how many give it, how many reject it, and how many people the track has.
    """
    names = opinions["tag"].unique().sort()
    codes = opinions["tag"].cast(pl.Enum(names)).to_physical().to_numpy()
    n_names = max(len(names), 1)
    keys = opinions["track_id"].to_numpy() * n_names + codes
    keys, places = np.unique(keys, return_inverse=True)
    tracks, tags = np.divmod(keys, n_names)
    values = opinions["value"].to_numpy()
    present = np.bincount(places[values > 0], minlength=len(keys))
    absent = np.bincount(places[values < 0], minlength=len(keys))
    if count_people is not None:
        return names, tracks, tags, present, absent, count_people(tracks)
    speaking = opinions.unique(["track_id", "person"])["track_id"].to_numpy()
    known, counts = np.unique(speaking, return_counts=True)
    return names, tracks, tags, present, absent, counts[np.searchsorted(known, tracks)]


def _parts_unknown(judged: pl.DataFrame, genres: Collection[str]) -> pl.DataFrame:
    """Drops labels for what a track's tag may mean, unless people mention that tag itself."""
    names = []
    for name in judged["tag"].unique():
        inside = {genre for genre in genres if genre in name and genre != name}
        names += [(name, part) for part in possible_parts(name) | inside]
    if not names:
        return judged
    parts = pl.DataFrame(names, schema={"tag": pl.String, "part": pl.String}, orient="row")
    key = ["track_id", "tag"]
    settled = judged.filter((pl.col("absent") > 0) | (pl.col("label") == 1))
    meant = judged.filter(pl.col("label") == 1).join(parts, on="tag")
    meant = meant.select("track_id", tag="part", open=pl.lit(True)).unique(key)
    meant = meant.join(settled, on=key, how="anti")
    said = pl.when(pl.col("open").is_null()).then(pl.col("verdict", "label"))
    return (
        judged.join(meant, on=key, how="full", coalesce=True)
        .with_columns(
            pl.col("present", "absent").fill_null(0), said.otherwise(pl.lit(np.nan, pl.Float32))
        )
        .drop("open")
        .sort(key)
    )


def with_kinds(opinions: pl.DataFrame, tree: GenreTree) -> pl.DataFrame:
    """The opinions, with what follows from them by a genre tree."""
    if not tree or opinions.is_empty():
        return opinions
    canonical = {name: tree.canonical(name) for name in opinions["tag"].unique()}
    opinions = opinions.with_columns(pl.col("tag").replace_strict(canonical))
    kinds = [(name, above) for name in opinions["tag"].unique() for above in tree.ancestors(name)]
    above = pl.DataFrame(kinds, schema={"tag": pl.String, "above": pl.String}, orient="row")
    implied = opinions.filter(pl.col("value") > 0).join(above, on="tag")
    implied = implied.with_columns(tag=pl.col("above")).select(opinions.columns)
    key = ["person", "track_id", "tag"]
    # what people say themselves comes first; for two names of one genre, a yes does
    said = opinions.sort("value", descending=True, maintain_order=True)
    return pl.concat([said, implied]).unique(key, keep="first", maintain_order=True).sort(key[1:])


def is_asked(library: Library) -> pl.Expr:
    """Whether opinions, with the column at, answer a question."""
    # An opinion that undo restores has the time of the change in which it was first said.
    query = sa.select(change_table.c.at).where(change_table.c.command == REVIEW)
    times = pl.Series([row.at for row in library.fetch(query)], dtype=pl.Int64)
    return pl.col("at").cast(pl.Int64).is_in(times.implode())


def only_answered_tracks(library: Library, opinions: pl.DataFrame) -> Ids:
    """The tracks on which people have only answered questions, each about one tag."""
    # Nobody has said which tags such a track has, so those that were not asked about are unknown.
    described = opinions.filter(~is_asked(library))["track_id"].to_numpy()
    return np.setdiff1d(opinions["track_id"].to_numpy(), described)


def label_matrix(
    judged: pl.DataFrame,
    ids: Ids,
    tags: Sequence[str],
    column: str = "label",
    only_answered: Ids | None = None,
    unknown: Sequence[tuple[Ids, Mask]] = (),
) -> Floats:
    """The labels, or verdicts, for tracks with these sorted ids, (n, n_tags): 0 without a vote."""
    # For tracks in ``only_answered`` (see `only_answered_tracks`) it is NaN without a vote; and so
    # it is for the ``unknown`` tracks of each tag, (n_tags,).
    Y = np.zeros((len(ids), len(tags)), np.float32)
    if only_answered is not None:
        Y[np.isin(ids, only_answered)] = np.nan
    for some, which in unknown:
        Y[np.ix_(np.isin(ids, some), which)] = np.nan
    places = pl.DataFrame(
        {"tag": list(tags), "place": np.arange(len(tags))}, schema_overrides={"tag": pl.String}
    )
    rows = judged.join(places, on="tag").filter(pl.col("track_id").is_in(pl.Series(ids).implode()))
    row = np.searchsorted(ids, rows["track_id"].to_numpy())
    Y[row, rows["place"].to_numpy()] = rows[column].to_numpy()
    return Y


def agreed_tags(
    opinions: pl.DataFrame, tree: GenreTree | None = None
) -> dict[int, dict[str, bool]]:
    """Track → tag → whether it holds, if people agree; the most mentioned tags first."""
    # opinions : all about the tracks; with a genre tree, what follows from it is added
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
        with library.connect() as connection:
            wanted = {one for name in names for one in (name, *tree.counts_for(name))}
            opinions = _read_opinions(connection, wanted, people=bool(tree))
            return cls.of(opinions, tree, lambda tracks: people_of(connection, tracks))

    @classmethod
    def of(
        cls,
        opinions: pl.DataFrame,
        tree: GenreTree,
        count_people: Callable[[Ids], Ids] | None = None,
    ) -> Self:
        """The table of some opinions; ``count_people`` as in `_votes`."""
        names, tracks, tags, present, absent, people = _votes(
            with_kinds(opinions, tree), count_people
        )
        verdicts = verdict(present, absent, people)
        rows = np.flatnonzero(~np.isnan(verdicts))
        said = np.maximum(present, absent)[rows]
        rows = rows[np.lexsort((tags[rows], -said, tracks[rows]))]
        return cls(tree, names.to_list(), tracks[rows], tags[rows], verdicts[rows] == 1)

    def brought_up_to(self, library: Library, since: database.LibraryVersion) -> VerdictTable:
        """The table as it is now, given that this one has the version ``since``."""
        begun = sa.select(opinion.c.track_id).where(opinion.c.id > since.opinion)
        # A review keeps adding answers to its change, so the last change is checked, too.
        ended = sa.select(opinion.c.track_id).where(opinion.c.ended_by >= since.change)
        rows = [*library.fetch(begun), *library.fetch(ended)]
        touched = np.unique([row.track_id for row in rows]).astype(np.int64)
        if library.genres() != self.tree or len(touched) > MAX_TOUCHED:
            return self.read(library)
        new = self.of(library.opinions.triples(touched), self.tree)
        stay = ~np.isin(self.tracks, touched)
        names = sorted({*self.names, *new.names})
        place = {name: i for i, name in enumerate(names)}
        old_tags, new_tags = (
            np.array([place[name] for name in one.names], np.int64)[one.tags] for one in (self, new)
        )
        tracks = np.append(self.tracks[stay], new.tracks)
        tags = np.append(old_tags[stay], new_tags)
        holds = np.append(self.holds[stay], new.holds)
        order = np.argsort(tracks, kind="stable")
        return VerdictTable(self.tree, names, tracks[order], tags[order], holds[order])

    def agreement(self, name: str) -> Agreement:
        """The tracks where people agree on a tag."""
        rows = self._rows.get(self.tree.canonical(name), np.empty(0, np.intp))
        holds = self.holds[rows]
        return Agreement(self.tracks[rows[holds]], self.tracks[rows[~holds]])

    def of_track(self, track_id: int) -> dict[str, bool]:
        """Tag → whether it holds, the most mentioned tags first."""
        begin, end = np.searchsorted(self.tracks, [track_id, track_id + 1])
        return {
            self.names[tag]: bool(holds)
            for tag, holds in zip(self.tags[begin:end], self.holds[begin:end], strict=True)
        }

    @cached_property
    def _rows(self) -> dict[str, Places]:
        order = np.argsort(self.tags, kind="stable")
        ends = np.searchsorted(self.tags[order], np.arange(1, len(self.names)))
        return dict(zip(self.names, np.split(order, ends), strict=False))


def _read_opinions(
    connection: sa.Connection, names: Iterable[str], *, people: bool
) -> pl.DataFrame:
    """The opinions in force with some tags; with the numbers of ``people``, or 0 for each."""
    # As texts: thousands of rows would each become an object first. -12: rejected for track 12.
    numbers = [opinion.c.track_id * opinion.c.value, *([opinion.c.person_id] if people else [])]
    texts = (sa.func.aggregate_strings(sa.cast(number, sa.String), ",") for number in numbers)
    query = (
        sa.select(tag.c.name, *texts)
        .join_from(opinion, tag)
        .where(_IN_FORCE, tag.c.name.in_(names))
        .group_by(tag.c.name)
    )
    schema = {"person": pl.Int64, "track_id": pl.Int64, "value": pl.Int64, "tag": pl.String}
    parts = [pl.DataFrame(schema=schema)]
    for name, *columns in connection.execute(query):
        tracks, *who = (np.fromstring(text, np.int64, sep=",") for text in columns)
        speaking = who[0] if people else np.zeros_like(tracks)
        values = (speaking, np.abs(tracks), np.sign(tracks))
        frame = pl.DataFrame(dict(zip(schema, values, strict=False)))
        parts.append(frame.with_columns(tag=pl.lit(name)))
    return pl.concat(parts)
