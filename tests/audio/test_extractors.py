"""Extractors: built in, registered, installed; what goes to other processes, and what is kept."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import EntryPoint
from multiprocessing import get_context

import loudness
import numpy as np
import pytest
from signals import RATE, music
from sound_files import write_sndfile

from harmonium.audio import (
    Extractor,
    FeatureParameters,
    available_extractors,
    clip_features,
    extractors,
    feature_names,
    features_of_file,
    get_extractor,
    paper_extractor,
    register,
)
from harmonium.errors import AudioError, DataError


@pytest.fixture(autouse=True)
def _registry(monkeypatch):
    """Each test registers for itself."""
    monkeypatch.setattr(extractors, "_registered", dict(extractors._registered))
    monkeypatch.setattr(extractors, "_installed", dict)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_sndfile(
        tmp_path_factory.mktemp("sound") / "a.wav", music()[:, None], RATE, subtype="FLOAT"
    )


def test_the_paper_and_its_two_groups_are_built_in():
    assert available_extractors() == ("paper", "timbre", "rhythm", "musicnn")
    names = feature_names()
    for name, part in (
        ("paper", slice(None)),
        ("timbre", slice(0, 189)),
        ("rhythm", slice(189, None)),
    ):
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
    assert available_extractors()[-1] == "loudness"
    samples = music()[3 * RATE // 2 :][:RATE]  # the middle second of four
    expected = [np.abs(samples).mean(), np.abs(samples).max()]
    np.testing.assert_allclose(features_of_file(path, "loudness"), expected, rtol=1e-6)
    assert register("counted", loudness.mean_and_peak, 2).feature_names == (
        "counted 0",
        "counted 1",
    )


def test_an_extractor_goes_to_other_processes_with_its_function(path):
    chosen = [register("loudness", loudness.peak, 1), get_extractor("paper")]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        # That process has registered nothing.
        results = list(pool.map(features_of_file, [path] * 2, chosen))
    for extractor, result in zip(chosen, results, strict=True):
        assert result.tobytes() == features_of_file(path, extractor).tobytes()
        assert pickle.loads(pickle.dumps(extractor)) == extractor


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda samples, rate: [1.0, 2.0], r"must give a vector of 1 numbers, .* the shape \(2,\)"),
        (lambda samples, rate: 1.0, r"must .* it gave the shape \(\)"),
        (lambda samples, rate: [np.nan], "gave nan for 'odd 0'; features must be finite"),
        (lambda samples, rate: [np.inf], "gave inf for 'odd 0'"),
        (lambda samples, rate: ["words"], "failed: ValueError: could not convert"),
        (lambda samples, rate: 1 / 0, "failed: ZeroDivisionError: division by zero"),
    ],
    ids=["two", "scalar", "nan", "infinite", "words", "raises"],
)
def test_what_a_function_gives_is_checked(function, message, path):
    register("odd", function, 1)
    with pytest.raises(
        AudioError, match=rf"a\.wav' has no features: The extractor 'odd' {message}"
    ):
        features_of_file(path, "odd")


def test_registering_is_checked():
    with pytest.raises(DataError, match="There is an extractor 'paper' already"):
        register("paper", loudness.peak, 1)
    with pytest.raises(DataError, match="'function' must be callable, got 'loudness'"):
        register("x", "loudness", 1)
    for features in (0, [], ["a", "a"]):
        with pytest.raises(DataError, match="'features' must be at least one, and their names"):
            register("x", loudness.peak, features)
    with pytest.raises(
        DataError, match=r"no extractor 'x'\. Known are paper, timbre, rhythm, musicnn; "
    ):
        get_extractor("x")


def test_other_packages_bring_extractors_by_entry_point(monkeypatch, path):
    entries = {
        name: EntryPoint(name, f"loudness:{target}", extractors.ENTRY_POINTS)
        for name, target in (
            ("installed", "INSTALLED"),
            ("function", "peak"),
            ("absent", "ABSENT"),
        )
    }
    monkeypatch.setattr(extractors, "_installed", lambda: entries)
    assert available_extractors() == (
        "paper",
        "timbre",
        "rhythm",
        "musicnn",
        "absent",
        "function",
        "installed",
    )
    assert get_extractor("installed") is loudness.INSTALLED
    assert features_of_file(path, "installed") == np.abs(music()).max()
    with pytest.raises(DataError, match=r"'function' \(loudness:peak\) must be a harmonium\.audio"):
        get_extractor("function")
    with pytest.raises(DataError, match=r"'absent' .* cannot be loaded from loudness:ABSENT: Attr"):
        get_extractor("absent")


def test_the_group_of_entry_points_is_the_documented_one():
    assert extractors.ENTRY_POINTS == "harmonium.extractors"
    assert isinstance(get_extractor("paper"), Extractor)
