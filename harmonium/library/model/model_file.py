"""Prediction by a stored model file, in NumPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium import logistic
from harmonium.arrays import Doubles, Floats, Mask
from harmonium.errors import ModelFileError
from harmonium.estimators import model_files
from harmonium.estimators.calibration import observed_fraction, stored_recalibration
from harmonium.estimators.inference import stored_inference
from harmonium.estimators.scaling import stored_scaling
from harmonium.rbm.forward import (
    ConditionalRBM,
    PlainRBM,
    mean_field,
    mean_of_members,
    tag_probabilities,
)

PARAMETERS = {"DiscriminativeRBM": "UWcd", "LogisticTagger": "Wd"}  # the classes of stored models
VALUES = "values."  # the prefix of the arrays of a logistic regression beside an RBM: its outputs
# follow the tags, and are audio features
MUSIC = "music."  # the prefix of the one that tells music from other sounds


class ModelFile:
    """A model file, ready to predict."""

    def __init__(self, data: bytes) -> None:
        self.arrays, self.about = unpack(data)
        self.scaling = stored_scaling(self.arrays, self.about)
        self.n_features = len(self.scaling.mean)
        self.n_tags = self.arrays["params.d"].shape[-1]

    def probabilities(self, X: Floats, observed: Floats) -> Floats:
        """The probabilities of all outputs, (n, n_tags), as `Tagger.probabilities` describes."""
        x = self.scaling(X).astype(np.float64)
        tags = observed[:, : self.n_tags]
        if "params.U" in self.arrays:
            P = self._by_rbm(x, tags)
        else:
            P = self._linear(x, "params.")
        correction = stored_recalibration(self.arrays, tags.shape[1])
        if correction is not None:
            P = correction(P, observed_fraction(tags))
        if f"{VALUES}W" in self.arrays:
            P = np.concatenate([P, self._linear(x, VALUES)], axis=1)
        return np.where(np.isnan(observed), P, observed)

    def is_music(self, X: Floats) -> Mask:
        """(n,) which sounds are music; all of them if the model cannot tell."""
        if f"{MUSIC}W" not in self.arrays:
            return np.ones(len(X), bool)
        return self._linear(self.scaling(X).astype(np.float64), MUSIC)[:, 0] >= 0.5

    def together(self, observed: Floats) -> Floats | None:
        """The probabilities from what people give together, (n_tags,); None if that is unknown."""
        if "together.U" not in self.arrays:
            return None
        rbm = PlainRBM(
            U=self._doubles("together.U"),
            c=self._doubles("together.c"),
            d=self._doubles("together.d"),
        )
        y = observed[: self.n_tags].astype(np.float64)
        if "together.steps" in self.arrays:  # trained with this number of steps
            steps = int(self.arrays["together.steps"][0])
            tags = mean_field(rbm, y[None], steps=steps)[0]
        else:
            tags = tag_probabilities(rbm, y)
        values = np.nan_to_num(observed[self.n_tags :])  # they depend on no tag
        return np.concatenate([tags, values]).astype(np.float32)

    def _doubles(self, name: str) -> Doubles:
        """An array in double precision."""
        return self.arrays[name].astype(np.float64)

    def _by_rbm(self, x: Doubles, observed: Floats) -> Floats:
        _, steps = stored_inference(self.about["parameters"])
        return mean_of_members(self._members(), x, observed.astype(np.float64), steps=steps)

    def _members(self) -> list[ConditionalRBM]:
        U = self._doubles("params.U")
        W = self._doubles("params.W")
        c = self._doubles("params.c")
        d = self._doubles("params.d")
        if d.ndim == 1:
            return [ConditionalRBM(U=U, W=W, c=c, d=d)]
        return [ConditionalRBM(U=U[m], W=W[m], c=c[m], d=d[m]) for m in range(len(d))]

    def _linear(self, x: Doubles, params: str) -> Floats:
        """What a logistic regression says about scaled features, (n, n_tags)."""
        W = self._doubles(f"{params}W")
        d = self._doubles(f"{params}d")
        return logistic.sigmoid(x @ W.T + d).astype(np.float32)


def unpack(data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the description of a stored model, without loading an estimator."""
    way_out = "`harmonium train` makes a new one."
    arrays, about = model_files.from_bytes(data, name="The stored model", way_out=way_out)
    if about.get("class") not in PARAMETERS:
        kind = about.get("class")
        raise ModelFileError(f"The stored model is a {kind}, which is unknown. {way_out}")
    try:
        _check(arrays, about)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"The stored model is damaged ({error}). {way_out}") from None
    return arrays, about


def _check(arrays: dict[str, NDArray[Any]], about: dict[str, Any]) -> None:
    """Raise an error if the parameters do not fit together, or inference is not supported."""
    params = {}
    for letter in PARAMETERS[about["class"]]:
        params[letter] = model_files.stored_parameter(arrays, f"params.{letter}")
    *members, n_tags = params["d"].shape
    n_features = len(stored_scaling(arrays, about).mean)
    shapes: dict[str, tuple[int, ...]]
    if "c" in params:
        n_hidden = params["c"].shape[-1]
        shapes = {
            "U": (n_hidden, n_tags),
            "W": (n_hidden, n_features),
            "c": (n_hidden,),
            "d": (n_tags,),
        }
        method, steps = stored_inference(about["parameters"])
        if method != "mean_field" or type(steps) is not int or steps < 1:
            raise ValueError(f"it predicts by {steps!r} steps of {method}")
    else:
        shapes = {"W": (n_tags, n_features), "d": (n_tags,)}
    for letter, array in params.items():
        if array.shape != (*members, *shapes[letter]):
            raise ValueError(f"{letter} has the shape {array.shape}")
    stored_recalibration(arrays, n_tags)
