"""The sound of the generated collection: what its tags say can be measured in it."""

import numpy as np
import pytest
from scipy.signal import stft

from harmonium.synthetic import make_collection, music, sound

HOP = 256


class Rendered:
    """A small collection, its samples and magnitude spectra (513, n_frames)."""

    def __init__(self):
        self.collection = make_collection(n_tracks=72, clips_per_track=2, clip_seconds=4)
        self.samples = [self.collection.samples(i) for i in range(len(self.collection))]
        options = {"nperseg": 1024, "noverlap": 1024 - HOP, "boundary": None}
        self.spectra = [np.abs(stft(x, sound.RATE, **options)[2]) for x in self.samples]
        self.tempo = self.collection.clips["tempo"].to_numpy()

    def holds(self, tag):
        return self.collection.truth[:, self.collection.tags.to_list().index(tag)]


@pytest.fixture(scope="module")
def rendered():
    return Rendered()


def test_samples_are_sound(rendered):
    for x in rendered.samples:
        assert x.shape == (4 * sound.RATE,)
        assert np.isfinite(x).all()
        assert 0.02 < np.abs(x).max() <= 0.98
        quarters = x.reshape(4, -1)
        assert (quarters.std(axis=1) > 1e-4).all()  # something sounds all the time
        assert abs(x.mean()) < 0.01
        assert np.abs(x[[0, -1]]).max() < 1e-3  # no click at the ends


def test_the_beat_of_fast_and_slow_clips_is_at_their_tempo(rendered):
    """The onsets repeat after one beat, more than after five sixths or seven sixths of one."""
    chosen = rendered.holds("drums") & (rendered.holds("fast") | rendered.holds("slow"))
    found = []
    for index in np.flatnonzero(chosen):
        rises = np.diff(np.sqrt(rendered.spectra[index]), axis=1)
        strength = np.maximum(rises, 0).sum(axis=0)
        strength = strength - strength.mean()
        similarity = np.correlate(strength, strength, "full")[len(strength) - 1 :]
        beat = 60 / rendered.tempo[index] * sound.RATE / HOP
        on, early, late = (round(beat * r) for r in (1, 5 / 6, 7 / 6))
        around = similarity[on - 1 : on + 2].max()
        found.append(around > max(similarity[early], similarity[late]))
    assert len(found) >= 15
    assert np.mean(found) > 0.85


def test_a_clip_sounds_the_same_alone_and_in_any_collection():
    small = make_collection(n_tracks=3, clips_per_track=2, clip_seconds=1)
    large = make_collection(n_tracks=9, clips_per_track=2, n_users=5, clip_seconds=1)
    forward = [small.samples(i).tobytes() for i in range(6)]
    backward = [large.samples(i).tobytes() for i in reversed(range(6))]
    assert forward == backward[::-1]
    other = make_collection(n_tracks=3, clips_per_track=2, clip_seconds=1, seed=1)
    assert len({*forward, other.samples(0).tobytes()}) == 7


def test_a_long_clip_works_and_begins_like_a_short_one():
    """Not to the sample (levels are set over the whole clip), but in its notes."""
    clip = music.make_clip(0, 5, 1)
    for part in clip.parts:
        short, long = music.notes_of(clip, part, 3.0), music.notes_of(clip, part, 30.0)
        assert short == [note for note in long if note.start < 3.0]
    x = make_collection(n_tracks=6, clips_per_track=2, clip_seconds=30).samples(11)
    assert len(x) == 30 * sound.RATE
    assert np.isfinite(x).all()


def test_every_part_of_a_clip_is_heard_in_it():
    """Else the truth would name what nobody can hear."""
    for number in range(200):
        clip = music.make_clip(1, number // 5, number % 5)
        for part in clip.parts:
            notes = music.notes_of(clip, part, 10.0)
            heard = sum(min(note.start + note.length, 10) - max(note.start, 0) for note in notes)
            assert heard > 0.5, (clip.id, part)


def peak_frequency(x):
    spectrum = np.abs(np.fft.rfft(x * np.hanning(len(x)), 8 * len(x)))
    return np.argmax(spectrum) * sound.RATE / (8 * len(x))


@pytest.mark.parametrize("pitch", [45, 57.3, 69, 76])
def test_a_plucked_string_is_in_tune(pitch):
    frequency = sound.pitch_to_hertz(pitch)
    ratio = peak_frequency(sound.plucked_string(frequency, sound.RATE)) / frequency
    assert abs(1200 * np.log2(ratio / round(ratio))) < 2  # cents from the nearest harmonic


def test_harmonic_tone_is_the_sum_of_its_harmonics():
    phase = sound.phase_of(200.0, 1000)
    amplitudes, r = np.array([1.0, 0.5, 0.25]), 0.8
    numbered = enumerate(amplitudes, start=1)
    expected = sum(a * r**k * np.sin(2 * np.pi * k * phase) for k, a in numbered)
    np.testing.assert_allclose(sound.harmonic_tone(phase, amplitudes, r), expected, atol=2e-6)


@pytest.mark.parametrize("name", sound.INSTRUMENTS)
def test_an_instrument_plays_any_pitch(name):
    part = music.Part("lead", name, "slow", gain=0.0, brightness=1.0, seed=0)
    play = sound.INSTRUMENTS[name].tone
    tones = [play(sound.pitch_to_hertz(p), sound.RATE // 2, part) for p in (33, 60, 88)]
    for tone in tones:
        assert tone.shape == (sound.RATE // 2,)
        assert np.isfinite(tone).all()
        assert tone.std() > 0.01
    assert peak_frequency(tones[0]) < peak_frequency(tones[2])
