"""From a clip to its notes: harmony with voice leading, bass lines, melodies, drum strokes.

Bars are counted from the beginning of the track, and what a part plays in a bar follows from the
part and the bar, so a phrase comes back when its section does. Only the human touch (small errors
of timing and force) belongs to the clip.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from harmonium.synthetic.music import (
    MODES,
    SECTIONS,
    Part,
    SyntheticClip,
    SyntheticTrack,
    read_tables,
)

STEPS = 16
STEPS_PER_BEAT = 4

_TABLES = read_tables("patterns.toml")
CHORDS: dict[str, str] = _TABLES["chords"]
BASS: dict[str, str] = _TABLES["bass"]
MELODY: dict[str, list[str]] = _TABLES["melody"]
DRUMS: dict[str, dict[str, str]] = _TABLES["drums"]


def events(pattern: str) -> list[tuple[int, int, str]]:
    """The sounds of one bar, in time: the step each begins at, its length in steps, its symbol.

    >>> events("n---..n-n-------")
    [(0, 4, 'n'), (6, 2, 'n'), (8, 8, 'n')]
    """
    found = []
    for step, symbol in enumerate(pattern):
        if symbol not in ".-":
            rest = pattern[step + 1 :]
            found.append((step, 1 + len(rest) - len(rest.lstrip("-")), symbol))
    return found


class Note(NamedTuple):
    """One note."""

    start: float  # seconds from the clip's beginning; may be negative
    length: float  # seconds
    pitch: float  # MIDI note number; 0 for drums
    force: float  # in (0, 1]
    kind: str = ""  # the drum that is struck, or the number of the syllable that is sung


# Where the notes of a role lie, as the MIDI pitch they are centred on.
CENTRES = {"chords": 60, "pad": 62, "arp": 69, "lead": 74, "bass": 40}
LOW_CENTRES = {"distorted guitar": 46, "acoustic guitar": 57, "electric guitar": 58, "harp": 62}
VOICE_CENTRES = {"male voice": 54, "female voice": 66}
LEAD_CENTRES = {"saxophone": 64, "trumpet": 70, "lead guitar": 70, "electric guitar": 67}

# Seconds between the notes of a chord.
STRUM_SECONDS = {"acoustic guitar": 0.012, "electric guitar": 0.009, "harp": 0.03}

# Seconds by which players miss the beat (standard deviation).
LOOSENESS = {"drum machine": 0.0, "synth": 0.001, "voice": 0.018}
USUAL_LOOSENESS = 0.008


def notes_of(clip: SyntheticClip, part: Part, seconds: float) -> list[Note]:
    """Everything a part plays in the first ``seconds`` of a clip, in time."""
    rng = np.random.default_rng([clip.seed, part.seed])
    track = clip.track
    beat = 60.0 / track.tempo
    loose = (value for name, value in LOOSENESS.items() if name in part.instrument)
    looseness = next(loose, USUAL_LOOSENESS)
    play = {"drums": _drums, "bass": _bass, "lead": _melody, "voice": _melody}
    n_bars = int(np.ceil((seconds * track.tempo / 60 + clip.offset) / 4))
    notes = []
    for bar in range(n_bars):
        played = play.get(part.role, _chords)(clip, part, clip.first_bar + bar)
        for step, length, pitch, force, kind in played:
            at = bar * 4 + _swung(step, track) / STEPS_PER_BEAT - clip.offset
            start = at * beat + looseness * rng.standard_normal()
            held = length * beat / STEPS_PER_BEAT
            force *= float(np.exp(0.12 * rng.standard_normal()))
            if start < seconds and start + held > -0.5:
                notes.append(Note(start, held, pitch, min(force, 1.0), kind))
    return sorted(notes)


PlayedStep = tuple[float, float, float, float, str]  # step, length in steps, pitch, force, kind
Chord = tuple[int, ...]  # MIDI pitches, or pitch classes (0 for C), from the lowest up


def _swung(step: float, track: SyntheticTrack) -> float:
    """Move the second half of each pair of eighths (or sixteenths) back, up to triplets."""
    unit = 2 * track.swing_steps
    whole, rest = divmod(step, unit)
    half = unit / 2
    late = half * (1 + track.swing / 3)
    warped = rest * late / half if rest < half else late + (rest - half) * (unit - late) / half
    return whole * unit + warped


def _chords(clip: SyntheticClip, part: Part, bar: int) -> Iterator[PlayedStep]:
    track = clip.track
    chord = _voiced(track, part, bar)
    short = 0.55 if part.pattern in ("chug", "gallop", "skank", "scratch", "offbeat") else 0.95
    rise = STRUM_SECONDS.get(part.instrument, 0.003) * track.tempo / 60 * STEPS_PER_BEAT
    for step, steps, symbol in events(CHORDS[part.pattern]):
        length = steps * short
        if symbol.isdigit():
            octave, index = divmod(int(symbol), len(chord))
            force = 0.85 if step % 4 == 0 else 0.65
            yield step, max(length, 2), chord[index] + 12 * octave, force, ""
            continue
        force = 0.9 if symbol == "A" else 0.62
        upward = step % 4 == 2  # an up-stroke takes the strings from the top
        for i, pitch in enumerate(reversed(chord) if upward else chord):
            yield step + i * rise, length, pitch, force, ""


def _voiced(track: SyntheticTrack, part: Part, bar: int) -> Chord:
    centre = LOW_CENTRES.get(part.instrument, CENTRES.get(part.role, 60))
    degree = chord_degree(track, bar)
    if part.instrument == "distorted guitar":  # root, fifth, octave: thirds turn to mud
        root = nearest(scale_pitch(track, degree) % 12, centre)
        return root, root + 7, root + 12
    chord = voicings(track, float(centre))[bar % len(track.progression)]
    if "guitar" in part.instrument:  # more strings than the chord has notes
        return tuple(sorted({nearest(scale_pitch(track, degree) % 12, 47), *chord, chord[0] + 12}))
    return chord


def _bass(clip: SyntheticClip, part: Part, bar: int) -> Iterator[PlayedStep]:
    track = clip.track
    centre = {"cello": 45, "synth bass": 36}.get(part.instrument, CENTRES["bass"])
    degree = chord_degree(track, bar)
    root = nearest(scale_pitch(track, degree) % 12, centre)
    target = nearest(scale_pitch(track, chord_degree(track, bar + 1)) % 12, centre)
    third, fifth = (scale_pitch(track, degree + i) - scale_pitch(track, degree) for i in (2, 4))
    short = 0.6 if part.pattern in ("offbeat", "house", "sixteenths", "funk") else 0.9
    for step, steps, symbol in events(BASS[part.pattern]):
        walked = round(root + (target - root) * step / STEPS) or root
        pitch = {
            "r": root,
            "f": root + fifth,
            "o": root + 12,
            "t": root + third,
            "w": in_scale(track, walked + (2 if step == 8 else 0)),
        }[symbol]
        force = 0.9 if step % 8 == 0 else 0.75
        yield step, steps * short, pitch, force, ""


def _melody(clip: SyntheticClip, part: Part, bar: int) -> Iterator[PlayedStep]:
    """A phrase of four bars, A B A C: drawn once for each part and section, and sung again."""
    track = clip.track
    rng = np.random.default_rng([part.seed, SECTIONS.index(clip.section), (bar % 8) // 4])
    rhythms = MELODY[part.pattern]
    chosen = rng.integers(len(rhythms), size=3)
    walk = _contour(rng)
    place = bar % 4
    rhythm = rhythms[chosen[(0, 1, 0, 2)[place]]]
    centre = _melody_centre(part, clip)
    for i, (step, steps, _) in enumerate(events(rhythm)):
        moved = walk[(0, 8, 0, 24)[place] + i % 8]
        pitch = _melody_pitch(track, part, bar, centre + 1.8 * moved, step)
        force = 0.85 if step % 4 == 0 else 0.7
        length = steps * (0.6 if part.pattern == "stabs" else 0.93)
        yield step, length, pitch, force, str(int(walk[i % 8] * 7 + i + 5 * place) % 40)


def _contour(rng: np.random.Generator) -> list[int]:
    """Thirty-two places of a walk that likes small steps and turns back before it goes too far."""
    place, walk = 0, []
    for draw in rng.integers(7, size=32):
        place += (-2, -1, -1, 0, 1, 1, 2)[draw] - (place > 3) + (place < -3)
        walk.append(place)
    return walk


def _melody_centre(part: Part, clip: SyntheticClip) -> float:
    if part.role == "voice":
        return VOICE_CENTRES[part.instrument] + (3 if clip.section in ("chorus", "finale") else 0)
    return LEAD_CENTRES.get(part.instrument, CENTRES["lead"])


def _melody_pitch(track: SyntheticTrack, part: Part, bar: int, wish: float, step: int) -> float:
    """A note of the chord on the beat, of the scale elsewhere; speech keeps to no scale."""
    if part.pattern == "rap":
        centre = VOICE_CENTRES[part.instrument] - 7
        return centre + 0.25 * (wish - centre) - 0.12 * step
    degree = chord_degree(track, bar)
    if step % 8 == 0:
        classes = pitch_classes(track, degree)
    else:
        classes = tuple(scale_pitch(track, i) % 12 for i in range(7))
    return min((nearest(c, wish) for c in classes), key=lambda p: abs(p - wish))


def _drums(clip: SyntheticClip, part: Part, bar: int) -> Iterator[PlayedStep]:
    rng = np.random.default_rng([part.seed, bar])
    pattern = DRUMS[part.pattern]
    fill = bar % 4 == 3 and part.instrument == "acoustic kit" and rng.random() < 0.6
    last = 12 if fill else STEPS
    for drum, line in pattern.items():
        for step, _, symbol in events(line):
            if step < last and not (symbol == "o" and rng.random() < 0.15):
                yield step, 1, 0, {"X": 1.0, "x": 0.78, "o": 0.38}[symbol], drum
    if fill:
        for step in range(12, 16):
            yield step, 1, 0, 0.7 + 0.07 * (step - 12), "snare" if step < 14 else "tom"
    if bar % 4 == 0 and clip.section in ("chorus", "finale") and part.pattern != "ride":
        yield 0, 1, 0, 0.9, "crash"


def chord_degree(track: SyntheticTrack, bar: int) -> int:
    """The scale degree of the chord in a bar."""
    return track.progression[bar % len(track.progression)]


def scale_pitch(track: SyntheticTrack, degree: int) -> int:
    """Semitones above C of a scale degree, which may lie outside one octave."""
    octave, rest = divmod(degree, 7)
    return track.tonic + 12 * octave + MODES[track.mode][rest]


def pitch_classes(track: SyntheticTrack, degree: int) -> Chord:
    """Root, third, fifth (and seventh) on a degree."""
    size = 4 if track.sevenths else 3
    return tuple(scale_pitch(track, degree + 2 * i) % 12 for i in range(size))


def nearest(pitch_class: int, centre: float) -> int:
    """The pitch of a class that is nearest to a centre."""
    return int(pitch_class + 12 * round((centre - pitch_class) / 12))


def in_scale(track: SyntheticTrack, pitch: int) -> int:
    """The note of the scale at a pitch, or a semitone from it."""
    classes = {scale_pitch(track, degree) % 12 for degree in range(7)}
    return next(p for p in (pitch, pitch + 1, pitch - 1) if p % 12 in classes)


@lru_cache(maxsize=1024)
def voicings(track: SyntheticTrack, centre: float) -> tuple[Chord, ...]:
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
