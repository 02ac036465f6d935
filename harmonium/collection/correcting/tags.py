"""Tags that get another name, become one with another, or are hidden."""

from collections.abc import Callable
from typing import NamedTuple

from harmonium.collection.answering.query import unknown_tag
from harmonium.collection.answering.search import known_tags
from harmonium.collection.library import Library
from harmonium.collection.store.changed_values import MODEL_TAGS, SETTING
from harmonium.collection.store.models import NEVER, StoredModel
from harmonium.collection.store.schema import HIDDEN_TAGS
from harmonium.data.normalise import normalise_tag
from harmonium.errors import DataError

Thresholds = list[float]


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

    People's tags and the models follow. A later import may bring back the old name.
    """
    model = library.models.current(whole=False)
    known = known_tags(library, model)
    before, after = _known(old, known), normalise_tag(new)
    if not after:
        raise DataError(f"The new name of a tag must have letters or digits, got {new!r}.")
    if before == after:
        raise DataError(f"{old!r} and {new!r} are one tag, {before!r}, in two spellings.")

    def renamed(tags: list[str], thresholds: Thresholds) -> tuple[list[str], Thresholds]:
        place = tags.index(before)
        if after in tags:
            return tags, [NEVER if j == place else p for j, p in enumerate(thresholds)]
        return [after if j == place else tag for j, tag in enumerate(tags)], thresholds

    merged = after in known
    verb = "merged into" if merged else "renamed to"
    with library.begin():
        number = library.changes.begin("rename", f"{before} {verb} {after}")
        moved, dropped = library.opinions.rename_tag(before, after, change=number)
        _alter_models(library, number, before, renamed)
    both = model is not None and {before, after} <= _learnt(model)
    return RenamedTag(number, before, after, moved, dropped, merged, both)


def hide_tag(library: Library, tag: str) -> int:
    """Predict, suggest and write a tag no more, and learn it no more; the number of the change.

    What people say of it stays, and can be searched for.
    """
    name = _known(tag, known_tags(library, library.models.current(whole=False)))

    def hidden(tags: list[str], thresholds: Thresholds) -> tuple[list[str], Thresholds]:
        return tags, [NEVER if t == name else p for t, p in zip(tags, thresholds, strict=True)]

    with library.begin():
        number = library.changes.begin("hide", name)
        before = library.settings.get(HIDDEN_TAGS, [])
        library.changes.set_value(number, SETTING, HIDDEN_TAGS, sorted({*before, name}))
        _alter_models(library, number, name, hidden)
    return number


def _alter_models(
    library: Library,
    change: int,
    tag: str,
    alter: Callable[[list[str], Thresholds], tuple[list[str], Thresholds]],
) -> None:
    """Alter the tags of all models that have this one."""
    for model in library.models.list():
        if tag in model.vocabulary and model.id is not None:
            tags, thresholds = alter(model.vocabulary, model.thresholds.tolist())
            library.changes.set_value(change, MODEL_TAGS, model.id, [tags, thresholds])


def _known(tag: str, known: set[str]) -> str:
    name = normalise_tag(tag)
    if name not in known:
        raise unknown_tag(tag, known)
    return name


def _learnt(model: StoredModel) -> set[str]:
    return {tag for tag, learnt in zip(model.vocabulary, model.learnt, strict=True) if learnt}
