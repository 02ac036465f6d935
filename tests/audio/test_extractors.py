"""Extractors: built in, registered, installed, of several windows; what goes to processes."""

import re
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import loudness
import numpy as np
import pytest
from places import DOCS
from sound_files import RATE, music, timed_noise, write_sndfile

from harmonium import AudioFeatures, audio
from harmonium.audio.extractors import with_windows
from harmonium.audio.windows import Window
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


def test_the_built_in_extractors_are_listed():
    assert audio.available_extractors() == ("paper", "timbre", "rhythm", "musicnn")


@pytest.mark.parametrize(
    ("name", "part"),
    [("paper", slice(None)), ("timbre", slice(0, 189)), ("rhythm", slice(189, None))],
)
def test_a_group_of_the_paper_is_a_part_of_its_features(name, part):
    extractor = audio.get_extractor(name)
    assert extractor.feature_names == tuple(audio.feature_names()[part])
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


def test_a_registered_function(path):
    extractor = audio.register("loudness", loudness.mean_and_peak, ["mean", "peak"], seconds=1)
    assert audio.get_extractor("loudness") is extractor
    assert "loudness" in audio.available_extractors()
    samples = music()[3 * RATE // 2 :][:RATE]  # the middle second of four
    expected = [np.abs(samples).mean(), np.abs(samples).max()]
    np.testing.assert_allclose(audio.features_of_file(path, "loudness"), expected, rtol=1e-6)


def test_features_without_names_are_numbered():
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


def test_a_name_that_is_taken():
    with pytest.raises(DataError, match="There is already an extractor 'paper'"):
        audio.register("paper", loudness.peak, 1)


def test_a_function_must_be_callable():
    with pytest.raises(DataError, match="'function' must be callable"):
        audio.register("x", "loudness", 1)


@pytest.mark.parametrize("features", [0, [], ["a", "a"]])
def test_features_must_have_distinct_names(features):
    with pytest.raises(DataError, match="'features' must be at least one"):
        audio.register("x", loudness.peak, features)


@pytest.mark.parametrize(
    ("name", "message"),
    [("x", "The known ones are paper, timbre"), ("imported:x", "were imported")],
)
def test_an_unknown_name(name, message):
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


def test_heads_come_with_the_features(tmp_path):
    samples = np.concatenate([np.full((800, 1), 0.5), np.full((800, 1), -1)])
    files = [write_sndfile(tmp_path / f"{k}.wav", samples / k, 8000) for k in (1, 2)]
    paths = [files[0], tmp_path / "nothing.wav", files[1]]
    for n_cached in (0, 2):
        options = {"engine": "serial", "cache": tmp_path / "cache"}
        found = audio.extract_files(paths, extractor=HALVES, **options)
        assert found.n_cached == n_cached
        np.testing.assert_allclose(found.features, [[-0.25, 800], [-0.125, 800]], atol=1e-3)
        assert found.heads.tolist() == [[0.5], [0.5]]


def test_a_number_after_a_star_asks_for_the_mean_of_windows(tmp_path):
    path = write_sndfile(tmp_path / "a.wav", timed_noise(15, 22_050), 22_050)
    one = [audio.features_of_file(path, start=start) for start in (0.0, 2.5, 5.0)]
    three = audio.features_of_file(path, "paper*3")
    np.testing.assert_allclose(three, np.mean(one, axis=0), rtol=1e-4, atol=1e-4)


def test_the_number_of_windows_is_part_of_the_version():
    versions = {audio.get_extractor(name).version for name in ("paper", "paper*2", "paper*3")}
    assert len(versions) == 3
    assert audio.get_extractor("paper").windows is None  # as the paper has it
    assert with_windows("timbre", 4) == "timbre*4"


@pytest.mark.parametrize("name", ["paper*", "paper*0", "paper*x"])
def test_a_number_of_windows_that_cannot_be(name):
    with pytest.raises(DataError, match="There is no extractor"):
        audio.get_extractor(name)


def test_an_extractor_that_chooses_its_windows_itself():
    with pytest.raises(DataError, match="'musicnn' chooses its windows itself"):
        audio.get_extractor("musicnn*3")


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
