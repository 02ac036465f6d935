"""A stored model at work: the probabilities of tags, from features and from tags that are known.

The bytes of a stored model are a file of ``DiscriminativeRBM`` (safetensors), with a few more
arrays: held-out probabilities of the tracks learnt from, and which tags people give together.
"""

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.collection.answering.numpy_inference import BeliefOptions, TagRBM, tag_probabilities
from harmonium.collection.answering.query import did_you_mean
from harmonium.collection.library import Library
from harmonium.collection.store.models import StoredModel
from harmonium.data.normalise import normalise_tag
from harmonium.errors import DataError, LibraryError, ModelFileError

FEW = 100
"""Up to so many tracks, starting JAX would take longer than doing without."""

Floats = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]


def current_model(library: Library) -> StoredModel:
    """The model in use, or a LibraryError that says how to get one."""
    model = library.models.current()
    if model is None:
        raise LibraryError(
            "The library has no model yet. `harmonium train` makes one from the tags that "
            "people gave to tracks."
        )
    return model


class StoredTagger:
    """What a stored model says.

    Parameters
    ----------
    stored : a model of ``library.models``
    """

    def __init__(self, stored: StoredModel) -> None:
        self.id = stored.id
        self.tags = tuple(stored.vocabulary)
        self.thresholds = stored.thresholds
        """(n_tags,) the probability from which a track has the tag."""
        self.learnt = stored.learnt
        """(n_tags,) which tags the model predicts better than chance."""
        self.extractor = stored.extractor
        self._bytes = stored.bytes
        self._arrays, self._about = unpack(stored.bytes)

    @property
    def held_out(self) -> tuple[NDArray[np.int64], Floats]:
        """Numbers of the tracks learnt from (n,), and their held-out probabilities (n, n_tags)."""
        probabilities = self._arrays["held_out.probabilities"].astype(np.float32)
        return self._arrays["held_out.ids"], probabilities

    @property
    def rates(self) -> NDArray[np.float64]:
        """(n_tags,) the share of the tracks learnt from that have the tag."""
        return self._arrays["rates"]

    @property
    def together(self) -> TagRBM:
        """Which tags go together, whatever the sound.

        As people give them, if the model learnt from several people; otherwise as the model
        predicts them for a track of average sound.
        """
        return self._rbm("together" if "together.U" in self._arrays else "params")

    def _rbm(self, part: str) -> TagRBM:
        return TagRBM(*(self._arrays[f"{part}.{k}"].astype(np.float64) for k in "Ucd"))

    def place(self, tag: str) -> int:
        """The place of a tag, in any spelling, in the vocabulary; a DataError if it has none."""
        name = normalise_tag(tag)
        if name not in self.tags:
            hint = did_you_mean(name, self.tags)
            raise DataError(
                f"The model has no tag {name!r}; it knows {len(self.tags):,} tags.{hint}"
            )
        return self.tags.index(name)

    def probabilities(self, X: Floats, known: Floats | None = None) -> Floats:
        """p(y_j = 1 | x, the known tags), (n, n_tags), from features (n, n_features).

        ``known`` is (n, n_tags): 1 has the tag, 0 does not, NaN to be inferred.
        """
        X = np.asarray(X, np.float32)
        if X.ndim != 2 or X.shape[1] != len(self._arrays["scaling.mean"]):
            raise DataError(
                f"'X' must have {len(self._arrays['scaling.mean'])} features, got the shape "
                f"{X.shape}. The model was trained with those of {self.extractor!r}."
            )
        if known is None:
            known = np.full((len(X), len(self.tags)), np.nan, np.float32)
        return self._one_by_one(X, known) if len(X) <= FEW else self.estimator.complete(X, known)

    def _one_by_one(self, X: Floats, known: Floats) -> Floats:
        from harmonium.estimators.recalibration import share_told, stored_recalibration

        U, c, d = self._rbm("params")
        W = self._arrays["params.W"].astype(np.float64)
        scaled = self._scaled(X)
        parameters = self._about["parameters"]
        options = BeliefOptions(
            parameters["inference_steps"], parameters["damping"], parameters["tolerance"]
        )
        P = np.empty(known.shape, np.float32)
        for row, (x, y) in enumerate(zip(scaled, known, strict=True)):
            P[row] = tag_probabilities(TagRBM(U, c + W @ x, d), y.astype(np.float64), options)
        correction = stored_recalibration(self._arrays, len(self.tags))
        if correction is None:
            return P
        return np.where(np.isnan(known), correction(P, share_told(known)), known)

    def _scaled(self, X: Floats) -> NDArray[np.float64]:
        """The features as the model takes them."""
        from harmonium.estimators.scaling import Scaling  # NumPy alone

        mean, scale = self._arrays["scaling.mean"], self._arrays["scaling.scale"]
        unit_norm = self._about.get("unit_norm", False) is True
        return Scaling(mean, scale, unit_norm)(X).astype(np.float64)

    @cached_property
    def estimator(self) -> Any:
        """The model as a ``DiscriminativeRBM``."""
        keep_compiled()
        from harmonium.estimators import DiscriminativeRBM

        return DiscriminativeRBM.from_bytes(self._bytes).set_params(n_jobs=-1)


def keep_compiled() -> None:
    """Keep the programs that JAX compiles in the user's cache folder, so that each is made once.

    To be called before JAX is imported; settings of the environment come first.
    """
    from harmonium.user_folders import user_cache_folder

    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(user_cache_folder() / "compiled"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")


def unpack(data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the description of a stored model, without the estimators."""
    from harmonium.estimators.model_files import finite_array, from_bytes
    from harmonium.estimators.recalibration import stored_recalibration

    way_out = "`harmonium train` makes a new one."
    arrays, about = from_bytes(data, name="The stored model", way_out=way_out)
    if about.get("class") != "DiscriminativeRBM":
        raise ModelFileError(f"The stored model is a {about.get('class')}, which is not known.")
    try:
        for key in "UWcd":
            finite_array(arrays, f"params.{key}", np.float32)
        for key in ("mean", "scale"):
            finite_array(arrays, f"scaling.{key}")
        stored_recalibration(arrays, len(arrays["params.d"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"The stored model is damaged ({error}). {way_out}") from None
    return arrays, about
