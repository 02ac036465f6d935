"""Extractors: built in, registered, installed, of several windows; what goes to processes."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint

import loudness
import numpy as np
import pytest
from sound_files import RATE, music, timed_noise, write_sndfile

from harmonium.audio import (
    Extractor,
    FeatureParameters,
    available_extractors,
    clip_features,
    extract_files,
    extractors,
    feature_names,
    features_of_file,
    get_extractor,
    paper_extractor,
    register,
)
from harmonium.audio.decoding import Window
from harmonium.audio.extractors import with_windows
from harmonium.errors import AudioError, DataError


@pytest.fixture(autouse=True)
def _registry(monkeypatch):
    """Each test registers for itself."""
    monkeypatch.setattr(extractors, "_registered", dict(extractors._registered))
    monkeypatch.setattr(extractors, "_installed", extractors._installed.__wrapped__)
    monkeypatch.setattr(extractors, "entry_points", lambda group: [])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_sndfile(
        tmp_path_factory.mktemp("sound") / "a.wav", music()[:, None], RATE, subtype="FLOAT"
    )


def test_the_paper_and_its_two_groups_are_built_in():
    assert available_extractors() == ("paper", "timbre", "rhythm", "musicnn")
    names = feature_names()
    parts = {"paper": slice(None), "timbre": slice(0, 189), "rhythm": slice(189, None)}
    for name, part in parts.items():
        extractor = get_extractor(name)
        assert extractor.feature_names == tuple(names[part])
        features = extractor(music(), RATE)
        assert features.dtype == np.float32
        assert features.tobytes() == clip_features(music(), RATE)[part].tobytes()


def test_the_features_of_a_file_are_those_of_its_samples(path):
    assert features_of_file(path).tobytes() == clip_features(music(), RATE).tobytes()
    later = features_of_file(path, start=2.0)
    assert later.tobytes() == clip_features(music()[2 * RATE :], RATE).tobytes()


def test_other_parameters_and_another_rate(path):
    parameters = FeatureParameters(rate=16_000, highest_hz=8000, n_mfcc=13)
    extractor = paper_extractor(parameters, groups=("timbre",), seconds=2, name="telephone")
    assert (extractor.rate, extractor.seconds) == (16_000, 2)
    assert features_of_file(path, extractor).shape == (104,)


def test_the_version_tells_apart_whatever_gives_other_numbers(monkeypatch):
    paper = get_extractor("paper")
    others = [
        get_extractor("timbre"),
        paper_extractor(FeatureParameters(n_mfcc=17)),
        paper_extractor(FeatureParameters(silence=1e-13)),
        paper_extractor(seconds=5.0),
        register("a", loudness.peak, 1),
        register("b", loudness.peak, 1),
        register("b", loudness.peak, 1, revision="2", replace=True),
        register("b", loudness.peak, 1, rate=44_100, replace=True),
    ]
    versions = {extractor.version for extractor in (paper, *others)}
    assert len(versions) == 1 + len(others)
    assert paper_extractor(FeatureParameters()).version == paper.version
    before = paper.version
    monkeypatch.setattr(extractors, "DECODING_VERSION", 99)
    assert paper.version != before


def test_a_function_can_be_registered_and_asked_for_by_name(path):
    extractor = register("loudness", loudness.mean_and_peak, ["mean", "peak"], seconds=1)
    assert get_extractor("loudness") is extractor
    assert "loudness" in available_extractors()
    samples = music()[3 * RATE // 2 :][:RATE]  # the middle second of four
    expected = [np.abs(samples).mean(), np.abs(samples).max()]
    np.testing.assert_allclose(features_of_file(path, "loudness"), expected, rtol=1e-6)
    counted = register("counted", loudness.mean_and_peak, 2)
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
    register("odd", function, 1)
    with pytest.raises(AudioError, match=rf"a\.wav' has no features: .*'odd' .*{message}"):
        features_of_file(path, "odd")


def test_registering_is_checked():
    with pytest.raises(DataError, match="There is an extractor 'paper' already"):
        register("paper", loudness.peak, 1)
    with pytest.raises(DataError, match="'function' must be callable"):
        register("x", "loudness", 1)
    for features in (0, [], ["a", "a"]):
        with pytest.raises(DataError, match="'features' must be at least one"):
            register("x", loudness.peak, features)
    for name, message in (("x", "Known are paper, timbre"), ("imported:x", "were imported")):
        with pytest.raises(DataError, match=message):
            get_extractor(name)


def test_other_packages_bring_extractors_by_entry_point(monkeypatch, path):
    targets = {"installed": "INSTALLED", "function": "peak", "absent": "ABSENT"}

    def installed(group):
        return [EntryPoint(name, f"loudness:{target}", group) for name, target in targets.items()]

    monkeypatch.setattr(extractors, "entry_points", installed)
    assert available_extractors()[4:] == ("absent", "function", "installed")
    assert extractors.ENTRY_POINTS == "harmonium.extractors"
    assert get_extractor("installed") is loudness.INSTALLED
    assert features_of_file(path, "installed") == np.abs(music()).max()
    with pytest.raises(DataError, match=r"'function' \(loudness:peak\) must be a harmonium\.audio"):
        get_extractor("function")
    with pytest.raises(DataError, match=r"'absent' .* cannot be loaded from loudness:ABSENT: Attr"):
        get_extractor("absent")


@dataclass(frozen=True)
class Halves:
    def __call__(self, length, start):
        return [Window(0, length // 2), Window(length // 2, length)]


def peak_and_share(samples, rate):
    return [samples.max(), len(samples), (samples > 0).mean()]


HALVES = Extractor(
    "halves",
    peak_and_share,
    ("peak", "length"),
    rate=8000,
    head_names=("positive",),
    windows=Halves(),
)


def test_the_numbers_are_the_mean_of_those_of_the_windows():
    samples = np.concatenate([np.full(100, 0.5), np.full(100, -1)]).astype(np.float32)
    assert HALVES.hear_samples(samples, 8000).tolist() == [-0.25, 100, 0.5]
    assert HALVES(samples, 8000).tolist() == [0.5, 200]  # a clip is a clip
    assert "Halves()" in HALVES.version


def test_heads_come_with_the_features_and_from_the_cache(tmp_path):
    samples = np.concatenate([np.full((800, 1), 0.5), np.full((800, 1), -1)])
    files = [write_sndfile(tmp_path / f"{k}.wav", samples / k, 8000) for k in (1, 2)]
    paths = [files[0], tmp_path / "nothing.wav", files[1]]
    for n_cached in (0, 2):
        found = extract_files(paths, extractor=HALVES, engine="serial", cache=tmp_path / "cache")
        assert found.n_cached == n_cached
        np.testing.assert_allclose(found.features, [[-0.25, 800], [-0.125, 800]], atol=1e-3)
        assert found.heads.tolist() == [[0.5], [0.5]]


def test_a_star_and_a_number_ask_for_the_mean_of_windows(tmp_path):
    path = write_sndfile(tmp_path / "a.wav", timed_noise(15, 22_050), 22_050)
    one = [features_of_file(path, start=start) for start in (0.0, 2.5, 5.0)]
    three = features_of_file(path, "paper*3")
    np.testing.assert_allclose(three, np.mean(one, axis=0), rtol=1e-4, atol=1e-4)
    versions = {get_extractor(name).version for name in ("paper", "paper*2", "paper*3")}
    assert len(versions) == 3
    assert get_extractor("paper").windows is None  # as the paper has it
    assert with_windows("timbre", 4) == "timbre*4"
    for name in ("paper*", "paper*0", "paper*x"):
        with pytest.raises(DataError, match="There is no extractor"):
            get_extractor(name)
    with pytest.raises(DataError, match="'musicnn' chooses its windows itself"):
        get_extractor("musicnn*3")
