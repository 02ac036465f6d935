"""Bringing a library's tables up to date, with Alembic."""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

FOLDER = Path(__file__).parent


def upgrade(connection: sa.Connection, *, to: str = "head", folder: Path = FOLDER) -> None:
    """Run the migrations that the library lacks, in the connection's transaction."""
    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, to)
