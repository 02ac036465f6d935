"""Models as files: one safetensors file whose metadata is JSON. Nothing in it is executed."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from harmonium.errors import ModelFileError

FORMAT = 1
"""Version of the file format; a file with a higher one is refused."""

_KEY = "harmonium"

Arrays = dict[str, NDArray[Any]]


def write_model(path: str | os.PathLike[str], arrays: Arrays, description: dict[str, Any]) -> None:
    """Write arrays and a JSON description; an interrupted write leaves the old file or none."""
    path = Path(path)
    text = json.dumps({"format": FORMAT, **description})
    data = save({k: np.ascontiguousarray(v) for k, v in arrays.items()}, metadata={_KEY: text})
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def read_model(path: str | os.PathLike[str]) -> tuple[Arrays, dict[str, Any]]:
    """The arrays and the description of a model file."""
    if not Path(path).is_file():
        raise ModelFileError(f"There is no model file at '{path}'.")
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(_KEY)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        description = json.loads(text) if text else None
    except (SafetensorError, ValueError) as error:
        raise ModelFileError(
            f"'{path}' is not a Harmonium model, or is damaged ({error}). "
            "Train and save the model again, or take a copy that is whole."
        ) from None
    if description is None:
        raise ModelFileError(f"'{path}' is a safetensors file, but not a Harmonium model.")
    if description["format"] > FORMAT:
        raise ModelFileError(
            f"'{path}' was written by a newer version of Harmonium "
            f"({description.get('version', 'unknown')}, format {description['format']}; this one "
            f"reads up to {FORMAT}). Upgrade Harmonium to read it."
        )
    return arrays, description
