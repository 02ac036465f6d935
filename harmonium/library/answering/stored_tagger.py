"""A stored model at work: the probabilities of tags, from features and from tags that are known.

The bytes of a stored model are a file of ``DiscriminativeRBM`` or ``ExactLogisticTagger``
(safetensors), with a few more arrays: held-out probabilities of the tracks learnt from, which tags
people give together, and perhaps a logistic regression whose log-odds are averaged with the RBM's.
"""

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.data.normalise import normalise_tag
from harmonium.errors import DataError, LibraryError, ModelFileError, UnknownTagError
from harmonium.estimators.inference_choice import chosen_inference
from harmonium.library.answering.numpy_inference import (
    LINEAR,
    BeliefOptions,
    TagRBM,
    mean_field_rows,
    mix,
    sigmoid,
    tag_probabilities,
)
from harmonium.library.answering.query import did_you_mean
from harmonium.library.library import Library
from harmonium.library.precision import PrecisionCurve, curves_from_arrays
from harmonium.library.store.models import StoredModel

FEW = 100
"""Up to so many tracks, starting JAX would take longer than doing without."""

PARAMETERS = {"DiscriminativeRBM": "UWcd", "ExactLogisticTagger": "Wd"}
"""The classes of stored models, and what their parameters are called."""

Floats = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]
TagWeights = tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]
"""Places of tags (n,), U (n_hidden, n) and c (n_hidden,) of a model."""


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
    """What a stored model says, as it was trained.

    Parameters
    ----------
    stored : a model of ``library.models``
    """

    def __init__(self, stored: StoredModel) -> None:
        stored = stored.as_trained()
        self.id = stored.id
        self.tags = tuple(stored.vocabulary)
        self.thresholds = stored.thresholds
        """(n_tags,) the probability from which a track has the tag."""
        self.learnt = stored.learnt
        """(n_tags,) which tags the model predicts better than chance."""
        self.extractor = stored.extractor
        self.n_own = stored.n_own
        """How many tags, the first ones, were learnt from the library."""
        self.is_own = stored.is_own
        """(n_tags,) which tags were learnt from the library."""
        self._bytes = stored.bytes
        self.arrays, self._about = unpack(stored.bytes)
        self.n_features = len(self.arrays["scaling.mean"])

    @property
    def held_out(self) -> tuple[NDArray[np.int64], Floats]:
        """Numbers of the tracks learnt from (n,), and their held-out probabilities (n, n_tags)."""
        probabilities = self.arrays["held_out.probabilities"].astype(np.float32)
        return self.arrays["held_out.ids"], probabilities

    @property
    def rates(self) -> NDArray[np.float64]:
        """(n_tags,) the share of the tracks learnt from that have the tag."""
        return self.arrays["rates"]

    @property
    def has_people(self) -> bool:
        """Whether it knows which tags people give together."""
        return "together.U" in self.arrays

    @property
    def aliases(self) -> dict[str, str]:
        """Other words → the tags that they mean."""
        return self._about.get("shipped", {}).get("aliases", {})

    def without_sound(self, known: Floats) -> Floats:
        """The probabilities of a track of which only some tags are known, (n_tags,); NaN unknown.

        As people give them together, if the model learnt from several people; otherwise as the
        model predicts them for a track of average sound.
        """
        if self.has_people:
            rbm, y, steps = self._rbm("together"), known.astype(np.float64), "together.steps"
            if steps in self.arrays:  # trained for so many mean-field steps
                P = mean_field_rows(rbm, np.zeros((1, 1)), y[None], int(self.arrays[steps][0]))[0]
            else:
                P = tag_probabilities(rbm, y)
            return P.astype(np.float32)
        return self.probabilities(self.arrays["scaling.mean"][None], known[None])[0]

    def weights(self) -> list[TagWeights]:
        """What each model inside has learnt of its tags."""
        if self._is_linear:  # which knows nothing of tags together
            return []
        U, c, _ = self._rbm("params")
        return [(np.arange(len(self.tags)), U, c)]

    def _rbm(self, part: str) -> TagRBM:
        return TagRBM(*(self.arrays[f"{part}.{k}"].astype(np.float64) for k in "Ucd"))

    def precision(self, place: int, probability: float) -> float | None:
        """The share of held-out tracks of at least this probability that have the tag; or None."""
        if self._curves is None or place >= len(self._curves):
            return None
        curve = self._curves[place]
        rank = curve.at(probability)
        return None if rank is None else float(curve.precision[rank])

    @cached_property
    def _curves(self) -> list[PrecisionCurve] | None:
        return curves_from_arrays(self.arrays)

    def place(self, tag: str) -> int:
        """The place of a tag, in any spelling, in the vocabulary; a DataError if it has none."""
        name = normalise_tag(tag)
        name = name if name in self.tags else self.aliases.get(name, name)
        if name not in self.tags:
            hint = did_you_mean(name, self.tags)
            raise UnknownTagError(
                f"The model has no tag {name!r}; it knows {len(self.tags):,} tags.{hint}"
            )
        return self.tags.index(name)

    def probabilities(self, X: Floats, known: Floats | None = None) -> Floats:
        """p(y_j = 1 | x, the known tags), (n, n_tags), from features (n, n_features).

        ``known`` is (n, n_tags): 1 has the tag, 0 does not, NaN to be inferred.
        """
        X = np.asarray(X, np.float32)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise DataError(
                f"'X' must have {self.n_features} features, got the shape "
                f"{X.shape}. The model was trained with those of {self.extractor!r}."
            )
        if known is None:
            known = np.full((len(X), len(self.tags)), np.nan, np.float32)
        if len(X) <= FEW or self._is_linear or self._has_linear or self._method == "mean_field":
            return self._by_numpy(X, known)
        return self.estimator.complete(X, known)

    @property
    def _is_linear(self) -> bool:
        return self._about["class"] == "ExactLogisticTagger"

    @property
    def _has_linear(self) -> bool:
        return f"{LINEAR}W" in self.arrays

    @property
    def _method(self) -> str:
        return chosen_inference(self._about["parameters"]).method

    def _by_numpy(self, X: Floats, known: Floats) -> Floats:
        from harmonium.estimators.recalibration import share_told, stored_recalibration

        P = self._linear(X, "params.", "scaling.") if self._is_linear else self._by_rbm(X, known)
        if self._has_linear:
            P = mix(P, self._linear(X, LINEAR, LINEAR), np.float32(0.5))
        correction = stored_recalibration(self.arrays, len(self.tags))
        P = P if correction is None else correction(P, share_told(known))
        return np.where(np.isnan(known), P, known)

    def _linear(self, X: Floats, params: str, scaling: str) -> Floats:
        """What a logistic regression says, (n, n_tags)."""
        W, d = (self.arrays[params + name].astype(np.float64) for name in "Wd")
        return sigmoid(self._scaled(X, scaling) @ W.T + d).astype(np.float32)

    def _by_rbm(self, X: Floats, known: Floats) -> Floats:
        U, c, d = self._rbm("params")
        W = self.arrays["params.W"].astype(np.float64)
        drive = self._scaled(X) @ W.T
        parameters, y = self._about["parameters"], known.astype(np.float64)
        method, steps = chosen_inference(parameters)
        if method == "mean_field":
            return mean_field_rows(TagRBM(U, c, d), drive, y, steps).astype(np.float32)
        options = BeliefOptions(steps, parameters["damping"], parameters["tolerance"])
        rows = zip(c + drive, y, strict=True)
        found = [tag_probabilities(TagRBM(U, bias, d), row, options) for bias, row in rows]
        return np.array(found, np.float32).reshape(known.shape)

    def _scaled(self, X: Floats, part: str = "scaling.") -> NDArray[np.float64]:
        """The features as the model takes them."""
        from harmonium.estimators.scaling import Scaling  # NumPy alone

        mean, scale = self.arrays[f"{part}mean"], self.arrays[f"{part}scale"]
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
    from harmonium.files import user_cache_folder

    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(user_cache_folder() / "compiled"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")


def _check_settings(parameters: Mapping[str, Any]) -> None:
    """Refuse settings by which a model cannot be asked."""
    steps = chosen_inference(parameters).steps
    if type(steps) is not int or steps < 1:
        raise ValueError(f"inference_steps is {steps!r}")
    for name in ("damping", "tolerance"):
        if not float(parameters[name]) >= 0:
            raise ValueError(f"{name} is {parameters[name]!r}")


def unpack(data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the description of a stored model, without the estimators."""
    from harmonium.estimators.model_files import finite_array, from_bytes
    from harmonium.estimators.recalibration import stored_recalibration

    way_out = "`harmonium train` makes a new one."
    arrays, about = from_bytes(data, name="The stored model", way_out=way_out)
    if about.get("class") not in PARAMETERS:
        raise ModelFileError(f"The stored model is a {about.get('class')}, which is not known.")
    try:
        names = PARAMETERS[about["class"]]
        params = {key: finite_array(arrays, f"params.{key}", np.float32) for key in names}
        scaling = [finite_array(arrays, f"scaling.{key}") for key in ("mean", "scale")]
        (n_tags,), (n_features,) = params["d"].shape, scaling[0].shape
        sizes = {"C": n_tags, "D": n_features, "H": len(params.get("c", ()))}
        shapes = {"d": "C", "c": "H", "U": "HC", "W": "HD" if "c" in params else "CD"}
        for key, array in params.items():
            if array.shape != tuple(sizes[axis] for axis in shapes[key]):
                raise ValueError(f"{key} has the shape {array.shape}")
        if scaling[1].shape != (n_features,):
            raise ValueError(f"the scaling has the shape {scaling[1].shape}")
        if "c" in params:
            _check_settings(about["parameters"])
        stored_recalibration(arrays, n_tags)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"The stored model is damaged ({error}). {way_out}") from None
    return arrays, about
