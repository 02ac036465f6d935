"""Which files the page writes to, and how."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harmonium.library import Library
from harmonium.library.answering.search import known_tags
from harmonium.library.filetags import Rules
from harmonium.library.snapshot import Question, Snapshot
from harmonium.library.write import TagSources
from harmonium.library.write_rules import RULES_SETTING, library_rules

LEAST_PROBABILITY = 0.5
"""A track counts as found if the question is as likely as not to be true of it."""


def tracks_to_write(library: Library, text: str, view: Snapshot | None = None) -> NDArray[np.int64]:
    """The tracks that answer a question more likely than not; all where nothing is asked."""
    view = view or library.snapshot()
    if not text.strip():
        return view.ids
    return view.find(Question(text.strip(), min_probability=LEAST_PROBABILITY)).ids


def write_rules(library: Library, ignore: Sequence[str]) -> Rules:
    """The rules that the library remembers, without some tags."""
    layers = [library.settings.get(RULES_SETTING, {}), {"ignore": list(ignore)}]
    return library_rules(library, layers, known_tags(library, library.models.current(whole=False)))


def write_sources(precision: float) -> TagSources:
    """What people say, and what the model is sure enough of."""
    return TagSources(precision=precision or None)
