"""Many rows at once: brought into a temporary table by the driver's fastest way, used by SQL."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import polars as pl
import sqlalchemy as sa

Item = TypeVar("Item")
PAGE = 1000
"""Rows that are read, or values of an IN, at a time."""
CHUNK = 100_000
"""Rows that are under way at a time."""


def batches(items: Iterable[Item], size: int | None = None) -> Iterator[list[Item]]:
    """The items in lists of at most ``size``, by default `PAGE`."""
    remaining = iter(items)
    while some := list(islice(remaining, size or PAGE)):
        yield some


def make_table(connection: sa.Connection, rows: pl.DataFrame, name: str = "incoming") -> None:
    """Make a temporary table of a frame of whole numbers."""
    columns = ", ".join(f"{column} bigint NOT NULL" for column in rows.columns)
    connection.exec_driver_sql(f"CREATE TEMPORARY TABLE {name} ({columns})")
    if connection.dialect.name == "postgresql":
        cursor: Any = connection.connection.cursor()
        with cursor, cursor.copy(f"COPY {name} ({', '.join(rows.columns)}) FROM STDIN") as copy:
            for some in rows.iter_slices(CHUNK):
                copy.write(some.write_csv(include_header=False, separator="\t"))
        connection.exec_driver_sql(f"ANALYZE {name}")
    else:
        for some in rows.iter_slices(CHUNK):
            connection.exec_driver_sql(_insertion(name, rows.columns), some.rows())


def new_numbers(connection: sa.Connection, table: sa.Table, count: int) -> list[int]:
    """Numbers for rows of a table that are about to be inserted, ascending; for one writer."""
    if connection.dialect.name == "postgresql":
        query = sa.text(
            "SELECT nextval(pg_get_serial_sequence(:t, 'id')) FROM generate_series(1, :n)"
        )
        return sorted(connection.execute(query, {"t": table.name, "n": count}).scalars())
    last = connection.scalar(sa.select(sa.func.max(table.c.id))) or 0
    return list(range(last + 1, last + 1 + count))


def insert_rows(
    connection: sa.Connection, table: sa.Table, rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows with a value for each column, in the order in which the schema has them."""
    names = [column.name for column in table.c]  # in an old library their order may be another
    if connection.dialect.name == "postgresql":
        cursor: Any = connection.connection.cursor()
        statement = f"COPY {table.name} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)"
        with cursor, cursor.copy(statement) as copy:
            copy.set_types([_postgres_type(column, connection) for column in table.c])
            for row in rows:
                copy.write_row(row)
    elif rows:
        connection.exec_driver_sql(_insertion(table.name, names), list(rows))


def _insertion(table: str, columns: Sequence[str]) -> str:
    """The statement that inserts a row into SQLite's table, with a mark for each value."""
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"


def _postgres_type(column: sa.Column[Any], connection: sa.Connection) -> str:
    """The name by which psycopg knows a column's type."""
    name = str(column.type.compile(connection.dialect)).lower()
    return "float8" if name == "float" else name


def pairs(connection: sa.Connection, key: sa.Column[Any], value: sa.Column[Any]) -> dict[Any, Any]:
    """One column of a table by another."""
    return {row[0]: row[1] for row in connection.execute(sa.select(key, value))}
