"""Creating a library's tables, and upgrading those of an older version of Harmonium."""

import sqlalchemy as sa

from harmonium.errors import LibraryError
from harmonium.library.store.schema import VERSION, metadata, table_version

ABOUT_FILES = ("format", "tag_version", "obstacle")  # columns that version 0010 added
MIGRATIONS = {  # version → the statements that upgrade the tables from the version before
    "0009": ("ALTER TABLE feature DROP COLUMN heads", "ALTER TABLE crowd RENAME TO people_count"),
    "0010": (
        *(f"ALTER TABLE track ADD COLUMN {name} TEXT" for name in ABOUT_FILES),
        *(f"ALTER TABLE track_copy ADD COLUMN {name} TEXT" for name in ("file_tags", *ABOUT_FILES)),
    ),
    "0011": ("ALTER TABLE written_file ADD COLUMN pending SMALLINT",),
}
_OLDEST = "0008"


def read_table_version(connection: sa.Connection) -> tuple[str | None, bool]:
    """The version of the tables, or None; and whether there are no tables."""
    names = sa.inspect(connection).get_table_names()
    if table_version.name not in names:
        return None, not names
    return connection.scalar(sa.select(table_version.c.version_num)), False


def upgrade(connection: sa.Connection, place: str) -> None:
    """Create or upgrade the tables, in the connection's transaction."""
    version, _ = read_table_version(connection)  # another process may have done it first
    if version is None:
        for tables in (metadata, table_version.metadata):
            tables.create_all(connection)
        connection.execute(sa.insert(table_version).values(version_num=VERSION))
        return
    if version > VERSION:
        raise LibraryError(
            f"The library {place} was written by a newer version of Harmonium (version {version} "
            f"of the tables; this one knows {VERSION}). Upgrade Harmonium, or name another library "
            "with --library."
        )
    if version < _OLDEST:
        raise LibraryError(
            f"The library {place} was written before Harmonium's first release (version {version} "
            f"of the tables, before {_OLDEST}). Index the music into a new library."
        )
    for number, statements in MIGRATIONS.items():
        for statement in statements if number > version else ():
            connection.exec_driver_sql(statement)
    connection.execute(sa.update(table_version).values(version_num=VERSION))
