"""The reader of TensorFlow's checkpoints, on one of a few numbers."""

import numpy as np
from musicnn import FOOTER, read_checkpoint


def varint(number):
    return bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7])


def block(*entries):
    """Of (bytes shared with the name before, the rest of the name, value)."""
    rows = [bytes([n, len(rest), len(value)]) + rest + value for n, rest, value in entries]
    return b"".join(rows) + bytes([0, 0, 0, 0, 1, 0, 0, 0])


def tensor(shape, offset, size):
    inside = b"".join(b"\x12\x02\x08" + bytes([n]) for n in shape)
    place = b"\x20" + varint(offset) if offset else b""
    parts = b"\x08\x01\x12", varint(len(inside)), inside, place, b"\x28", varint(size), b"\x35...."
    return b"".join(parts)


def test_all_tensors_but_the_optimisers():
    bias, kernel = np.array([7, 8, 9], "<f4"), np.arange(40, dtype="<f4").reshape(20, 2)
    adam, power = tensor((3,), 0, 12), tensor((), 0, 4)
    index, handles = b"", []
    for one in (
        block((0, b"", b"\x08\x01"), (0, b"a/bias", tensor((3,), 0, 12))),
        block((0, b"a/bias/Adam", adam), (2, b"kernel", tensor((20, 2), 12, 160))),
        block((0, b"beta1_power", power)),
    ):
        handles.append((0, b"last", varint(len(index)) + varint(len(one))))
        index += one + bytes(5)  # not compressed; a checksum
    extra, blocks = block(), block(*handles)
    index += extra + blocks
    at = len(index) - len(blocks)
    places = [at - len(extra), len(extra), at, len(blocks)]
    index += b"".join(map(varint, places)).ljust(FOOTER)
    found = read_checkpoint(index, bias.tobytes() + kernel.tobytes())
    assert list(found) == ["a/bias", "a/kernel"]
    np.testing.assert_array_equal(found["a/bias"], bias)
    np.testing.assert_array_equal(found["a/kernel"], kernel)
