"""How many people have said something of each track, counted once and kept."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

BLOCK = 8192


def upgrade() -> None:
    """Make the table, and count."""
    crowd = op.create_table(
        "crowd",
        sa.Column("block", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("people", sa.LargeBinary, nullable=False),
    )
    counts = sa.text(
        "SELECT track_id, count(DISTINCT person_id) FROM opinion WHERE ended_by IS NULL "
        "GROUP BY track_id"
    )
    blocks: dict[int, bytearray] = {}
    for track, people in op.get_bind().execute(counts):
        counted = blocks.setdefault(track // BLOCK, bytearray(4 * BLOCK))
        place = 4 * (track % BLOCK)
        counted[place : place + 4] = people.to_bytes(4, "little")
    rows = [{"block": block, "people": bytes(counted)} for block, counted in blocks.items()]
    op.bulk_insert(crowd, rows)
