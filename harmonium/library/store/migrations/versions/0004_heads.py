"""The tag probabilities that an extractor gives, beside its features."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """A column that is empty where the extractor gives none."""
    op.add_column("feature", sa.Column("heads", sa.LargeBinary))
