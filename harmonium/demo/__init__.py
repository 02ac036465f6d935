"""The main job, from start to finish, on the generated collection: what `harmonium demo` does.

Three people tag half of the tracks. The library learns from those and tags the others; the
collection's truth shows how well. This module does what `Library` does not: make music, give tags,
and compare with the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from harmonium.arrays import Floats, Mask
from harmonium.evaluation import auc_per_tag
from harmonium.files import absolute_path
from harmonium.synthetic import SyntheticCollection, make_collection

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.imports import ImportReport
    from harmonium.library.store.models import StoredModel

PEOPLE = 3
AUDIO, LIBRARY, TAGS = "audio", "library.db", "tags.csv"  # in the demo's folder

NEXT_STEPS = """\
harmonium index ~/Music         # find and analyse your music
harmonium import --from-files   # learn from the genres in your files (or: tags.csv)
harmonium train                 # learn from them; then: harmonium tag"""


@dataclass(frozen=True)
class DemoMusic:
    """The generated tracks, which of them people tag, and where the files are."""

    folder: Path  # absolute, as the library has it
    collection: SyntheticCollection
    is_tagged: Mask  # (n_tracks,)


@dataclass(frozen=True)
class DemoEvaluation:
    """What the model says about the tracks that nobody tagged, and the truth."""

    clips: list[dict[str, Any]]  # (n,) the tracks: artist, title, path and so on
    tags: list[str]
    probabilities: Floats  # (n, n_tags)
    truth: Mask  # (n, n_tags)
    mean_auc: float
    tag_aucs: list[tuple[str, int, float]]
    """(tag, tracks it was learnt from, AUC) of each tag with an AUC, the most used first."""

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
    """Draw the tracks, and write the missing ones to the folder."""
    from mutagen import id3
    from mutagen.wave import WAVE

    music = draw_music(folder, n_tracks, seed=seed)
    clips = music.collection.clips
    paths = [music.folder / path for path in clips["path"]]
    if all(path.is_file() and WAVE(path).tags for path in paths):
        return music
    music.collection.write(music.folder, jobs=jobs, progress=progress)
    frames = {"title": id3.TIT2, "artist": id3.TPE1, "album": id3.TALB}
    for path, clip in zip(paths, clips.iter_rows(named=True), strict=True):
        file: Any = WAVE(path)
        if file.tags is None:
            file.add_tags()
        for name, frame in frames.items():  # as in music from a shop
            file.tags.add(frame(encoding=3, text=[clip[name]]))
        file.save()
    return music


def given_tags(music: DemoMusic) -> pl.DataFrame:
    """What the three say about their half: user, item (the path of the track), tag."""
    tagged = music.collection.clips.filter(pl.Series(music.is_tagged)).select("item", "path")
    given = music.collection.triples.frame().join(tagged, on="item")
    return given.select("user", pl.col("path").alias("item"), "tag")


def import_tags(library: Library, music: DemoMusic) -> ImportReport:
    """Write what the three say to a table, and import it."""
    given_tags(music).write_csv(music.folder / TAGS)
    return library.import_tags(music.folder / TAGS)


def evaluate(library: Library, music: DemoMusic, model: StoredModel) -> DemoEvaluation:
    """Compare what the model says about the other half with the truth."""
    numbers = {track.path: track.id for track in library.tracks.all()}
    clips = music.collection.clips.filter(pl.Series(~music.is_tagged)).to_dicts()
    ids = [numbers[str(music.folder / clip["path"])] for clip in clips]
    probabilities = library.predictions.probabilities(model.id, ids)
    known, tags = music.collection.tags.to_list(), model.vocabulary
    truth = music.collection.truth[~music.is_tagged][:, [known.index(tag) for tag in tags]]
    auc = auc_per_tag(truth.astype(np.float32), probabilities)
    examples = {tag["tag"]: int(tag["examples"]) for tag in model.report["tags"]}
    aucs = zip(tags, auc.values.tolist(), strict=True)
    scores = [(tag, examples[tag], value) for tag, value in aucs if np.isfinite(value)]
    scores.sort(key=lambda one: (-one[1], one[0]))
    return DemoEvaluation(clips, tags, probabilities, truth, auc.mean, scores)


def choose_query(model: StoredModel) -> str:
    """A question that the model can answer, by what training found."""
    known = [tag for tag in model.report["tags"] if tag["auc"] is not None and tag["learnt"]]
    known.sort(key=lambda tag: -tag["auc"])
    best, *others = [tag["tag"] for tag in known] or model.vocabulary[:1]
    return f'"{best}" AND NOT "{others[0]}"' if others else f'"{best}"'
