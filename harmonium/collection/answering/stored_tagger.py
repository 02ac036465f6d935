"""A stored model at work: the probabilities of tags, from features and from tags that are known.

The bytes of a stored model are a file of ``DiscriminativeRBM`` (safetensors), with a few more
arrays: held-out probabilities of the tracks learnt from, and which tags people give together.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.collection.answering.numpy_inference import Machine, Settings, tag_probabilities
from harmonium.collection.learning.compiled_programs import keep_compiled
from harmonium.collection.store.models import StoredModel
from harmonium.errors import DataError, ModelFileError

FEW = 100
"""Up to so many tracks, starting JAX would take longer than doing without."""

Floats = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]


class Tagger:
    """What a stored model says.

    Parameters
    ----------
    stored : a model of ``library.models``
    """

    def __init__(self, stored: StoredModel) -> None:
        self.id = stored.id
        self.tags = tuple(stored.vocabulary)
        self.thresholds = stored.thresholds
        """(n_tags,) the probability from which a track has the tag; above 1 if it is not learnt."""
        self.extractor = stored.extractor
        self._bytes = stored.bytes
        self._arrays, self._about = unpack(stored.bytes)

    @property
    def learnt(self) -> NDArray[np.bool_]:
        """(n_tags,) which tags the model can tell better than chance."""
        return self.thresholds <= 1

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
    def together(self) -> Machine:
        """Which tags go together, whatever the sound.

        As people give them, if several were learnt from; else as the model has it of a track of
        average sound.
        """
        part = "together" if "together.U" in self._arrays else "params"
        return Machine(*(self._arrays[f"{part}.{k}"].astype(np.float64) for k in "Ucd"))

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

    def known(self, present: Sequence[str], absent: Sequence[str] = ()) -> Floats:
        """A row of known tags, (n_tags,); those that are not in the vocabulary are left out."""
        row = np.full(len(self.tags), np.nan, np.float32)
        place = {tag: i for i, tag in enumerate(self.tags)}
        for tags, value in ((absent, 0.0), (present, 1.0)):
            row[[place[tag] for tag in tags if tag in place]] = value
        return row

    def _one_by_one(self, X: Floats, known: Floats) -> Floats:
        U, c, d = (self._arrays[f"params.{k}"].astype(np.float64) for k in "Ucd")
        W = self._arrays["params.W"].astype(np.float64)
        scaled = (X - self._arrays["scaling.mean"]) / self._arrays["scaling.scale"]
        P = np.empty(known.shape, np.float32)
        for row, (x, y) in enumerate(zip(scaled, known, strict=True)):
            machine = Machine(U, c + W @ x, d)
            P[row] = tag_probabilities(machine, y.astype(np.float64), self._settings)
        return P

    @property
    def _settings(self) -> Settings:
        parameters = self._about["parameters"]
        return Settings(
            parameters["inference_steps"], parameters["damping"], parameters["tolerance"]
        )

    @cached_property
    def estimator(self) -> Any:
        """The model as a ``DiscriminativeRBM``."""
        keep_compiled()
        from harmonium.estimators import DiscriminativeRBM

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.safetensors"
            file.write_bytes(self._bytes)
            return DiscriminativeRBM.load(file).set_params(n_jobs=-1)


def pack(model: Any, more: Arrays) -> bytes:
    """A fitted ``DiscriminativeRBM`` and more arrays as the bytes of a stored model."""
    from harmonium.estimators.model_files import read_model, write_model

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        model.save(file)
        arrays, about = read_model(file)
        write_model(file, arrays | dict(more), about)
        return file.read_bytes()


def unpack(data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the description of a stored model, without the estimators."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(data)
        length = int.from_bytes(data[:8], "little")
        about = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["harmonium"])
        if about["class"] != "DiscriminativeRBM":
            raise ModelFileError(f"The stored model is a {about['class']}, which is not known.")
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"The stored model is damaged ({error}). `harmonium train` makes a new one."
        ) from None
    return arrays, about
