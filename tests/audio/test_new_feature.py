"""An audio feature that is added as docs/design.md says is an extractor, and a part of others."""

import numpy as np
import pytest
from sound_files import RATE, music

from harmonium import AudioFeatures, audio
from harmonium.audio.paper import FEATURE_GROUPS, FeatureGroup


@pytest.fixture(autouse=True)
def _loudness(monkeypatch):
    """The mean and the spread of a clip's loudness in dB, named among the groups."""

    def compute(mel, parameters):
        loudness = 10 * np.log10(mel.sum(axis=1))
        return np.array([loudness.mean(), loudness.std()])

    group = FeatureGroup(
        summary="how loud a clip is", names=lambda parameters: ["mean", "spread"], compute=compute
    )
    monkeypatch.setitem(FEATURE_GROUPS, "loudness", group)


def test_it_is_an_extractor():
    assert "loudness" in audio.available_extractors()
    extractor = audio.get_extractor("loudness")
    assert extractor.feature_names == ("loudness: mean", "loudness: spread")
    assert extractor.summary == "how loud a clip is"
    soft, loud = AudioFeatures(extractor="loudness").fit_transform([0.1 * music(), music()])
    np.testing.assert_allclose(loud - soft, [20, 0], atol=1e-3)


def test_it_joins_the_paper_s():
    both = audio.paper_extractor(groups=("timbre", "loudness"), name="both")
    alone = audio.get_extractor("loudness")
    np.testing.assert_array_equal(both(music(), RATE)[189:], alone(music(), RATE))
    assert both.version != audio.get_extractor("paper").version


def test_the_paper_stays_as_it_is():
    assert len(audio.get_extractor("paper").feature_names) == 389
