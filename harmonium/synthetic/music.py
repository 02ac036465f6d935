"""What is played: artists, tracks and clips drawn from the recipes of genres, and their notes.

Everything is drawn from the tables in genres.toml and patterns.toml by a generator for one artist,
track or clip, so that each is the same whatever else is in the collection. The recipes' instruments
are those of ``sound.py``.

Bars are counted from the beginning of the track, and what a part plays in a bar follows from the
part and the bar, so a phrase comes back when its section does. Only the human touch (small errors
of timing and force) belongs to the clip.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from math import gcd
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harmonium.arrays import Rng

PartChoices = dict[str, float]  # "instrument/pattern" -> weight
PlayedStep = tuple[float, float, float, float, str]  # step, length in steps, pitch, force, kind
Chord = tuple[int, ...]  # MIDI pitches, or pitch classes (0 for C), from the lowest up


def read_tables(name: str) -> dict[str, Any]:
    """The tables of a TOML file of this package."""
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


_TABLES = read_tables("patterns.toml")
MODES: dict[str, list[int]] = _TABLES["modes"]
PROGRESSIONS: dict[str, list[int]] = _TABLES["progressions"]
ROLES: dict[str, dict[str, float]] = _TABLES["roles"]
SECTIONS: dict[str, dict[str, Any]] = _TABLES["sections"]
CHORDS: dict[str, str] = _TABLES["chords"]
BASS: dict[str, str] = _TABLES["bass"]
MELODY: dict[str, list[str]] = _TABLES["melody"]
DRUMS: dict[str, dict[str, str]] = _TABLES["drums"]
_WORDS = {kind: words.split() for kind, words in read_tables("invented_names.toml").items()}

ERAS = ("60s", "70s", "80s", "90s", "today")
HARMONY = ("chords", "pad", "arp", "lead")  # roles that can carry a track; each track has one
GUESTS = 0.12  # the chance that a part is played as in any other genre
STEPS, STEPS_PER_BEAT = 16, 4

# The MIDI pitch that a role's notes are centred on.
CENTRES = {"chords": 60, "pad": 62, "arp": 69, "lead": 74, "bass": 40}
LOW_CENTRES = {"distorted guitar": 46, "acoustic guitar": 57, "electric guitar": 58, "harp": 62}
VOICE_CENTRES = {"male voice": 54, "female voice": 66}
LEAD_CENTRES = {"saxophone": 64, "trumpet": 70, "lead guitar": 70, "electric guitar": 67}
STRUM_SECONDS = {"acoustic guitar": 0.012, "electric guitar": 0.009, "harp": 0.03}
"""Seconds between the notes of a chord."""
LOOSENESS = {"drum machine": 0.0, "synth": 0.001, "voice": 0.018, "": 0.008}
"""Seconds by which players miss the beat (standard deviation), by a word of the instrument."""

ARTIST, TRACK, CLIP, USER, TAGGING, ASSIGNMENT = range(6)  # the first numbers of generators' keys


def _recipes() -> dict[str, dict[str, Any]]:
    """The recipes of genres.toml, which says what each entry means."""
    tables = read_tables("genres.toml")
    usual = tables.pop("usual")
    recipes = {genre: {**usual, **table} for genre, table in tables.items()}
    for recipe in recipes.values():
        recipe["parts"] = dict(map(_role, recipe["parts"]))
        recipe["eras"] = dict(zip(ERAS, recipe["eras"], strict=True))
    return recipes


def _role(text: str) -> tuple[str, tuple[float, PartChoices]]:
    """(role, (chance, choices)) from ``role chance: instrument/pattern weight, …``."""
    head, _, listed = text.partition(": ")
    role, chance = head.split()
    choices = (choice.rpartition(" ") for choice in listed.split(", "))
    return role, (float(chance), {what: float(weight) for what, _, weight in choices})


RECIPES = _recipes()


@dataclass(frozen=True)
class Part:
    """One player of a track."""

    role: str  # drums, bass, chords, pad, arp, lead or voice
    instrument: str  # singers are "male voice" or "female voice"
    pattern: str  # a name in patterns.toml
    gain: float  # level in the mix, in dB
    brightness: float  # of this particular instrument, around 1
    seed: int  # of everything else that is particular to it


@dataclass(frozen=True)
class SyntheticTrack:
    """A piece of music, before it is written out."""

    number: int  # in the collection, from 0
    artist: str
    era: str  # of the artist, one of ERAS
    title: str
    album: str
    genres: tuple[str, ...]  # one, or two if it borrows from a neighbour, the main one first
    tempo: float  # beats per minute
    swing: float  # 0 (straight) to 1 (triplets)
    swing_steps: int  # 2 where eighths swing, 1 where sixteenths do
    tonic: int  # pitch class of the key, 0 for C
    mode: str  # a name in MODES
    progression: tuple[int, ...]  # scale degrees, one chord a bar
    sevenths: bool  # whether its chords have four notes
    parts: tuple[Part, ...]
    loudness: float  # RMS level in dB below full scale
    room: float  # reverberation time in seconds
    drive: float  # distortion of its distorted guitars
    lofi: bool  # whether it is a narrow, hissing, crackling recording
    seed: int  # of everything else that is particular to it

    @property
    def id(self) -> str:
        """The track's name in tables, such as ``t0007``."""
        return f"t{self.number:04d}"

    def degree(self, bar: int) -> int:
        """The scale degree of the chord in a bar."""
        return self.progression[bar % len(self.progression)]

    def pitch(self, degree: int) -> int:
        """A scale degree's semitones above C; it may lie outside one octave."""
        octave, rest = divmod(degree, 7)
        return self.tonic + 12 * octave + MODES[self.mode][rest]

    def chord(self, degree: int) -> Chord:
        """Root, third, fifth (and seventh) on a degree."""
        size = 4 if self.sevenths else 3
        return tuple(self.pitch(degree + 2 * i) % 12 for i in range(size))

    def in_scale(self, pitch: int) -> int:
        """The note of the scale at a pitch, or a semitone from it."""
        classes = {self.pitch(degree) % 12 for degree in range(7)}
        return next(p for p in (pitch, pitch + 1, pitch - 1) if p % 12 in classes)


@dataclass(frozen=True)
class SyntheticClip:
    """A few seconds of a track: the section it is cut from and who plays there."""

    track: SyntheticTrack
    number: int
    section: str
    parts: tuple[Part, ...]
    loudness: float
    first_bar: int
    offset: float
    seed: int

    @property
    def id(self) -> str:
        """The clip's name in triples and tables, such as ``t0007c2``."""
        return f"{self.track.id}c{self.number}"

    @property
    def position(self) -> float:
        """Seconds from the beginning of the track to the clip's beginning."""
        return (4 * self.first_bar + self.offset) * 60.0 / self.track.tempo


def artist_name(number: int) -> str:
    """The name of an artist; every third is a person. Different for different numbers."""
    if number % 3 == 1:
        return _pair(number // 3, "first_names", "last_names")
    name = _pair(number, "adjectives", "nouns")
    return f"The {name}" if number % 3 == 0 else name


def track_title(number: int) -> str:
    """The title of a track. Different for different numbers."""
    return _pair(number, "verbs", "things")


def _pair(number: int, first_kind: str, second_kind: str) -> str:
    """A pair of words by its number in a mixed order; when all are used, a numeral follows."""
    first, second = _WORDS[first_kind], _WORDS[second_kind]
    size = len(first) * len(second)
    # A step that shares no factor with the size visits every pair once.
    step = next(s for s in range(size * 5 // 8 + 13, size) if gcd(s, size) == 1)
    pair = (number * step + 17) % size
    name = f"{first[pair // len(second)]} {second[pair % len(second)]}"
    return name if number < size else f"{name} {number // size + 1}"


def generator(seed: int, *key: int) -> Rng:
    """The random generator for one thing (by its key) in the collection with this seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def choose(draw: float, weights: Mapping[str, float]) -> str:
    """The key at ``draw`` of the way, in [0, 1), through the weights laid end to end."""
    ends = np.cumsum(list(weights.values()))
    return list(weights)[int(np.searchsorted(ends, draw * ends[-1], "right"))]


@lru_cache(maxsize=4096)
def _artist(seed: int, number: int) -> tuple[str, bool, str]:
    """An artist's genre, whether the singer is a man, and the era."""
    rng = generator(seed, ARTIST, number)
    # Golden-ratio steps, not draws, so that even a small collection has every genre.
    draw = (generator(seed, ARTIST).random() + number * 0.6180339887498949) % 1.0
    genre = choose(draw, {name: recipe["weight"] for name, recipe in RECIPES.items()})
    male = bool(rng.random() < RECIPES[genre]["male"])
    return genre, male, choose(rng.random(), RECIPES[genre]["eras"])


@lru_cache(maxsize=4096)
def make_track(seed: int, number: int) -> SyntheticTrack:
    """The track with this number in the collection with this seed."""
    rng = generator(seed, TRACK, number)
    # New artists appear as tracks are added; early ones have more tracks.
    artist = int(rng.integers(2 + 3 * number // 4))
    genre, male, era = _artist(seed, artist)
    recipe, genres = RECIPES[genre], [genre]
    neighbours, progressions = recipe["neighbours"], recipe["progressions"]
    if rng.random() < 0.3:
        genres.append(neighbours[rng.integers(len(neighbours))])
    return SyntheticTrack(
        number=number,
        artist=artist_name(artist),
        era=era,
        title=track_title(number),
        album=_pair(artist * 7 + int(rng.integers(3)), "adjectives", "things"),
        genres=tuple(genres),
        tempo=float(np.round(rng.uniform(*recipe["tempo"]) * np.exp(rng.normal(0, 0.08)), 1)),
        swing=recipe["swing"] * float(rng.uniform(0.8, 1.1)),
        swing_steps=recipe["swing_steps"],
        tonic=int(rng.integers(12)),
        mode=choose(rng.random(), recipe["modes"]),
        progression=tuple(PROGRESSIONS[progressions[rng.integers(len(progressions))]]),
        sevenths=recipe["sevenths"],
        parts=_parts(rng, recipe["parts"], RECIPES[genres[-1]]["parts"], male),
        loudness=float(min(rng.uniform(*recipe["loudness"]) + rng.normal(0, 2.0), -8.0)),
        room=float(rng.uniform(*recipe["room"])) * (1.4 if era == "80s" else 1.0),
        drive=float(rng.uniform(*recipe["drive"])),
        lofi=bool(rng.random() < recipe["lofi"] * (2.0 if era == "60s" else 1.0)),
        seed=int(rng.integers(2**31)),
    )


def _parts(
    rng: Rng,
    own: Mapping[str, tuple[float, PartChoices]],
    other: Mapping[str, tuple[float, PartChoices]],
    male: bool,
) -> tuple[Part, ...]:
    """Players from the recipe; about half of the roles follow the borrowed genre."""
    parts = []
    for role in ROLES:
        source = other if rng.random() < 0.5 else own
        chance, options = source.get(role, own.get(role, (0.0, {})))
        if options and rng.random() < GUESTS:
            every = (recipe["parts"].get(role, (0.0, {})) for recipe in RECIPES.values())
            options = {what: weight for _, found in every for what, weight in found.items()}
        if rng.random() < chance:
            parts.append(_part(rng, role, options, male))
    if not any(part.role in HARMONY for part in parts):
        role = next(role for role in HARMONY if role in own)
        parts.append(_part(rng, role, own[role][1], male))
    return tuple(parts)


def _part(rng: Rng, role: str, options: PartChoices, male: bool) -> Part:
    instrument, pattern = choose(rng.random(), options).split("/")
    if instrument == "voice":
        instrument = "male voice" if male else "female voice"
    return Part(
        role=role,
        instrument=instrument,
        pattern=pattern,
        gain=ROLES[role]["gain"] + float(rng.normal(0, 2.0)),
        brightness=float(np.exp(rng.normal(0, 0.2))),
        seed=int(rng.integers(2**31)),
    )


@lru_cache(maxsize=16384)
def make_clip(seed: int, track: int, number: int) -> SyntheticClip:
    """Clip ``number`` of a track in the collection with this seed."""
    piece = make_track(seed, track)
    rng = generator(seed, CLIP, track, number)
    section = list(SECTIONS)[number % len(SECTIONS)]
    presence = SECTIONS[section]["presence"]
    draws = rng.random(len(piece.parts))
    parts = tuple(
        part for part, u in zip(piece.parts, draws, strict=True) if u < presence.get(part.role, 1)
    )
    if all(part.role == "drums" for part in parts):
        parts = piece.parts
    return SyntheticClip(
        track=piece,
        number=number,
        section=section,
        parts=parts,
        loudness=piece.loudness + SECTIONS[section]["gain"] + float(rng.normal(0, 0.7)),
        first_bar=16 * number,
        offset=float(rng.uniform(0, 4)),
        seed=int(rng.integers(2**31)),
    )


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


def notes_of(clip: SyntheticClip, part: Part, seconds: float) -> list[Note]:
    """Everything a part plays in the first ``seconds`` of a clip, in order."""
    rng = np.random.default_rng([clip.seed, part.seed])
    track = clip.track
    beat = 60.0 / track.tempo
    looseness = next(value for name, value in LOOSENESS.items() if name in part.instrument)
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


def _swung(step: float, track: SyntheticTrack) -> float:
    """Move the second half of each pair of eighths (or sixteenths) back, up to triplets."""
    unit = 2 * track.swing_steps
    whole, rest = divmod(step, unit)
    half = unit / 2
    late = half * (1 + track.swing / 3)
    warped = rest * late / half if rest < half else late + (rest - half) * (unit - late) / half
    return whole * unit + warped


def _chords(clip: SyntheticClip, part: Part, bar: int) -> Iterator[PlayedStep]:
    track, chord = clip.track, _voiced(clip.track, part, bar)
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
    degree = track.degree(bar)
    if part.instrument == "distorted guitar":  # root, fifth, octave: thirds turn to mud
        root = nearest(track.pitch(degree) % 12, centre)
        return root, root + 7, root + 12
    chord = voicings(track, float(centre))[bar % len(track.progression)]
    if "guitar" in part.instrument:  # more strings than the chord has notes
        return tuple(sorted({nearest(track.pitch(degree) % 12, 47), *chord, chord[0] + 12}))
    return chord


def _bass(clip: SyntheticClip, part: Part, bar: int) -> Iterator[PlayedStep]:
    track = clip.track
    centre = {"cello": 45, "synth bass": 36}.get(part.instrument, CENTRES["bass"])
    degree = track.degree(bar)
    root = nearest(track.pitch(degree) % 12, centre)
    target = nearest(track.pitch(track.degree(bar + 1)) % 12, centre)
    third, fifth = (track.pitch(degree + i) - track.pitch(degree) for i in (2, 4))
    short = 0.6 if part.pattern in ("offbeat", "house", "sixteenths", "funk") else 0.9
    for step, steps, symbol in events(BASS[part.pattern]):
        walked = round(root + (target - root) * step / STEPS) or root
        pitch = {
            "r": root,
            "f": root + fifth,
            "o": root + 12,
            "t": root + third,
            "w": track.in_scale(walked + (2 if step == 8 else 0)),
        }[symbol]
        force = 0.9 if step % 8 == 0 else 0.75
        yield step, steps * short, pitch, force, ""


def _melody(clip: SyntheticClip, part: Part, bar: int) -> Iterator[PlayedStep]:
    """A phrase of four bars, A B A C: drawn once for each part and section, then repeated."""
    track = clip.track
    rng = np.random.default_rng([part.seed, list(SECTIONS).index(clip.section), (bar % 8) // 4])
    rhythms = MELODY[part.pattern]
    chosen = rng.integers(len(rhythms), size=3)
    walk, at = [], 0  # prefers small steps, and turns back before it goes too far
    for draw in rng.integers(7, size=32):
        at += (-2, -1, -1, 0, 1, 1, 2)[draw] - (at > 3) + (at < -3)
        walk.append(at)
    place = bar % 4
    rhythm = rhythms[chosen[(0, 1, 0, 2)[place]]]
    if part.role == "voice":
        centre = VOICE_CENTRES[part.instrument] + 3 * (clip.section in ("chorus", "finale"))
    else:
        centre = LEAD_CENTRES.get(part.instrument, CENTRES["lead"])
    for i, (step, steps, _) in enumerate(events(rhythm)):
        moved = walk[(0, 8, 0, 24)[place] + i % 8]
        pitch = _melody_pitch(track, part, bar, centre + 1.8 * moved, step)
        force = 0.85 if step % 4 == 0 else 0.7
        length = steps * (0.6 if part.pattern == "stabs" else 0.93)
        yield step, length, pitch, force, str(int(walk[i % 8] * 7 + i + 5 * place) % 40)


def _melody_pitch(track: SyntheticTrack, part: Part, bar: int, wish: float, step: int) -> float:
    """A note of the chord on the beat, of the scale elsewhere; speech keeps to no scale."""
    if part.pattern == "rap":
        centre = VOICE_CENTRES[part.instrument] - 7
        return centre + 0.25 * (wish - centre) - 0.12 * step
    scale = tuple(track.pitch(i) % 12 for i in range(7))
    classes = scale if step % 8 else track.chord(track.degree(bar))
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


def nearest(pitch_class: int, centre: float) -> int:
    """The pitch of a class nearest to a centre."""
    return int(pitch_class + 12 * round((centre - pitch_class) / 12))


@lru_cache(maxsize=1024)
def voicings(track: SyntheticTrack, centre: float) -> tuple[Chord, ...]:
    """One voicing for each chord of the progression, each as close to the one before as can be."""
    found: list[Chord] = []
    before: Chord = ()

    def movement(voicing: Chord) -> float:
        moved = sum(abs(a - b) for a, b in zip(voicing, before, strict=True))
        return moved + abs(float(np.mean(voicing)) - centre)

    for degree in track.progression:
        classes, options = track.chord(degree), []
        for i in range(len(classes)):
            turned = classes[i:] + classes[:i]
            steps = [(above - below) % 12 for below, above in pairwise(turned)]
            for low in (centre - 10, centre - 4):
                options.append(tuple(accumulate(steps, initial=nearest(turned[0], low))))
        before = found[-1] if found else tuple(int(centre) for _ in classes)
        found.append(min(options, key=movement))
    return tuple(found)
