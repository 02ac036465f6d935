"""The generated collection: clips with their sound, the users' tags, and the truth."""

import io
import json
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import chain
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
from harmonium.synthetic.listeners import (
    TAG_NAMES,
    listeners_of,
    make_listener,
    relevant_tags,
    tags_said,
)
from harmonium.synthetic.music import SyntheticClip, make_clip
from harmonium.synthetic.sound import RATE, Samples, render

GENERATOR = 2
"""To be raised whenever the same parameters give other sounds, clips or tags than before."""
MANIFEST = "collection.json"
PARAMETERS = ("n_tracks", "clips_per_track", "n_users", "users_per_clip", "seed")


@dataclass(frozen=True)
class SyntheticCollection:
    """Generated music, with users who tag it and the truth about it.

    The default has the shape of the paper's MTurk set. A larger collection with the same seed
    begins with the same tracks, clips and listeners. Nothing is computed until it is asked for.

    Clips are counted from 0, track by track: row i of `clips` and of `truth`, item i of `triples`
    and `samples(i)` are the same clip. Column j of `truth` is tag j of `tags` and of `triples`.

    Parameters
    ----------
    n_tracks : number of tracks, at least 1
    clips_per_track : clips of each, at least 1
    n_users : users, at least 1
    users_per_clip : how many of them tag each clip, 1 … n_users
    clip_seconds : length of a clip, at least 0.5
    seed : 0 or more

    >>> collection = make_collection(n_tracks=2, clips_per_track=1, n_users=3)
    >>> collection.clips["title"].to_list()
    ['Leaving Stars', 'Opening Home']
    >>> collection.samples(0).shape
    (220500,)
    """

    n_tracks: int = 185
    clips_per_track: int = 5
    _: KW_ONLY
    n_users: int = 210
    users_per_clip: int = 3
    clip_seconds: float = 10.0
    seed: int = 0

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
        """One row per clip: what it is called, where it is from, where `write` puts it."""
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
        return np.stack([relevant_tags(self.clip(index)) for index in range(self.n_clips)])

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

    def summary(self) -> dict[str, float]:
        """The size of the collection and how its users tag.

        ``precision`` is the share of triples that are true, ``recall`` the share of a clip's
        relevant tags that one user names (mean over users and clips), ``said`` the share that any
        of its users names.
        """
        triples, truth = self.triples, self.truth
        true = truth[triples.item, triples.tag]
        relevant = truth.sum(axis=1)
        hits = np.bincount(triples.item[true], minlength=self.n_clips)
        said = np.zeros_like(truth)
        said[triples.item, triples.tag] = True
        return {
            "tracks": self.n_tracks,
            "clips": self.n_clips,
            "users": len(np.unique(triples.user)),
            "tags": len(self.tags),
            "triples": len(triples),
            "relevant_tags_per_clip": float(relevant.mean()),
            "tags_per_user_and_clip": len(triples) / (self.n_clips * self.users_per_clip),
            "precision": float(true.mean()),
            "recall": float(np.mean(hits / self.users_per_clip / relevant)),
            "said": float(np.mean((said & truth).sum(axis=1) / relevant)),
        }

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
        is there already is left as it is. A write that was interrupted leaves no torn file.

        ``jobs`` is the number of processes; ``progress`` is called with the number of clips that
        are done and the number of all.
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
                f"'folder' {str(folder)!r} holds another collection than {about}. "
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


make_collection = SyntheticCollection
"""The usual name by which a collection of generated music is made."""


def _audio_path(clip: SyntheticClip) -> str:
    """Where a clip lies in a collection's folder."""
    track = clip.track
    return f"audio/{track.artist}/{track.album}/{track.title} {clip.number + 1}.wav"


def _write_clip(folder: Path, seconds: float, clip: SyntheticClip) -> None:
    buffer = io.BytesIO()
    wavfile.write(buffer, RATE, np.round(render(clip, seconds) * 32_767).astype(np.int16))
    _write(folder / _audio_path(clip), buffer.getvalue())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)
