"""The notes that a part plays: chords, bass lines, phrases and drums, from patterns.toml.

Bars are counted from the beginning of the track, and what a part plays in a bar follows from the
part and the bar, so a phrase comes back when its section does. Only the human touch (small errors
of timing and force) belongs to the clip.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from harmonium.arrays import Rng
from harmonium.synthetic.music import Chord, Part, SyntheticClip, SyntheticTrack
from harmonium.synthetic.recipes import SECTIONS, read_tables

_PATTERNS = read_tables("patterns.toml")
CHORDS: dict[str, str] = _PATTERNS["chords"]
BASS: dict[str, str] = _PATTERNS["bass"]
MELODY: dict[str, list[str]] = _PATTERNS["melody"]
DRUMS: dict[str, dict[str, str]] = _PATTERNS["drums"]

STEPS = 16  # of a bar
STEPS_PER_BEAT = 4
BEATS_PER_BAR = 4

# The MIDI pitch that a role's notes are centred on.
CENTRES = {"chords": 60, "pad": 62, "arp": 69, "lead": 74, "bass": 40}
LOW_CENTRES = {"distorted guitar": 46, "acoustic guitar": 57, "electric guitar": 58, "harp": 62}
BASS_CENTRES = {"cello": 45, "synth bass": 36}
VOICE_CENTRES = {"male voice": 54, "female voice": 66}
LEAD_CENTRES = {"saxophone": 64, "trumpet": 70, "lead guitar": 70, "electric guitar": 67}

STRUM_SECONDS = {"acoustic guitar": 0.012, "electric guitar": 0.009, "harp": 0.03}
"""Seconds between the notes of a chord."""
LOOSENESS = {"drum machine": 0.0, "synth": 0.001, "voice": 0.018, "": 0.008}
"""Seconds by which players miss the beat (standard deviation), by a word of the instrument."""

LOUD_SECTIONS = ("chorus", "finale")


class Note(NamedTuple):
    """One note."""

    start: float  # seconds from the clip's beginning; may be negative
    length: float  # seconds
    pitch: float  # MIDI note number; 0 for drums
    force: float  # in (0, 1]
    kind: str = ""  # the drum that is struck, or the number of the syllable that is sung


class PlayedStep(NamedTuple):
    """A note of a bar, before the player's touch."""

    step: float  # from the bar's beginning
    length: float  # in steps
    pitch: float
    force: float
    kind: str = ""


class Event(NamedTuple):
    """A sound in the pattern of a bar."""

    step: int  # at which it begins
    length: int  # in steps
    symbol: str


def events(pattern: str) -> list[Event]:
    """The sounds of one bar, in time.

    >>> [tuple(event) for event in events("n---..n-n-------")]
    [(0, 4, 'n'), (6, 2, 'n'), (8, 8, 'n')]
    """
    sounds = []
    for step, symbol in enumerate(pattern):
        if symbol not in ".-":
            rest = pattern[step + 1 :]
            n_held = len(rest) - len(rest.lstrip("-"))
            sounds.append(Event(step, 1 + n_held, symbol))
    return sounds


def notes_of(clip: SyntheticClip, part: Part, seconds: float) -> list[Note]:
    """Everything a part plays in the first ``seconds`` of a clip, in order."""
    rng = np.random.default_rng([clip.seed, part.seed])
    seconds_per_beat = 60.0 / clip.track.tempo
    looseness = _looseness(part.instrument)
    n_beats = seconds * clip.track.tempo / 60
    n_bars = int(np.ceil((n_beats + clip.offset) / BEATS_PER_BAR))
    notes = []
    for bar in range(n_bars):
        for played in _bar(clip, part, clip.first_bar + bar):
            swung = _swung(played.step, clip.track) / STEPS_PER_BEAT
            beat = bar * BEATS_PER_BAR + swung - clip.offset
            start = beat * seconds_per_beat + looseness * rng.standard_normal()
            length = played.length * seconds_per_beat / STEPS_PER_BEAT
            force = played.force * float(np.exp(0.12 * rng.standard_normal()))
            if start < seconds and start + length > -0.5:
                note = Note(start, length, played.pitch, min(force, 1.0), played.kind)
                notes.append(note)
    return sorted(notes)


def _looseness(instrument: str) -> float:
    """Of the first word that is part of the instrument's name; the empty one is part of all."""
    return next(seconds for word, seconds in LOOSENESS.items() if word in instrument)


def _swung(step: float, track: SyntheticTrack) -> float:
    """Move the second half of each pair of eighths (or sixteenths) back, up to triplets."""
    unit = 2 * track.swing_steps
    half = unit / 2
    late = half * (1 + track.swing / 3)
    n_units, rest = divmod(step, unit)
    if rest < half:
        moved = rest * late / half
    else:
        moved = late + (rest - half) * (unit - late) / half
    return n_units * unit + moved


def _bar(clip: SyntheticClip, part: Part, bar: int) -> Iterable[PlayedStep]:
    """What a part plays in a bar of the track."""
    if part.role == "drums":
        return _drums(clip, part, bar)
    if part.role == "bass":
        return _bass(clip, part, bar)
    if part.role in ("lead", "voice"):
        return _melody(clip, part, bar)
    return _chords(clip, part, bar)


# Chords


def _chords(clip: SyntheticClip, part: Part, bar: int) -> Iterator[PlayedStep]:
    chord = _voiced(clip.track, part, bar)
    is_short = part.pattern in ("chug", "gallop", "skank", "scratch", "offbeat")
    steps_per_second = clip.track.tempo / 60 * STEPS_PER_BEAT
    strum = STRUM_SECONDS.get(part.instrument, 0.003) * steps_per_second
    for step, n_steps, symbol in events(CHORDS[part.pattern]):
        length = n_steps * (0.55 if is_short else 0.95)
        if symbol.isdigit():  # one note of the chord
            octave, index = divmod(int(symbol), len(chord))
            force = 0.85 if step % 4 == 0 else 0.65
            yield PlayedStep(step, max(length, 2), chord[index] + 12 * octave, force)
            continue
        force = 0.9 if symbol == "A" else 0.62
        is_up_stroke = step % 4 == 2  # which takes the strings from the top
        strings = chord[::-1] if is_up_stroke else chord
        for i, pitch in enumerate(strings):
            yield PlayedStep(step + i * strum, length, pitch, force)


def _voiced(track: SyntheticTrack, part: Part, bar: int) -> Chord:
    """The pitches of the chord in a bar, as an instrument plays it."""
    centre = LOW_CENTRES.get(part.instrument, CENTRES.get(part.role, 60))
    root = track.pitch(track.degree(bar)) % 12
    if part.instrument == "distorted guitar":  # root, fifth, octave: thirds turn to mud
        low = nearest(root, centre)
        return low, low + 7, low + 12
    chord = voicings(track, float(centre))[bar % len(track.progression)]
    if "guitar" in part.instrument:  # more strings than the chord has notes
        return tuple(sorted({nearest(root, 47), *chord, chord[0] + 12}))
    return chord


@lru_cache(maxsize=1024)
def voicings(track: SyntheticTrack, centre: float) -> tuple[Chord, ...]:
    """One voicing for each chord of the progression, each as close to the one before as can be."""
    chords: list[Chord] = []
    for degree in track.progression:
        classes = track.chord(degree)
        before = chords[-1] if chords else tuple(int(centre) for _ in classes)

        def movement(voicing: Chord, before: Chord = before) -> float:
            moved = sum(abs(a - b) for a, b in zip(voicing, before, strict=True))
            return moved + abs(float(np.mean(voicing)) - centre)

        chords.append(min(_inversions(classes, centre), key=movement))
    return tuple(chords)


def _inversions(classes: Chord, centre: float) -> list[Chord]:
    """Each note of a chord as the lowest, at two heights below a centre."""
    inversions: list[Chord] = []
    for i in range(len(classes)):
        turned = classes[i:] + classes[:i]
        steps = [(above - below) % 12 for below, above in pairwise(turned)]
        for low in (centre - 10, centre - 4):
            inversions.append(tuple(accumulate(steps, initial=nearest(turned[0], low))))
    return inversions


def nearest(pitch_class: int, centre: float) -> int:
    """The pitch of a class nearest to a centre."""
    return int(pitch_class + 12 * round((centre - pitch_class) / 12))


# Bass


def _bass(clip: SyntheticClip, part: Part, bar: int) -> Iterator[PlayedStep]:
    track = clip.track
    centre = BASS_CENTRES.get(part.instrument, CENTRES["bass"])
    degree = track.degree(bar)
    root = nearest(track.pitch(degree) % 12, centre)
    next_root = nearest(track.pitch(track.degree(bar + 1)) % 12, centre)
    third = track.pitch(degree + 2) - track.pitch(degree)
    fifth = track.pitch(degree + 4) - track.pitch(degree)
    is_short = part.pattern in ("offbeat", "house", "sixteenths", "funk")
    for step, n_steps, symbol in events(BASS[part.pattern]):
        walked = round(root + (next_root - root) * step / STEPS) or root
        pitch = {
            "r": root,
            "f": root + fifth,
            "o": root + 12,
            "t": root + third,
            "w": track.in_scale(walked + (2 if step == 8 else 0)),
        }[symbol]
        force = 0.9 if step % 8 == 0 else 0.75
        yield PlayedStep(step, n_steps * (0.6 if is_short else 0.9), pitch, force)


# Melodies


def _melody(clip: SyntheticClip, part: Part, bar: int) -> Iterator[PlayedStep]:
    """A phrase of four bars, A B A C: drawn once for each part and section, then repeated."""
    section = list(SECTIONS).index(clip.section)
    rng = np.random.default_rng([part.seed, section, (bar % 8) // 4])
    rhythms = MELODY[part.pattern]
    rhythm_of_letter = rng.integers(len(rhythms), size=3)
    walk = _walk(rng)
    letter = (0, 1, 0, 2)[bar % 4]
    rhythm = rhythms[rhythm_of_letter[letter]]
    first_of_walk = (0, 8, 24)[letter]
    centre = _melody_centre(clip, part)
    is_short = part.pattern == "stabs"
    for i, (step, n_steps, _) in enumerate(events(rhythm)):
        moved = walk[first_of_walk + i % 8]
        pitch = _melody_pitch(clip.track, part, bar, centre + 1.8 * moved, step)
        force = 0.85 if step % 4 == 0 else 0.7
        length = n_steps * (0.6 if is_short else 0.93)
        syllable = int(walk[i % 8] * 7 + i + 5 * (bar % 4)) % 40
        yield PlayedStep(step, length, pitch, force, str(syllable))


def _walk(rng: Rng) -> list[int]:
    """Places around 0: prefers small steps, and turns back before it goes too far."""
    places = []
    place = 0
    for draw in rng.integers(7, size=32):
        place += (-2, -1, -1, 0, 1, 1, 2)[draw] - (place > 3) + (place < -3)
        places.append(place)
    return places


def _melody_centre(clip: SyntheticClip, part: Part) -> int:
    if part.role != "voice":
        return LEAD_CENTRES.get(part.instrument, CENTRES["lead"])
    centre = VOICE_CENTRES[part.instrument]
    return centre + 3 if clip.section in LOUD_SECTIONS else centre


def _melody_pitch(track: SyntheticTrack, part: Part, bar: int, wish: float, step: int) -> float:
    """A note of the chord on the beat, of the scale elsewhere; speech keeps to no scale."""
    if part.pattern == "rap":
        centre = VOICE_CENTRES[part.instrument] - 7
        return centre + 0.25 * (wish - centre) - 0.12 * step
    is_on_beat = step % 8 == 0
    if is_on_beat:
        classes = track.chord(track.degree(bar))
    else:
        classes = tuple(track.pitch(degree) % 12 for degree in range(7))
    pitches = [nearest(pitch_class, wish) for pitch_class in classes]
    return min(pitches, key=lambda pitch: abs(pitch - wish))


# Drums


def _drums(clip: SyntheticClip, part: Part, bar: int) -> Iterator[PlayedStep]:
    rng = np.random.default_rng([part.seed, bar])
    may_fill = bar % 4 == 3 and part.instrument == "acoustic kit"
    is_filled = may_fill and rng.random() < 0.6
    n_steps = 12 if is_filled else STEPS
    for drum, line in DRUMS[part.pattern].items():
        for step, _, symbol in events(line):
            if step >= n_steps:
                continue
            is_missed = symbol == "o" and rng.random() < 0.15
            if not is_missed:
                yield _stroke(drum, step, force={"X": 1.0, "x": 0.78, "o": 0.38}[symbol])
    if is_filled:
        for step in range(12, 16):
            yield _stroke("snare" if step < 14 else "tom", step, force=0.7 + 0.07 * (step - 12))
    if bar % 4 == 0 and clip.section in LOUD_SECTIONS and part.pattern != "ride":
        yield _stroke("crash", 0, force=0.9)


def _stroke(drum: str, step: int, *, force: float) -> PlayedStep:
    return PlayedStep(step=step, length=1, pitch=0, force=force, kind=drum)
