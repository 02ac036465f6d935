"""The model that comes along, for music that nobody has tagged, and beside a library's own model.

It is an ordinary model file in the package, with a report of its tags: groups, other words for
them, scores and thresholds. A library that was indexed with the extractor that it needs gets it
as its first model. A model trained later holds a copy of it: its tags stay beside one's own.
"""

from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harmonium.errors import ModelFileError
from harmonium.library.answering.numpy_inference import log_odds, mix
from harmonium.library.answering.stored_tagger import StoredTagger, TagWeights
from harmonium.library.library import Library
from harmonium.library.store.models import NEVER, StoredModel
from harmonium.library.store.schema import EXTRACTOR

Floats = NDArray[np.float32]

FILE = Path(__file__).parents[2] / "shipped" / "model.safetensors"
PART = "shipped.model"
"""The array of a library's own model that holds the file of the shipped one."""
PLACES = "shipped.places"
"""And the one that says where in the vocabulary its tags are."""
SHIPPED = "shipped"
"""The name of the model."""


@cache
def shipped_model() -> StoredModel:
    """The model of the package, as if it were stored; it has no number."""
    return _stored(FILE.read_bytes(), extractor_key())


def extractor_key() -> str:
    """The key of the features that it takes."""
    from harmonium.library.index import extractor_key as key_of

    return key_of("musicnn")


def _stored(data: bytes, extractor: str) -> StoredModel:
    from harmonium.estimators.model_files import from_bytes

    way_out = "Install Harmonium again."
    about = from_bytes(data, name="The model that comes along", way_out=way_out)[1].get("shipped")
    if about is None:
        raise ModelFileError(f"The model that comes along is another file. {way_out}")
    tags = [{**tag, "learnt": tag["threshold"] is not None} for tag in about["tags"]]
    thresholds = [NEVER if tag["threshold"] is None else tag["threshold"] for tag in tags]
    aucs = [tag["auc"] for tag in tags if "auc" in tag]
    return StoredModel(
        name=SHIPPED,
        vocabulary=[tag["tag"] for tag in tags],
        thresholds=np.array(thresholds, np.float32),
        extractor=extractor,
        bytes=data,
        report={
            **about,
            "tags": tags,
            "own": 0,
            "precision": {tag["tag"]: tag["precision"] for tag in tags if "auc" in tag},
            "mean_auc": float(np.mean(aucs)),
            "tracks": sum(about["clips"].values()),
            "left_out": [],
        },
    )


def tagger_of(stored: StoredModel) -> StoredTagger:
    """A stored model at work as it was trained, with the shipped one beside it if it has it."""
    tagger = StoredTagger(stored)
    return UnionTagger(stored) if PART in tagger.arrays else tagger


def use_shipped_model(library: Library) -> StoredModel | None:
    """The library's model; the shipped one if it has none, and was indexed for it; else None.

    A library that has the shipped model of an older version gets the present one.
    """
    model = library.models.current()
    if model is not None and model.name == SHIPPED and model.bytes != shipped_model().bytes:
        model = None
    if model is None and library.settings.get(EXTRACTOR) == extractor_key():
        model = shipped_model().without(library.hidden_tags(), library.renamed_tags())
        model = replace(model, id=library.models.add(model))
    return model


class UnionTagger(StoredTagger):
    """A library's own tags and those of the shipped model, as one vocabulary.

    A tag that both have is one's own: its log-odds are the mean of the two, with the weight
    that training gave them. What is told counts for both. Where training found it better, the
    shipped model's log-odds are further inputs of one's own.
    """

    def __init__(self, stored: StoredModel) -> None:
        stored = stored.as_trained()
        super().__init__(stored)
        n = stored.n_own
        own = replace(stored, vocabulary=stored.vocabulary[:n], thresholds=stored.thresholds[:n])
        self._own = StoredTagger(own)
        self._shipped = StoredTagger(_stored(self.arrays[PART].tobytes(), stored.extractor))
        self._at = self.arrays[PLACES]
        self._shared = np.flatnonzero(self._at < n)

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Other words for the shipped tags."""
        return {k: v for k, v in self._shipped.aliases.items() if k not in self.tags}

    def probabilities(self, X: Floats, known: Floats | None = None) -> Floats:
        """As of ``StoredTagger``, for both vocabularies."""
        X = np.asarray(X, np.float32)
        if known is None:
            known = np.full((len(X), len(self.tags)), np.nan, np.float32)
        others = self._shipped.probabilities(X, known[:, self._at])
        n = len(self._own.tags)
        inputs = with_log_odds(X, others) if self._own.n_features > X.shape[1] else X
        P = np.empty(known.shape, np.float32)
        P[:, self._at] = others
        own = self._own.probabilities(inputs, known[:, :n])
        at, weight = self._at[self._shared], self.arrays["own_weight"].astype(np.float32)
        mixed = mix(own[:, at], others[:, self._shared], weight[at])
        P[:, :n] = own
        P[:, at] = np.where(np.isnan(known[:, at]), mixed, known[:, at])
        return P

    def weights(self) -> list[TagWeights]:
        """As of ``StoredTagger``, for both models."""
        shipped = self._shipped.weights()[0]
        return [*self._own.weights(), (np.asarray(self._at, np.intp), *shipped[1:])]

    def without_sound(self, known: Floats) -> Floats:
        """As of ``StoredTagger``, for both vocabularies."""
        n, typical = len(self._own.tags), self._shipped.arrays["scaling.mean"]
        P = np.empty(len(self.tags), np.float32)
        P[self._at] = self._shipped.without_sound(known[self._at])
        if self._own.has_people:
            P[:n] = self._own.without_sound(known[:n])
        else:
            P[:n] = self.probabilities(typical[None], known[None])[0, :n]
        return P


def with_log_odds(X: Floats, P: Floats) -> Floats:
    """The features (n, D) and, as further ones, the log-odds of probabilities (n, C)."""
    return np.concatenate([X, log_odds(P)], axis=1)
