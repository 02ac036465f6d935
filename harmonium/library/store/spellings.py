"""How people spell tags: a tag has one normalised name, and is shown as it is most often spelt.

What files say is counted anew whenever it is imported; what people and tables say adds up.
"""

from collections import Counter

import polars as pl
import sqlalchemy as sa

from harmonium.library.store.schema import spelling, storable, tag


def note(connection: sa.Connection, said: pl.DataFrame, kind: str, *, replace: bool) -> None:
    """Count spellings, of a frame with tag_id and spelling.

    kind : of the people who spell so, see `opinions.Person`
    replace : whether only what is said now counts for this kind
    """
    counted: Counter[tuple[int, str]] = Counter()
    grouped = said.drop_nulls().group_by("tag_id", "spelling", maintain_order=True).len()
    for tag_id, text, uses in grouped.iter_rows():
        counted[tag_id, " ".join(storable(text).split())] += uses
    of_kind = spelling.c.kind == kind
    if kind == "file":
        anew = (
            of_kind
            if replace
            else of_kind & spelling.c.tag_id.in_({tag_id for tag_id, _ in counted})
        )
        connection.execute(sa.delete(spelling).where(anew))
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


def most_used(connection: sa.Connection) -> dict[str, str]:
    """Tag → its spelling, where that is not its normalised name: files' before all others."""
    uses = sa.func.sum(spelling.c.uses)
    of_files = sa.func.max(sa.case((spelling.c.kind == "file", spelling.c.uses), else_=0))
    query = (
        sa.select(tag.c.name, spelling.c.spelling)
        .join_from(spelling, tag)
        .group_by(tag.c.name, spelling.c.spelling)
        .order_by(of_files, uses, sa.func.max(spelling.c.id))
    )
    best = {row.name: row.spelling for row in connection.execute(query)}
    return {name: text for name, text in best.items() if text != name}
