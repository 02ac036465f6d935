"""Tags in music files: read, written where players look, and undone to the byte.

    change = plan_write("song.mp3", ["rock", "mellow"])   # the dry run
    record = apply_change(change)
    undo("song.mp3", record)

`docs/filetags.md` says what is written where.
"""

from harmonium.library.filetags.contents import FIELDS as FIELDS
from harmonium.library.filetags.contents import LIST_FIELDS as LIST_FIELDS
from harmonium.library.filetags.contents import FileTags as FileTags
from harmonium.library.filetags.contents import PlainLayout as PlainLayout
from harmonium.library.filetags.contents import Values as Values
from harmonium.library.filetags.formats import audio_digest as audio_digest
from harmonium.library.filetags.formats import layout_of as layout_of
from harmonium.library.filetags.formats import read_cover as read_cover
from harmonium.library.filetags.formats import read_tags as read_tags
from harmonium.library.filetags.id3 import genre_names as genre_names
from harmonium.library.filetags.plan import FieldChange as FieldChange
from harmonium.library.filetags.plan import FileChange as FileChange
from harmonium.library.filetags.plan import FilePlan as FilePlan
from harmonium.library.filetags.rules import MODES as MODES
from harmonium.library.filetags.rules import Rules as Rules
from harmonium.library.filetags.rules import UnwrittenTag as UnwrittenTag
from harmonium.library.filetags.write import FileState as FileState
from harmonium.library.filetags.write import UndoRecord as UndoRecord
from harmonium.library.filetags.write import apply_change as apply_change
from harmonium.library.filetags.write import is_as_before as is_as_before
from harmonium.library.filetags.write import is_same_file as is_same_file
from harmonium.library.filetags.write import plan_write as plan_write
from harmonium.library.filetags.write import read_for_writing as read_for_writing
from harmonium.library.filetags.write import state_of as state_of
from harmonium.library.filetags.write import undo as undo
