"""Tags that get another name, become one with another, or are hidden."""

from typing import NamedTuple

from harmonium.data.normalise import normalise_tag
from harmonium.errors import DataError
from harmonium.library.answering.query import unknown_tag
from harmonium.library.answering.search import known_tags
from harmonium.library.library import Library
from harmonium.library.store.changes import MODEL_TAG, SETTING
from harmonium.library.store.models import NEVER, StoredModel
from harmonium.library.store.schema import HIDDEN, RENAMED, storable


class RenamedTag(NamedTuple):
    """What became of a tag."""

    change: int
    old: str
    new: str
    """Both in the one spelling that tags have."""
    n_moved: int
    """What people said with the old name, and say with the new one now."""
    n_dropped: int
    """What they had said with both names: what they said with the new one stays."""
    merged: bool
    """Whether the new name was a tag before."""
    needs_training: bool
    """Whether the model in use knew both: it predicts the new one as before, and the old one no
    more, until it is trained again."""


def rename_tag(library: Library, old: str, new: str) -> RenamedTag:
    """Give a tag another name; if that is a tag already, the two become one.

    People's tags and the models follow, and so does what is imported later.
    """
    model = library.models.current(whole=False)
    known, new = known_tags(library, model), storable(new)
    before, after = _known(old, known), normalise_tag(new)
    if not after:
        raise DataError(f"The new name of a tag must have letters or digits, got {new!r}.")
    if before == after:
        raise DataError(f"{old!r} and {new!r} are one tag, {before!r}, in two spellings.")

    merged = after in known
    verb = "merged into" if merged else "renamed to"
    with library.begin():
        number = library.changes.begin("rename", f"{before} {verb} {after}")
        moved, dropped = library.opinions.rename_tag(before, new, change=number)
        library.changes.set_value(number, SETTING, RENAMED + before, after)
        library.changes.set_value(number, SETTING, RENAMED + after, None)  # it is in use again
        for one, place in _with_tag(library, before):
            threshold = float(one.thresholds[place])
            new_value = [before, NEVER] if after in one.vocabulary else [after, threshold]
            library.changes.set_value(number, MODEL_TAG, f"{one.id}:{place}", new_value)
    both = model is not None and {before, after} <= _learnt(model)
    return RenamedTag(number, before, after, moved, dropped, merged, both)


def hide_tag(library: Library, tag: str) -> int:
    """Predict and write a tag no more, and learn it no more; the number of the change.

    What people say of it stays, and can be searched for.
    """
    name = _known(tag, known_tags(library, library.models.current(whole=False)))
    if name in library.hidden_tags():
        raise DataError(f"{name!r} is hidden already; 'harmonium undo' shows it again.")

    with library.begin():
        number = library.changes.begin("hide", name)
        library.changes.set_value(number, SETTING, HIDDEN + name, value=True)
        for one, place in _with_tag(library, name):
            library.changes.set_value(number, MODEL_TAG, f"{one.id}:{place}", [name, NEVER])
    return number


def _with_tag(library: Library, tag: str) -> list[tuple[StoredModel, int]]:
    """The models that have a tag, each with its place in the vocabulary."""
    models = library.models.list()
    return [(one, one.vocabulary.index(tag)) for one in models if tag in one.vocabulary]


def _known(tag: str, known: set[str]) -> str:
    name = normalise_tag(tag)
    if name not in known:
        raise unknown_tag(tag, known)
    return name


def _learnt(model: StoredModel) -> set[str]:
    return {tag for tag, learnt in zip(model.vocabulary, model.learnt, strict=True) if learnt}
