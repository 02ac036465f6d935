"""What a person changes in a library: the tags of tracks, tag names, hidden tags, and tracks.

Each change can be undone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harmonium.data.tag_names import AUDIO_FEATURES, KINDS, NO_TAG, normalise_tag
from harmonium.errors import DataError
from harmonium.library.library import Library
from harmonium.library.store.changes import MODEL_TAG, SETTING, TRACK_STATE
from harmonium.library.store.models import StoredModel, tag_value
from harmonium.library.store.schema import HIDDEN, KIND, RENAMED
from harmonium.library.store.tracks import FORGOTTEN, named_tracks
from harmonium.library.store.values import storable


def forget(library: Library, ids: Sequence[int]) -> int | None:
    """Remove tracks from the library, with what people say about them; the number of the change.

    Indexing skips their sounds from now on, wherever their files are. Returns None if all were
    already forgotten.
    """
    tracks = library.tracks.many(ids)
    with library.begin():
        number = library.changes.begin("forget", f"{named_tracks(tracks)} removed from the library")
        library.opinions.end_tracks([track.id for track in tracks], change=number)
        n_new = 0
        for track in tracks:
            n_new += library.changes.set_value(number, TRACK_STATE, track.id, FORGOTTEN)
        if not n_new:
            library.changes.drop(number)
            return None
    return number


@dataclass(frozen=True)
class RenamedTag:
    """What became of a tag."""

    change: int
    old: str  # normalised, as the new name is
    new: str
    n_moved: int  # opinions that moved from the old name to the new one
    n_dropped: int  # opinions dropped because the same person had used both names
    merged: bool  # whether the new name was a tag before
    needs_training: bool
    """Whether the model in use knew both: it predicts the new one as before, and the old one no
    more, until it is trained again."""


def rename_tag(library: Library, old: str, new: str) -> RenamedTag:
    """Rename a tag; if the new name is a tag already, the two are merged."""
    # People's tags and the models follow, and so does what is imported later.
    table = library.snapshot().tags
    new = storable(new)
    before = table.find(old)
    after = normalise_tag(new)
    if not after:
        raise DataError(f"The new name of a tag must have letters or digits, got {new!r}.")
    if before.name == after:
        raise DataError(f"{old!r} and {new!r} are two spellings of one tag, {after!r}.")
    merged = after in table
    kinds = table.facts.kinds
    verb = "merged into" if merged else "renamed to"
    with library.begin():
        number = library.changes.begin("rename", f"{before.name} {verb} {after}")
        moved, dropped = library.opinions.rename_tag(before.name, new, change=number)
        library.changes.set_value(number, SETTING, RENAMED + before.name, after)
        library.changes.set_value(number, SETTING, RENAMED + after, None)  # it is in use again
        if (kind := kinds.get(before.name)) is not None and after not in kinds:
            library.changes.set_value(number, SETTING, KIND + after, kind)
        for model, place in _with_tag(library, before.name):
            key = f"{model.id}:{place}"
            value = tag_value(after, model.thresholds[place])
            if after in model.vocabulary:
                value = tag_value(before.name, None)
            library.changes.set_value(number, MODEL_TAG, key, value)
    return RenamedTag(
        change=number,
        old=before.name,
        new=after,
        n_moved=moved,
        n_dropped=dropped,
        merged=merged,
        needs_training=before.predicted and table[after].predicted,
    )


def hide_tags(library: Library, tags: Sequence[str]) -> int:
    """Hide tags: they are neither predicted, written nor learnt; the number of the change."""
    # People's opinions about them stay, and can be searched for.
    table = library.snapshot().tags
    chosen = {table.find(tag).name: table.find(tag) for tag in tags}
    for tag in chosen.values():
        if tag.hidden:
            raise DataError(f"{tag.name!r} is hidden already; 'harmonium undo' shows it again.")
    with library.begin():
        number = library.changes.begin("hide", ", ".join(chosen))
        for name in chosen:
            library.changes.set_value(number, SETTING, HIDDEN + name, value=True)
    return number


def set_kind(library: Library, tags: Sequence[str], kind: str) -> int | None:
    """Set the kind of tags; the number of the change, None if nothing changed."""
    if kind not in (*KINDS, NO_TAG):
        raise DataError(f"'kind' must be one of {', '.join((*KINDS, NO_TAG))}, got {kind!r}.")
    table = library.snapshot().tags
    names = [table.name(tag) for tag in tags]
    for name in names if kind != NO_TAG else ():
        if name not in table.facts.kinds:
            table.find(name)
    new = [name for name in dict.fromkeys(names) if table[name].kind != kind]
    summary = f"{', '.join(new)}: {kind}"
    return library.changes.set_settings("kind", summary, {KIND + name: kind for name in new})


def _with_tag(library: Library, tag: str) -> list[tuple[StoredModel, int]]:
    """The models that have a tag, each with its place in the vocabulary; not audio features."""
    models = [] if tag in AUDIO_FEATURES else library.models.list()
    return [(one, one.vocabulary.index(tag)) for one in models if tag in one.vocabulary]
