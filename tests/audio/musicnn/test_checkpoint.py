"""Reading checkpoints of TensorFlow."""

import numpy as np
import pytest
from tiny_musicnn import random_tensors, write_checkpoint

from harmonium.audio.musicnn.checkpoint import read_checkpoint
from harmonium.errors import ModelFileError


def test_all_tensors_but_the_optimisers():
    tensors = random_tensors()
    slots = {"conv2d/bias/Adam": np.ones(4), "conv2d/bias/Adam_1": np.ones(4)}
    index, data = write_checkpoint(tensors | slots | {"beta1_power": np.ones(())})
    found = read_checkpoint(index, data)
    assert found.keys() == tensors.keys()
    for name, value in tensors.items():
        np.testing.assert_array_equal(found[name], value)


def test_what_is_not_a_checkpoint():
    index, data = write_checkpoint(random_tensors())
    with pytest.raises(ModelFileError, match="lacks its mark"):
        read_checkpoint(b"some text that is long enough", data)
    with pytest.raises(ModelFileError, match="damaged"):
        read_checkpoint(b"", data)
    with pytest.raises(ModelFileError, match="truncated"):
        read_checkpoint(index, data[:-1])
    with pytest.raises(ModelFileError, match=r"damaged|not of one shard|compressed|truncated"):
        read_checkpoint(index[:300] + index[400:], data)


def test_damage_anywhere_raises_no_other_error():
    index, data = write_checkpoint({"a": np.ones((2, 3)), "b/Adam": np.ones(2)})
    refused = 0
    for place in range(len(index)):
        broken = bytearray(index)
        broken[place] ^= 0xFF
        try:
            read_checkpoint(bytes(broken), data)
        except ModelFileError:
            refused += 1
    assert refused > 30  # what is left is padding, checksums and names
