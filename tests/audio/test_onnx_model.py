"""Networks in ONNX's format, which are made here."""

import pickle

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from sound_files import timed_noise, write_sndfile

from harmonium.audio import features_of_file, get_extractor
from harmonium.audio.decoding import decode_windows
from harmonium.audio.spectrum import MelParameters, mel_spectrogram
from harmonium.errors import DataError

WAVE = 'rate = 8000\nseconds = 0.5\nwindows = 2\ninput = "x"\noutput = "y"\n'
MEL = '[mel]\nframe = 256\nhop = 128\nbands = 4\nlog = "ln"\n'


def write_model(folder, shape, n_out, text=WAVE):
    """y = x W, with W of ones and twos: (…, k) → (…, n_out); and the name of its extractor."""
    W = np.tile(np.arange(1, n_out + 1, dtype=np.float32), (shape[-1], 1))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "W"], ["y"])],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*shape[:-1], n_out])],
        [helper.make_tensor("W", TensorProto.FLOAT, W.shape, W.ravel())],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, folder / "m.onnx")
    if text is not None:
        (folder / "m.toml").write_text(text)
    return f"onnx:{folder / 'm.onnx'}"


@pytest.fixture
def song(tmp_path):
    return write_sndfile(tmp_path / "a.wav", timed_noise(2, 8000), 8000, subtype="FLOAT")


def test_a_network_of_samples_gives_the_mean_over_windows(tmp_path, song):
    extractor = get_extractor(write_model(tmp_path, [1, 4000], 2))
    windows = decode_windows(song, extractor.windows, rate=8000)
    assert [len(window) for window in windows] == [4000, 4000]
    sums = np.mean([window.sum() for window in windows])
    found = features_of_file(song, pickle.loads(pickle.dumps(extractor)))
    np.testing.assert_allclose(found, [sums, 2 * sums], rtol=1e-3, atol=1e-3)


def test_a_network_of_mel_spectra_gives_the_mean_over_frames(tmp_path, song):
    extractor = get_extractor(write_model(tmp_path, [1, 30, 4], 3, WAVE + MEL))
    parameters = MelParameters(
        rate=8000, frame_length=256, hop_length=128, n_mels=4, lowest_hz=0.0, highest_hz=4e3
    )
    windows = decode_windows(song, extractor.windows, rate=8000)
    mels = [np.log(np.maximum(mel_spectrogram(window, parameters), 1e-10)) for window in windows]
    expected = np.mean([mel.sum(axis=1).mean() for mel in mels])
    found = features_of_file(song, extractor)
    np.testing.assert_allclose(found, expected * np.array([1, 2, 3]), rtol=1e-4)


def test_a_short_sound_is_filled_up(tmp_path):
    short = write_sndfile(tmp_path / "s.wav", timed_noise(0.2, 8000), 8000, subtype="FLOAT")
    extractor = get_extractor(write_model(tmp_path, [1, 4000], 3))
    assert features_of_file(short, extractor).shape == (3,)


def test_another_network_is_another_version(tmp_path):
    versions = {get_extractor(write_model(tmp_path, [1, 4000], n)).version for n in (2, 3)}
    assert len(versions) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "needs a description beside it, m.toml"),
        ("rate =", "is not TOML"),
        (WAVE.replace("8000", '"8000"'), "'rate' in .* must be int, got '8000'"),
        (WAVE + "bands = 3\n", "has 'bands'; the keys that it can have are rate"),
        (WAVE + MEL.replace("ln", "log"), "'log' in .* must be one of none"),
        (WAVE.replace('"x"', '"z"'), "cannot be run as m.toml says"),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path, text, message):
    name = write_model(tmp_path, [1, 4000], 2, text)
    with pytest.raises(DataError, match=message):
        get_extractor(name)
