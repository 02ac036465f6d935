"""An extractor that is added as docs/design.md says can be named wherever features are computed."""

from importlib.metadata import EntryPoint

import loudness
import numpy as np
import pytest
from sound_files import RATE, music, write_sndfile

from harmonium import AudioFeatures, audio
from harmonium.audio.extractors import extractor_key


@pytest.fixture(params=["registered", "installed"])
def name(request, monkeypatch):
    """Its name, registered in this process or declared by another package."""
    monkeypatch.setattr(audio.extractors, "_registered", dict(audio.extractors._registered))
    monkeypatch.setattr(audio.extractors, "_installed", audio.extractors._installed.__wrapped__)
    entries = []
    if request.param == "registered":
        audio.register("dummy", loudness.mean_and_peak, ["mean", "peak"])
    else:
        extractor = audio.Extractor(
            name="dummy", function=loudness.mean_and_peak, feature_names=("mean", "peak")
        )
        monkeypatch.setattr(loudness, "DUMMY", extractor, raising=False)
        entries = [EntryPoint("dummy", "loudness:DUMMY", audio.extractors.ENTRY_POINTS)]
    monkeypatch.setattr(audio.extractors, "entry_points", lambda group: entries)
    return "dummy"


@pytest.fixture
def path(tmp_path):
    return write_sndfile(tmp_path / "a.wav", music()[:, None], RATE, subtype="FLOAT")


def test_it_is_listed(name):
    assert name in audio.available_extractors()


def test_it_is_computed(name, path):
    features = AudioFeatures(extractor=name).fit_transform([str(path)])
    np.testing.assert_allclose(features, [loudness.mean_and_peak(music(), RATE)], rtol=1e-5)


def test_it_averages_windows(name, path):
    assert audio.features_of_file(path, f"{name}*2").shape == (2,)


def test_it_has_a_key_of_its_own(name):
    assert extractor_key(name).startswith("dummy@")
    assert extractor_key(name) != extractor_key(f"{name}*2")
