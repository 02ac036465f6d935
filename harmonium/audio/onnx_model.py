"""Any ONNX network as an extractor: ``onnx:model.onnx``, described by a TOML file next to it.

docs/features.md describes the TOML. It needs onnxruntime (the extra ``onnx``), which is
imported only here and only when a model is used.
"""

import hashlib
import tomllib
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from harmonium.arrays import Floats
from harmonium.audio.decoding import SpreadWindows
from harmonium.audio.extractors import ONNX, Extractor, FeatureParameters, mel_spectrogram
from harmonium.errors import DataError
from harmonium.files import absolute_path

KEYS = {"rate": int, "seconds": float, "windows": int, "input": str, "output": str, "mel": dict}
MEL_KEYS = {"frame": int, "hop": int, "bands": int, "lowest_hz": float, "highest_hz": float}
MEL_KEYS |= {"log": str}
OPTIONAL = {"mel", "windows"}
LOGS = {  # what may be done with the mel energies
    "none": lambda mel: mel,
    "log10(1 + 10000 x)": lambda mel: np.log10(1 + 10_000 * mel),
    "ln": lambda mel: np.log(np.maximum(mel, 1e-10)),
    "dB": lambda mel: 10 * np.log10(np.maximum(mel, 1e-10)),
}
Mel = tuple[FeatureParameters, str]  # the spectrum, and what is done with it


def onnx_extractor(path: str) -> Extractor:
    """The extractor for a model file; a DataError says what is wrong with it."""
    file = Path(absolute_path(path))
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
    mel = _mel(about["mel"], rate, beside) if "mel" in about else None
    digest = hashlib.sha256(data + text.encode()).hexdigest()
    model = partial(_embedding, str(file), digest, (about["input"], about["output"]), mel)
    length = round(seconds * rate)
    try:
        n_features = len(model(np.zeros(length, np.float32), rate))
    except DataError:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{file} cannot be run as {beside.name} says: {reason}") from error
    return Extractor(
        f"{ONNX}{file}",
        model,
        tuple(f"embedding {j}" for j in range(n_features)),
        revision=digest,
        rate=rate,
        seconds=seconds,
        windows=SpreadWindows(int(about.get("windows", 3)), length, whole=True),
    )


def _mel(part: dict[str, Any], rate: int, beside: Path) -> Mel:
    defaults = {"log": "none", "lowest_hz": 0.0, "highest_hz": rate / 2}
    part = _checked(defaults | part, MEL_KEYS, beside)
    if part["log"] not in LOGS:
        raise DataError(f"'log' in {beside} must be one of {', '.join(LOGS)}, got {part['log']!r}.")
    parameters = FeatureParameters(
        rate=rate,
        frame_length=part["frame"],
        hop_length=part["hop"],
        n_mels=part["bands"],
        n_mfcc=1,  # not computed here
        n_rhythm=1,
        lowest_hz=float(part["lowest_hz"]),
        highest_hz=float(part["highest_hz"]),
    )
    return parameters, part["log"]


def _checked(given: dict[str, Any], keys: dict[str, type], beside: Path) -> dict[str, Any]:
    for key, kind in keys.items():
        if key not in given and key in OPTIONAL:
            continue
        wanted = (int, float) if kind is float else kind
        if not isinstance(given.get(key), wanted):
            raise DataError(f"'{key}' in {beside} must be {kind.__name__}, got {given.get(key)!r}.")
    if unknown := set(given) - set(keys):
        raise DataError(f"{beside} has {sorted(unknown)[0]!r}; known are {', '.join(keys)}.")
    return given


def _embedding(
    path: str, digest: str, names: tuple[str, str], mel: Mel | None, samples: Floats, rate: int
) -> Floats:
    """(n,) → (n_features,): the model's output, its mean over all axes but the last."""
    given = samples if mel is None else LOGS[mel[1]](mel_spectrogram(samples, mel[0]))
    feed = {names[0]: np.ascontiguousarray(given[None], np.float32)}
    (found,) = _session(path, digest).run([names[1]], feed)
    return np.asarray(found, np.float32).reshape(-1, found.shape[-1]).mean(axis=0)


@lru_cache(maxsize=2)
def _session(path: str, digest: str) -> Any:
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise DataError(
            "Models in ONNX's format need the package onnxruntime: pip install 'harmonium[onnx]'."
        ) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # files are shared out to processes
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
