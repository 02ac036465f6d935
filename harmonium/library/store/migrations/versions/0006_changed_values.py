"""What changes set besides opinions and files; and how much an undo has left."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the table and the column."""
    op.create_table(
        "changed_value",
        sa.Column("id", Id, primary_key=True),
        sa.Column("change_id", Id, sa.ForeignKey("change.id"), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("before", sa.Text, nullable=False),
        sa.Column("after", sa.Text, nullable=False),
    )
    op.create_index("changed_value_change", "changed_value", ["change_id"])
    op.add_column("change", sa.Column("left", sa.BigInteger))
