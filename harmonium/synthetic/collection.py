"""The generated collection: clips with their sound, the truth about them, and the users' tags."""

import io
import json
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path

import numpy as np
import polars as pl
from joblib import Parallel, delayed
from scipy.io import wavfile

from harmonium.arrays import Mask
from harmonium.data.triples import Triples
from harmonium.errors import DataError
from harmonium.files import write_atomically
from harmonium.synthetic.concepts import salience
from harmonium.synthetic.listeners import (
    CONCEPT_OF_TAG,
    TAG_NAMES,
    listeners_of,
    make_listener,
    tags_said,
)
from harmonium.synthetic.music import SyntheticClip, make_clip
from harmonium.synthetic.signals import RATE, Samples
from harmonium.synthetic.sound import render

GENERATOR = 2  # increase it when the same parameters give other sounds, clips or tags
MANIFEST = "collection.json"
PARAMETERS = ("n_tracks", "clips_per_track", "n_users", "users_per_clip", "seed")


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
            value = getattr(self, name)
            smallest = 0 if name == "seed" else 1
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
        track, number = divmod(int(index), self.clips_per_track)
        return make_clip(self.seed, track, number)

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
                    "item": clip.id,
                    "track": track.id,
                    "number": clip.number,
                    "artist": track.artist,
                    "album": track.album,
                    "title": track.title,
                    "position": round(clip.position, 2),
                    "section": clip.section,
                    "genre": track.genres[0],
                    "tempo": track.tempo,
                    "mode": track.mode,
                    "path": _audio_path(clip),
                }
            )
        return pl.DataFrame(rows)

    @cached_property
    def truth(self) -> Mask:
        """Every relevant tag of every clip, said or not: (n_clips, n_tags)."""
        clips = map(self.clip, range(self.n_clips))
        return np.stack([salience(clip)[CONCEPT_OF_TAG] > 0 for clip in clips])

    @cached_property
    def triples(self) -> Triples:
        """What the users said: omissions, synonyms and mistakes as people make them."""
        users: list[int] = []
        items: list[int] = []
        tags: list[int] = []
        for index in range(self.n_clips):
            clip = self.clip(index)
            for user in listeners_of(self.seed, index, self.n_users, self.users_per_clip):
                said = tags_said(self.seed, clip, int(user))
                users += [int(user)] * len(said)
                items += [index] * len(said)
                tags += said
        names = [make_listener(self.seed, number).name for number in range(self.n_users)]
        return Triples(
            user=np.array(users, np.int32),
            item=np.array(items, np.int32),
            tag=np.array(tags, np.int32),
            users=pl.Series("user", names),
            items=self.clips["item"],
            tags=self.tags,
        )

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
        description: dict[str, float | int] = {
            "generator": GENERATOR,
            "clip_seconds": float(self.clip_seconds),
        }
        for name in PARAMETERS:
            description[name] = int(getattr(self, name))
        manifest = folder / MANIFEST
        content = (json.dumps(description, indent=2) + "\n").encode()
        if manifest.is_file():
            if manifest.read_bytes() == content:
                return folder
            raise DataError(
                f"'folder' {str(folder)!r} holds a different collection from {description}. "
                "Choose another folder, or delete this one."
            )
        self._write_sound(folder, jobs, progress)
        self._write_tables(folder)
        _write(manifest, content)
        return folder

    def _write_sound(
        self, folder: Path, jobs: int, progress: Callable[[int, int], None] | None
    ) -> None:
        written = Parallel(n_jobs=jobs, return_as="generator", batch_size=4)(
            delayed(_write_clip)(folder, self.clip_seconds, self.clip(index))
            for index in range(len(self))
        )
        if progress is not None:
            progress(0, len(self))
        for n_done, _ in enumerate(written, start=1):
            if progress is not None:
                progress(n_done, len(self))

    def _write_tables(self, folder: Path) -> None:
        truth = pl.DataFrame(self.truth.astype(np.int8), schema=self.tags.to_list(), orient="row")
        truth = truth.insert_column(0, self.clips["item"])
        tables = {"clips": self.clips, "triples": self.triples.frame(), "truth": truth}
        for name, table in tables.items():
            _write(folder / f"{name}.csv", table.write_csv().encode())


make_collection = SyntheticCollection  # the usual way to make a collection


def _audio_path(clip: SyntheticClip) -> str:
    """Where a clip is in a collection's folder."""
    track = clip.track
    return f"audio/{track.artist}/{track.album}/{track.title} {clip.number + 1}.wav"


def _write_clip(folder: Path, seconds: float, clip: SyntheticClip) -> None:
    samples = np.round(render(clip, seconds) * 32_767).astype(np.int16)
    buffer = io.BytesIO()
    wavfile.write(buffer, RATE, samples)
    _write(folder / _audio_path(clip), buffer.getvalue())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)
