"""Scales, chords, and voicings that move as little as they can."""

from functools import lru_cache

import numpy as np

from harmonium.synthetic.genres import MODES
from harmonium.synthetic.music import Track

Chord = tuple[int, ...]  # MIDI pitches, or pitch classes (0 for C), from the lowest up


def chord_degree(track: Track, bar: int) -> int:
    """The scale degree of the chord in a bar."""
    return track.progression[bar % len(track.progression)]


def scale_pitch(track: Track, degree: int) -> int:
    """Semitones above C of a scale degree, which may lie outside one octave."""
    octave, rest = divmod(degree, 7)
    return track.tonic + 12 * octave + MODES[track.mode][rest]


def pitch_classes(track: Track, degree: int) -> Chord:
    """Root, third, fifth (and seventh) on a degree."""
    size = 4 if track.sevenths else 3
    return tuple(scale_pitch(track, degree + 2 * i) % 12 for i in range(size))


def nearest(pitch_class: int, centre: float) -> int:
    """The pitch of a class that is nearest to a centre."""
    return int(pitch_class + 12 * round((centre - pitch_class) / 12))


def in_scale(track: Track, pitch: int) -> int:
    """The note of the scale at a pitch, or a semitone from it."""
    classes = {scale_pitch(track, degree) % 12 for degree in range(7)}
    return next(p for p in (pitch, pitch + 1, pitch - 1) if p % 12 in classes)


@lru_cache(maxsize=1024)
def voicings(track: Track, centre: float) -> tuple[Chord, ...]:
    """One voicing for each chord of the progression, each as close to the one before as can be."""
    found: list[Chord] = []
    for degree in track.progression:
        classes = pitch_classes(track, degree)
        options = [
            _stacked(classes[i:] + classes[:i], low)
            for i in range(len(classes))
            for low in (centre - 10, centre - 4)
        ]
        before = found[-1] if found else tuple(int(centre) for _ in classes)
        found.append(min(options, key=lambda v, b=before: _movement(v, b, centre)))  # type: ignore[misc]
    return tuple(found)


def _stacked(classes: Chord, lowest: float) -> Chord:
    pitches = [nearest(classes[0], lowest)]
    for pitch_class in classes[1:]:
        pitches.append(pitches[-1] + (pitch_class - pitches[-1]) % 12)
    return tuple(pitches)


def _movement(voicing: Chord, before: Chord, centre: float) -> float:
    moved = sum(abs(a - b) for a, b in zip(voicing, before, strict=True))
    return moved + abs(float(np.mean(voicing)) - centre)
