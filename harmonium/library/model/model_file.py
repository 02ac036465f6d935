"""A stored model file at work, in NumPy."""

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
    """One model file at work."""

    def __init__(self, data: bytes) -> None:
        self.arrays, self.about = unpack(data)
        self.scaling = stored_scaling(self.arrays, self.about)
        self.n_features = len(self.scaling.mean)
        self.n_tags = self.arrays["params.d"].shape[-1]

    def probabilities(self, X: Floats, observed: Floats) -> Floats:
        """The probabilities of all outputs, (n, n_tags), as `Tagger.probabilities` describes."""
        x, given = self.scaling(X).astype(np.float64), observed
        observed = given[:, : self.n_tags]
        P = self._by_rbm(x, observed) if "params.U" in self.arrays else self._linear(x, "params.")
        correction = stored_recalibration(self.arrays, observed.shape[1])
        P = P if correction is None else correction(P, observed_fraction(observed))
        if f"{VALUES}W" in self.arrays:
            P = np.concatenate([P, self._linear(x, VALUES)], axis=1)
        return np.where(np.isnan(given), P, given)

    def is_music(self, X: Floats) -> Mask:
        """(n,) which sounds are music; all of them if the model cannot tell."""
        if f"{MUSIC}W" not in self.arrays:
            return np.ones(len(X), bool)
        return self._linear(self.scaling(X).astype(np.float64), MUSIC)[:, 0] >= 0.5

    def together(self, observed: Floats) -> Floats | None:
        """The probabilities from what people give together, (n_tags,); None if that is unknown."""
        if "together.U" not in self.arrays:
            return None
        rbm = PlainRBM(*(self.arrays[f"together.{k}"].astype(np.float64) for k in "Ucd"))
        y = observed[: self.n_tags].astype(np.float64)
        if "together.steps" in self.arrays:  # trained with this number of steps
            steps = int(self.arrays["together.steps"][0])
            found = mean_field(rbm, y[None], steps=steps)[0]
        else:
            found = tag_probabilities(rbm, y)
        values = np.nan_to_num(observed[self.n_tags :])  # they depend on no tag
        return np.concatenate([found, values]).astype(np.float32)

    def _by_rbm(self, x: Doubles, observed: Floats) -> Floats:
        y = observed.astype(np.float64)
        steps = stored_inference(self.about["parameters"])[1]
        U, W, c, d = (self.arrays[f"params.{k}"].astype(np.float64) for k in "UWcd")
        if d.ndim == 1:  # one member
            U, W, c, d = U[None], W[None], c[None], d[None]
        members = [ConditionalRBM(*member) for member in zip(U, W, c, d, strict=True)]
        return mean_of_members(members, x, y, steps=steps)

    def _linear(self, x: Doubles, params: str) -> Floats:
        """What a logistic regression says about scaled features, (n, n_tags)."""
        W, d = (self.arrays[params + name].astype(np.float64) for name in "Wd")
        return logistic.sigmoid(x @ W.T + d).astype(np.float32)


def unpack(data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the description of a stored model, without loading an estimator."""
    way_out = "`harmonium train` makes a new one."
    arrays, about = model_files.from_bytes(data, name="The stored model", way_out=way_out)
    if about.get("class") not in PARAMETERS:
        kind = about.get("class")
        raise ModelFileError(f"The stored model is a {kind}, which is unknown. {way_out}")
    try:
        names = PARAMETERS[about["class"]]
        params = {key: model_files.stored_parameter(arrays, f"params.{key}") for key in names}
        *members, n_tags = params["d"].shape
        n_features = len(stored_scaling(arrays, about).mean)
        sizes = {"C": n_tags, "D": n_features, "H": np.shape(params.get("c", (0,)))[-1]}
        shapes = {"d": "C", "c": "H", "U": "HC", "W": "HD" if "c" in params else "CD"}
        for key, array in params.items():
            if array.shape != (*members, *(sizes[axis] for axis in shapes[key])):
                raise ValueError(f"{key} has the shape {array.shape}")
        if "c" in params:
            method, steps = stored_inference(about["parameters"])
            if method != "mean_field" or type(steps) is not int or steps < 1:
                raise ValueError(f"it predicts by {steps!r} steps of {method}")
        stored_recalibration(arrays, n_tags)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"The stored model is damaged ({error}). {way_out}") from None
    return arrays, about
