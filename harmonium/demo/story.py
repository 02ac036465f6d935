"""The steps of the demo, each by the same function as the command of that name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.collection.store.tracks import Track
from harmonium.evaluation import MetricResult, auc_per_tag
from harmonium.synthetic import SyntheticCollection, make_collection

if TYPE_CHECKING:
    from harmonium.collection import Library
    from harmonium.collection.answering.search import SearchResult
    from harmonium.collection.importing.tables import ImportReport
    from harmonium.collection.indexing.report import IndexReport
    from harmonium.collection.store.models import StoredModel

PEOPLE = 3
LIBRARY, TAGS, PAGE = "library.db", "tags.csv", "results.html"
"""Files of the demo's folder, beside the music in audio/."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Music:
    """The generated tracks, which of them people tag, and where all this is."""

    folder: Path
    collection: SyntheticCollection
    is_tagged: NDArray[np.bool_]
    """(n_tracks,)"""

    @property
    def n_tagged(self) -> int:
        """How many tracks people tag."""
        return int(self.is_tagged.sum())

    def path(self, name: str) -> Path:
        """A file of the folder."""
        return self.folder / name


@dataclass(frozen=True)
class Scored:
    """What the model says of the tracks that nobody tagged, beside the truth."""

    rows: NDArray[np.intp]
    """(n,) the tracks, as rows of the collection."""
    tags: list[str]
    probabilities: NDArray[np.float32]
    """(n, n_tags)"""
    truth: NDArray[np.bool_]
    """(n, n_tags)"""
    auc: MetricResult
    """Of each tag."""


def make_music(folder: Path, n_tracks: int, *, seed: int, jobs: int, progress: Progress) -> Music:
    """Generate tracks of 10 seconds, write them to the folder, and draw the half to be tagged."""
    collection = make_collection(n_tracks, 1, n_users=PEOPLE, users_per_clip=PEOPLE, seed=seed)
    paths = [folder / path for path in collection.clips["path"]]
    if not all(map(_has_name, paths)):
        collection.write(folder, jobs=jobs, progress=progress)
        for path, clip in zip(paths, collection.clips.iter_rows(named=True), strict=True):
            _give_name(path, clip)
    is_tagged = np.zeros(n_tracks, bool)
    is_tagged[np.random.default_rng(seed).permutation(n_tracks)[: n_tracks // 2]] = True
    return Music(folder, collection, is_tagged)


def _has_name(path: Path) -> bool:
    from mutagen.wave import WAVE

    return path.is_file() and bool(WAVE(path).tags)


def _give_name(path: Path, clip: dict[str, Any]) -> None:
    """Title, artist and album into the file, as music from a shop has them."""
    from mutagen import id3
    from mutagen.wave import WAVE

    file: Any = WAVE(path)
    if file.tags is None:
        file.add_tags()
    for frame, name in ((id3.TIT2, "title"), (id3.TPE1, "artist"), (id3.TALB, "album")):
        file.tags.add(frame(encoding=3, text=[clip[name]]))
    file.save()


def index_music(library: Library, music: Music, *, jobs: int, progress: Progress) -> IndexReport:
    """`harmonium index`."""
    from harmonium.collection.indexing.run import index

    return index(library, [music.path("audio")], jobs=jobs, progress=progress)


def import_tags(library: Library, music: Music) -> ImportReport:
    """Write what the three say of their half to a table, and `harmonium import` it."""
    from harmonium.collection.importing.tables import import_table

    paths = music.collection.clips.select("item", "path")
    tagged = music.collection.clips.filter(pl.Series(music.is_tagged)).select("item")
    said = music.collection.triples.frame().join(tagged, on="item").join(paths, on="item")
    table = music.path(TAGS)
    said.select("user", pl.col("path").alias("item"), "tag").write_csv(table)
    return import_table(library, table)


def train_model(library: Library, *, seed: int, progress: Progress) -> StoredModel:
    """`harmonium train`, which smooths the tags, as three people gave them."""
    from harmonium.collection.learning.train import TrainingOptions, train

    return train(library, TrainingOptions(seed=seed), progress=lambda _, *done: progress(*done))


def tag_rest(library: Library, model: StoredModel, *, progress: Progress) -> int:
    """`harmonium tag`; how many tracks the model heard."""
    from harmonium.collection.answering.tag import tag_library

    return tag_library(library, model, progress=progress)


def tracks_in_library(library: Library, music: Music) -> list[Track]:
    """The library's tracks, in the order of the collection."""
    by_path = {track.path: track for track in library.tracks.all()}
    top = music.folder.absolute()
    return [by_path[str(top / path)] for path in music.collection.clips["path"]]


def score(library: Library, music: Music, model: StoredModel) -> Scored:
    """Compare what the model says of the other half with the truth."""
    assert model.id is not None
    tracks = tracks_in_library(library, music)
    rows = np.flatnonzero(~music.is_tagged)
    probabilities = library.predictions.of(model.id, [tracks[row].id for row in rows])
    known = music.collection.tags.to_list()
    columns = [known.index(tag) for tag in model.vocabulary]
    truth = music.collection.truth[rows][:, columns]
    auc = auc_per_tag(truth.astype(np.float32), probabilities)
    return Scored(rows, model.vocabulary, probabilities, truth, auc)


def choose_query(scored: Scored, model: StoredModel) -> str:
    """A question that the model can answer: the tag it knows best, without one that goes with it.

    Nothing of the truth is used, only what training found.
    """
    known = [tag for tag in model.report["tags"] if tag["auc"] is not None and tag["learnt"]]
    if not known:
        return f'"{model.vocabulary[0]}"'
    best = max(known, key=lambda tag: tag["auc"])["tag"]
    p = scored.probabilities[:, scored.tags.index(best)]
    likely = p >= np.median(p)
    beside = {
        tag["tag"]: float(scored.probabilities[likely, scored.tags.index(tag["tag"])].mean())
        for tag in known
        if tag["tag"] != best
    }
    if not beside:
        return f'"{best}"'
    return f'"{best}" AND NOT "{max(beside, key=lambda tag: beside[tag])}"'


def search_music(library: Library, query: str, *, limit: int = 8) -> SearchResult:
    """`harmonium search`."""
    from harmonium.collection.answering.search import search

    return search(library, query, limit=limit)
