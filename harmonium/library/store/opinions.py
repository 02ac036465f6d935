"""What people say about tracks: person, track, tag, and whether it fits.

An opinion in force is never overwritten: a change ends it, and begins another in its place. So
every change can be undone.

Two things follow from opinions and are kept, since counting them took most of a search's time or
because they would be lost: how many people have opinions about each track, in blocks of `BLOCK`
tracks (whoever lets opinions begin or end calls `recount_people` in the same transaction); and how
people spell each tag, since a tag has one normalised name, and is shown as it is most often spelt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa
from numpy.typing import ArrayLike

from harmonium.arrays import Ids
from harmonium.data.tag_names import normalise_names, normalise_tag
from harmonium.errors import LibraryError
from harmonium.library.store import bulk
from harmonium.library.store.database import LibraryPart, damaged
from harmonium.library.store.schema import (
    BLOCK,
    opinion,
    people_count,
    person,
    spelling,
    storable,
    tag,
)
from harmonium.library.store.schema import change as change_table

KINDS = ("person", "file", "import")
TRIPLE = ["track_id", "tag_id", "person_id"]
"""The columns of what an opinion is about."""
_IN_FORCE = opinion.c.ended_by.is_(None)
_MAX_SINGLE_TRACKS = 500
"""Tracks of a block that are counted one by one; where there are more, the whole block is."""
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


@dataclass(frozen=True)
class Person:
    """Someone who has opinions."""

    id: int
    name: str
    kind: str
    """"person", "file" (tags found in files) or "import" (a user of an imported table)."""
    n_tags: int
    """Different tags that they use now."""
    n_tracks: int
    """Tracks that they have opinions about now."""


class Opinions(LibraryPart):
    """What people say about the tracks of a library."""

    def people(self) -> list[Person]:
        """Everybody who ever said anything, in the order in which they came."""
        counts = (
            sa.select(
                opinion.c.person_id,
                sa.func.count(sa.distinct(opinion.c.tag_id)).label("n_tags"),
                sa.func.count(sa.distinct(opinion.c.track_id)).label("n_tracks"),
            )
            .where(_IN_FORCE)
            .group_by(opinion.c.person_id)
            .subquery()
        )
        query = (
            sa.select(person, *(sa.func.coalesce(counts.c[n], 0) for n in ("n_tags", "n_tracks")))
            .join_from(person, counts, counts.c.person_id == person.c.id, isouter=True)
            .order_by(person.c.id)
        )
        return [Person(*row) for row in self._library.fetch(query)]

    def say(
        self,
        person: str,
        track_id: int,
        present: Iterable[str] = (),
        absent: Iterable[str] = (),
        retract: Iterable[str] = (),
        *,
        change: int,
    ) -> int:
        """Let a person say that tags fit a track, that others do not, and take back others.

        What the track's file says to the contrary ends.

        Parameters
        ----------
        person : their name
        track_id : the number of the track
        present, absent, retract : tags, in any spelling
        change : the number of the change that this is part of, from `Changes.begin`

        Returns
        -------
        how many opinions began or ended
        """
        given = {1: present, -1: absent, 0: retract}
        spelt = [(storable(name), value) for value, names in given.items() for name in names]
        said = [(normalise_tag(name), value) for name, value in spelt]
        _check_said(said)
        rows = [(person, int(track_id), name, value) for name, value in spelt if value]
        schema = {"person": pl.String, "track_id": pl.Int64, "tag": pl.String, "value": pl.Int8}
        with self._library.begin() as connection:
            frame = pl.DataFrame(rows, schema=schema, orient="row")
            ended = _end_contrary_files(connection, int(track_id), said, change)
            began = self.add_triples(frame, change=change, kind="person")
            retracted = [name for name, value in said if not value]
            return ended + began + _retract(connection, person, int(track_id), retracted, change)

    def end_tracks(self, ids: Iterable[int], *, change: int) -> int:
        """End all opinions about tracks; how many ended."""
        ended = 0
        with self._library.begin() as connection:
            for some in bulk.batches(map(int, ids)):
                ended += _end(connection, change, opinion.c.track_id.in_(some))
                recount_people(connection, some)
        return ended

    def rename_tag(self, old: str, new: str, *, change: int) -> tuple[int, int]:
        """Let everybody say with another tag what they say with one; both in any spelling.

        Where somebody says something of a track with both, what they say with the new one stays.

        Returns
        -------
        how many opinions have the new tag now, and how many ended without that
        """
        with self._library.begin() as connection:
            spelt = pl.Series([old, new])
            before, after = _ids(connection, tag, spelt, _storable_tags).to_list()
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
        self, frame: pl.DataFrame, *, change: int, kind: str = "import", replace: bool = False
    ) -> int:
        """Let many people say many things at once.

        What is in force already is not added again; what a person said to the contrary about the
        same tag and track ends. If several rows have the same person, track and tag, the last one
        counts. What files say does not begin where a person says the contrary.

        Parameters
        ----------
        frame : columns person (str), track_id (int), tag (str, in any spelling), and perhaps value
            (1 it is so, -1 it is not so) and spelling (str, if tag is not how people spell it)
        change : the number of the change that this is part of
        kind : what kind of people new ones are, see `Person.kind`
        replace : whether all else that these people say ends

        Returns
        -------
        how many opinions began, and with `replace` also how many of the others ended
        """
        if kind not in KINDS:
            raise LibraryError(f"'kind' must be one of {', '.join(KINDS)}, got {kind!r}.")
        values = pl.col("value") if "value" in frame.columns else pl.lit(1)
        with self._library.begin() as connection:
            tag_ids = _ids(connection, tag, frame["tag"], _storable_tags)
            coded = frame.select(
                pl.col("track_id").cast(pl.Int64),
                tag_ids,
                _ids(connection, person, frame["person"], _storable_names, kind=kind),
                values.cast(pl.Int8).alias("value"),
            )
            wrong = coded.filter(~pl.col("value").is_in([1, -1]))["value"]
            if len(wrong):
                raise LibraryError(
                    f"'value' must be 1 (it is so) or -1 (it is not so), got {wrong[0]}."
                )
            coded = coded.drop_nulls().unique(TRIPLE, keep="last", maintain_order=True).sort(TRIPLE)
            if kind == "file" and len(coded):
                coded = _without_contrary_files(connection, coded)
            at = _time_of(connection, change)
            spelt = frame["spelling" if "spelling" in frame.columns else "tag"]
            said = pl.DataFrame({"tag_id": tag_ids, "spelling": spelt})
            _note_spellings(connection, said, kind, replace=replace)
            ended = _end_others(connection, coded, change) if replace else 0
            began = _begin(connection, coded, change, at)
            recount_people(connection, coded["track_id"])
            if ended:
                touched = sa.select(opinion.c.track_id).where(opinion.c.ended_by == change)
                recount_people(connection, connection.execute(touched.distinct()).scalars())
            return ended + began

    def triples(self, track_ids: ArrayLike | None = None) -> pl.DataFrame:
        """What is in force, of these tracks or of all: person, track_id, tag, value and at.

        value is 1 or -1, at a time in UTC.
        """
        if track_ids is None:
            return self._frame()
        ids = np.asarray(track_ids, np.int64).ravel().tolist()
        pages = list(bulk.batches(ids)) or [[]]
        return pl.concat([self._frame(opinion.c.track_id.in_(page)) for page in pages])

    def of_track(self, track_id: int) -> list[tuple[str, str, int]]:
        """(person, tag, value) of all that is in force about one track; value is 1 or -1."""
        query = (
            sa.select(person.c.name, tag.c.name, opinion.c.value)
            .join_from(opinion, tag)
            .join(person)
            .where(_IN_FORCE, opinion.c.track_id == int(track_id))
            .order_by(opinion.c.id)
        )
        return [(who, name, value) for who, name, value in self._library.fetch(query)]

    def tags(self) -> pl.DataFrame:
        """The tags that somebody says fit something: tag, n_tracks, n_people; most used first."""
        n_tracks = sa.func.count(sa.distinct(opinion.c.track_id)).label("n_tracks")
        n_people = sa.func.count(sa.distinct(opinion.c.person_id)).label("n_people")
        query = (
            sa.select(tag.c.name, n_tracks, n_people)
            .join_from(opinion, tag)
            .where(_IN_FORCE, opinion.c.value == 1)
            .group_by(tag.c.name)
        )
        rows = [tuple(row) for row in self._library.fetch(query)]
        schema = {"tag": pl.String, "n_tracks": pl.Int64, "n_people": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row").sort(
            "n_tracks", "tag", descending=[True, False]
        )

    def spellings(self) -> dict[str, str]:
        """Tag → how people spell it, where that is not its normalised name; files come first."""
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
        columns = ("person_id", "track_id", "tag_id", "value", "at")
        query = sa.select(*(opinion.c[name] for name in columns)).where(_IN_FORCE, *conditions)
        query = query.order_by(opinion.c.track_id, opinion.c.tag_id, opinion.c.person_id)
        with self._library.connect() as connection:
            rows = [tuple(row) for row in connection.execute(query)]
            people, tags = (_names(connection, table) for table in (person, tag))
        schema = {name: pl.Int8 if name == "value" else pl.Int64 for name in columns}
        try:
            frame = pl.DataFrame(rows, schema=schema, orient="row")
            return frame.select(
                pl.col("person_id").replace_strict(*people, return_dtype=pl.String).alias("person"),
                "track_id",
                pl.col("tag_id").replace_strict(*tags, return_dtype=pl.String).alias("tag"),
                "value",
                pl.col("at").cast(pl.Datetime("us", "UTC")),
            )
        except (pl.exceptions.PolarsError, TypeError) as error:
            raise damaged("a tag is of a person or a name that is not there") from error


def _names(connection: sa.Connection, table: sa.Table) -> tuple[pl.Series, pl.Series]:
    """The numbers and the names of all people, or tags."""
    names = bulk.pairs(connection, table.c.id, table.c.name)
    return pl.Series(list(names), dtype=pl.Int64), pl.Series(names.values(), dtype=pl.String)


def _ids(
    connection: sa.Connection, table: sa.Table, names: pl.Series, spell: Any, **values: str
) -> pl.Series:
    """The numbers of names (n,), null for empty ones; new names get new numbers."""
    distinct = pl.Series("name", names.unique(maintain_order=True), dtype=pl.String)
    spelt = spell(distinct)
    wanted = [name for name in spelt.unique(maintain_order=True) if name]
    known = bulk.pairs(connection, table.c.name, table.c.id)
    new = [{"name": name, **values} for name in wanted if name not in known]
    if new:
        connection.execute(sa.insert(table), new)
        known = bulk.pairs(connection, table.c.name, table.c.id)
    numbers = pl.Series([known.get(name) for name in spelt], dtype=pl.Int64)
    return names.replace_strict(distinct, numbers, return_dtype=pl.Int64).alias(f"{table.name}_id")


def _storable_tags(names: pl.Series) -> pl.Series:
    return normalise_names(_storable_names(names))


def _storable_names(names: pl.Series) -> pl.Series:
    return pl.Series([storable(name).strip() for name in names], dtype=pl.String)


def _check_said(said: list[tuple[str, int]]) -> None:
    seen: dict[str, int] = {}
    for name, value in said:
        if not name:
            raise LibraryError("A tag must have a name, got an empty one.")
        if seen.setdefault(name, value) != value:
            raise LibraryError(
                f"The tag {name!r} cannot be given, rejected and taken back at once. Choose one."
            )


def _end(connection: sa.Connection, change: int, *conditions: sa.ColumnElement[bool]) -> int:
    """End the opinions in force that meet these conditions; how many ended."""
    ending = sa.update(opinion).where(_IN_FORCE, *conditions)
    return connection.execute(ending.values(ended_by=change)).rowcount


def _is_tag(names: Iterable[str]) -> sa.ColumnElement[bool]:
    """The condition that an opinion has one of these tags."""
    return opinion.c.tag_id.in_(sa.select(tag.c.id).where(tag.c.name.in_(names)))


def _end_contrary_files(
    connection: sa.Connection, track_id: int, said: list[tuple[str, int]], change: int
) -> int:
    """End what a track's file says, where a person says the contrary now; how many opinions."""
    files = opinion.c.person_id.in_(sa.select(person.c.id).where(person.c.kind == "file"))
    ended = 0
    for value in (1, -1):
        contrary = _is_tag([name for name, spoken in said if spoken == value])
        here = (opinion.c.track_id == track_id, opinion.c.value == -value)
        ended += _end(connection, change, *here, files, contrary)
    return ended


def _without_contrary_files(connection: sa.Connection, coded: pl.DataFrame) -> pl.DataFrame:
    """What files say (track_id, tag_id, value …), without what a person says the contrary of."""
    query = (
        sa.select(opinion.c.track_id, opinion.c.tag_id, -opinion.c.value)
        .join_from(opinion, person)
        .where(_IN_FORCE, person.c.kind == "person")
    )
    schema = {"track_id": pl.Int64, "tag_id": pl.Int64, "value": pl.Int8}
    rows = [tuple(row) for row in connection.execute(query)]
    contrary = pl.DataFrame(rows, schema=schema, orient="row")
    return coded.join(contrary, on=list(schema), how="anti", maintain_order="left")


def _retract(
    connection: sa.Connection, name: str, track_id: int, tags: list[str], change: int
) -> int:
    """End what a person says about a track with these tags; how many opinions ended."""
    who = sa.select(person.c.id).where(person.c.name == storable(name).strip()).scalar_subquery()
    here = (opinion.c.track_id == track_id, opinion.c.person_id == who)
    ended = _end(connection, change, *here, _is_tag(tags))
    if ended:
        recount_people(connection, [track_id])
    return ended


def _time_of(connection: sa.Connection, change: int) -> int:
    at = connection.scalar(sa.select(change_table.c.at).where(change_table.c.id == change))
    if at is None:
        raise LibraryError(f"There is no change {change}; `Changes.begin` makes one.")
    return int(at)


def _begin(connection: sa.Connection, rows: pl.DataFrame, change: int, at: int) -> int:
    """Begin opinions, and end those that say otherwise; how many began.

    rows : distinct track_id, tag_id, person_id, with value
    """
    began = 0
    for some in rows.iter_slices(bulk.CHUNK):
        bulk.make_table(connection, some)
        connection.execute(sa.text(_END_CONTRARY), {"change": change})
        began += connection.execute(sa.text(_BEGIN), {"change": change, "at": at}).rowcount
        connection.exec_driver_sql("DROP TABLE incoming")
    return began


def _end_others(connection: sa.Connection, rows: pl.DataFrame, change: int) -> int:
    """End what the same people say about other tracks or with other tags; how many ended."""
    bulk.make_table(connection, rows.select(TRIPLE), "kept")
    connection.exec_driver_sql("CREATE INDEX kept_key ON kept (track_id, tag_id, person_id)")
    ended = connection.execute(sa.text(_END_OTHERS), {"change": change}).rowcount
    connection.exec_driver_sql("DROP TABLE kept")
    return ended


def _note_spellings(
    connection: sa.Connection, said: pl.DataFrame, kind: str, *, replace: bool
) -> None:
    """Count spellings, of a frame with tag_id and spelling.

    What files say is counted anew for their tags, or for all with `replace`; what people and tables
    say adds up.
    """
    counted: Counter[tuple[int, str]] = Counter()
    grouped = said.drop_nulls().group_by("tag_id", "spelling", maintain_order=True).len()
    for tag_id, text, uses in grouped.iter_rows():
        counted[tag_id, " ".join(storable(text).split())] += uses
    of_kind = spelling.c.kind == kind
    if kind == "file":
        mentioned = sa.true() if replace else spelling.c.tag_id.in_({key[0] for key in counted})
        connection.execute(sa.delete(spelling).where(of_kind, mentioned))
    found = sa.select(spelling.c.tag_id, spelling.c.spelling, spelling.c.id).where(of_kind)
    known = {(row.tag_id, row.spelling): row.id for row in connection.execute(found)}
    more = [{"number": known[key], "more": n} for key, n in counted.items() if key in known]
    if more:
        adding = sa.update(spelling).where(spelling.c.id == sa.bindparam("number"))
        connection.execute(adding.values(uses=spelling.c.uses + sa.bindparam("more")), more)
    new = [
        {"tag_id": key[0], "kind": kind, "spelling": key[1], "uses": n}
        for key, n in counted.items()
        if key not in known
    ]
    if new:
        connection.execute(sa.insert(spelling), new)


# How many people have opinions about each track. -----------------------------------------------


def recount_people(connection: sa.Connection, track_ids: Iterable[int]) -> None:
    """Count anew the people of tracks whose opinions have begun or ended."""
    touched = np.unique(np.fromiter(track_ids, np.int64))
    blocks = touched // BLOCK
    for block in np.unique(blocks).tolist():
        ids = touched[blocks == block]
        if len(ids) > _MAX_SINGLE_TRACKS:
            ids = block * BLOCK + np.arange(BLOCK)
            chosen = opinion.c.track_id.between(int(ids[0]), int(ids[-1]))
        else:
            chosen = opinion.c.track_id.in_(ids.tolist())
        people = _read_people(connection, [block]).get(block, np.zeros(BLOCK, np.int64))
        people[ids % BLOCK] = 0
        counted = (
            sa.select(opinion.c.track_id, sa.func.count(sa.distinct(opinion.c.person_id)))
            .where(opinion.c.ended_by.is_(None), chosen)
            .group_by(opinion.c.track_id)
        )
        for track_id, n_people in connection.execute(counted):
            people[track_id % BLOCK] = n_people
        data = people.astype("<i4").tobytes()
        connection.execute(sa.delete(people_count).where(people_count.c.block == block))
        connection.execute(sa.insert(people_count).values(block=block, people=data))


def people_of(connection: sa.Connection, track_ids: Ids) -> Ids:
    """How many people have opinions about tracks, (n,)."""
    blocks = track_ids // BLOCK
    result = np.zeros(len(track_ids), np.int64)
    for block, people in _read_people(connection, np.unique(blocks).tolist()).items():
        here = blocks == block
        result[here] = people[track_ids[here] % BLOCK]
    return result


def _read_people(connection: sa.Connection, blocks: list[int]) -> dict[int, Ids]:
    query = sa.select(people_count).where(people_count.c.block.in_(blocks))
    return {
        row.block: np.frombuffer(row.people, "<i4").astype(np.int64)
        for row in connection.execute(query)
    }
