"""What people say of tracks: person, track, tag, and whether it is so.

An opinion in force is never overwritten: a change ends it, and begins another in its place. So
every change can be undone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa
from numpy.typing import ArrayLike

from harmonium.data.normalise import normalise_names, normalise_tag
from harmonium.errors import LibraryError
from harmonium.library.store import bulk, people_counts, spellings
from harmonium.library.store.database import LibraryPart, damaged
from harmonium.library.store.schema import change as change_table
from harmonium.library.store.schema import opinion, person, storable, tag

KINDS = ("person", "file", "import")
_IN_FORCE = opinion.c.ended_by.is_(None)


@dataclass(frozen=True)
class Person:
    """Someone who says something of tracks."""

    id: int
    name: str
    kind: str
    """"person", "file" (tags found in files) or "import" (a user of an imported table)."""
    n_tags: int
    """Different tags that they use now."""
    n_tracks: int
    """Tracks that they say something of now."""


class Opinions(LibraryPart):
    """What people say of the tracks of a library."""

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
            taken_back = [name for name, value in said if not value]
            return ended + began + _retract(connection, person, int(track_id), taken_back, change)

    def end_tracks(self, ids: Iterable[int], *, change: int) -> int:
        """End all that is said of tracks; how many opinions ended."""
        ended = 0
        with self._library.begin() as connection:
            for some in bulk.batches(map(int, ids)):
                here = sa.update(opinion).where(_IN_FORCE, opinion.c.track_id.in_(some))
                ended += connection.execute(here.values(ended_by=change)).rowcount
                people_counts.recount(connection, some)
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
            spellings.note(connection, named, "person", replace=False)
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
            ending = sa.update(opinion).where(_IN_FORCE, opinion.c.tag_id == before)
            ended = connection.execute(ending.values(ended_by=change)).rowcount
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
            key = ["track_id", "tag_id", "person_id"]
            coded = coded.drop_nulls().unique(key, keep="last", maintain_order=True).sort(key)
            if kind == "file" and len(coded):
                coded = _without_contrary_files(connection, coded)
            at = _time_of(connection, change)
            spelt = frame["spelling" if "spelling" in frame.columns else "tag"]
            said = pl.DataFrame({"tag_id": tag_ids, "spelling": spelt})
            spellings.note(connection, said, kind, replace=replace)
            ended = bulk.end_other_opinions(connection, coded, change) if replace else 0
            began = bulk.begin_opinions(connection, coded, change, at)
            people_counts.recount(connection, coded["track_id"])
            if ended:
                touched = sa.select(opinion.c.track_id).where(opinion.c.ended_by == change)
                people_counts.recount(connection, connection.execute(touched.distinct()).scalars())
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
        """Tag → how people spell it, where that is not its normalised name."""
        with self._library.connect() as connection:
            return spellings.most_used(connection)

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
                f"The tag {name!r} cannot be given, denied and taken back at once. Choose one."
            )


def _end_contrary_files(
    connection: sa.Connection, track_id: int, said: list[tuple[str, int]], change: int
) -> int:
    """End what a track's file says, where a person says the contrary now; how many opinions."""
    ended = 0
    files = sa.select(person.c.id).where(person.c.kind == "file")
    for value in (1, -1):
        names = [name for name, spoken in said if spoken == value]
        ending = sa.update(opinion).where(
            _IN_FORCE,
            opinion.c.track_id == track_id,
            opinion.c.value == -value,
            opinion.c.person_id.in_(files),
            opinion.c.tag_id.in_(sa.select(tag.c.id).where(tag.c.name.in_(names))),
        )
        ended += connection.execute(ending.values(ended_by=change)).rowcount if names else 0
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
    who = sa.select(person.c.id).where(person.c.name == storable(name).strip()).scalar_subquery()
    what = sa.select(tag.c.id).where(tag.c.name.in_(tags))
    ending = sa.update(opinion).where(
        _IN_FORCE,
        opinion.c.track_id == track_id,
        opinion.c.person_id == who,
        opinion.c.tag_id.in_(what),
    )
    ended = connection.execute(ending.values(ended_by=change)).rowcount if tags else 0
    if ended:
        people_counts.recount(connection, [track_id])
    return ended


def _time_of(connection: sa.Connection, change: int) -> int:
    at = connection.scalar(sa.select(change_table.c.at).where(change_table.c.id == change))
    if at is None:
        raise LibraryError(f"There is no change {change}; `Changes.begin` makes one.")
    return int(at)
