"""A collection on disk: WAV files, tables, and the record of how they were made."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.io import wavfile

from harmonium.errors import DataError
from harmonium.files import write_atomically
from harmonium.synthetic.music import SyntheticClip
from harmonium.synthetic.render import render
from harmonium.synthetic.tones import RATE

if TYPE_CHECKING:
    from harmonium.synthetic.collection import SyntheticCollection

# Raise it whenever the same parameters give other sounds, clips or tags than before.
GENERATOR = 1
MANIFEST = "collection.json"
WAV_HEADER_BYTES = 44


def audio_path(clip: SyntheticClip) -> str:
    """Where a clip lies in a collection's folder."""
    track = clip.track
    return f"audio/{track.artist.name}/{track.album}/{track.title} {clip.number + 1}.wav"


def write_collection(
    collection: SyntheticCollection,
    folder: Path,
    *,
    jobs: int,
    progress: Callable[[int, int], None] | None,
) -> Path:
    """Write what is not there yet; see `SyntheticCollection.write`."""
    resumed = _check_folder(collection, folder)
    _write(folder / MANIFEST, (json.dumps(_parameters(collection), indent=2) + "\n").encode())
    missing = list(_missing(collection, folder, trust=resumed))
    report = progress or (lambda done, total: None)
    done = len(collection) - len(missing)
    report(done, len(collection))
    for _ in _work(partial(_write_clip, folder, collection.clip_seconds), missing, jobs):
        done += 1
        report(done, len(collection))
    tables = {
        "clips": collection.clips,
        "triples": collection.triples.frame(),
        "truth": _truth_table(collection),
    }
    for name, table in tables.items():
        _write(folder / f"{name}.csv", table.write_csv().encode())
    for leftover in folder.rglob("*.part"):  # of a run that was killed
        leftover.unlink(missing_ok=True)
    return folder


def _check_folder(collection: SyntheticCollection, folder: Path) -> bool:
    """Whether the folder holds (a part of) this collection; an error if it holds another one."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"'folder' must be a folder, got the file {str(folder)!r}.")
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    except ValueError as error:
        raise DataError(f"{folder / MANIFEST} cannot be read ({error}). Delete it.") from error
    wanted = _parameters(collection)
    same = all(found.get(name) == wanted[name] for name in ("generator", "seed", "clip_seconds"))
    grown = all(found.get(name, 0) <= wanted[name] for name in ("n_tracks", "clips_per_track"))
    if not same or not grown:
        raise DataError(
            f"'folder' {str(folder)!r} holds another collection, made with {found}, and not one "
            f"that {wanted} could go on from. Choose another folder, or delete this one."
        )
    return True


def _parameters(collection: SyntheticCollection) -> dict[str, Any]:
    return {
        "generator": GENERATOR,
        "seed": collection.seed,
        "n_tracks": collection.n_tracks,
        "clips_per_track": collection.clips_per_track,
        "clip_seconds": collection.clip_seconds,
        "n_users": collection.n_users,
        "users_per_clip": collection.users_per_clip,
    }


def _missing(
    collection: SyntheticCollection, folder: Path, *, trust: bool
) -> Iterator[SyntheticClip]:
    """The clips to write; files that are there with the right size count if trusted."""
    size = WAV_HEADER_BYTES + 2 * round(collection.clip_seconds * RATE)
    for index, name in enumerate(collection.clips["path"]):
        path = folder / name
        if not (trust and path.is_file() and path.stat().st_size == size):
            yield collection.clip(index)


def _work(
    write: Callable[[SyntheticClip], None], clips: list[SyntheticClip], jobs: int
) -> Iterator[None]:
    if jobs == 1 or len(clips) < 2:
        yield from map(write, clips)
        return
    # Fresh processes: a copy of one that runs threads (as JAX does) may lock up.
    pool = ProcessPoolExecutor(min(jobs, len(clips)), mp_context=get_context("spawn"))
    try:
        yield from pool.map(write, clips, chunksize=4)
    finally:
        pool.shutdown(cancel_futures=True)


def _write_clip(folder: Path, seconds: float, clip: SyntheticClip) -> None:
    buffer = io.BytesIO()
    wavfile.write(buffer, RATE, np.round(render(clip, seconds) * 32_767).astype(np.int16))
    _write(folder / audio_path(clip), buffer.getvalue())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)


def _truth_table(collection: SyntheticCollection) -> pl.DataFrame:
    columns = pl.DataFrame(
        collection.truth.astype(np.int8), schema=collection.tags.to_list(), orient="row"
    )
    return columns.insert_column(0, collection.clips["item"])
