"""How people spell each tag, and how often."""

import json
from collections import Counter

import sqlalchemy as sa
from alembic import op

from harmonium.data.normalise import normalise_tag

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the table, and count how files spell the tags that they have."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    spelling = op.create_table(
        "spelling",
        sa.Column("id", number, primary_key=True),
        sa.Column("tag_id", number, sa.ForeignKey("tag.id"), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("spelling", sa.Text, nullable=False),
        sa.Column("uses", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("tag_id", "kind", "spelling", name="spelling_of_tag"),
    )
    connection = op.get_bind()
    tags = {name: key for key, name in connection.execute(sa.text("SELECT id, name FROM tag"))}
    uses: Counter[str] = Counter()
    for (text,) in connection.execute(sa.text("SELECT file_tags FROM track")):
        for values in json.loads(text).values():
            uses.update(" ".join(value.replace("\0", " ").split()) for value in values)
    rows = [
        {"tag_id": tags[normalise_tag(text)], "kind": "file", "spelling": text, "uses": n}
        for text, n in uses.items()
        if normalise_tag(text) in tags
    ]
    op.bulk_insert(spelling, rows)
