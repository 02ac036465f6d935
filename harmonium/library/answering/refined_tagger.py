"""A stored model at work, with what its tags gained from answers since it was trained.

A tag's log-odds gain b + wᵀv, where v is how the track sounds (`sound_space`). A word that the
model was not trained with has no other log-odds.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.library import sound_space
from harmonium.library.answering.shipped_model import log_odds, tagger_of
from harmonium.library.answering.stored_tagger import StoredTagger, TagWeights
from harmonium.library.library import Library
from harmonium.library.store.models import StoredModel
from harmonium.library.store.predictions import Refinement
from harmonium.library.store.schema import EXTRACTOR

SOUND_DEVIATION = 1.0
"""Of wᵀv, before any answer,"""
BIAS_DEVIATION = 1.0
"""and of b. Both were chosen on 4Q and GTZAN (`benchmarks/quick_learning.py --choose`)."""
_PAGE = 8192

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]


class SoundVectors(NamedTuple):
    """How the tracks of a library sound."""

    ids: Ids
    """(n,) ascending"""
    vectors: NDArray[np.int8]
    """(n, N_AXES)"""

    @classmethod
    def of(cls, library: Library) -> "SoundVectors":
        """Of all tracks that have any."""
        return cls(*sound_space.all_vectors(library))

    def rows(self, ids: Ids) -> NDArray[np.intp]:
        """Which of ``ids`` have vectors."""
        at = np.minimum(np.searchsorted(self.ids, ids), max(0, len(self.ids) - 1))
        return np.flatnonzero(self.ids[at] == ids) if len(self.ids) else np.empty(0, np.intp)

    def at(self, ids: Ids) -> NDArray[np.float64]:
        """The vectors of tracks that have them, of length 1, (n, N_AXES)."""
        return self.vectors[np.searchsorted(self.ids, ids)] / float(sound_space.FULL)


class Gains(NamedTuple):
    """What some tags gain, as a function of the sound."""

    refinements: Sequence[Refinement]
    W: Floats
    """(N_AXES, n_tags)"""
    bias: Floats
    """(n_tags,)"""

    @classmethod
    def of(cls, refinements: Sequence[Refinement], sounds: SoundVectors) -> "Gains":
        """Of refinements; a track that is no longer there teaches nothing."""
        columns = []
        for one in refinements:
            there = sounds.rows(one.ids)
            columns.append(sounds.at(one.ids[there]).T @ one.weights[there] * SOUND_DEVIATION**2)
        W = np.stack(columns, axis=1).astype(np.float32)
        return cls(refinements, W, np.array([one.bias for one in refinements], np.float32))

    def __call__(self, vectors: NDArray[np.int8]) -> Floats:
        """The gains of tracks with vectors (n, N_AXES), (n, n_tags)."""
        found = np.empty((len(vectors), len(self.bias)), np.float32)
        for start in range(0, len(vectors), _PAGE):  # all of them as floats would not fit the cache
            some = vectors[start : start + _PAGE].astype(np.float32)
            found[start : start + _PAGE] = some @ (self.W / np.float32(sound_space.FULL))
        return found + self.bias

    @property
    def places(self) -> list[int]:
        """Of the tags in the model's vocabulary; any where the model has no say."""
        return [one.place if one.has_model else 0 for one in self.refinements]

    def added(self, P: Floats, vectors: NDArray[np.int8]) -> Floats:
        """The tags' probabilities (n, n_tags), from those of the model, those of `places`."""
        has_model = np.array([one.has_model for one in self.refinements])
        odds = np.where(has_model, log_odds(P), np.float32(0)) + self(vectors)
        return (1 / (1 + np.exp(-odds))).astype(np.float32)


def refined_columns(
    library: Library, model: StoredModel, refinements: Sequence[Refinement], sounds: SoundVectors
) -> dict[int, tuple[Ids, Floats]]:
    """Place → the tracks that the model has tagged, (n,), and their probabilities, (n,)."""
    if not refinements:
        return {}
    assert model.id is not None
    gains = Gains.of(refinements, sounds)
    ids, P = library.predictions.columns(model.id, gains.places, refined=False)
    there = sounds.rows(ids)
    found = gains.added(P[there], sounds.vectors[np.searchsorted(sounds.ids, ids[there])])
    return {one.place: (ids[there], found[:, i]) for i, one in enumerate(refinements)}


def bring_columns_up_to_date(library: Library, model_id: int) -> None:
    """Let new tracks have what the model's tags gained."""
    model = library.models.get(model_id, whole=False)
    if model.refinements:
        sound_space.bring_up_to_date(library)
        sounds = SoundVectors.of(library)
        columns = refined_columns(library, model, model.refinements, sounds)
        library.refinements.put_columns(model_id, columns)


class RefinedTagger(StoredTagger):
    """What a stored model says, with what its tags gained since."""

    def __init__(self, stored: StoredModel, library: Library, space: sound_space.SoundSpace):
        super().__init__(stored)
        self._trained = tagger_of(stored)
        self.tags = tuple(stored.vocabulary)
        self.thresholds, self.learnt, self.is_own = stored.thresholds, stored.learnt, stored.is_own
        self._gains = Gains.of(stored.refinements, SoundVectors.of(library))
        self._space = space

    @property
    def aliases(self) -> dict[str, str]:
        """Other words → the tags that they mean."""
        return {k: v for k, v in self._trained.aliases.items() if k not in self.tags}

    def precision(self, place: int, probability: float) -> float | None:
        """As of ``StoredTagger``; None for tags that have changed since held-out tracks showed."""
        changed = {one.place for one in self._gains.refinements}
        return None if place in changed else self._trained.precision(place, probability)

    def probabilities(self, X: Floats, known: Floats | None = None) -> Floats:
        """As of ``StoredTagger``."""
        n = len(self._trained.tags)
        if known is None:
            known = np.full((len(X), len(self.tags)), np.nan, np.float32)
        P = np.full(known.shape, np.nan, np.float32)
        P[:, :n] = self._trained.probabilities(X, known[:, :n])
        found = self._gains.added(P[:, self._gains.places], self._space.vectors(X))
        P[:, [one.place for one in self._gains.refinements]] = found
        return np.where(np.isnan(known), P, known)

    def weights(self) -> list[TagWeights]:
        """As of ``StoredTagger``; of new words there are none."""
        return self._trained.weights()

    def without_sound(self, known: Floats) -> Floats:
        """As of ``StoredTagger``; new words say nothing."""
        n = len(self._trained.tags)
        P = np.zeros(len(self.tags), np.float32)
        P[:n] = self._trained.without_sound(known[:n])
        return P


def current_tagger(library: Library | None, stored: StoredModel) -> StoredTagger:
    """A model at work as it is now: with what its tags gained, where the sound can be compared."""
    if library is None or not stored.refinements:
        return tagger_of(stored)
    space = sound_space.current_space(library)
    if space is None or library.settings.get(EXTRACTOR) != stored.extractor:
        return tagger_of(stored)
    return RefinedTagger(stored, library, space)
