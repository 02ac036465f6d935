"""The tables of a library: made at once in a new one, brought up to date in an older one.

A migration is a list of statements that both databases take. `VERSION` names the last one.
"""

import sqlalchemy as sa

from harmonium.errors import LibraryError
from harmonium.library.store.schema import VERSION, metadata, table_version

MIGRATIONS = {
    "0009": (
        "ALTER TABLE feature DROP COLUMN heads",
        "ALTER TABLE crowd RENAME TO people_count",
    ),
}
"""Version → the statements that make its tables out of those of the version before."""
_OLDEST = "0008"


def read_table_version(connection: sa.Connection) -> tuple[str | None, bool]:
    """The version of the tables, None where there is none; and whether there are no tables."""
    names = sa.inspect(connection).get_table_names()
    if table_version.name not in names:
        return None, not names
    return connection.scalar(sa.select(table_version.c.version_num)), False


def upgrade(connection: sa.Connection, place: str) -> None:
    """Make the tables, or bring them up to date, in the connection's transaction.

    Raises
    ------
    LibraryError
        where they are of a newer version, or of one that is too old
    """
    version, _ = read_table_version(connection)  # another process may have been faster
    if version is None:
        for tables in (metadata, table_version.metadata):
            tables.create_all(connection)
        connection.execute(sa.insert(table_version).values(version_num=VERSION))
        return
    if version > VERSION:
        raise LibraryError(
            f"The library {place} was written by a newer version of Harmonium (its tables are "
            f"version {version}, known here up to {VERSION}). Upgrade Harmonium, or name another "
            "library with --library."
        )
    if version < _OLDEST:
        raise LibraryError(
            f"The library {place} was written by a version of Harmonium from before its first "
            f"release (its tables are version {version}, known here from {_OLDEST} on). Index the "
            "music into a new library."
        )
    for number, statements in MIGRATIONS.items():
        for statement in statements if number > version else ():
            connection.exec_driver_sql(statement)
    connection.execute(sa.update(table_version).values(version_num=VERSION))
