"""A library's tables. `upgrades.upgrade` creates them, or upgrades those of an old library.

Times are whole microseconds since 1970, UTC.
"""

from typing import Any

import sqlalchemy as sa

VERSION = "0011"  # the version of the tables that this version of Harmonium reads and writes
BLOCK = 8192  # track ids whose predictions, and numbers of people, are stored together

_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_DATABASES = ("sqlite", "postgresql")
metadata = sa.MetaData()


def _table(name: str, *parts: Any) -> sa.Table:
    return sa.Table(name, metadata, *parts)


def _numbered(name: str, *parts: Any) -> sa.Table:
    """A table whose rows have numbers."""
    return _table(name, sa.Column("id", _Id, primary_key=True), *parts)


def _file_contents(*, known: bool) -> list[sa.Column[Any]]:
    """What a file says about itself, and what can be written to it, when it was last read."""
    return [
        sa.Column("file_tags", sa.Text, nullable=not known),  # JSON
        sa.Column("format", sa.Text),
        sa.Column("tag_version", sa.Text),
        sa.Column("obstacle", sa.Text),
    ]


def _path() -> list[sa.Column[Any]]:
    """A path as text, and its bytes if it is not UTF-8."""
    return [sa.Column("path", sa.Text, nullable=False), sa.Column("path_bytes", sa.LargeBinary)]


def _predictions(name: str) -> sa.Table:
    """Probabilities of all tracks, by tag and block."""
    return _table(
        name,
        sa.Column("model_id", _Id, sa.ForeignKey("model.id"), primary_key=True),
        sa.Column("tag", sa.Integer, primary_key=True),  # place in the model's vocabulary
        sa.Column("block", sa.Integer, primary_key=True),  # track ids from BLOCK * block on
        sa.Column("probabilities", sa.LargeBinary, nullable=False),  # BLOCK uint16, see `models`
    )


table_version = sa.Table(
    "harmonium_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True)
)

setting = _table(
    "setting",
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),  # JSON
)
FOLDERS = "folders"  # the setting of the folders that were indexed
EXTRACTOR = "extractor"  # of the extractor's key
GENRES = "genres"  # of the genre tree
HIDDEN = "hidden:"
RENAMED = "renamed:"
KIND = "kind:"
SAVED = "search:"
"""Prefixes of the settings of hidden tags, of renamed ones, of the kinds of tags, and of saved
searches; the tag or the name follows. Each has a setting of its own, so that each can be undone."""

track = _numbered(
    "track",
    *_path(),
    sa.Column("sound", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),  # present, missing, unreadable or forgotten
    sa.Column("reason", sa.Text),
    *(sa.Column(name, sa.Text) for name in ("title", "artist", "album")),
    sa.Column("duration", sa.Float),  # seconds
    *_file_contents(known=True),
    sa.Column("size", sa.BigInteger, nullable=False),  # the file's, when it was last read
    sa.Column("modified", sa.BigInteger, nullable=False),  # the same in nanoseconds
    sa.Column("added_at", sa.BigInteger, nullable=False),
    sa.Index("track_sound", "sound", unique=True),
    sa.Index("track_path", "path"),
)

# Another file with the sound of a track.
track_copy = _numbered(
    "track_copy",
    sa.Column("track_id", _Id, sa.ForeignKey("track.id"), nullable=False),
    *_path(),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("modified", sa.BigInteger, nullable=False),
    *_file_contents(known=False),  # NULL: an older version read it
    sa.Index("track_copy_path", "path"),
)

extractor = _numbered(
    "extractor",
    sa.Column("key", sa.Text, nullable=False, unique=True),  # name and fingerprint
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("n_features", sa.Integer, nullable=False),
)

feature = _table(
    "feature",
    sa.Column("extractor_id", _Id, sa.ForeignKey("extractor.id"), primary_key=True),
    sa.Column("track_id", _Id, sa.ForeignKey("track.id"), primary_key=True),
    sa.Column("vector", sa.LargeBinary, nullable=False),  # little-endian float32
)

# Follows from the features; `tracks` keeps it up to date.
sound_space = _table(
    "sound_space",
    sa.Column("extractor_id", _Id, sa.ForeignKey("extractor.id"), primary_key=True),
    sa.Column("n_tracks", sa.Integer, nullable=False),  # that the library had then
    sa.Column("arrays", sa.LargeBinary, nullable=False),  # safetensors
)
sound_vector = _table(
    "sound_vector",
    sa.Column("extractor_id", _Id, sa.ForeignKey("extractor.id"), primary_key=True),
    sa.Column("block", sa.Integer, primary_key=True),  # as in predictions
    sa.Column("n_vectors", sa.Integer, nullable=False),
    sa.Column("vectors", sa.LargeBinary, nullable=False),  # int8, see `tracks`
)

change = _numbered(
    "change",
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("command", sa.Text, nullable=False),
    sa.Column("summary", sa.Text, nullable=False),
    sa.Column("undoes", _Id, sa.ForeignKey("change.id")),
    sa.Column("undone_by", _Id, sa.ForeignKey("change.id")),
    sa.Column("left", sa.BigInteger),  # of an undo that has ended: how much it could not undo
)

# What a change set besides opinions and files.
changed_value = _numbered(
    "changed_value",
    sa.Column("change_id", _Id, sa.ForeignKey("change.id"), nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # see changes
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("before", sa.Text, nullable=False),  # JSON
    sa.Column("after", sa.Text, nullable=False),  # JSON
    sa.Index("changed_value_change", "change_id"),
)

# A file that a change wrote to, and how to restore it.
written_file = _numbered(
    "written_file",
    sa.Column("change_id", _Id, sa.ForeignKey("change.id"), nullable=False),
    sa.Column("track_id", _Id, sa.ForeignKey("track.id")),
    *_path(),
    sa.Column("record", sa.LargeBinary, nullable=False),  # filetags.UndoRecord.to_bytes()
    sa.Column("pending", sa.SmallInteger),  # 1 until the file is known to have been written
    sa.Index("written_file_change", "change_id"),
)

person = _numbered(
    "person",
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("kind", sa.Text, nullable=False),  # person, file or import
)

tag = _numbered("tag", sa.Column("name", sa.Text, nullable=False, unique=True))

spelling = _numbered(
    "spelling",
    sa.Column("tag_id", _Id, sa.ForeignKey("tag.id"), nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # of the people who spell it so
    sa.Column("spelling", sa.Text, nullable=False),
    sa.Column("uses", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("tag_id", "kind", "spelling", name="spelling_of_tag"),
)

opinion = _numbered(
    "opinion",
    sa.Column("track_id", _Id, sa.ForeignKey("track.id"), nullable=False),
    sa.Column("tag_id", _Id, sa.ForeignKey("tag.id"), nullable=False),
    sa.Column("person_id", _Id, sa.ForeignKey("person.id"), nullable=False),
    sa.Column("value", sa.SmallInteger, nullable=False),  # 1 it fits, -1 it does not
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("begun_by", _Id, sa.ForeignKey("change.id"), nullable=False),
    sa.Column("ended_by", _Id, sa.ForeignKey("change.id")),  # NULL: in force
)
_in_force: Any = {f"{one}_where": opinion.c.ended_by.is_(None) for one in _DATABASES}
_ended: Any = {f"{one}_where": opinion.c.ended_by.is_not(None) for one in _DATABASES}
_triple = (opinion.c.track_id, opinion.c.tag_id, opinion.c.person_id)
sa.Index("opinion_in_force", *_triple, unique=True, **_in_force)
sa.Index("opinion_of_tag", opinion.c.tag_id, opinion.c.track_id, **_in_force)
sa.Index("opinion_begun_by", opinion.c.begun_by)
sa.Index("opinion_ended_by", opinion.c.ended_by, **_ended)

# Follows from the opinions in force; `opinions` keeps it up to date.
people_count = _table(
    "people_count",
    sa.Column("block", sa.Integer, primary_key=True, autoincrement=False),  # as in predictions
    sa.Column("people", sa.LargeBinary, nullable=False),  # BLOCK int32: people with an opinion
)

model = _numbered(
    "model",
    sa.Column("made_at", sa.BigInteger, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("vocabulary", sa.Text, nullable=False),  # JSON
    sa.Column("thresholds", sa.LargeBinary, nullable=False),  # little-endian float32
    sa.Column("extractor", sa.Text, nullable=False),  # key
    sa.Column("bytes", sa.LargeBinary, nullable=False),
    sa.Column("report", sa.Text, nullable=False),  # JSON
)

prediction = _predictions("prediction")
refined_prediction = _predictions("refined_prediction")  # with what the tags gained

# What a model's tags gained from answers since it was trained; see `models`.
refined_tag = _table(
    "refined_tag",
    sa.Column("model_id", _Id, sa.ForeignKey("model.id"), primary_key=True),
    sa.Column("tag", sa.Integer, primary_key=True),  # place; a new word's is after the model's tags
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("threshold", sa.Float),  # NULL: the model's
    sa.Column("answers", sa.LargeBinary, nullable=False),  # safetensors
    sa.Column("digest", sa.Text, nullable=False),  # of what it was learnt from
)
# The predictions of a track given what people have said about it since.
completed_track = _table(
    "completed_track",
    sa.Column("model_id", _Id, sa.ForeignKey("model.id"), primary_key=True),
    sa.Column("track_id", _Id, sa.ForeignKey("track.id"), primary_key=True),
    sa.Column("completed", sa.LargeBinary, nullable=False),  # uint16 for each of the model's tags
    sa.Column("probabilities", sa.LargeBinary, nullable=False),  # and what the tags gained
    sa.Column("digest", sa.Text, nullable=False),  # of what was said
)
