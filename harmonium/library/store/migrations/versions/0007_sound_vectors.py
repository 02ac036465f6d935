"""How tracks sound, in few numbers each: what likeness compares."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the tables; they are filled when they are first needed."""
    op.create_table(
        "sound_space",
        sa.Column("extractor_id", Id, sa.ForeignKey("extractor.id"), primary_key=True),
        sa.Column("n_tracks", sa.Integer, nullable=False),
        sa.Column("arrays", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "sound_vector",
        sa.Column("extractor_id", Id, sa.ForeignKey("extractor.id"), primary_key=True),
        sa.Column("block", sa.Integer, primary_key=True),
        sa.Column("n_vectors", sa.Integer, nullable=False),
        sa.Column("vectors", sa.LargeBinary, nullable=False),
    )
