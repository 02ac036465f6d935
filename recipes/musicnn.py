"""Makes harmonium/audio/musicnn.safetensors, and its licence, from the wheel of musicnn 0.1.0.

    pip download --no-deps musicnn==0.1.0
    python recipes/musicnn.py musicnn-0.1.0-py3-none-any.whl                      # writes both
    python recipes/musicnn.py musicnn-0.1.0-py3-none-any.whl --check [SOUND ...]  # compares them

The same wheel gives the same bits. With sound files, --check also compares their features with
those of full precision.

The package itself is neither installed nor run. Its weights are TensorFlow checkpoints, which are
read here without TensorFlow. The index of a checkpoint is a table like LevelDB's: blocks of sorted
entries, whose names share prefixes, and a footer that says where the block of blocks is. The value
of an entry is a small protocol buffer with shape, place and size of a tensor, whose bytes are in
the data file. The wheel's digest is checked, so nothing else is.
"""

import argparse
import hashlib
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from struct import unpack_from
from typing import Any

import numpy as np
from safetensors.numpy import save

from harmonium.arrays import Floats
from harmonium.audio.decoding import decode_windows
from harmonium.audio.musicnn import (
    FILE,
    NETWORKS,
    PATCH_SECONDS,
    RATE,
    Network,
    Patches,
    log_mel_patches,
    unpacked,
)
from harmonium.files import write_atomically

SHA256 = "f38a4890c648c1ddbb141c5d96d2b0a8cfcd36746002d896989f7b88beb65cfa"
LICENCE = FILE.with_suffix(".LICENSE")

LARGE = 50_000
"""Kernels of more numbers are rounded to 16 bits."""
TOLERANCE = 0.001
"""The largest difference of a feature from that of full precision."""

FOOTER = 48
"""Bytes at the end of a checkpoint's index."""
SHAPE, OFFSET, SIZE = 2, 4, 5
"""Numbers of the fields of a tensor's entry."""


def main() -> int:
    """Make the files; 1 where --check finds that they differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--check", metavar="SOUND", nargs="*", help="compare, do not write")
    arguments = parser.parse_args()
    data = arguments.wheel.read_bytes()
    if (digest := hashlib.sha256(data).hexdigest()) != SHA256:
        sys.exit(f"{arguments.wheel} is not musicnn 0.1.0: its SHA-256 is {digest}, not {SHA256}.")
    networks, licence = read_wheel(arguments.wheel)
    tensors = packed(networks)
    for path, made in {FILE: save(tensors), LICENCE: licence}.items():
        if arguments.check is None:
            write_atomically(path, made)
            print(f"{path.name}: {len(made):,} bytes")
        elif not path.exists() or path.read_bytes() != made:
            print(f"{path.name} differs")
            return 1
    if not arguments.check:
        return 0
    features, heads = largest_differences(networks, tensors, arguments.check)
    print(f"{len(arguments.check)} files: features {features:.6f}, probabilities {heads:.6f}")
    return int(features > TOLERANCE)


def read_wheel(wheel: Path) -> tuple[dict[str, dict[str, Floats]], bytes]:
    """The tensors of both networks, and the licence."""
    with zipfile.ZipFile(wheel) as files:
        folders = {name: f"musicnn/{name}_musicnn" for name in NETWORKS}
        networks = {
            name: read_checkpoint(
                files.read(f"{folder}/.index"), files.read(f"{folder}/.data-00000-of-00001")
            )
            for name, folder in folders.items()
        }
        return networks, files.read("musicnn-0.1.0.dist-info/LICENSE.md")


def packed(networks: Mapping[str, Mapping[str, Floats]]) -> dict[str, np.ndarray]:
    """The tensors as they are stored; `harmonium.audio.musicnn.unpacked` is the inverse.

    A large kernel (frames, bands, channels, filters), or a matrix, becomes whole numbers of up to
    2¹⁵ − 1 times a scale: for each filter and frame of a kernel, for each column of a matrix.
    """
    stored: dict[str, np.ndarray] = {}
    for network, tensors in networks.items():
        for name, tensor in tensors.items():
            key = f"{network}/{name}"
            stored[key] = np.ascontiguousarray(tensor)
            if tensor.size > LARGE:
                axes = (1, 2) if tensor.ndim == 4 else (0,)
                scale = (np.abs(tensor).max(axes, keepdims=True) / (2**15 - 1)).astype(np.float32)
                scale[scale == 0] = 1
                stored[key] = np.rint(tensor / scale).astype(np.int16)
                stored[f"{key}/scale"] = scale
    return stored


def largest_differences(
    networks: Mapping[str, Mapping[str, Floats]], stored: Mapping[str, Floats], files: list[str]
) -> tuple[float, float]:
    """Of any file's features, and of its tags' probabilities, from those of full precision."""
    pairs = [(Network(full), Network(unpacked(stored, name))) for name, full in networks.items()]
    largest = np.zeros(2)
    for file in files:
        windows = decode_windows(file, Patches(), rate=RATE, seconds=PATCH_SECONDS)
        patches = np.concatenate([log_mel_patches(window) for window in windows])
        for full, rounded in pairs:
            found = [
                [np.mean(outputs, axis=0) for outputs in zip(*map(network, patches), strict=True)]
                for network in (full, rounded)
            ]
            differences = [np.abs(a - b).max() for a, b in zip(*found, strict=True)]
            largest = np.maximum(largest, differences)
    return float(largest[0]), float(largest[1])


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


if __name__ == "__main__":
    sys.exit(main())
