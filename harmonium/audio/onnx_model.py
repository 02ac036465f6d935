"""Any ONNX network as an extractor: ``onnx:model.onnx``, described by a TOML file next to it.

docs/features.md describes the TOML. It needs onnxruntime (the extra ``onnx``), which is
imported only here and only when a model is used.
"""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from harmonium.arrays import Floats
from harmonium.audio.extractors import ONNX, Extractor
from harmonium.audio.spectrum import MelParameters, mel_spectrogram
from harmonium.audio.windows import SpreadWindows
from harmonium.errors import DataError
from harmonium.files import absolute_path

KEYS = {"rate": int, "seconds": float, "windows": int, "input": str, "output": str, "mel": dict}
MEL_KEYS = {
    "frame": int,
    "hop": int,
    "bands": int,
    "lowest_hz": float,
    "highest_hz": float,
    "log": str,
}
OPTIONAL = {"mel", "windows"}
LOGS = {  # what may be done with the mel energies
    "none": lambda mel: mel,
    "log10(1 + 10000 x)": lambda mel: np.log10(1 + 10_000 * mel),
    "ln": lambda mel: np.log(np.maximum(mel, 1e-10)),
    "dB": lambda mel: 10 * np.log10(np.maximum(mel, 1e-10)),
}


@dataclass(frozen=True, kw_only=True)
class MelInput:
    """A mel spectrum as a model's input."""

    parameters: MelParameters
    log: str  # one of `LOGS`

    def __call__(self, samples: Floats) -> Floats:
        """(n,) → (n_frames, n_mels)"""
        mel: Floats = LOGS[self.log](mel_spectrogram(samples, self.parameters))
        return mel


@dataclass(frozen=True, kw_only=True)
class OnnxModel:
    """A model file as a function from samples to features, for `Extractor`."""

    path: str
    digest: str  # of the file and its description
    input_name: str
    output_name: str
    mel: MelInput | None  # None: the samples themselves are the input

    def __call__(self, samples: Floats, rate: int) -> Floats:
        """(n,) → (n_features,): the model's output, its mean over all axes but the last."""
        values = samples if self.mel is None else self.mel(samples)
        inputs = {self.input_name: np.ascontiguousarray(values[None], np.float32)}
        (output,) = _session(self.path, self.digest).run([self.output_name], inputs)
        return np.asarray(output, np.float32).reshape(-1, output.shape[-1]).mean(axis=0)


def onnx_extractor(path: str) -> Extractor:
    """The extractor for a model file; a DataError says what is wrong with it."""
    file = Path(absolute_path(path))
    description_file = file.with_suffix(".toml")
    try:
        content = file.read_bytes()
        text = description_file.read_text(encoding="utf-8")
        description = _checked(tomllib.loads(text), KEYS, description_file)
    except OSError as error:
        raise DataError(
            f"{error.filename} cannot be read: {error.strerror}. A model in ONNX's format needs a "
            f"description beside it, {description_file.name}; docs/features.md shows one."
        ) from error
    except ValueError as error:
        raise DataError(f"{description_file} is not TOML: {error}.") from error
    rate = int(description["rate"])
    seconds = float(description["seconds"])
    n_samples = round(seconds * rate)
    model = OnnxModel(
        path=str(file),
        digest=hashlib.sha256(content + text.encode()).hexdigest(),
        input_name=description["input"],
        output_name=description["output"],
        mel=_mel_input(description.get("mel"), rate, description_file),
    )
    try:
        n_features = len(model(np.zeros(n_samples, np.float32), rate))
    except DataError:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"{file} cannot be run as {description_file.name} says: {reason}"
        ) from error
    return Extractor(
        name=f"{ONNX}{file}",
        function=model,
        feature_names=tuple(f"embedding {j}" for j in range(n_features)),
        revision=model.digest,
        rate=rate,
        seconds=seconds,
        windows=SpreadWindows(int(description.get("windows", 3)), n_samples, whole=True),
    )


def _mel_input(table: dict[str, Any] | None, rate: int, file: Path) -> MelInput | None:
    """The table [mel] of a description, checked; None if there is none."""
    if table is None:
        return None
    defaults = {"log": "none", "lowest_hz": 0.0, "highest_hz": rate / 2}
    table = _checked(defaults | table, MEL_KEYS, file)
    if table["log"] not in LOGS:
        raise DataError(f"'log' in {file} must be one of {', '.join(LOGS)}, got {table['log']!r}.")
    parameters = MelParameters(
        rate=rate,
        frame_length=table["frame"],
        hop_length=table["hop"],
        n_mels=table["bands"],
        lowest_hz=float(table["lowest_hz"]),
        highest_hz=float(table["highest_hz"]),
    )
    return MelInput(parameters=parameters, log=table["log"])


def _checked(table: dict[str, Any], keys: Mapping[str, type], file: Path) -> dict[str, Any]:
    """The table, if it has these keys and no others."""
    for key, kind in keys.items():
        if key not in table and key in OPTIONAL:
            continue
        allowed = (int, float) if kind is float else kind
        if not isinstance(table.get(key), allowed):
            raise DataError(f"'{key}' in {file} must be {kind.__name__}, got {table.get(key)!r}.")
    unknown = sorted(set(table) - set(keys))
    if unknown:
        raise DataError(
            f"{file} has {unknown[0]!r}; the keys that it can have are {', '.join(keys)}."
        )
    return table


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
