"""The rows of what people say about tracks.

An opinion in force is never overwritten: a change ends it and begins another instead. So every
change can be undone.

Two things are stored beside them: how many people have opinions about each track, in blocks of
`BLOCK` tracks (whoever begins or ends opinions calls `recount_people` in the same transaction); and
how people spell each tag, which is shown in its most frequent spelling.

What people agree on follows from these rows in `harmonium.library.verdicts`.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
import sqlalchemy as sa
from numpy.typing import ArrayLike

from harmonium import stopping
from harmonium.arrays import Codes, Ids
from harmonium.data.tag_names import normalise_names, normalise_tag
from harmonium.errors import LibraryError
from harmonium.library.store import database
from harmonium.library.store.failures import damaged
from harmonium.library.store.schema import BLOCK, opinion, people_count, spelling, tag
from harmonium.library.store.schema import change as change_table
from harmonium.library.store.schema import person as people_table
from harmonium.library.store.values import storable

Kind = Literal["person", "file", "import"]
TRIPLE = ["track_id", "tag_id", "person_id"]  # the columns that identify an opinion
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
        said = sa.and_(_IN_FORCE, opinion.c.person_id == people_table.c.id)
        query = (
            sa.select(
                people_table,
                _distinct(opinion.c.tag_id).label("n_tags"),
                _distinct(opinion.c.track_id).label("n_tracks"),
            )
            .outerjoin_from(people_table, opinion, said)
            .group_by(people_table.c.id)
            .order_by(people_table.c.id)
        )
        return [
            Person(
                id=row.id,
                name=row.name,
                kind=row.kind,
                n_tags=row.n_tags,
                n_tracks=row.n_tracks,
            )
            for row in self._library.fetch(query)
        ]

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
        given = self._spelt_now(present)
        rejected = self._spelt_now(absent)
        withdrawn = self._spelt_now(retract)
        _check_contradictions(given, rejected, withdrawn)
        rows = []
        for track_id in ids:
            rows += [(person, track_id, name, 1) for name in given]
            rows += [(person, track_id, name, -1) for name in rejected]
        schema = {"person": pl.String, "track_id": pl.Int64, "tag": pl.String, "value": pl.Int8}
        triples = pl.DataFrame(rows, schema=schema, orient="row")
        with self._library.begin() as connection:
            ended = _end_of_files(connection, change, ids, given, value=-1)
            ended += _end_of_files(connection, change, ids, rejected, value=1)
            ended += _end_of_person(connection, change, ids, withdrawn, person)
            began = self.add_triples(triples, change=change, kind="person")
            recount_people(connection, ids)
        return began + ended

    def _spelt_now(self, names: Iterable[str]) -> list[str]:
        """Tags as people spelt them, except that a renamed tag has its present name."""
        renamed = self._library.tags.renamed()
        return [storable(renamed.get(normalise_tag(name), name)) for name in names]

    def end_tracks(self, ids: Iterable[int], *, change: int) -> int:
        """End all opinions about tracks; returns how many."""
        ended = 0
        with self._library.begin() as connection:
            for batch in database.batches(map(int, ids)):
                ended += _end(connection, change, opinion.c.track_id.in_(batch))
                recount_people(connection, batch)
        return ended

    def rename_tag(self, old: str, new: str, *, change: int) -> tuple[int, int]:
        """Move all opinions from one tag to another; both in any spelling.

        If somebody used both for a track, what they said with the new one stays. Returns how many
        opinions moved to the new tag, and how many only ended.
        """
        with self._library.begin() as connection:
            old_id, new_id = _ids_of(connection, tag, pl.Series([old, new])).to_list()
            named = pl.DataFrame({"tag_id": [new_id], "spelling": [new]})
            _count_spellings(connection, named, "person", replace=False)
            other = opinion.alias()
            uses_both = sa.exists().where(
                other.c.track_id == opinion.c.track_id,
                other.c.person_id == opinion.c.person_id,
                other.c.tag_id == new_id,
                other.c.ended_by.is_(None),
            )
            columns = ["track_id", "person_id", "value", "at", "tag_id", "begun_by"]
            moving = sa.select(
                opinion.c.track_id,
                opinion.c.person_id,
                opinion.c.value,
                opinion.c.at,
                sa.literal(new_id),
                sa.literal(change),
            ).where(_IN_FORCE, opinion.c.tag_id == old_id, ~uses_both)
            count = sa.select(sa.func.count()).select_from(moving.subquery())
            n_moved = int(connection.scalar(count) or 0)
            connection.execute(sa.insert(opinion).from_select(columns, moving))
            n_ended = _end(connection, change, opinion.c.tag_id == old_id)
            return n_moved, n_ended - n_moved

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
        with self._library.begin() as connection:
            at = connection.scalar(sa.select(change_table.c.at).where(change_table.c.id == change))
            if at is None:
                raise LibraryError(f"There is no change {change}; `Changes.begin` makes one.")
            tag_ids = _ids_of(connection, tag, frame["tag"])
            coded = _coded(connection, frame, tag_ids, kind)
            if kind == "file" and len(coded):
                coded = _without_contrary_files(connection, coded)
            spellings = frame["spelling"] if "spelling" in frame.columns else frame["tag"]
            spelt = pl.DataFrame({"tag_id": tag_ids, "spelling": spellings})
            _count_spellings(connection, spelt, kind, replace=replace)
            ended = _end_others(connection, coded, change) if replace else 0
            began = 0
            for rows in coded.iter_slices(database.CHUNK):
                stopping.check()
                database.make_table(connection, rows)
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
        if not ids:
            return self._frame(opinion.c.track_id.in_([]))
        pages = database.batches(ids, database.IDS_AT_ONCE)
        return pl.concat([self._frame(opinion.c.track_id.in_(page)) for page in pages])

    def with_tags(self, names: Collection[str], *, people: bool) -> pl.DataFrame:
        """The opinions in force with some tags: person (a number), track_id, value and tag.

        Without ``people``, the number of each person is 0; that is faster.
        """
        # As texts: thousands of rows would each become an object first. -12: rejected for track 12.
        texts = [_joined(opinion.c.track_id * opinion.c.value)]
        if people:
            texts.append(_joined(opinion.c.person_id))
        query = (
            sa.select(tag.c.name, *texts)
            .join_from(opinion, tag)
            .where(_IN_FORCE, tag.c.name.in_(names))
            .group_by(tag.c.name)
        )
        schema = {"person": pl.Int64, "track_id": pl.Int64, "value": pl.Int64, "tag": pl.String}
        frames = [pl.DataFrame(schema=schema)]
        for name, *columns in self._library.fetch(query):
            signed_ids, *person_ids = [np.fromstring(text, np.int64, sep=",") for text in columns]
            frame = pl.DataFrame(
                {
                    "person": person_ids[0] if people else np.zeros_like(signed_ids),
                    "track_id": np.abs(signed_ids),
                    "value": np.sign(signed_ids),
                }
            )
            frames.append(frame.with_columns(tag=pl.lit(name)))
        return pl.concat(frames)

    def tracks_touched_since(self, since: database.LibraryVersion) -> Ids:
        """The tracks on which opinions have begun or ended since a version, ascending."""
        begun = sa.select(opinion.c.track_id).where(opinion.c.id > since.opinion)
        # A review keeps adding answers to its change, so the last change is checked, too.
        ended = sa.select(opinion.c.track_id).where(opinion.c.ended_by >= since.change)
        rows = [*self._library.fetch(begun), *self._library.fetch(ended)]
        return np.unique([row.track_id for row in rows]).astype(np.int64)

    def of_track(self, track_id: int) -> list[tuple[str, str, int]]:
        """(person, tag, value) of all opinions in force about one track; value is 1 or -1."""
        query = (
            sa.select(people_table.c.name, tag.c.name, opinion.c.value)
            .join_from(opinion, tag)
            .join(people_table)
            .where(_IN_FORCE, opinion.c.track_id == int(track_id))
            .order_by(opinion.c.id)
        )
        return [(person, name, value) for person, name, value in self._library.fetch(query)]

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
        in_files = sa.func.max(sa.case((spelling.c.kind == "file", spelling.c.uses), else_=0))
        query = (
            sa.select(tag.c.name, spelling.c.spelling)
            .join_from(spelling, tag)
            .group_by(tag.c.name, spelling.c.spelling)
            .order_by(in_files, uses, sa.func.max(spelling.c.id))
        )
        best = {row.name: row.spelling for row in self._library.fetch(query)}  # the last one stays
        return {name: text for name, text in best.items() if text != name}

    def _frame(self, *conditions: Any) -> pl.DataFrame:
        """The opinions in force that meet all conditions."""
        schema = dict.fromkeys(("person_id", "track_id", "tag_id", "value", "at"), pl.Int64)
        query = (
            sa.select(*(opinion.c[name] for name in schema))
            .where(_IN_FORCE, *conditions)
            .order_by(opinion.c.track_id, opinion.c.tag_id, opinion.c.person_id)
        )
        with self._library.connect() as connection:
            people = database.pairs(connection, people_table.c.id, people_table.c.name)
            tags = database.pairs(connection, tag.c.id, tag.c.name)
            try:
                return database.read_frame(connection, query, schema).select(
                    person=pl.col("person_id").replace_strict(people, return_dtype=pl.String),
                    track_id="track_id",
                    tag=pl.col("tag_id").replace_strict(tags, return_dtype=pl.String),
                    value=pl.col("value").cast(pl.Int8),
                    at=pl.col("at").cast(pl.Datetime("us", "UTC")),
                )
            except (pl.exceptions.PolarsError, TypeError) as error:
                raise damaged("a tag refers to a missing person or name") from error


def _check_contradictions(
    given: Iterable[str], rejected: Iterable[str], withdrawn: Iterable[str]
) -> None:
    """A LibraryError if a tag is empty, or has two of the three roles."""
    roles: dict[str, str] = {}
    for role, names in (("given", given), ("rejected", rejected), ("withdrawn", withdrawn)):
        for spelt in names:
            name = normalise_tag(spelt)
            if not name:
                raise LibraryError("A tag must have a name, got an empty text.")
            if roles.setdefault(name, role) != role:
                raise LibraryError(
                    f"The tag {name!r} cannot be given, rejected and withdrawn at once. Choose one."
                )


def _end_of_files(
    connection: sa.Connection, change: int, ids: list[int], names: Iterable[str], *, value: int
) -> int:
    """End opinions with this value that tracks' files have about tags; returns how many."""
    from_files = sa.select(people_table.c.id).where(people_table.c.kind == "file")
    return _end_about(
        connection,
        change,
        ids,
        names,
        opinion.c.person_id.in_(from_files),
        opinion.c.value == value,
    )


def _end_of_person(
    connection: sa.Connection, change: int, ids: list[int], names: Iterable[str], person: str
) -> int:
    """End a person's opinions about tags of tracks; returns how many."""
    name = storable(person).strip()
    themselves = sa.select(people_table.c.id).where(people_table.c.name == name)
    ended = _end_about(connection, change, ids, names, opinion.c.person_id.in_(themselves))
    if ended:
        database.bump_version(connection, database.WITHDRAWN)
    return ended


def _end_about(
    connection: sa.Connection,
    change: int,
    ids: list[int],
    names: Iterable[str],
    *conditions: sa.ColumnElement[bool],
) -> int:
    """End opinions about tags of tracks that meet these conditions; returns how many."""
    normalised = [normalise_tag(name) for name in names]
    if not normalised:
        return 0
    with_tag = opinion.c.tag_id.in_(sa.select(tag.c.id).where(tag.c.name.in_(normalised)))
    ended = 0
    for batch in database.batches(ids):
        on_track = opinion.c.track_id.in_(batch)
        ended += _end(connection, change, on_track, with_tag, *conditions)
    return ended


def _end(connection: sa.Connection, change: int, *conditions: sa.ColumnElement[bool]) -> int:
    """End the opinions in force that meet these conditions; returns how many."""
    update = sa.update(opinion).where(_IN_FORCE, *conditions).values(ended_by=change)
    return connection.execute(update).rowcount


def _distinct(column: sa.Column[Any]) -> sa.Function[Any]:
    return sa.func.count(sa.distinct(column))


def _joined(numbers: sa.ColumnElement[int]) -> sa.Function[str]:
    """All numbers of a group in one text, with commas between them."""
    return sa.func.aggregate_strings(sa.cast(numbers, sa.String), ",")


def _coded(
    connection: sa.Connection, frame: pl.DataFrame, tag_ids: pl.Series, kind: Kind
) -> pl.DataFrame:
    """The rows as track_id, tag_id, person_id and value, each triple once."""
    values = pl.col("value") if "value" in frame.columns else pl.lit(1)
    coded = frame.select(
        pl.col("track_id").cast(pl.Int64),
        tag_ids,
        _ids_of(connection, people_table, frame["person"], kind=kind),
        values.cast(pl.Int8).alias("value"),
    )
    wrong = coded.filter(~pl.col("value").is_in([1, -1]))["value"]
    if len(wrong):
        raise LibraryError(f"'value' must be 1 (the tag fits) or -1 (it does not), got {wrong[0]}.")
    return coded.drop_nulls().unique(TRIPLE, keep="last", maintain_order=True).sort(TRIPLE)


def _ids_of(
    connection: sa.Connection, table: sa.Table, names: pl.Series, **values: str
) -> pl.Series:
    """The numbers of tags or people (n,), null for empty names; new names get new numbers."""
    distinct = names.unique(maintain_order=True)
    stored = pl.Series([storable(name).strip() for name in distinct], dtype=pl.String)
    if table is tag:
        stored = normalise_names(stored)
    known = database.pairs(connection, table.c.name, table.c.id)
    new = [name for name in stored.unique(maintain_order=True) if name and name not in known]
    if new:
        connection.execute(sa.insert(table), [{"name": name, **values} for name in new])
        known = database.pairs(connection, table.c.name, table.c.id)
    numbers = pl.Series([known.get(name) for name in stored], dtype=pl.Int64)
    return names.replace_strict(distinct, numbers, return_dtype=pl.Int64).alias(f"{table.name}_id")


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


def _count_spellings(
    connection: sa.Connection, spelt: pl.DataFrame, kind: str, *, replace: bool
) -> None:
    """Count the spellings in a frame with tag_id and spelling.

    Counts from files are replaced for their tags, or for all tags with `replace`; counts from
    people and tables add up.
    """
    counts = spelt.drop_nulls().group_by("tag_id", "spelling", maintain_order=True).len("uses")
    if kind == "file":
        old = sa.delete(spelling).where(spelling.c.kind == kind)
        if not replace:
            old = old.where(spelling.c.tag_id.in_(counts["tag_id"].unique().to_list()))
        connection.execute(old)
    rows = []
    for tag_id, text, uses in counts.iter_rows():
        one_line = " ".join(storable(text).split())
        rows.append({"tag_id": tag_id, "kind": kind, "spelling": one_line, "uses": uses})
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
        counts = (
            sa.select(opinion.c.track_id, _distinct(opinion.c.person_id))
            .where(_IN_FORCE, chosen)
            .group_by(opinion.c.track_id)
        )
        for track_id, n_people in connection.execute(counts):
            people[track_id % BLOCK] = n_people
        row = {"block": block, "people": people.tobytes()}
        database.replace_rows(connection, people_count, [row], people_count.c.block == block)


def people_of(connection: sa.Connection, track_ids: Ids) -> Ids:
    """How many people have opinions about tracks, (n,)."""
    blocks = track_ids // BLOCK
    counts = np.zeros(len(track_ids), np.int64)
    for block, people in _read_people(connection, np.unique(blocks).tolist()).items():
        in_block = blocks == block
        counts[in_block] = people[track_ids[in_block] % BLOCK]
    return counts


def _read_people(connection: sa.Connection, blocks: list[int]) -> dict[int, Codes]:
    """Block → how many people have opinions about its tracks, (BLOCK,)."""
    rows = connection.execute(sa.select(people_count).where(people_count.c.block.in_(blocks)))
    return {row.block: np.frombuffer(row.people, "<i4").copy() for row in rows}
