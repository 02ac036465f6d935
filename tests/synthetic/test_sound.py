"""The sound of the generated collection: what its tags say can be measured in it."""

import numpy as np
import pytest
from scipy.signal import stft

from harmonium.synthetic import make_collection
from harmonium.synthetic.signals import RATE

HOP = 256


class Rendered:
    """A small collection, its samples and magnitude spectra (513, n_frames)."""

    def __init__(self):
        self.collection = make_collection(n_tracks=72, clips_per_track=2, clip_seconds=4)
        self.samples = [self.collection.samples(i) for i in range(len(self.collection))]
        options = {"nperseg": 1024, "noverlap": 1024 - HOP, "boundary": None}
        self.spectra = [np.abs(stft(x, RATE, **options)[2]) for x in self.samples]
        self.tempo = self.collection.clips["tempo"].to_numpy()

    def holds(self, tag):
        return self.collection.truth[:, self.collection.tags.to_list().index(tag)]


@pytest.fixture(scope="module")
def rendered():
    return Rendered()


def test_samples_are_sound(rendered):
    for x in rendered.samples:
        assert x.shape == (4 * RATE,)
        assert np.isfinite(x).all()
        assert 0.02 < np.abs(x).max() <= 0.98
        quarters = x.reshape(4, -1)
        assert (quarters.std(axis=1) > 1e-4).all()  # something sounds all the time
        assert abs(x.mean()) < 0.01
        assert np.abs(x[[0, -1]]).max() < 1e-3  # no click at the ends


def test_the_beat_is_at_the_tempo(rendered):
    """The onsets repeat after one beat, more than after five sixths or seven sixths of one."""
    chosen = rendered.holds("drums") & (rendered.holds("fast") | rendered.holds("slow"))
    found = []
    for index in np.flatnonzero(chosen):
        rises = np.diff(np.sqrt(rendered.spectra[index]), axis=1)
        strength = np.maximum(rises, 0).sum(axis=0)
        strength = strength - strength.mean()
        similarity = np.correlate(strength, strength, "full")[len(strength) - 1 :]
        beat = 60 / rendered.tempo[index] * RATE / HOP
        on, early, late = (round(beat * r) for r in (1, 5 / 6, 7 / 6))
        around = similarity[on - 1 : on + 2].max()
        found.append(around > max(similarity[early], similarity[late]))
    assert len(found) >= 15
    assert np.mean(found) > 0.85


def test_a_clip_sounds_the_same_in_any_collection():
    small = make_collection(n_tracks=3, clips_per_track=2, clip_seconds=1)
    large = make_collection(n_tracks=9, clips_per_track=2, n_users=5, clip_seconds=1)
    forward = [small.samples(i).tobytes() for i in range(6)]
    backward = [large.samples(i).tobytes() for i in reversed(range(6))]
    assert forward == backward[::-1]
    other = make_collection(n_tracks=3, clips_per_track=2, clip_seconds=1, seed=1)
    assert len({*forward, other.samples(0).tobytes()}) == 7


def test_a_long_clip_sounds():
    x = make_collection(n_tracks=6, clips_per_track=2, clip_seconds=30).samples(11)
    assert len(x) == 30 * RATE
    assert np.isfinite(x).all()
