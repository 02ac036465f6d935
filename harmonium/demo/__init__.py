"""The main job, start to end, on the generated collection: what `harmonium demo` does and shows.

Three people tag half of the tracks. The library learns from those and tags the others; the truth
of the collection says how well. Here is what the demo does besides the methods of the library:
make music, give tags, compare with the truth. `page` shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.arrays import Floats, Mask
from harmonium.evaluation import MetricResult, auc_per_tag
from harmonium.files import absolute_path
from harmonium.synthetic import SyntheticCollection, make_collection

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.imports import ImportReport
    from harmonium.library.store.models import StoredModel

PEOPLE = 3
AUDIO, LIBRARY, TAGS, PAGE = "audio", "library.db", "tags.csv", "results.html"
"""What is in the demo's folder: the music, and three files."""


@dataclass(frozen=True)
class DemoMusic:
    """The generated tracks, which of them people tag, and where all this is."""

    folder: Path  # absolute, as the library has it
    collection: SyntheticCollection
    is_tagged: Mask  # (n_tracks,)

    @property
    def n_tagged(self) -> int:
        """How many tracks people tag."""
        return int(self.is_tagged.sum())

    def path(self, name: str) -> Path:
        """A file of the folder."""
        return self.folder / name


@dataclass(frozen=True)
class DemoEvaluation:
    """What the model says of the tracks that nobody tagged, beside the truth."""

    rows: NDArray[np.intp]  # (n,) the tracks, as rows of the collection
    tags: list[str]
    probabilities: Floats  # (n, n_tags)
    truth: Mask  # (n, n_tags)
    auc: MetricResult  # of each tag
    examples: list[int]  # tracks that each tag was learnt from

    def tag_aucs(self) -> list[tuple[str, int, float]]:
        """(tag, examples, AUC) of each tag whose AUC is known, the most used first."""
        columns = zip(self.tags, self.examples, self.auc.values.tolist(), strict=True)
        found = [(tag, n, auc) for tag, n, auc in columns if np.isfinite(auc)]
        return sorted(found, key=lambda one: (-one[1], one[0]))

    def predicted_tags(self, i: int) -> list[tuple[str, float, bool]]:
        """(tag, probability, whether it is true) of the i-th track, the likeliest first."""
        return [
            (self.tags[j], float(self.probabilities[i, j]), bool(self.truth[i, j]))
            for j in np.argsort(-self.probabilities[i], kind="stable")
        ]


def draw_music(folder: Path | str, n_tracks: int, *, seed: int) -> DemoMusic:
    """Draw tracks of 10 seconds, and the half of them that people tag."""
    collection = make_collection(n_tracks, 1, n_users=PEOPLE, users_per_clip=PEOPLE, seed=seed)
    is_tagged = np.zeros(n_tracks, bool)
    is_tagged[np.random.default_rng(seed).permutation(n_tracks)[: n_tracks // 2]] = True
    return DemoMusic(Path(absolute_path(folder)), collection, is_tagged)


def make_music(
    folder: Path, n_tracks: int, *, seed: int, jobs: int, progress: Callable[[int, int], None]
) -> DemoMusic:
    """Draw the tracks, and write those to the folder that are not there yet."""
    music = draw_music(folder, n_tracks, seed=seed)
    clips = music.collection.clips
    paths = [music.path(path) for path in clips["path"]]
    if not all(map(_has_name, paths)):
        music.collection.write(music.folder, jobs=jobs, progress=progress)
        for path, clip in zip(paths, clips.iter_rows(named=True), strict=True):
            _give_name(path, clip)
    return music


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


def given_tags(music: DemoMusic) -> pl.DataFrame:
    """What the three say of their half: user, item (the path of the track), tag."""
    tagged = music.collection.clips.filter(pl.Series(music.is_tagged)).select("item", "path")
    given = music.collection.triples.frame().join(tagged, on="item")
    return given.select("user", pl.col("path").alias("item"), "tag")


def import_tags(library: Library, music: DemoMusic) -> ImportReport:
    """Write what the three say to a table, and import it."""
    table = music.path(TAGS)
    given_tags(music).write_csv(table)
    return library.import_tags(table)


def evaluate(library: Library, music: DemoMusic, model: StoredModel) -> DemoEvaluation:
    """Compare what the model says of the other half with the truth."""
    assert model.id is not None
    numbers = {track.path: track.id for track in library.tracks.all()}
    paths = music.collection.clips["path"]
    rows = np.flatnonzero(~music.is_tagged)
    ids = [numbers[str(music.path(paths[int(row)]))] for row in rows]
    probabilities = library.predictions.probabilities(model.id, ids)
    known = music.collection.tags.to_list()
    columns = [known.index(tag) for tag in model.vocabulary]
    truth = music.collection.truth[rows][:, columns]
    auc = auc_per_tag(truth.astype(np.float32), probabilities)
    examples = {tag["tag"]: int(tag["examples"]) for tag in model.report["tags"]}
    counts = [examples[tag] for tag in model.vocabulary]
    return DemoEvaluation(rows, model.vocabulary, probabilities, truth, auc, counts)


def choose_query(evaluation: DemoEvaluation, model: StoredModel) -> str:
    """A question that the model can answer: the tag it knows best, without one that goes with it.

    It is chosen by what training found, without a look at the truth.
    """
    known = [tag for tag in model.report["tags"] if tag["auc"] is not None and tag["learnt"]]
    if not known:
        return f'"{model.vocabulary[0]}"'
    best = max(known, key=lambda tag: tag["auc"])["tag"]
    p = dict(zip(evaluation.tags, evaluation.probabilities.T, strict=True))
    likely = p[best] >= np.median(p[best])
    others = [tag["tag"] for tag in known if tag["tag"] != best]
    if not others:
        return f'"{best}"'
    return f'"{best}" AND NOT "{max(others, key=lambda tag: float(p[tag][likely].mean()))}"'
