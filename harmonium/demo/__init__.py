"""The main job, from start to finish, on the generated collection: what `harmonium demo` does.

Three people tag half of the tracks. The library learns from those and tags the others; the
collection's truth shows how well. This module does what `Library` does not: make music, give tags,
and compare with the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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

# In the demo's folder.
AUDIO = "audio"
LIBRARY = "library.db"
TAGS = "tags.csv"

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


class TagScore(NamedTuple):
    """How well a tag was learnt."""

    tag: str
    n_examples: int  # the tracks that it was learnt from
    auc: float


class PredictedTag(NamedTuple):
    """A tag of a track, as predicted."""

    tag: str
    probability: float
    is_true: bool


@dataclass(frozen=True, kw_only=True)
class DemoEvaluation:
    """What the model says about the tracks that nobody tagged, and the truth."""

    clips: list[dict[str, Any]]  # (n,) the tracks: artist, title, path and so on
    tags: list[str]
    probabilities: Floats  # (n, n_tags)
    truth: Mask  # (n, n_tags)
    mean_auc: float
    tag_scores: list[TagScore]  # of each tag with an AUC, the most used first

    def predicted_tags(self, i: int) -> list[PredictedTag]:
        """All tags of the i-th track, the likeliest first."""
        predicted = []
        for j in np.argsort(-self.probabilities[i], kind="stable"):
            predicted.append(
                PredictedTag(
                    tag=self.tags[j],
                    probability=float(self.probabilities[i, j]),
                    is_true=bool(self.truth[i, j]),
                )
            )
        return predicted


def draw_music(folder: Path | str, n_tracks: int, *, seed: int) -> DemoMusic:
    """Draw tracks of 10 seconds, and the half of them that people tag."""
    collection = make_collection(n_tracks, 1, n_users=PEOPLE, users_per_clip=PEOPLE, seed=seed)
    in_random_order = np.random.default_rng(seed).permutation(n_tracks)
    is_tagged = np.zeros(n_tracks, bool)
    is_tagged[in_random_order[: n_tracks // 2]] = True
    return DemoMusic(folder=Path(absolute_path(folder)), collection=collection, is_tagged=is_tagged)


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
    id_of_path = {track.path: track.id for track in library.tracks.all()}
    clips = music.collection.clips.filter(pl.Series(~music.is_tagged)).to_dicts()
    ids = [id_of_path[str(music.folder / clip["path"])] for clip in clips]
    probabilities = library.predictions.probabilities(model.id, ids)

    known_tags = music.collection.tags.to_list()
    columns = [known_tags.index(tag) for tag in model.vocabulary]
    truth = music.collection.truth[~music.is_tagged][:, columns]
    aucs = auc_per_tag(truth.astype(np.float32), probabilities)
    n_examples = {tag.tag: tag.examples for tag in model.report.tags}
    scores = []
    for tag, auc in zip(model.vocabulary, aucs.values.tolist(), strict=True):
        if np.isfinite(auc):
            scores.append(TagScore(tag, n_examples[tag], auc))
    scores.sort(key=lambda score: (-score.n_examples, score.tag))
    return DemoEvaluation(
        clips=clips,
        tags=[*model.vocabulary],
        probabilities=probabilities,
        truth=truth,
        mean_auc=aucs.mean,
        tag_scores=scores,
    )


def choose_query(model: StoredModel) -> str:
    """A question that the model can answer, by what training found."""
    learnt = [tag for tag in model.report.tags if tag.auc is not None and tag.learnt]
    learnt.sort(key=lambda tag: -(tag.auc or 0))
    best, *others = [tag.tag for tag in learnt] or model.vocabulary[:1]
    if not others:
        return f'"{best}"'
    return f'"{best}" AND NOT "{others[0]}"'
