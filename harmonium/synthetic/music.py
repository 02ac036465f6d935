"""What a track is: its genre, tempo, key, parts and sound; and what a clip of it plays.

Everything is drawn from the recipes of genres.toml by a generator that belongs to one artist, track
or clip, so that each of them is the same whatever else is in the collection. The instruments of the
recipes are those of ``instruments.py``, the patterns those of patterns.toml.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np

PartChoices = tuple[tuple[str, str, float], ...]  # instrument, pattern, weight

ERAS = ("60s", "70s", "80s", "90s", "today")

MODES = {
    "major": (0, 2, 4, 5, 7, 9, 11),
    "mixolydian": (0, 2, 4, 5, 7, 9, 10),
    "dorian": (0, 2, 3, 5, 7, 9, 10),
    "minor": (0, 2, 3, 5, 7, 8, 10),
}

# Scale degrees counted from 0, one chord a bar.
PROGRESSIONS = {
    "axis": (0, 4, 5, 3),
    "fifties": (0, 5, 3, 4),
    "three": (0, 3, 4, 0),
    "plagal": (0, 3, 0, 4),
    "sway": (0, 3),
    "step": (0, 6),
    "drone": (0,),
    "epic": (0, 5, 2, 6),
    "descent": (0, 6, 5, 6),
    "turnaround": (1, 4, 0, 5),
    "cadence": (0, 3, 6, 2, 5, 1, 4, 0),
    "blues": (0, 0, 0, 0, 3, 3, 0, 0, 4, 3, 0, 4),
}


# The sections of a track that clips are cut from, in order and over again.
SECTIONS = ("verse", "chorus", "solo", "breakdown", "finale")

# The chance that a part plays in a section; parts not named here play always.
PRESENCE = {
    "verse": {"drums": 0.93, "lead": 0.3, "pad": 0.7, "arp": 0.8},
    "chorus": {"lead": 0.35},
    "solo": {"voice": 0.1, "lead": 1.0, "pad": 0.8},
    "breakdown": {"drums": 0.3, "bass": 0.5, "chords": 0.8, "voice": 0.6, "lead": 0.3, "arp": 0.5},
    "finale": {"lead": 0.6},
}
SECTION_GAIN = {"verse": -1.0, "chorus": 1.0, "solo": 0.0, "breakdown": -4.0, "finale": 1.0}

# Levels in the mix, in dB.
ROLE_GAIN = {
    "drums": -1.0,
    "bass": -5.5,
    "chords": -4.5,
    "pad": -10.0,
    "arp": -8.0,
    "lead": -4.0,
    "voice": -2.0,
}

# The chance that a part is played as it would be in any other genre.
GUESTS = 0.12

# The roles that can carry a track; every track has one of them.
HARMONY = ("chords", "pad", "arp", "lead")


@dataclass(frozen=True)
class GenreRecipe:
    """The ranges and chances that a track of one genre is drawn from."""

    weight: float  # how common the genre is
    tempo: tuple[float, float]  # range in beats per minute
    modes: dict[str, float]  # chances of the modes
    progressions: tuple[str, ...]  # names in PROGRESSIONS
    parts: dict[str, tuple[float, PartChoices]]  # role -> the chance that it is there, and options
    loudness: tuple[float, float]  # range of the clip's RMS level in dB below full scale
    room: tuple[float, float]  # range of the reverberation time in seconds
    neighbours: tuple[str, ...]  # genres to borrow from
    swing: float = 0.0  # how late the off-beats are, 0 (straight) to 1 (triplets)
    swing_steps: int = 2  # the steps that swing
    drive: tuple[float, float] = (2.0, 4.0)  # range of the distortion of distorted guitars
    sevenths: bool = False  # whether chords have four notes
    lofi: float = 0.08  # chance of a narrow, hissing, crackling recording
    eras: dict[str, float] = field(default_factory=lambda: dict.fromkeys(ERAS, 1.0))
    male: float = 0.55  # chance that a singer is a man
    energy: float = 0.0  # what it adds to how energetic a track seems
    valence: float = 0.0  # what it adds to how happy a track seems


def read_tables(name: str) -> dict[str, Any]:
    """The tables of a TOML file of this package."""
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def _recipe(table: dict[str, Any]) -> GenreRecipe:
    """A recipe from its table in genres.toml: lists become tuples."""
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
    values["parts"] = dict(map(_role, table["parts"]))
    if "eras" in table:
        values["eras"] = dict(zip(ERAS, table["eras"], strict=True))
    return GenreRecipe(**values)


def _role(text: str) -> tuple[str, tuple[float, PartChoices]]:
    """(role, (chance, choices)) from ``role chance: instrument/pattern weight, …``."""
    head, _, listed = text.partition(": ")
    role, chance = head.split()
    choices = []
    for choice in listed.split(", "):
        what, _, weight = choice.rpartition(" ")
        instrument, pattern = what.split("/")
        choices.append((instrument, pattern, float(weight)))
    return role, (float(chance), tuple(choices))


RECIPES = {name: _recipe(table) for name, table in read_tables("genres.toml").items()}
_WORDS = {kind: words.split() for kind, words in read_tables("invented_names.toml").items()}


@dataclass(frozen=True)
class Part:
    """One player of a track."""

    role: str  # drums, bass, chords, pad, arp, lead or voice
    instrument: str  # singers are "male voice" or "female voice"
    pattern: str  # a name in patterns.toml
    gain: float  # level in the mix, in dB
    brightness: float  # of this very instrument, around 1
    seed: int  # of everything else that is particular to it


@dataclass(frozen=True)
class Artist:
    """Who plays: an artist keeps to a genre, a singer and an era."""

    number: int
    name: str
    genre: str
    male: bool
    era: str


@dataclass(frozen=True)
class SyntheticTrack:
    """A piece of music, before it is written out."""

    number: int  # in the collection, from 0
    artist: Artist
    title: str
    album: str
    genres: tuple[str, ...]  # one, or two where it borrows from a neighbour, the main one first
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


@dataclass(frozen=True)
class SyntheticClip:
    """A few seconds of a track: the section it is cut from and the parts that play there."""

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
        """Seconds from the beginning of the track to that of the clip."""
        return (4 * self.first_bar + self.offset) * 60.0 / self.track.tempo


def artist_name(number: int) -> str:
    """The name of an artist; every third is a person. Different for different numbers."""
    if number % 3 == 1:
        return _pair(number // 3, "first_names", "last_names")
    name = _pair(number, "adjectives", "nouns")
    return f"The {name}" if number % 3 == 0 else name


def album_name(artist: int, album: int) -> str:
    """The name of an artist's album."""
    return _pair(artist * 7 + album, "adjectives", "things")


def track_title(number: int) -> str:
    """The title of a track. Different for different numbers."""
    return _pair(number, "verbs", "things")


def _pair(number: int, first_kind: str, second_kind: str) -> str:
    """The number-th of all pairs of words in a mixed order; a numeral follows when all are used."""
    first, second = _WORDS[first_kind], _WORDS[second_kind]
    size = len(first) * len(second)
    # A step that shares no factor with the size visits every pair once.
    step = next(s for s in range(size * 5 // 8 + 13, size) if gcd(s, size) == 1)
    pair = (number * step + 17) % size
    name = f"{first[pair // len(second)]} {second[pair % len(second)]}"
    return name if number < size else f"{name} {number // size + 1}"


def generator(seed: int, *key: int) -> np.random.Generator:
    """The random numbers that belong to one thing (by its key) of the collection with this seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


# First numbers of the generators' keys: who they belong to.
ARTIST, TRACK, CLIP, USER, TAGGING, ASSIGNMENT = range(6)


def choose(draw: float, weights: Mapping[str, float]) -> str:
    """The key at ``draw`` of the way, in [0, 1), through the weights laid end to end."""
    ends = np.cumsum(list(weights.values()))
    return list(weights)[int(np.searchsorted(ends, draw * ends[-1], "right"))]


@lru_cache(maxsize=4096)
def make_artist(seed: int, number: int) -> Artist:
    """The artist with this number in the collection with this seed."""
    rng = generator(seed, ARTIST, number)
    # Golden-ratio steps, not draws: a small collection has its share of every genre, too.
    draw = (generator(seed, ARTIST).random() + number * 0.6180339887498949) % 1.0
    genre = choose(draw, {name: recipe.weight for name, recipe in RECIPES.items()})
    recipe = RECIPES[genre]
    return Artist(
        number=number,
        name=artist_name(number),
        genre=genre,
        male=bool(rng.random() < recipe.male),
        era=choose(rng.random(), recipe.eras),
    )


@lru_cache(maxsize=4096)
def make_track(seed: int, number: int) -> SyntheticTrack:
    """The track with this number in the collection with this seed."""
    rng = generator(seed, TRACK, number)
    # Artists come in as tracks do; the early ones have the more tracks.
    artist = make_artist(seed, int(rng.integers(2 + 3 * number // 4)))
    genres = _genres(rng, artist.genre)
    recipe, other = RECIPES[genres[0]], RECIPES[genres[-1]]
    lofi = recipe.lofi * (2.0 if artist.era == "60s" else 1.0)
    return SyntheticTrack(
        number=number,
        artist=artist,
        title=track_title(number),
        album=album_name(artist.number, int(rng.integers(3))),
        genres=genres,
        tempo=float(np.round(rng.uniform(*recipe.tempo) * np.exp(rng.normal(0, 0.08)), 1)),
        swing=recipe.swing * float(rng.uniform(0.8, 1.1)),
        swing_steps=recipe.swing_steps,
        tonic=int(rng.integers(12)),
        mode=choose(rng.random(), recipe.modes),
        progression=PROGRESSIONS[recipe.progressions[rng.integers(len(recipe.progressions))]],
        sevenths=recipe.sevenths,
        parts=_parts(rng, recipe, other, artist),
        loudness=float(min(rng.uniform(*recipe.loudness) + rng.normal(0, 2.0), -8.0)),
        room=float(rng.uniform(*recipe.room)) * (1.4 if artist.era == "80s" else 1.0),
        drive=float(rng.uniform(*recipe.drive)),
        lofi=bool(rng.random() < lofi),
        seed=int(rng.integers(2**31)),
    )


def _genres(rng: np.random.Generator, genre: str) -> tuple[str, ...]:
    neighbours = RECIPES[genre].neighbours
    if rng.random() < 0.3:
        return genre, neighbours[rng.integers(len(neighbours))]
    return (genre,)


def _parts(
    rng: np.random.Generator, recipe: GenreRecipe, other: GenreRecipe, artist: Artist
) -> tuple[Part, ...]:
    """Players by the recipe; about half of the roles follow the genre that is borrowed from."""
    parts = []
    for role in ROLE_GAIN:
        source = other if rng.random() < 0.5 else recipe
        chance, options = source.parts.get(role, recipe.parts.get(role, (0.0, ())))
        if options and rng.random() < GUESTS:
            options = _anybody(role)
        if rng.random() < chance:
            parts.append(_part(rng, role, options, artist))
    if not any(part.role in HARMONY for part in parts):
        role = next(role for role in HARMONY if role in recipe.parts)
        parts.append(_part(rng, role, recipe.parts[role][1], artist))
    return tuple(parts)


@lru_cache(maxsize=16)
def _anybody(role: str) -> PartChoices:
    """What is played in a role in any genre."""
    return tuple(
        o for recipe in RECIPES.values() if role in recipe.parts for o in recipe.parts[role][1]
    )


def _part(rng: np.random.Generator, role: str, options: PartChoices, artist: Artist) -> Part:
    found = {f"{name}/{pattern}": weight for name, pattern, weight in options}
    instrument, pattern = choose(rng.random(), found).split("/")
    if instrument == "voice":
        instrument = "male voice" if artist.male else "female voice"
    return Part(
        role=role,
        instrument=instrument,
        pattern=pattern,
        gain=ROLE_GAIN[role] + float(rng.normal(0, 2.0)),
        brightness=float(np.exp(rng.normal(0, 0.2))),
        seed=int(rng.integers(2**31)),
    )


@lru_cache(maxsize=16384)
def make_clip(seed: int, track: int, number: int) -> SyntheticClip:
    """Clip ``number`` of a track in the collection with this seed."""
    piece = make_track(seed, track)
    rng = generator(seed, CLIP, track, number)
    section = SECTIONS[number % len(SECTIONS)]
    presence = PRESENCE[section]
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
        loudness=piece.loudness + SECTION_GAIN[section] + float(rng.normal(0, 0.7)),
        first_bar=16 * number,
        offset=float(rng.uniform(0, 4)),
        seed=int(rng.integers(2**31)),
    )
