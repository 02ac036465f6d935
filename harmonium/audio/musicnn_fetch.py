"""Getting musicnn's weights out of its wheel, which comes from the registry that pip is set up for.

The package itself is neither installed nor run. Its weights are TensorFlow checkpoints, which are
read here without TensorFlow. The index of a checkpoint is a table like LevelDB's: blocks of sorted
entries, whose names share prefixes, and a footer that says where the block of blocks is. The value
of an entry is a small protocol buffer with shape, place and size of a tensor, whose bytes are in
the data file. The wheel's digest is checked, so nothing else is.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from struct import unpack_from
from typing import Any

import numpy as np

from harmonium.arrays import Floats
from harmonium.audio.musicnn import NETWORKS, weights_file, write_weights
from harmonium.errors import DataError
from harmonium.files import readable

PACKAGE, VERSION = "musicnn", "0.1.0"
WHEEL = f"{PACKAGE}-{VERSION}-py3-none-any.whl"
SHA256 = "f38a4890c648c1ddbb141c5d96d2b0a8cfcd36746002d896989f7b88beb65cfa"
LICENCE = "ISC licence, © 2019 Music Technology Group, Universitat Pompeu Fabra; by Jordi Pons"
CITATION = (
    'Pons, Serra: "musicnn: Pre-trained convolutional neural networks for music audio tagging". '
    "Late-breaking demo, ISMIR 2019."
)

ELSEWHERE = f"Or get {WHEEL} on another machine, and name it with --wheel FILE."

FOOTER = 48
"""Bytes at the end of a checkpoint's index."""
SHAPE, OFFSET, SIZE = 2, 4, 5
"""Numbers of the fields of a tensor's entry."""


def fetch_musicnn(wheel: Path | None = None) -> Path:
    """Take the weights out of the wheel, which pip downloads if it is not given; their new file.

    DataError where the wheel is missing or another, or the weights cannot be written.
    """
    try:
        if wheel is not None:
            return _keep(wheel)
        with tempfile.TemporaryDirectory(prefix="harmonium-") as folder:
            return _keep(_download(Path(folder)))
    except OSError as error:
        where = f": {readable(error.filename)}" if error.filename else ""
        raise DataError(
            f"The weights of musicnn could not be kept: {error.strerror or error}{where}. They "
            "need 30 MB in the folder for temporary files, and 7 MB in the user's data folder."
        ) from error


def was_declined() -> bool:
    """Whether the user was asked for the weights, and did not want them."""
    return _declined_file().exists()


def decline() -> None:
    """Remember that the user does not want the weights; not to be asked again."""
    file = _declined_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def _declined_file() -> Path:
    return weights_file().with_suffix(".declined")


def _download(folder: Path) -> Path:
    """The wheel, by pip: it knows the registry, the proxy and the certificates of this machine."""
    if find_spec("pip") is None:
        raise DataError(
            f"pip, which would download musicnn, is not installed for {sys.executable}: `python "
            f"-m ensurepip` installs it. {ELSEWHERE}"
        )
    command = [sys.executable, "-m", "pip", "download", f"{PACKAGE}=={VERSION}"]
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input"]
    done = subprocess.run(
        [*command, *options, "--dest", str(folder)],
        check=False,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    file = folder / WHEEL
    if done.returncode or not file.is_file():
        raise DataError(
            f"pip could not download musicnn {VERSION}: {_reason(done.stderr)}. Check the network "
            f"and try again. {ELSEWHERE}"
        )
    return file


def _reason(said: str) -> str:
    """What pip says is wrong: the cause, which comes first, or else its last error."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for sign in ("NewConnectionError", "NameResolutionError", "ConnectTimeout", "ProxyError"):
        if any(sign in line for line in lines):
            return "the package registry cannot be reached"
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["it gives no reason"])[-1].rstrip(".")


def _keep(wheel: Path) -> Path:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != SHA256:
        raise DataError(
            f"{readable(wheel)} is not the wheel of musicnn {VERSION}, or is damaged: its SHA-256 "
            f"is {digest}, not {SHA256}. Fetch it again."
        )
    with zipfile.ZipFile(wheel) as files:
        folders = {name: f"{PACKAGE}/{name}_musicnn" for name in NETWORKS}
        networks = {
            name: read_checkpoint(
                files.read(f"{folder}/.index"), files.read(f"{folder}/.data-00000-of-00001")
            )
            for name, folder in folders.items()
        }
        licence = files.read(f"{PACKAGE}-{VERSION}.dist-info/LICENSE.md").decode()
    return write_weights(networks, licence)


def read_checkpoint(index: bytes, data: bytes) -> dict[str, Floats]:
    """The tensors of a checkpoint by name, but for the optimiser's, from its two files."""
    _, place = _handle(index, len(index) - FOOTER)  # of the block of extra facts
    (start, end), _ = _handle(index, place)
    tensors = {}
    for _, found in _entries(index[start:end]):
        (start, end), _ = _handle(found, 0)
        for key, entry in _entries(index[start:end]):
            name = key.decode()
            if name and "/Adam" not in name and not name.endswith("_power"):
                tensors[name] = _tensor(dict(_fields(entry)), data)
    return tensors


def _tensor(entry: dict[int, Any], data: bytes) -> Floats:
    shape = [dict(_fields(value)).get(1, 0) for _, value in _fields(entry.get(SHAPE, b""))]
    numbers = np.frombuffer(data, "<f4", entry[SIZE] // 4, entry.get(OFFSET, 0))
    return numbers.reshape(shape).astype(np.float32)


def _handle(buffer: bytes, place: int) -> tuple[tuple[int, int], int]:
    """Where a block begins and ends, and the place after it."""
    offset, place = _varint(buffer, place)
    size, place = _varint(buffer, place)
    return (offset, offset + size), place


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Names and values. A name begins with as many bytes of the one before as the entry says."""
    end = len(block) - 4 * (1 + unpack_from("<I", block, len(block) - 4)[0])
    place, name = 0, b""
    while place < end:
        shared, place = _varint(block, place)
        rest, place = _varint(block, place)
        size, place = _varint(block, place)
        name = name[:shared] + block[place : place + rest]
        place += rest
        yield name, block[place : place + size]
        place += size


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field of a protocol buffer."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        value: Any = None
        if kind == 0:  # a number
            value, place = _varint(message, place)
        elif kind == 2:  # bytes
            size, place = _varint(message, place)
            value, place = message[place : place + size], place + size
        else:  # four bytes, of no use here
            place += 4
        yield key >> 3, value


def _varint(buffer: bytes, place: int) -> tuple[int, int]:
    """A number in groups of seven bits, the lowest first, and the place after it."""
    number = shift = 0
    while True:
        byte = buffer[place]
        number |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return number, place
