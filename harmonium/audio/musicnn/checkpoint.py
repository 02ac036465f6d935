"""TensorFlow checkpoints, read without TensorFlow.

The index is a table like LevelDB's: blocks of sorted entries, whose names share prefixes, and a
footer that says where the block of blocks is. The value of an entry is a small protocol buffer with
type, shape, place and size of a tensor, whose bytes are in the data file.
"""

from collections.abc import Iterator
from struct import error as StructError
from struct import unpack_from

import numpy as np
from numpy.typing import NDArray

from harmonium.errors import ModelFileError

FOOTER = 48
MAGIC = 0xDB4775248B80FB57
DT_FLOAT = 1
# Numbers of the fields of a tensor's entry that are used.
TYPE, SHAPE, SHARD, OFFSET, SIZE = 1, 2, 3, 4, 5
_VARINT, _LENGTH, _FIXED32 = 0, 2, 5


def read_checkpoint(index: bytes, data: bytes) -> dict[str, NDArray[np.float32]]:
    """The tensors of a checkpoint by name, but for the optimiser's.

    Parameters
    ----------
    index, data : what is in the files .index and .data-00000-of-00001

    Raises
    ------
    ModelFileError
        where that is not a checkpoint of one shard in float32, or a damaged one
    """
    try:
        if unpack_from("<Q", index, len(index) - 8)[0] != MAGIC:
            raise ModelFileError("It is not a TensorFlow checkpoint: the index lacks its mark.")
        return dict(_tensors(index, data))
    except (IndexError, ValueError, StructError, KeyError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError("The TensorFlow checkpoint is damaged.") from error


def _tensors(index: bytes, data: bytes) -> Iterator[tuple[str, NDArray[np.float32]]]:
    _, place = _handle(index, len(index) - FOOTER)  # of the block of extra facts
    top, _ = _handle(index, place)
    for _, found in _entries(_block(index, top)):
        for name, entry in _entries(_block(index, _handle(found, 0)[0])):
            if name and not _is_slot(name.decode()):
                yield name.decode(), _tensor(dict(_fields(entry)), data)


def _is_slot(name: str) -> bool:
    """Whether a tensor is the optimiser's, not the network's."""
    return "/Adam" in name or name.endswith("_power")


def _tensor(entry: dict[int, int | bytes], data: bytes) -> NDArray[np.float32]:
    if entry.get(TYPE) != DT_FLOAT or entry.get(SHARD):
        raise ModelFileError("The TensorFlow checkpoint is not of one shard in float32.")
    dimensions = [dict(_fields(value)) for _, value in _fields(entry.get(SHAPE, b""))]
    shape = [int(dimension.get(1, 0)) for dimension in dimensions]
    offset, size = int(entry.get(OFFSET, 0)), int(entry[SIZE])
    if offset + size > len(data) or size != 4 * int(np.prod(shape)):
        raise ModelFileError("The TensorFlow checkpoint is truncated.")
    numbers = np.frombuffer(data, "<f4", size // 4, offset)
    return numbers.reshape(shape).astype(np.float32)


def _block(index: bytes, handle: tuple[int, int]) -> bytes:
    offset, size = handle
    if index[offset + size] != 0:
        raise ModelFileError("The TensorFlow checkpoint is compressed, which is not supported.")
    return index[offset : offset + size]


def _handle(buffer: bytes, place: int) -> tuple[tuple[int, int], int]:
    """(offset, size) of a block, and the place after it."""
    offset, place = _varint(buffer, place)
    size, place = _varint(buffer, place)
    return (offset, size), place


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


def _fields(message: int | bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a protocol buffer."""
    if not isinstance(message, bytes):
        raise ModelFileError("The TensorFlow checkpoint is damaged.")
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        value: int | bytes
        if key & 7 == _VARINT:
            value, place = _varint(message, place)
        elif key & 7 == _LENGTH:
            size, place = _varint(message, place)
            value, place = message[place : place + size], place + size
        elif key & 7 == _FIXED32:
            value, place = unpack_from("<I", message, place)[0], place + 4
        else:
            raise ModelFileError("The TensorFlow checkpoint is damaged.")
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
