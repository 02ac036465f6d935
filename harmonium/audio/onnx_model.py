"""Any network in ONNX's format as an extractor: ``onnx:model.onnx``, described by a TOML beside it.

docs/features.md says what stands in the TOML. It needs onnxruntime (the extra ``onnx``), which is
imported only here and only when a model is used.
"""

import hashlib
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.audio.parameters import FeatureParameters
from harmonium.audio.spectrum import mel_spectrogram
from harmonium.errors import DataError
from harmonium.files import absolute_path

PREFIX = "onnx:"
KEYS = {"rate": int, "seconds": float, "windows": int, "input": str, "output": str, "mel": dict}
MEL_KEYS = {"frame": int, "hop": int, "bands": int, "lowest_hz": float, "highest_hz": float}
MEL_KEYS |= {"log": str}
LOGS = {
    "none": lambda mel: mel,
    "log10(1 + 10000 x)": lambda mel: np.log10(1 + 10_000 * mel),
    "ln": lambda mel: np.log(np.maximum(mel, 1e-10)),
    "dB": lambda mel: 10 * np.log10(np.maximum(mel, 1e-10)),
}
"""What may be done with the mel energies."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class OnnxModel:
    """A model with what it needs; called with a window's samples, it gives the embedding."""

    path: str
    digest: str
    """Of the model and its description."""
    input: str
    output: str
    mel: FeatureParameters | None
    log: str

    def __call__(self, samples: Floats, rate: int) -> Floats:
        """(n,) → (n_features,): the output, its mean over all axes but the last."""
        given = samples[None]
        if self.mel is not None:
            given = LOGS[self.log](mel_spectrogram(samples, self.mel))[None]
        (found,) = _session(self.path, self.digest).run(
            [self.output], {self.input: np.ascontiguousarray(given, np.float32)}
        )
        return np.asarray(found, np.float32).reshape(-1, found.shape[-1]).mean(axis=0)


@dataclass(frozen=True)
class Described:
    """What the TOML says, with the model."""

    name: str
    model: OnnxModel
    rate: int
    seconds: float
    windows: int
    n_features: int


def described(name: str) -> Described:
    """The model of a name such as ``onnx:model.onnx``; a DataError says what is wrong with it."""
    file = Path(absolute_path(name.removeprefix(PREFIX)))
    beside = file.with_suffix(".toml")
    try:
        data, text = file.read_bytes(), beside.read_text(encoding="utf-8")
        about = _checked(tomllib.loads(text), KEYS, beside)
    except OSError as error:
        raise DataError(
            f"{error.filename} cannot be read: {error.strerror}. A model in ONNX's format needs a "
            f"description beside it, {beside.name}; docs/features.md shows one."
        ) from error
    except ValueError as error:
        raise DataError(f"{beside} is not TOML: {error}.") from error
    seconds, rate = float(about["seconds"]), int(about["rate"])
    mel = log = None
    if "mel" in about:
        part = {"log": "none", "lowest_hz": 0.0, "highest_hz": rate / 2} | about["mel"]
        part = _checked(part, MEL_KEYS, beside)
        log = part["log"]
        if log not in LOGS:
            raise DataError(f"'log' in {beside} must be one of {', '.join(LOGS)}, got {log!r}.")
        mel = FeatureParameters(
            rate=rate,
            frame_length=part["frame"],
            hop_length=part["hop"],
            n_mels=part["bands"],
            n_mfcc=1,  # not computed here
            n_rhythm=1,
            lowest_hz=float(part["lowest_hz"]),
            highest_hz=float(part["highest_hz"]),
        )
    digest = hashlib.sha256(data + text.encode()).hexdigest()
    model = OnnxModel(str(file), digest, about["input"], about["output"], mel, log or "none")
    try:
        n_features = len(model(np.zeros(round(seconds * rate), np.float32), rate))
    except DataError:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{file} cannot be run as {beside.name} says: {reason}") from error
    windows = int(about.get("windows", 3))
    return Described(f"{PREFIX}{file}", model, rate, seconds, windows, n_features)


def _checked(given: dict[str, Any], keys: dict[str, type], beside: Path) -> dict[str, Any]:
    optional = {"mel", "windows"}
    for key, kind in keys.items():
        if key not in given and key in optional:
            continue
        wanted = (int, float) if kind is float else kind
        if not isinstance(given.get(key), wanted):
            raise DataError(f"'{key}' in {beside} must be {kind.__name__}, got {given.get(key)!r}.")
    if unknown := set(given) - set(keys):
        raise DataError(f"{beside} has {sorted(unknown)[0]!r}; known are {', '.join(keys)}.")
    return given


@lru_cache(maxsize=2)
def _session(path: str, digest: str) -> Any:
    """The model, loaded once for all files."""
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise DataError(
            "Models in ONNX's format need the package onnxruntime: pip install 'harmonium[onnx]'."
        ) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # files are shared out to processes
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
