"""A small library of files that sound: whoever looks at it in a browser can play and drop them."""

import functools
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import polars as pl
import soundfile
from mutagen.flac import FLAC

from harmonium.library import Library
from harmonium.library.index import index
from harmonium.library.learning import fitting, quick
from harmonium.library.learning import train as train_module
from harmonium.library.learning.train import train
from harmonium.library.model.tagger import tag_library
from harmonium.web.work import work

RATE, SECONDS = 22050, 2.5
TAGS = ("bass", "bright", "drums", "calm", "dark", "energetic")
"""The last three follow from the others, so that an answer moves them."""
N_TRACKS, N_TAGGED = 48, 36
RARE = "Sunday Morning"  # a tag of one track


def sound(rng, bass, bright, drums):
    """A chord of low or high tones, with or without beats."""
    time = np.arange(round(RATE * SECONDS)) / RATE
    wave = 0.02 * rng.normal(size=len(time))
    wave += 0.2 * np.sin(2 * np.pi * rng.uniform(300, 600) * time)
    if bass:
        wave += 0.5 * np.sin(2 * np.pi * rng.uniform(50, 90) * time)
    if bright:
        for tone in rng.uniform(3000, 7000, size=4):
            wave += 0.15 * np.sin(2 * np.pi * tone * time)
    if drums:
        beat = (time * rng.uniform(3, 5)) % 1
        wave += np.exp(-14 * beat) * rng.normal(size=len(time))
    return (0.5 * wave / np.abs(wave).max()).astype(np.float32)


def copy_library(source: Path, target: Path) -> None:
    """Copy a library that may be open elsewhere."""
    with Library.open(source) as library, Library.open(target) as copy:
        library.engine.raw_connection().backup(copy.engine.raw_connection().driver_connection)


def write_music(folder: Path) -> tuple[list[Path], np.ndarray]:
    """The files, and which of TAGS fits each, (n, 6)."""
    rng = np.random.default_rng(5)
    paths, truth = [], []
    for i in range(N_TRACKS):
        bass, bright, drums = (bool(i >> bit & 1) for bit in range(3))
        path = folder / f"Artist {i % 6}" / f"{i:02} Song.flac"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, sound(rng, bass, bright, drums), RATE)
        file = FLAC(path)
        file.update({"title": f"Song {i:02}", "artist": f"Artist {i % 6}", "album": "Tests"})
        file.save()
        paths.append(path)
        truth.append([bass, bright, drums, not drums, bass and not bright, drums and bright])
    return paths, np.array(truth)


def make_heard_library(folder: Path, place: Path) -> None:
    """Index, tag and train a library of the files in a folder that it writes."""
    paths, truth = write_music(folder)
    with Library.open(place) as library:
        index(library, [folder], extractor="paper", windows=1, engine="serial", cache=place.parent)
        ids = {track.path: track.id for track in library.tracks.all()}
        rows = [
            ("ann", ids[str(path)], tag)
            for path, fits in zip(paths[:N_TAGGED], truth, strict=False)
            for tag, holds in zip(TAGS, fits, strict=True)
            if holds
        ]
        frame = pl.DataFrame(rows, schema=["person", "track_id", "tag"], orient="row")
        change = library.changes.begin("import", "tests")
        library.opinions.add_triples(frame, change=change)
        with trained_quickly(n_hidden=20):
            train(library)
        tag_library(library)


def answer_and_hide(place: Path) -> None:
    """Add tags that were learnt from answers, that one track has, and that are hidden.

    "drizzle" goes with the drums. It is learnt from few answers, so a lower threshold predicts it.
    """
    with Library.open(place) as library, mock.patch.object(quick, "NEW_THRESHOLD", 0.2):
        tracks = sorted(library.tracks.all(), key=lambda track: track.title)
        with library.learner.paused():
            for number, track in enumerate(tracks[:32]):
                if number >> 2 & 1:
                    library.say(track, yes=["drizzle"])
            library.say(tracks[0], yes=[RARE], no=["calm"])
            library.say(tracks[1], no=["bass"])
            library.say(tracks[47], yes=["bass"], no=["dark"])
        library.hide("energetic")
        library.learn()


@contextmanager
def trained_quickly(n_hidden: int):
    """Training tries one setting, with so many hidden units."""
    quick = functools.partial(fitting.fit, to_try=fitting.TO_TRY[1:2], n_hidden=n_hidden)
    with mock.patch.object(train_module, "fit", quick):
        yield


def work_quickly(*job):
    """In the place of `work.work`: a job of the server that trains quickly."""
    with trained_quickly(n_hidden=20):
        work(*job)
