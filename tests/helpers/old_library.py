"""Libraries with tables of version 0008, the last before the first release."""

import gzip
import sqlite3

import sqlalchemy as sa
from places import PROJECT

from harmonium.library.store import database, upgrades
from harmonium.library.store.schema import metadata, table_version

OLD = "0008"
DUMP = PROJECT / "tests/library/store/library_0008.sql.gz"
"""What the program made then: four files in /music, opinions, a hidden tag, a forgotten track and
a write."""


def engine_of(place):
    make = database.postgresql_engine if database.is_url(str(place)) else database.sqlite_engine
    return make(place)


def make_old_tables(place):
    """Empty tables of the old version, in either database."""
    engine = engine_of(place)
    database.use_write_ahead_log(engine)
    with engine.connect() as connection, connection.begin():
        for tables in (metadata, table_version.metadata):
            tables.create_all(connection)
        bytes_type = "bytea" if engine.dialect.name == "postgresql" else "blob"
        connection.execute(sa.text(f"ALTER TABLE feature ADD COLUMN heads {bytes_type}"))
        connection.execute(sa.text("ALTER TABLE people_count RENAME TO crowd"))
        new = [("written_file", "pending")]
        new += [("track", name) for name in upgrades.ABOUT_FILES]
        new += [("track_copy", name) for name in ("file_tags", *upgrades.ABOUT_FILES)]
        for table, name in new:
            connection.execute(sa.text(f"ALTER TABLE {table} DROP COLUMN {name}"))
        connection.execute(sa.insert(table_version).values(version_num=OLD))
    return engine


def load_old_library(file):
    """The library of the dump, in a file."""
    with sqlite3.connect(file) as connection:
        connection.executescript(gzip.decompress(DUMP.read_bytes()).decode())
    connection.close()
