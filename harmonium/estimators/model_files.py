"""Models as files: one safetensors file whose metadata is JSON. Nothing in it is executed."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from harmonium.atomic_files import write_atomically
from harmonium.errors import ModelFileError

FORMAT = 1
"""Version of the file format; a file with a higher one is refused."""

_KEY = "harmonium"

Arrays = dict[str, NDArray[Any]]


def write_model(path: str | os.PathLike[str], arrays: Arrays, description: dict[str, Any]) -> None:
    """Write arrays and a JSON description; an interrupted write leaves the old file or none."""
    path = Path(path)
    if not path.parent.is_dir():
        raise ModelFileError(
            f"The model cannot be saved as '{path}': there is no folder '{path.parent}'. "
            "Create it first."
        )
    if path.is_dir():
        raise ModelFileError(f"'{path}' is a folder. Give the name of a file in it.")
    text = json.dumps({"format": FORMAT, **description})
    data = save({k: np.ascontiguousarray(v) for k, v in arrays.items()}, metadata={_KEY: text})
    write_atomically(path, data)


def read_model(path: str | os.PathLike[str]) -> tuple[Arrays, dict[str, Any]]:
    """The arrays and the description of a model file."""
    if not Path(path).is_file():
        raise ModelFileError(f"There is no model file at '{path}'.")
    try:
        with safe_open(path, framework="numpy") as file:
            description = _description(path, (file.metadata() or {}).get(_KEY))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except ModelFileError:
        raise
    except (SafetensorError, OSError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(
            f"'{path}' is not a Harmonium model, or is damaged ({error}). "
            "Train and save the model again, or take a copy that is whole."
        ) from None
    return arrays, description


def _description(path: str | os.PathLike[str], text: str | None) -> dict[str, Any]:
    """The JSON description, if it is one that this version can read."""
    if text is None:
        raise ModelFileError(f"'{path}' is a safetensors file, but not a Harmonium model.")
    description = json.loads(text)
    version = description.get("format") if isinstance(description, dict) else None
    if not isinstance(version, int) or version < 1:
        raise ModelFileError(
            f"'{path}' does not say which format of Harmonium models it has, or is damaged. "
            "Train and save the model again, or take a copy that is whole."
        )
    if version > FORMAT:
        raise ModelFileError(
            f"'{path}' was written by a newer version of Harmonium "
            f"({description.get('version', 'unknown')}, format {version}; this one "
            f"reads up to {FORMAT}). Upgrade Harmonium to read it."
        )
    return description
