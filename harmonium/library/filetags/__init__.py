"""Tags in music files: read, written where players look, and undone to the byte.

    change = plan_write("song.mp3", ["rock", "mellow"])   # the dry run
    record = apply_change(change)
    undo("song.mp3", record)

`docs/filetags.md` says what is written where.
"""

from harmonium.library.filetags.formats import (
    FIELDS,
    LIST_FIELDS,
    FileTags,
    Values,
    audio_digest,
    read_cover,
    read_tags,
)
from harmonium.library.filetags.id3 import genre_names
from harmonium.library.filetags.rules import MODES, Rules, UnwrittenTag
from harmonium.library.filetags.write import (
    FieldChange,
    FileChange,
    UndoRecord,
    apply_change,
    changed_fields,
    plan_write,
    undo,
)

__all__ = [
    "FIELDS",
    "LIST_FIELDS",
    "MODES",
    "FieldChange",
    "FileChange",
    "FileTags",
    "Rules",
    "UndoRecord",
    "UnwrittenTag",
    "Values",
    "apply_change",
    "audio_digest",
    "changed_fields",
    "genre_names",
    "plan_write",
    "read_cover",
    "read_tags",
    "undo",
]
