"""Extractors: built in, registered, installed, of several windows; what goes to processes."""

import pickle
import re
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import loudness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from places import DOCS
from sound_files import RATE, music, timed_noise, write_sndfile

from harmonium import AudioFeatures, audio
from harmonium.audio import features_of_file, get_extractor
from harmonium.audio.decoding import Window, decode_windows
from harmonium.audio.extractors import FeatureParameters, mel_spectrogram, with_windows
from harmonium.errors import AudioError, DataError


@pytest.fixture(autouse=True)
def _registry(monkeypatch):
    """Each test registers for itself."""
    monkeypatch.setattr(audio.extractors, "_registered", dict(audio.extractors._registered))
    monkeypatch.setattr(audio.extractors, "_installed", audio.extractors._installed.__wrapped__)
    monkeypatch.setattr(audio.extractors, "entry_points", lambda group: [])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_sndfile(
        tmp_path_factory.mktemp("sound") / "a.wav", music()[:, None], RATE, subtype="FLOAT"
    )


def test_the_paper_and_its_two_groups_are_built_in():
    assert audio.available_extractors() == ("paper", "timbre", "rhythm", "musicnn")
    names = audio.feature_names()
    parts = {"paper": slice(None), "timbre": slice(0, 189), "rhythm": slice(189, None)}
    for name, part in parts.items():
        extractor = audio.get_extractor(name)
        assert extractor.feature_names == tuple(names[part])
        features = extractor(music(), RATE)
        assert features.tobytes() == audio.clip_features(music(), RATE)[part].tobytes()


def test_the_version_tells_apart_whatever_gives_other_numbers(monkeypatch):
    paper = audio.get_extractor("paper")
    others = [
        audio.get_extractor("timbre"),
        audio.paper_extractor(audio.FeatureParameters(n_mfcc=17)),
        audio.paper_extractor(audio.FeatureParameters(silence=1e-13)),
        audio.paper_extractor(seconds=5.0),
        audio.register("a", loudness.peak, 1),
        audio.register("b", loudness.peak, 1),
        audio.register("b", loudness.peak, 1, revision="2", replace=True),
        audio.register("b", loudness.peak, 1, rate=44_100, replace=True),
    ]
    versions = {extractor.version for extractor in (paper, *others)}
    assert len(versions) == 1 + len(others)
    assert audio.paper_extractor(audio.FeatureParameters()).version == paper.version
    before = paper.version
    monkeypatch.setattr(audio.extractors, "DECODING_VERSION", 99)
    assert paper.version != before


def test_a_function_can_be_registered_and_asked_for_by_name(path):
    extractor = audio.register("loudness", loudness.mean_and_peak, ["mean", "peak"], seconds=1)
    assert audio.get_extractor("loudness") is extractor
    assert "loudness" in audio.available_extractors()
    samples = music()[3 * RATE // 2 :][:RATE]  # the middle second of four
    expected = [np.abs(samples).mean(), np.abs(samples).max()]
    np.testing.assert_allclose(audio.features_of_file(path, "loudness"), expected, rtol=1e-6)
    counted = audio.register("counted", loudness.mean_and_peak, 2)
    assert counted.feature_names == ("counted 0", "counted 1")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda samples, rate: [1.0, 2.0], r"a vector of 1 numbers, .* the shape \(2,\)"),
        (lambda samples, rate: 1.0, r"the shape \(\)"),
        (lambda samples, rate: [np.nan], "gave nan for 'odd 0'"),
        (lambda samples, rate: ["words"], "failed: ValueError"),
        (lambda samples, rate: 1 / 0, "failed: ZeroDivisionError"),
    ],
    ids=["two", "scalar", "nan", "words", "raises"],
)
def test_what_a_function_gives_is_checked(function, message, path):
    audio.register("odd", function, 1)
    with pytest.raises(AudioError, match=rf"a\.wav' has no features: .*'odd' .*{message}"):
        audio.features_of_file(path, "odd")


def test_registering_is_checked():
    with pytest.raises(DataError, match="There is already an extractor 'paper'"):
        audio.register("paper", loudness.peak, 1)
    with pytest.raises(DataError, match="'function' must be callable"):
        audio.register("x", "loudness", 1)
    for features in (0, [], ["a", "a"]):
        with pytest.raises(DataError, match="'features' must be at least one"):
            audio.register("x", loudness.peak, features)
    for name, message in (("x", "Known are paper, timbre"), ("imported:x", "were imported")):
        with pytest.raises(DataError, match=message):
            audio.get_extractor(name)


def test_other_packages_bring_extractors_by_entry_point(monkeypatch, path):
    targets = {"installed": "INSTALLED", "function": "peak", "absent": "ABSENT"}

    def installed(group):
        return [EntryPoint(name, f"loudness:{target}", group) for name, target in targets.items()]

    monkeypatch.setattr(audio.extractors, "entry_points", installed)
    assert audio.available_extractors()[4:] == ("absent", "function", "installed")
    assert audio.extractors.ENTRY_POINTS == "harmonium.extractors"
    assert audio.get_extractor("installed") is loudness.INSTALLED
    assert audio.features_of_file(path, "installed") == np.abs(music()).max()
    with pytest.raises(DataError, match=r"'function' .*:peak: .* must be a harmonium\.audio"):
        audio.get_extractor("function")
    with pytest.raises(DataError, match=r"'absent' .* cannot be loaded from loudness:ABSENT: Attr"):
        audio.get_extractor("absent")


@dataclass(frozen=True)
class Halves:
    def __call__(self, length, start):
        return [Window(0, length // 2), Window(length // 2, length)]


def peak_and_share(samples, rate):
    return [samples.max(), len(samples), (samples > 0).mean()]


OPTIONS = {"rate": 8000, "head_names": ("positive",), "windows": Halves()}
HALVES = audio.Extractor("halves", peak_and_share, ("peak", "length"), **OPTIONS)


def test_the_numbers_are_the_mean_of_those_of_the_windows():
    samples = np.concatenate([np.full(100, 0.5), np.full(100, -1)]).astype(np.float32)
    assert HALVES.extract((samples, 8000)).tolist() == [-0.25, 100, 0.5]
    assert HALVES(samples, 8000).tolist() == [0.5, 200]  # a clip is a clip
    assert "Halves()" in HALVES.version


def test_heads_come_with_the_features_and_from_the_cache(tmp_path):
    samples = np.concatenate([np.full((800, 1), 0.5), np.full((800, 1), -1)])
    files = [write_sndfile(tmp_path / f"{k}.wav", samples / k, 8000) for k in (1, 2)]
    paths = [files[0], tmp_path / "nothing.wav", files[1]]
    for n_cached in (0, 2):
        options = {"engine": "serial", "cache": tmp_path / "cache"}
        found = audio.extract_files(paths, extractor=HALVES, **options)
        assert found.n_cached == n_cached
        np.testing.assert_allclose(found.features, [[-0.25, 800], [-0.125, 800]], atol=1e-3)
        assert found.heads.tolist() == [[0.5], [0.5]]


def test_a_star_and_a_number_ask_for_the_mean_of_windows(tmp_path):
    path = write_sndfile(tmp_path / "a.wav", timed_noise(15, 22_050), 22_050)
    one = [audio.features_of_file(path, start=start) for start in (0.0, 2.5, 5.0)]
    three = audio.features_of_file(path, "paper*3")
    np.testing.assert_allclose(three, np.mean(one, axis=0), rtol=1e-4, atol=1e-4)
    versions = {audio.get_extractor(name).version for name in ("paper", "paper*2", "paper*3")}
    assert len(versions) == 3
    assert audio.get_extractor("paper").windows is None  # as the paper has it
    assert with_windows("timbre", 4) == "timbre*4"
    for name in ("paper*", "paper*0", "paper*x"):
        with pytest.raises(DataError, match="There is no extractor"):
            audio.get_extractor(name)
    with pytest.raises(DataError, match="'musicnn' chooses its windows itself"):
        audio.get_extractor("musicnn*3")


# Networks in ONNX's format, which are made here.

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
    frames = {"frame_length": 256, "hop_length": 128, "n_mels": 4, "n_mfcc": 1}
    parameters = FeatureParameters(rate=8000, lowest_hz=0.0, highest_hz=4e3, **frames)
    windows = decode_windows(song, extractor.windows, rate=8000)
    mels = [np.log(np.maximum(mel_spectrogram(one, parameters), 1e-10)) for one in windows]
    expected = np.mean([mel.sum(axis=1).mean() for mel in mels])
    found = features_of_file(song, extractor)
    np.testing.assert_allclose(found, expected * np.array([1, 2, 3]), rtol=1e-4)


def test_a_short_sound_is_filled_up_and_another_network_is_another_version(tmp_path):
    short = write_sndfile(tmp_path / "s.wav", timed_noise(0.2, 8000), 8000, subtype="FLOAT")
    versions = set()
    for n in (2, 3):
        extractor = get_extractor(write_model(tmp_path, [1, 4000], n))
        assert features_of_file(short, extractor).shape == (n,)
        versions.add(extractor.version)
    assert len(versions) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "needs a description beside it, m.toml"),
        ("rate =", "is not TOML"),
        (WAVE.replace("8000", '"8000"'), "'rate' in .* must be int, got '8000'"),
        (WAVE + "bands = 3\n", "has 'bands'; known are rate"),
        (WAVE + MEL.replace("ln", "log"), "'log' in .* must be one of none"),
        (WAVE.replace('"x"', '"z"'), "cannot be run as m.toml says"),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path, text, message):
    name = write_model(tmp_path, [1, 4000], 2, text)
    with pytest.raises(DataError, match=message):
        get_extractor(name)


PAGE = (DOCS / "features.md").read_text(encoding="utf-8")
USE, _ = PAGE.split("## Definitions")


@pytest.mark.parametrize("parameter", AudioFeatures().get_params())
def test_every_parameter_of_audio_features_is_described(parameter):
    (row,) = re.findall(rf"^\| `{parameter}` \| (.*?) \|", USE, re.M)
    assert row.strip('"') == str(AudioFeatures().get_params()[parameter])


def test_the_features_of_a_file_are_those_of_its_samples(path):
    assert audio.features_of_file(path).tobytes() == audio.clip_features(music(), RATE).tobytes()
    later = audio.features_of_file(path, start=2.0)
    assert later.tobytes() == audio.clip_features(music()[2 * RATE :], RATE).tobytes()
