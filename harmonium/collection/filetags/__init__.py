"""Tags in music files: read, written where players look, and undone to the byte.

    change = plan_write("song.mp3", ["rock", "mellow"])   # the dry run
    record = apply_change(change)
    undo("song.mp3", record)

`docs/filetags.md` says what is written where.
"""

from harmonium.collection.filetags.formats.base import FIELDS
from harmonium.collection.filetags.plan import plan_write
from harmonium.collection.filetags.read import audio_digest, read_tags
from harmonium.collection.filetags.records import Change, FieldChange, FileTags
from harmonium.collection.filetags.rules import MODES, LeftOut, Rules
from harmonium.collection.filetags.undo import Undo
from harmonium.collection.filetags.write import apply_change, undo

__all__ = [
    "FIELDS",
    "MODES",
    "Change",
    "FieldChange",
    "FileTags",
    "LeftOut",
    "Rules",
    "Undo",
    "apply_change",
    "audio_digest",
    "plan_write",
    "read_tags",
    "undo",
]
