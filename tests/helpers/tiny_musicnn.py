"""A small random network with musicnn's layers; its checkpoint, as TensorFlow would write it."""

import struct

import numpy as np

from harmonium.audio.musicnn import NETWORKS, write_weights

KERNELS = [(7, 38), (7, 67), (128, 1), (64, 1), (32, 1)]
"""Frames and bands of the first filters."""


def random_tensors(seed: int = 0, filters=(4, 3, 2, 2, 2), middle: int = 5) -> dict:
    """A network of 200 hidden units and 50 tags, as musicnn's, with few filters."""
    rng = np.random.default_rng(seed)
    channels = sum(filters)
    shapes = [(*kernel, 1, n) for kernel, n in zip(KERNELS, filters, strict=True)]
    shapes += [(7, n, 1, middle) for n in (channels, middle, middle)]
    pooled = 2 * (channels + 3 * middle)
    tensors = {}
    for i, shape in enumerate(shapes):
        name = _numbered("conv2d", i)
        tensors[f"{name}/kernel"] = rng.normal(0, 1 / np.sqrt(np.prod(shape[:3])), shape)
        tensors[f"{name}/bias"] = rng.normal(0, 0.1, shape[-1])
    for i, n in enumerate((1, *(shape[-1] for shape in shapes), pooled, 200)):
        name = _numbered("batch_normalization", i)
        tensors[f"{name}/gamma"] = rng.choice([-1, 1], n) * rng.uniform(0.5, 1.5, n)
        tensors[f"{name}/beta"] = rng.normal(0, 0.1, n)
        tensors[f"{name}/moving_mean"] = rng.normal(0, 0.1, n)
        tensors[f"{name}/moving_variance"] = rng.uniform(0.5, 2, n)
    for name, shape in (("dense", (pooled, 200)), ("dense_1", (200, 50))):
        tensors[f"{name}/kernel"] = rng.normal(0, 1 / np.sqrt(shape[0]), shape)
        tensors[f"{name}/bias"] = rng.normal(0, 0.1, shape[1])
    return {name: value.astype(np.float32) for name, value in tensors.items()}


def write_tiny_weights() -> None:
    """Small networks where the real weights would be; other processes find them there."""
    write_weights({name: random_tensors(k) for k, name in enumerate(NETWORKS)}, "none")


def _numbered(name: str, number: int) -> str:
    return name + (f"_{number}" if number else "")


# The checkpoint


def write_checkpoint(tensors: dict) -> tuple[bytes, bytes]:
    """The bytes of .index and of .data-00000-of-00001, several blocks of names."""
    data, entries = b"", [(b"", bytes([8, 1]))]
    for name in sorted(tensors):
        raw = tensors[name].astype("<f4").tobytes()
        entries.append((name.encode(), _entry(tensors[name].shape, len(data), len(raw))))
        data += raw
    index, handles = b"", []
    for start in range(0, len(entries), 10):
        some = entries[start : start + 10]
        block = _block(some)
        handles.append((some[-1][0], _varint(len(index)) + _varint(len(block))))
        index += block + bytes(5)  # not compressed; a checksum
    places = []
    for block in (_block([]), _block(handles)):
        places.append(_varint(len(index)) + _varint(len(block)))
        index += block + bytes(5)
    footer = b"".join(places)
    return index + footer + bytes(40 - len(footer)) + struct.pack("<Q", 0xDB4775248B80FB57), data


def _entry(shape, offset: int, size: int) -> bytes:
    dimensions = [b"\x08" + _varint(n) for n in shape]
    inside = b"".join(b"\x12" + _varint(len(d)) + d for d in dimensions)
    place = (b"\x20" + _varint(offset)) if offset else b""
    return (
        b"".join([b"\x08\x01\x12", _varint(len(inside)), inside, place, b"\x28", _varint(size)])
        + b"\x35"
        + bytes(4)
    )


def _block(entries: list[tuple[bytes, bytes]]) -> bytes:
    block, before = b"", b""
    for name, value in entries:
        shared = 0
        while shared < min(len(name), len(before)) and name[shared] == before[shared]:
            shared += 1
        rest = name[shared:]
        block += _varint(shared) + _varint(len(rest)) + _varint(len(value)) + rest + value
        before = name
    return block + struct.pack("<II", 0, 1)


def _varint(number: int) -> bytes:
    found = b""
    while number >= 128:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])
