"""The models of a library, and which of them is in use."""

from datetime import datetime
from typing import NamedTuple

from harmonium.library.library import Library
from harmonium.library.store.changes import SETTING
from harmonium.library.store.models import CURRENT


class ModelEntry(NamedTuple):
    """A stored model, as a list shows it."""

    id: int
    made_at: datetime
    in_use: bool
    n_tags: int
    n_learnt: int
    """How many of its tags it predicts better than chance."""
    mean_auc: float | None
    """Over its tags, for tracks held out in training."""
    n_tracks: int | None
    """How many tracks it has learnt from."""
    n_tagged: int
    """How many tracks of the library it has tagged."""


def list_models(library: Library) -> list[ModelEntry]:
    """All models, the newest first."""
    with library.reading():
        current = library.settings.get(CURRENT)
        return [
            ModelEntry(
                one.id,
                one.made_at,
                one.id == current,
                len(one.vocabulary),
                int(one.learnt.sum()),
                one.report.get("mean_auc"),
                one.report.get("tracks"),
                len(library.predictions.columns(one.id, [0])[0]),
            )
            for one in reversed(library.models.list())
            if one.id is not None
        ]


def use_model(library: Library, model_id: int) -> int | None:
    """Use this model from now on; the number of the change, None where it was in use already."""
    library.models.get(model_id, whole=False)
    before = library.settings.get(CURRENT)
    with library.begin():
        number = library.changes.begin("models", f"model {model_id} in use instead of {before}")
        if not library.changes.set_value(number, SETTING, CURRENT, int(model_id)):
            library.changes.drop(number)
            return None
    return number
