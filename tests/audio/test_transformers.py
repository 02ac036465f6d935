"""AudioFeatures over files and samples, in pipelines; the paper's normalisation."""

import pickle
import warnings
from pathlib import Path

import loudness
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator
from sound_files import RATE, music, write_sndfile

from harmonium import AudioFeatures, ClipNormaliser, audio
from harmonium.errors import AudioError, DataError, DataWarning

N_CLIPS = 12


def clip(seed):
    """Noise whose level wanders, and in every second clip a loud tone."""
    tone = np.sin(2 * np.pi * 600 * np.arange(2 * RATE) / RATE).astype(np.float32)
    return music(2, seed=seed) + 0.1 * (seed % 2) * tone


@pytest.fixture(scope="module")
def clips():
    return [clip(seed) for seed in range(N_CLIPS)]


@pytest.fixture(scope="module")
def paths(clips, tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    return [
        str(write_sndfile(folder / f"{number}.wav", samples[:, None], RATE, subtype="FLOAT"))
        for number, samples in enumerate(clips)
    ]


@pytest.fixture(scope="module")
def expected(clips):
    return np.stack([audio.clip_features(samples, RATE) for samples in clips])


KINDS = {
    "strings": list,
    "paths": lambda paths: tuple(map(Path, paths)),
    "array of strings": np.array,
    "array of paths": lambda paths: np.array(list(map(Path, paths)), dtype=object),
    "column": lambda paths: np.array([[path] for path in paths]),
    "pandas series": pd.Series,
    "pandas frame": lambda paths: pd.DataFrame({"path": paths}),
    "polars series": pl.Series,
    "polars frame": lambda paths: pl.DataFrame({"path": paths}),
    "samples": lambda paths: [clip(k) for k in range(len(paths))],
    "matrix of samples": lambda paths: np.stack([clip(k) for k in range(len(paths))]),
    "lists of samples": lambda paths: [clip(k).tolist() for k in range(len(paths))],
}


@pytest.mark.parametrize("kind", KINDS)
def test_clips_come_in_any_container(kind, paths, expected):
    features = AudioFeatures().fit_transform(KINDS[kind](paths[:3]))
    np.testing.assert_allclose(features, expected[:3], rtol=1e-5, atol=1e-5)


def test_no_clips(paths):
    assert AudioFeatures().fit(paths).transform([]).shape == (0, 389)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_processes_give_the_same_bits(paths, expected, n_jobs):
    """Nothing was fitted, which is not needed."""
    assert AudioFeatures(n_jobs=n_jobs).transform(paths).tobytes() == expected.tobytes()


def test_samples_are_treated_like_files(tmp_path):
    samples = music(14)
    path = write_sndfile(tmp_path / "a.wav", samples[:, None], 16_000, subtype="FLOAT")
    found = AudioFeatures(rate=16_000).transform([samples])
    np.testing.assert_array_equal(found[0], audio.features_of_file(path))
    found = AudioFeatures(rate=16_000, start=1.5).transform([samples])
    np.testing.assert_array_equal(found[0], audio.features_of_file(path, start=1.5))
    assert (AudioFeatures(start=1.5).transform([path]) == found).all()


def test_any_extractor_fits_in(paths, monkeypatch):
    monkeypatch.setattr(audio.extractors, "_registered", dict(audio.extractors._registered))
    own = audio.register("loudness", loudness.mean_and_peak, ["mean", "peak"])
    for extractor in ("loudness", own):
        features = AudioFeatures(extractor)
        assert features.fit_transform(paths).shape == (N_CLIPS, 2)
        assert features.get_feature_names_out().tolist() == ["mean", "peak"]
        assert (clone(features).transform(paths[:1]) == features.transform(paths[:1])).all()
    assert pickle.loads(pickle.dumps(AudioFeatures(own))).transform(paths[:1]).shape == (1, 2)
    # processes that never registered it
    assert AudioFeatures(own, n_jobs=2).transform(paths[:4]).shape == (4, 2)


@pytest.fixture
def some_bad(paths, tmp_path):
    """Five files, of which the first and the third can be used."""
    (tmp_path / "text.mp3").write_text("words\n" * 500)
    short = write_sndfile(tmp_path / "short.wav", music(1)[:5000, None], RATE)
    return [paths[0], tmp_path / "text.mp3", paths[1], tmp_path / "none.wav", short]


def test_all_bad_files_are_listed_in_one_error(some_bad):
    with pytest.raises(AudioError) as error:
        AudioFeatures().transform(some_bad)
    first, text, none, too_short, last = str(error.value).splitlines()
    assert first == "3 of 5 clips cannot be used:"
    assert "text.mp3" in text
    assert "No such file" in none
    assert "must last at least 1.00 s" in too_short
    assert "on_error='nan'" in last


def test_bad_files_become_rows_of_nan(some_bad, expected):
    with pytest.warns(DataWarning, match=r"3 of 5 clips cannot be used:\n'.*text\.mp3'"):
        features = AudioFeatures(on_error="nan").transform(some_bad)
    assert (features[[0, 2]] == expected[:2]).all()
    assert np.isnan(features[[1, 3, 4]]).all()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.full(RATE, np.nan), r"its sample at 0\.000 s"),
        (np.full(RATE, 1e300), "is inf"),
        (np.zeros(100), "must last at least"),
        (np.zeros(0), "there is no sound"),
    ],
    ids=["nan", "huge", "short", "empty"],
)
def test_bad_samples_are_told_by_their_row(bad, message):
    with pytest.raises(AudioError, match=rf"1 of 2 clips cannot be used:\nX\[1\]: .*{message}"):
        AudioFeatures().transform([music(1), bad])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("a.wav", "Put it in a list"),
        (Path(__file__).parent, "List the files of the folder: sorted"),
        (["a.wav", np.zeros(RATE)], "X.0. str"),
        ([np.zeros((RATE, 2))], r"X.0. ndarray of float64 with the shape \(22050, 2\)"),
        ([np.zeros(RATE, np.int16)], "X.0. ndarray of int16"),
        ([[0.0, [1.0]]], "X.0. list of object"),
        ([None], "X.0. NoneType"),
        (np.zeros(RATE), r"X.0. float64 of float64 with the shape \(\)"),
    ],
    ids=["one", "folder", "mixed", "stereo", "integers", "ragged", "none", "flat"],
)
@pytest.mark.parametrize("method", [AudioFeatures().fit, AudioFeatures().transform])
def test_other_input_is_refused(given, message, method):
    with pytest.raises(DataError, match=message):
        method(given)


@pytest.mark.parametrize(
    "options", [{"start": -1}, {"rate": 0}, {"on_error": "ignore"}, {"extractor": 3}]
)
def test_parameters_are_checked(options):
    with pytest.raises(ValueError, match="parameter of AudioFeatures must be"):
        AudioFeatures(**options).fit()


def test_an_unknown_extractor():
    with pytest.raises(DataError, match="There is no extractor 'paprika'"):
        AudioFeatures("paprika").fit()


def test_scikit_learns_checks_that_need_no_matrix_of_features():
    """Its checks of data need a matrix of any width; files and sound are none."""
    with pytest.warns(SkipTestWarning, match="Can't test estimator AudioFeatures"):
        results = check_estimator(AudioFeatures(), on_skip=None)
    assert [result["status"] for result in results] == ["passed"]
    for check in (
        *("parameters_default_constructible", "no_attributes_set_in_init", "set_params"),
        *("get_params_invariance", "estimator_repr", "estimator_tags_renamed"),
        *("valid_tag_types", "mixin_order"),
    ):
        getattr(estimator_checks, f"check_{check}")("AudioFeatures", AudioFeatures())


# The normaliser. ---------------------------------------------------------------------------------


def test_scikit_learn_checks_the_normaliser():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = check_estimator(ClipNormaliser(), on_skip=None)
    # Skipped is only what needs an environment variable: other array libraries as input.
    skipped = [result["check_name"] for result in results if result["status"] == "skipped"]
    assert skipped in ([], ["check_array_api_input"])


def test_dimensions_are_standardised_then_clips_get_unit_norm():
    X = np.random.default_rng(0).normal(5, [1, 10, 0.1], size=(50, 3))
    normaliser = ClipNormaliser().fit(X)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = scaled / np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(normaliser.transform(X), expected, rtol=1e-12)
    np.testing.assert_allclose(normaliser.mean_, X.mean(axis=0))
    np.testing.assert_allclose(normaliser.scale_, X.std(axis=0))
    # whatever else is transformed with it
    np.testing.assert_array_equal(normaliser.transform(X[:1]), normaliser.transform(X)[:1])


def test_a_constant_dimension_becomes_0():
    X = np.array([[1.0, 0.1, 2.0], [2.0, 0.1, 1.0], [4.0, 0.1, 3.0]])
    normaliser = ClipNormaliser().fit(X)
    assert normaliser.scale_[1] == np.inf
    later = normaliser.transform([[1.0, 1e6, 2.0]])
    np.testing.assert_allclose(later, normaliser.transform(X[:1]))
    assert later[0, 1] == 0


@settings(max_examples=100, deadline=None)
@given(
    X=arrays(
        np.float64,
        st.tuples(st.integers(1, 8), st.integers(1, 6)),
        elements=st.floats(-1e300, 1e300, allow_subnormal=False),
    )
)
def test_every_clip_has_norm_1_or_is_0(X):
    out = ClipNormaliser().fit_transform(X)
    norms = np.linalg.norm(out, axis=1)
    assert np.isfinite(out).all()
    assert ((np.abs(norms - 1) < 1e-9) | (norms == 0)).all()


def test_single_precision_loses_nothing():
    X = np.random.default_rng(0).normal(1e4, 1, size=(200, 5))
    X32 = X.astype(np.float32)
    out = ClipNormaliser().fit_transform(X32)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, ClipNormaliser().fit_transform(X32.astype(float)), atol=1e-6)


@pytest.mark.parametrize(("kind", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_names_of_features_pass_through(kind, frame, paths):
    features = AudioFeatures().set_output(transform=kind).transform(paths[:2])
    assert isinstance(features, frame)
    assert list(features.columns) == audio.feature_names()
    scaled = ClipNormaliser().set_output(transform=kind).fit_transform(features)
    assert isinstance(scaled, frame)
    assert list(scaled.columns) == audio.feature_names()
