"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "setting",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    _tracks()
    _features()
    _changes()
    _opinions()
    _models()


def _tracks() -> None:
    op.create_table(
        "track",
        sa.Column("id", Id, primary_key=True),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("path_bytes", sa.LargeBinary),
        sa.Column("sound", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("title", sa.Text),
        sa.Column("artist", sa.Text),
        sa.Column("album", sa.Text),
        sa.Column("duration", sa.Float),
        sa.Column("file_tags", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("modified", sa.BigInteger, nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
    )
    op.create_index("track_sound", "track", ["sound"], unique=True)
    op.create_index("track_path", "track", ["path"])
    op.create_table(
        "track_copy",
        sa.Column("id", Id, primary_key=True),
        sa.Column("track_id", Id, sa.ForeignKey("track.id"), nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("path_bytes", sa.LargeBinary),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("modified", sa.BigInteger, nullable=False),
    )
    op.create_index("track_copy_path", "track_copy", ["path"])


def _features() -> None:
    op.create_table(
        "extractor",
        sa.Column("id", Id, primary_key=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("n_features", sa.Integer, nullable=False),
    )
    op.create_table(
        "feature",
        sa.Column("extractor_id", Id, sa.ForeignKey("extractor.id"), primary_key=True),
        sa.Column("track_id", Id, sa.ForeignKey("track.id"), primary_key=True),
        sa.Column("vector", sa.LargeBinary, nullable=False),
    )


def _changes() -> None:
    op.create_table(
        "change",
        sa.Column("id", Id, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("undoes", Id, sa.ForeignKey("change.id")),
        sa.Column("undone_by", Id, sa.ForeignKey("change.id")),
    )
    op.create_table(
        "written_file",
        sa.Column("id", Id, primary_key=True),
        sa.Column("change_id", Id, sa.ForeignKey("change.id"), nullable=False),
        sa.Column("track_id", Id, sa.ForeignKey("track.id")),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("path_bytes", sa.LargeBinary),
        sa.Column("record", sa.LargeBinary, nullable=False),
    )
    op.create_index("written_file_change", "written_file", ["change_id"])


def _opinions() -> None:
    op.create_table(
        "person",
        sa.Column("id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("kind", sa.Text, nullable=False),
    )
    op.create_table(
        "tag",
        sa.Column("id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
    )
    op.create_table(
        "opinion",
        sa.Column("id", Id, primary_key=True),
        sa.Column("track_id", Id, sa.ForeignKey("track.id"), nullable=False),
        sa.Column("tag_id", Id, sa.ForeignKey("tag.id"), nullable=False),
        sa.Column("person_id", Id, sa.ForeignKey("person.id"), nullable=False),
        sa.Column("value", sa.SmallInteger, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("begun_by", Id, sa.ForeignKey("change.id"), nullable=False),
        sa.Column("ended_by", Id, sa.ForeignKey("change.id")),
    )
    in_force, ended = sa.text("ended_by IS NULL"), sa.text("ended_by IS NOT NULL")
    op.create_index(
        "opinion_in_force",
        "opinion",
        ["track_id", "tag_id", "person_id"],
        unique=True,
        sqlite_where=in_force,
        postgresql_where=in_force,
    )
    op.create_index(
        "opinion_of_tag",
        "opinion",
        ["tag_id", "track_id"],
        sqlite_where=in_force,
        postgresql_where=in_force,
    )
    op.create_index("opinion_begun_by", "opinion", ["begun_by"])
    op.create_index(
        "opinion_ended_by", "opinion", ["ended_by"], sqlite_where=ended, postgresql_where=ended
    )


def _models() -> None:
    op.create_table(
        "model",
        sa.Column("id", Id, primary_key=True),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("vocabulary", sa.Text, nullable=False),
        sa.Column("thresholds", sa.LargeBinary, nullable=False),
        sa.Column("extractor", sa.Text, nullable=False),
        sa.Column("bytes", sa.LargeBinary, nullable=False),
        sa.Column("report", sa.Text, nullable=False),
    )
    op.create_table(
        "prediction",
        sa.Column("model_id", Id, sa.ForeignKey("model.id"), primary_key=True),
        sa.Column("tag", sa.Integer, primary_key=True),
        sa.Column("block", sa.Integer, primary_key=True),
        sa.Column("probabilities", sa.LargeBinary, nullable=False),
    )
