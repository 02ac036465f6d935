"""The generated collection: clips with their sound, the truth about them, and the users' tags.

A concept holds for a clip or does not; its words are synonyms. Each word has a
familiarity: how readily it comes to people's minds, which makes some tags common and most rare.
The concepts are in concepts.toml; rules say how much each stands out in a clip.

A listener hears what stands out, says it in the words that come to mind, stops after a few of them,
and now and then names something similar instead. Most of what is true goes unsaid.
"""

import io
import json
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from joblib import Parallel, delayed
from scipy.io import wavfile

from harmonium.arrays import Doubles, Mask, Places, Rng
from harmonium.data.triples import Triples
from harmonium.errors import DataError
from harmonium.files import write_atomically
from harmonium.synthetic.music import (
    ASSIGNMENT,
    RECIPES,
    ROLES,
    TAGGING,
    USER,
    SyntheticClip,
    generator,
    make_clip,
    read_tables,
)
from harmonium.synthetic.sound import INSTRUMENTS, RATE, Samples, render

GENERATOR = 2  # increase it when the same parameters give other sounds, clips or tags
MANIFEST = "collection.json"
PARAMETERS = ("n_tracks", "clips_per_track", "n_users", "users_per_clip", "seed")

_TABLES = read_tables("concepts.toml")
KINDS = tuple(_TABLES)
CONCEPTS: dict[str, dict[str, Any]] = {k: v for table in _TABLES.values() for k, v in table.items()}
"""Concept → its `words`, each with its familiarity; the concepts that it is `mistaken_for`; and for
some the `instruments` of which one must play."""
TAGS: dict[str, str] = {word: name for name, one in CONCEPTS.items() for word in one["words"]}
"""Every tag with its concept. A tag means one concept only."""

MODE_VALENCE = {"major": 0.45, "mixolydian": 0.25, "dorian": -0.15, "minor": -0.5}

ELECTRONIC = {"drum machine", *(name for name, i in INSTRUMENTS.items() if i.electronic)}
ACOUSTIC = {"brushes", "acoustic kit", *(name for name, i in INSTRUMENTS.items() if i.acoustic)}


def has_role(clip: SyntheticClip, role: str) -> bool:
    """Whether a part with this role plays."""
    return any(part.role == role for part in clip.parts)


def instrument(clip: SyntheticClip, *names: str) -> float:
    """How much any of these instruments stands out."""
    found = [0.0]
    for part in clip.parts:
        if part.instrument in names:  # by its role, and by how loud it is for that role
            role = ROLES[part.role]
            found.append(role["prominence"] * 10 ** ((part.gain - role["gain"]) / 20))
    return float(min(max(found), 1.0))


def genre(clip: SyntheticClip, *names: str) -> float:
    """How clearly the clip is of one of these genres."""
    main, *borrowed = (genre in names for genre in clip.track.genres)
    share = 1.0 if main else 0.6 if any(borrowed) else 0.0
    return share * (0.7 if clip.section == "breakdown" else 1.0)


def distortion(clip: SyntheticClip) -> float:
    """How much a distorted guitar stands out."""
    return instrument(clip, "distorted guitar", "lead guitar") if clip.track.drive >= 2.5 else 0.0


def energy(clip: SyntheticClip) -> float:
    """About -1 (still) to 1 (wild)."""
    drums = 0.3 if has_role(clip, "drums") else -0.4
    pace = 0.3 * (clip.track.tempo - 108) / 40 + 0.25 * (clip.loudness + 17) / 6
    return pace + drums + 0.25 * distortion(clip) + RECIPES[clip.track.genres[0]]["energy"]


def valence(clip: SyntheticClip) -> float:
    """About -1 (gloomy) to 1 (cheerful)."""
    pace = 0.4 * (clip.track.tempo - 105) / 40
    return MODE_VALENCE[clip.track.mode] + pace + RECIPES[clip.track.genres[0]]["valence"]


def share(clip: SyntheticClip, instruments: set[str], *, if_none: float) -> float:
    """The share of the parts that play one of these instruments; voices do not count."""
    found = [part.instrument in instruments for part in clip.parts if part.role != "voice"]
    return sum(found) / len(found) if found else if_none


def above(value: float, threshold: float, width: float) -> float:
    """0 up to the threshold, then from 0.35 just above it to 1 at ``threshold + width``."""
    if value <= threshold:
        return 0.0
    return 0.35 + 0.65 * min((value - threshold) / width, 1.0)


def below(value: float, threshold: float, width: float) -> float:
    """The same for values below a threshold."""
    return above(-value, -threshold, width)


def _dreamy(clip: SyntheticClip) -> float:
    pad = instrument(clip, "synth pad", "strings", "bells") > 0
    return above(clip.track.room, 1.3, 1.5) if pad and energy(clip) < 0.1 else 0.0


def _repetitive(clip: SyntheticClip) -> float:
    looped = has_role(clip, "arp") or genre(clip, "techno", "house", "hip hop") > 0
    return 0.6 + 0.3 if len(clip.track.progression) <= 2 and looped else 0.0


def _party(clip: SyntheticClip) -> float:
    danceable = genre(clip, "house", "techno", "hip hop", "funk", "pop", "reggae")
    return min(danceable, above(energy(clip), 0.2, 0.5)) if valence(clip) > -0.3 else 0.0


def _aggressive(clip: SyntheticClip) -> float:
    hard = clip.track.drive > 5 or clip.track.mode == "minor"
    return above(energy(clip), 0.75, 0.6) if distortion(clip) > 0 and hard else 0.0


def _beat(clip: SyntheticClip) -> float:
    danced = genre(clip, "hip hop", "house", "techno", "pop", "soul")
    return min(instrument(clip, "drum machine"), danced)


RULES: dict[str, Callable[[SyntheticClip], float]] = {
    **{
        name: lambda c, names=concept["instruments"]: instrument(c, *names)  # type: ignore[misc]
        for name, concept in CONCEPTS.items()
        if "instruments" in concept
    },
    **{name: lambda c, name=name: genre(c, name) for name in RECIPES},  # type: ignore[misc]
    "rock": lambda c: max(genre(c, "rock"), 0.6 * genre(c, "punk", "metal", "indie")),
    "dance": lambda c: 0.9 * genre(c, "house", "techno") if has_role(c, "drums") else 0.0,
    "beat": _beat,
    "drum machine": lambda c: 0.7 * instrument(c, "drum machine"),
    "no voice": lambda c: 0.0 if has_role(c, "voice") else 0.6,
    "solo": lambda c: 0.8 if c.section == "solo" and has_role(c, "lead") else 0.0,
    "happy": lambda c: above(valence(c), 0.4, 0.5) if energy(c) > -0.2 else 0.0,
    "sad": lambda c: below(valence(c), -0.3, 0.5) if energy(c) < 0.25 else 0.0,
    "calm": lambda c: below(energy(c), -0.25, 0.6),
    "energetic": lambda c: above(energy(c), 0.45, 0.6),
    "aggressive": _aggressive,
    "dark": lambda c: below(valence(c), -0.5, 0.5) if c.track.mode in ("minor", "dorian") else 0.0,
    "dreamy": _dreamy,
    "fast": lambda c: above(c.track.tempo, 130, 40),
    "slow": lambda c: below(c.track.tempo, 86, 20),
    "loud": lambda c: above(c.loudness, -12.5, 3),
    "quiet": lambda c: below(c.loudness, -22, 6),
    "acoustic": lambda c: above(share(c, ACOUSTIC, if_none=1.0), 0.7, 0.3),
    "electronic": lambda c: above(share(c, ELECTRONIC, if_none=0.0), 0.45, 0.5),
    "distorted": distortion,
    "noise": lambda c: 0.7 if c.track.lofi else 0.0,
    "echo": lambda c: above(c.track.room, 1.6, 1.5),
    "repetitive": _repetitive,
    "heavy": lambda c: above(c.loudness, -13.5, 4) if distortion(c) and c.track.drive > 5 else 0.0,
    "party": _party,
    "sleep": lambda c: below(energy(c), -0.8, 0.5) if not has_role(c, "drums") else 0.0,
    "background": lambda c: below(energy(c), -0.35, 0.6) if not has_role(c, "voice") else 0.0,
    **{era: lambda c, era=era: 0.7 * (c.track.era == era) for era in _TABLES["era"]},  # type: ignore[misc]
}


def salience(clip: SyntheticClip) -> Doubles:
    """How much each of `CONCEPTS` stands out in a clip, from 0 (it does not hold) to 1."""
    return np.clip([RULES[name](clip) for name in CONCEPTS], 0.0, 1.0)


TAG_NAMES = tuple(TAGS)
_CONCEPT_NAMES = tuple(CONCEPTS)
# (n_tags,): each tag's concept, its kind and its familiarity.
_CONCEPT_OF = np.array([_CONCEPT_NAMES.index(name) for name in TAGS.values()])
_KINDS = {name: kind for kind, table in enumerate(_TABLES.values()) for name in table}
_KIND_OF = np.array([_KINDS[name] for name in TAGS.values()])
_FAMILIARITY = np.array([CONCEPTS[name]["words"][tag] for tag, name in TAGS.items()])

_KIND_WEIGHTS = np.array([1.4, 1.1, 0.7, 0.8, 0.45, 0.3])  # how readily people mention each kind
_SAY_TWICE = 0.3  # the chance that a second word for the same thing is also said
_HABIT = 0.3  # the share of mistakes that are a listener's habitual words, not confusions
_SHARPNESS = 2.0  # how much more often salient things are named: the power of the salience


@dataclass(frozen=True)
class Listener:
    """One user."""

    name: str  # the user's name in the triples
    readiness: Doubles  # (n_tags,) how readily each tag comes to mind; 0 for unknown words
    talkativeness: float  # mean number of tags for a clip beyond the first
    carelessness: float  # the chance that a tag is a mistake
    activity: float  # how many clips the user tags, relative to others


@lru_cache(maxsize=1024)
def make_listener(seed: int, number: int) -> Listener:
    """The listener with this number in the collection with this seed."""
    rng = generator(seed, USER, number)
    interests = _KIND_WEIGHTS * rng.gamma(0.7, 1 / 0.7, len(KINDS))
    # A gamma distribution with a small shape: one of a concept's synonyms becomes the favourite.
    taste = rng.gamma(0.35, 1 / 0.35, len(TAG_NAMES))
    known = rng.random(len(TAG_NAMES)) < 0.35 + 0.65 * _FAMILIARITY
    readiness = known * interests[_KIND_OF] * _FAMILIARITY * (0.03 + taste)
    careless = rng.random() < 0.12
    return Listener(
        name=f"user{number:04d}",
        readiness=readiness,
        talkativeness=float(rng.gamma(4.0, 1.22)),
        carelessness=float(rng.uniform(0.2, 0.4) if careless else rng.beta(2.0, 22.0)),
        activity=float(np.exp(rng.normal(0, 1.0))),
    )


def listeners_of(seed: int, clip_index: int, n_users: int, users_per_clip: int) -> Places:
    """The users who tag a clip: (users_per_clip,) distinct numbers.

    One is chosen in turn, so that nobody tags far fewer clips than the rest; the others are drawn
    in proportion to their activity.
    """
    rota, activity = _audience(seed, n_users)
    first = rota[clip_index % n_users]
    # The largest of log-weight + Gumbel noise is a draw in proportion to the weights.
    keys = np.log(activity) + generator(seed, ASSIGNMENT, clip_index).gumbel(size=n_users)
    keys[first] = np.inf
    return np.argsort(-keys, kind="stable")[:users_per_clip]


@lru_cache(maxsize=4)
def _audience(seed: int, n_users: int) -> tuple[Places, Doubles]:
    activity = np.array([make_listener(seed, number).activity for number in range(n_users)])
    return generator(seed, ASSIGNMENT).permutation(n_users), activity


def tags_said(seed: int, clip: SyntheticClip, user: int) -> list[int]:
    """The tags that a user gives to a clip, as indices into ``TAG_NAMES``; at least one."""
    listener = make_listener(seed, user)
    heard = salience(clip)
    rng = generator(seed, TAGGING, clip.track.number, clip.number, user)
    wanted = 1 + int(rng.poisson(listener.talkativeness))
    # what catches everybody's ear in this clip, beyond what the music explains
    ears = generator(seed, TAGGING, clip.track.number, clip.number)
    attention = np.exp(ears.normal(0, 0.6, len(CONCEPTS)))
    weight = listener.readiness * (heard * attention)[_CONCEPT_OF] ** _SHARPNESS
    keys = np.where(weight > 0, np.log(np.maximum(weight, 1e-300)), -np.inf)
    keys += rng.gumbel(size=len(keys))
    said: list[int] = []
    for tag in np.argsort(-keys, kind="stable"):
        if len(said) == wanted or weight[tag] == 0:
            break
        again = any(_CONCEPT_OF[tag] == _CONCEPT_OF[other] for other in said)
        if not again or rng.random() < _SAY_TWICE:
            said.append(int(tag))
    said = said or [int(np.argmax(heard[_CONCEPT_OF] * _FAMILIARITY))]
    return list(dict.fromkeys(_perhaps_mistaken(rng, listener, heard, tag) for tag in said))


def _perhaps_mistaken(rng: Rng, listener: Listener, heard: Doubles, tag: int) -> int:
    """The tag, or sometimes a wrong one: something easily confused with it, or a habit."""
    slip, habit, choice = rng.random(3)
    if slip >= listener.carelessness:
        return tag
    wrong = heard[_CONCEPT_OF] == 0
    if habit >= _HABIT:
        similar = CONCEPTS[TAGS[TAG_NAMES[tag]]]["mistaken_for"]
        wrong &= np.isin(_CONCEPT_OF, [_CONCEPT_NAMES.index(name) for name in similar])
    if not wrong.any():
        return tag
    weight = np.cumsum(wrong * (listener.readiness + 0.01))
    return int(np.searchsorted(weight, choice * weight[-1], "right"))


@dataclass(frozen=True)
class SyntheticCollection:
    """Generated music, with users who tag it and the truth about it.

    The default has the shape of the paper's MTurk set. A larger collection with the same seed
    begins with the same tracks, clips and listeners. Nothing is computed until it is asked for.

    Clips are counted from 0, track by track: row i of `clips` and of `truth`, item i of `triples`
    and `samples(i)` are the same clip. Column j of `truth` is tag j of `tags` and of `triples`.

    >>> collection = make_collection(n_tracks=2, clips_per_track=1, n_users=3)
    >>> collection.clips["title"].to_list()
    ['Leaving Stars', 'Opening Home']
    >>> collection.samples(0).shape
    (220500,)
    """

    n_tracks: int = 185  # at least 1
    clips_per_track: int = 5  # at least 1
    _: KW_ONLY
    n_users: int = 210  # at least 1
    users_per_clip: int = 3  # how many of them tag each clip, 1 … n_users
    clip_seconds: float = 10.0  # length of a clip, at least 0.5
    seed: int = 0  # 0 or more

    def __post_init__(self) -> None:
        if not isfinite(self.clip_seconds) or self.clip_seconds < 0.5:
            raise DataError(f"'clip_seconds' must be at least 0.5, got {self.clip_seconds!r}.")
        for name in PARAMETERS:
            value, smallest = getattr(self, name), int(name != "seed")
            if not isinstance(value, int | np.integer) or value < smallest:
                raise DataError(
                    f"'{name}' must be a whole number of at least {smallest}, got {value!r}."
                )
        if self.users_per_clip > self.n_users:
            raise DataError(
                f"'users_per_clip' must be at most 'n_users', got {self.users_per_clip} and "
                f"{self.n_users}. Ask for more users, or for fewer per clip."
            )

    @property
    def rate(self) -> int:
        """Samples per second."""
        return RATE

    @property
    def n_clips(self) -> int:
        """The number of clips of all tracks."""
        return self.n_tracks * self.clips_per_track

    def __len__(self) -> int:
        return self.n_clips

    def clip(self, index: int) -> SyntheticClip:
        """What clip ``index`` is made of: its track, section and parts."""
        if not 0 <= index < self.n_clips:
            raise DataError(f"'index' must be from 0 to {self.n_clips - 1}, got {index}.")
        return make_clip(self.seed, *divmod(int(index), self.clips_per_track))

    def samples(self, index: int) -> Samples:
        """The sound of clip ``index``: (clip_seconds · rate,) float32, mono, |x| < 1."""
        return render(self.clip(index), self.clip_seconds)

    @property
    def tags(self) -> pl.Series:
        """The vocabulary: (n_tags,) str."""
        return pl.Series("tag", TAG_NAMES)

    @cached_property
    def clips(self) -> pl.DataFrame:
        """One row per clip: its name, where it is from, and where `write` puts it."""
        rows = []
        for clip in map(self.clip, range(self.n_clips)):
            track = clip.track
            rows.append(
                {
                    **{"item": clip.id, "track": track.id, "number": clip.number},
                    **{"artist": track.artist, "album": track.album, "title": track.title},
                    **{"position": round(clip.position, 2), "section": clip.section},
                    **{"genre": track.genres[0], "tempo": track.tempo, "mode": track.mode},
                    "path": _audio_path(clip),
                }
            )
        return pl.DataFrame(rows)

    @cached_property
    def truth(self) -> Mask:
        """Every relevant tag of every clip, said or not: (n_clips, n_tags)."""
        clips = map(self.clip, range(self.n_clips))
        return np.stack([salience(clip)[_CONCEPT_OF] > 0 for clip in clips])

    @cached_property
    def triples(self) -> Triples:
        """What the users said: omissions, synonyms and mistakes as people make them."""
        rows = [
            (int(user), index, tag)
            for index in range(self.n_clips)
            for user in listeners_of(self.seed, index, self.n_users, self.users_per_clip)
            for tag in tags_said(self.seed, self.clip(index), int(user))
        ]
        user, item, tag = np.ascontiguousarray(np.array(rows, np.int32).T)
        names = [make_listener(self.seed, number).name for number in range(self.n_users)]
        return Triples(user, item, tag, pl.Series("user", names), self.clips["item"], self.tags)

    def write(
        self,
        folder: str | Path,
        *,
        jobs: int = 1,
        progress: Callable[[int, int], None] | None = None,
    ) -> Path:
        """Write the collection into a folder, which is made if missing, and return the folder.

        ``audio/ARTIST/ALBUM/TITLE N.wav`` (16 bit), ``clips.csv``, ``triples.csv`` (user, item,
        tag), ``truth.csv`` (item, then a column of 0 and 1 for each tag) and ``collection.json``
        (how it was made), which comes last. The same collection gives the same bytes, and one that
        is there already is left as it is. An interrupted write leaves no partial file.

        ``jobs`` is the number of processes; ``progress`` is called with (clips done, total).
        """
        folder = Path(folder)
        if jobs < 1:
            raise DataError(f"'jobs' must be at least 1, got {jobs}.")
        about = {"generator": GENERATOR, "clip_seconds": float(self.clip_seconds)}
        about |= {name: int(getattr(self, name)) for name in PARAMETERS}
        manifest, content = folder / MANIFEST, (json.dumps(about, indent=2) + "\n").encode()
        if manifest.is_file() and manifest.read_bytes() == content:
            return folder
        if manifest.is_file():
            raise DataError(
                f"'folder' {str(folder)!r} holds a different collection from {about}. "
                "Choose another folder, or delete this one."
            )
        written = Parallel(n_jobs=jobs, return_as="generator", batch_size=4)(
            delayed(_write_clip)(folder, self.clip_seconds, self.clip(index))
            for index in range(len(self))
        )
        for n_done, _ in enumerate(chain([None], written)):
            if progress is not None:
                progress(n_done, len(self))
        truth = pl.DataFrame(self.truth.astype(np.int8), schema=self.tags.to_list(), orient="row")
        truth = truth.insert_column(0, self.clips["item"])
        tables = {"clips": self.clips, "triples": self.triples.frame(), "truth": truth}
        for name, table in tables.items():
            _write(folder / f"{name}.csv", table.write_csv().encode())
        _write(manifest, content)
        return folder


make_collection = SyntheticCollection  # the usual way to make a collection


def _audio_path(clip: SyntheticClip) -> str:
    """Where a clip is in a collection's folder."""
    track = clip.track
    return f"audio/{track.artist}/{track.album}/{track.title} {clip.number + 1}.wav"


def _write_clip(folder: Path, seconds: float, clip: SyntheticClip) -> None:
    buffer = io.BytesIO()
    wavfile.write(buffer, RATE, np.round(render(clip, seconds) * 32_767).astype(np.int16))
    _write(folder / _audio_path(clip), buffer.getvalue())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)
