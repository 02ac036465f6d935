"""musicnn's weights as a file of safetensors in the user's data folder."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from harmonium.audio.musicnn.network import Network
from harmonium.errors import ModelFileError
from harmonium.files import readable, user_data_folder, write_atomically

FILE_NAME = "musicnn.safetensors"
NETWORKS = ("MSD", "MTT")
"""In the order of their features. A tensor's name begins with its network's."""
FORMAT = "musicnn 1"
"""What the file's metadata say that it is."""

FETCH = "`harmonium extractor fetch musicnn`"

Tensors = Mapping[str, NDArray[np.float32]]


def weights_file() -> Path:
    """Where the weights are or are to be."""
    return user_data_folder() / "extractors" / FILE_NAME


def are_there() -> bool:
    """Whether the weights were fetched; whether they are whole shows when they are loaded."""
    return weights_file().is_file()


def check_weights() -> None:
    """Raise ModelFileError where the weights are not there, or cannot be used."""
    load_networks()


def write_weights(networks: Mapping[str, Tensors], licence: str) -> Path:
    """Write the tensors of both networks; the file is there whole or not at all."""
    tensors = {
        f"{name}/{key}": np.ascontiguousarray(value)
        for name in NETWORKS
        for key, value in networks[name].items()
    }
    metadata = {"format": FORMAT, "sha256": _digest(tensors), "licence": licence}
    file = weights_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, save(tensors, metadata))
    return file


def load_networks() -> tuple[Network, ...]:
    """Both networks; read once and kept, as long as the file stays what it is.

    Raises
    ------
    ModelFileError
        where the weights were not fetched, or the file is damaged or another one
    """
    file = weights_file()
    try:
        status = file.stat()
    except FileNotFoundError:
        raise ModelFileError(
            f"The weights of musicnn are not there yet: {FETCH} gets them (29 MB)."
        ) from None
    except OSError as error:
        raise _unusable(file, str(error.strerror)) from error
    return _loaded(file, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1)
def _loaded(file: Path, modified: int, size: int) -> tuple[Network, ...]:
    try:
        with safe_open(file, "numpy") as opened:
            metadata = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise _unusable(file, f"truncated or damaged, {error}") from None
    if metadata.get("format") != FORMAT:
        raise _unusable(file, "another file")
    if metadata.get("sha256") != _digest(tensors):
        raise _unusable(file, "damaged, its digest is another")
    return tuple(Network(_of(tensors, name)) for name in NETWORKS)


def _of(tensors: Tensors, network: str) -> Tensors:
    prefix = f"{network}/"
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _digest(tensors: Tensors) -> str:
    """SHA-256 of the names, shapes and numbers."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].shape} {tensors[name].dtype}\n".encode())
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return digest.hexdigest()


def _unusable(file: Path, why: str) -> ModelFileError:
    return ModelFileError(
        f"The weights of musicnn in {readable(file)} cannot be used ({why}). {FETCH} gets them "
        "again; `--extractor paper` does without them."
    )
