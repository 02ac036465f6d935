"""What is played: artists, tracks and clips, drawn from the recipes of genres.

Everything is drawn by a generator for one artist, track or clip, so that each is the same whatever
else is in the collection. The recipes' instruments are those of ``instruments.py`` and
``drums.py``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from harmonium.arrays import Rng
from harmonium.synthetic.names import album_title, artist_name, track_title
from harmonium.synthetic.recipes import (
    MODES,
    PROGRESSIONS,
    RECIPES,
    ROLES,
    SECTIONS,
    Player,
    Weights,
)

Chord = tuple[int, ...]  # MIDI pitches, or pitch classes (0 for C), from the lowest up

HARMONY = ("chords", "pad", "arp", "lead")  # roles that can carry a track; each track has one
GUESTS = 0.12  # the chance that a part is played as in any other genre

# The first numbers of generators' keys.
ARTIST = 0
TRACK = 1
CLIP = 2
USER = 3
TAGGING = 4
ASSIGNMENT = 5


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
        scale = {self.pitch(degree) % 12 for degree in range(7)}
        for neighbour in (pitch, pitch + 1):
            if neighbour % 12 in scale:
                return neighbour
        return pitch - 1  # no gap is wider than two notes


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


def generator(seed: int, *key: int) -> Rng:
    """The random generator for one thing (by its key) in the collection with this seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def choose(draw: float, weights: Weights) -> str:
    """The key at ``draw`` of the way, in [0, 1), through the weights laid end to end."""
    ends = np.cumsum(list(weights.values()))
    place = int(np.searchsorted(ends, draw * ends[-1], "right"))
    return list(weights)[place]


class _Artist(NamedTuple):
    genre: str
    is_man: bool  # whether the singer is a man
    era: str


@lru_cache(maxsize=4096)
def _artist(seed: int, number: int) -> _Artist:
    """The artist with this number in the collection with this seed."""
    rng = generator(seed, ARTIST, number)
    # Golden-ratio steps, not draws, so that even a small collection has every genre.
    draw = (generator(seed, ARTIST).random() + number * 0.6180339887498949) % 1.0
    genre = choose(draw, {name: recipe.weight for name, recipe in RECIPES.items()})
    is_man = bool(rng.random() < RECIPES[genre].male)
    era = choose(rng.random(), RECIPES[genre].eras)
    return _Artist(genre, is_man, era)


@lru_cache(maxsize=4096)
def make_track(seed: int, number: int) -> SyntheticTrack:
    """The track with this number in the collection with this seed."""
    rng = generator(seed, TRACK, number)
    # New artists appear as tracks are added; early ones have more tracks.
    artist_number = int(rng.integers(2 + 3 * number // 4))
    artist = _artist(seed, artist_number)
    recipe = RECIPES[artist.genre]
    genres = [artist.genre]
    if rng.random() < 0.3:
        genres.append(_one_of(rng, recipe.neighbours))
    reverberation = 1.4 if artist.era == "80s" else 1.0
    wear = 2.0 if artist.era == "60s" else 1.0
    # The order of the fields is the order of the draws, so another order is another collection.
    return SyntheticTrack(
        number=number,
        artist=artist_name(artist_number),
        era=artist.era,
        title=track_title(number),
        album=album_title(artist_number * 7 + int(rng.integers(3))),
        genres=tuple(genres),
        tempo=float(np.round(rng.uniform(*recipe.tempo) * np.exp(rng.normal(0, 0.08)), 1)),
        swing=recipe.swing * float(rng.uniform(0.8, 1.1)),
        swing_steps=recipe.swing_steps,
        tonic=int(rng.integers(12)),
        mode=choose(rng.random(), recipe.modes),
        progression=tuple(PROGRESSIONS[_one_of(rng, recipe.progressions)]),
        sevenths=recipe.sevenths,
        parts=_parts(rng, recipe.parts, RECIPES[genres[-1]].parts, is_man=artist.is_man),
        loudness=float(min(rng.uniform(*recipe.loudness) + rng.normal(0, 2.0), -8.0)),
        room=float(rng.uniform(*recipe.room)) * reverberation,
        drive=float(rng.uniform(*recipe.drive)),
        lofi=bool(rng.random() < recipe.lofi * wear),
        seed=int(rng.integers(2**31)),
    )


def _one_of(rng: Rng, names: Sequence[str]) -> str:
    return names[int(rng.integers(len(names)))]


_NOBODY = Player(chance=0.0, choices={})


def _parts(
    rng: Rng, own: Mapping[str, Player], borrowed: Mapping[str, Player], *, is_man: bool
) -> tuple[Part, ...]:
    """Players from the recipe; about half of the roles follow the borrowed genre."""
    parts = []
    for role in ROLES:
        player = own.get(role, _NOBODY)
        if rng.random() < 0.5:
            player = borrowed.get(role, player)
        choices = player.choices
        if choices and rng.random() < GUESTS:
            choices = _choices_of_all_genres(role)
        if rng.random() < player.chance:
            parts.append(_part(rng, role, choices, is_man=is_man))
    if not any(part.role in HARMONY for part in parts):
        role = next(role for role in HARMONY if role in own)
        parts.append(_part(rng, role, own[role].choices, is_man=is_man))
    return tuple(parts)


def _choices_of_all_genres(role: str) -> Weights:
    """Every way to play a role."""
    choices: dict[str, float] = {}
    for recipe in RECIPES.values():
        if role in recipe.parts:
            choices |= recipe.parts[role].choices
    return choices


def _part(rng: Rng, role: str, choices: Weights, *, is_man: bool) -> Part:
    instrument, pattern = choose(rng.random(), choices).split("/")
    if instrument == "voice":
        instrument = "male voice" if is_man else "female voice"
    return Part(
        role=role,
        instrument=instrument,
        pattern=pattern,
        gain=ROLES[role].gain + float(rng.normal(0, 2.0)),
        brightness=float(np.exp(rng.normal(0, 0.2))),
        seed=int(rng.integers(2**31)),
    )


@lru_cache(maxsize=16384)
def make_clip(seed: int, track: int, number: int) -> SyntheticClip:
    """Clip ``number`` of a track in the collection with this seed."""
    whole = make_track(seed, track)
    rng = generator(seed, CLIP, track, number)
    name = list(SECTIONS)[number % len(SECTIONS)]
    section = SECTIONS[name]
    parts = []
    for part, draw in zip(whole.parts, rng.random(len(whole.parts)), strict=True):
        if draw < section.presence.get(part.role, 1):
            parts.append(part)
    if all(part.role == "drums" for part in parts):
        parts = list(whole.parts)
    return SyntheticClip(
        track=whole,
        number=number,
        section=name,
        parts=tuple(parts),
        loudness=whole.loudness + section.gain + float(rng.normal(0, 0.7)),
        first_bar=16 * number,
        offset=float(rng.uniform(0, 4)),
        seed=int(rng.integers(2**31)),
    )
