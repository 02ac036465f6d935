"""What answers have taught since a model was trained."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the tables; they are filled by the next answer."""
    op.create_table(
        "refined_tag",
        sa.Column("model_id", Id, sa.ForeignKey("model.id"), primary_key=True),
        sa.Column("tag", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("threshold", sa.Float),
        sa.Column("answers", sa.LargeBinary, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
    )
    op.create_table(
        "refined_prediction",
        sa.Column("model_id", Id, sa.ForeignKey("model.id"), primary_key=True),
        sa.Column("tag", sa.Integer, primary_key=True),
        sa.Column("block", sa.Integer, primary_key=True),
        sa.Column("probabilities", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "completed_track",
        sa.Column("model_id", Id, sa.ForeignKey("model.id"), primary_key=True),
        sa.Column("track_id", Id, sa.ForeignKey("track.id"), primary_key=True),
        sa.Column("completed", sa.LargeBinary, nullable=False),
        sa.Column("probabilities", sa.LargeBinary, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
    )
