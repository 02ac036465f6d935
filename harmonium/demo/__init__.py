"""The main job, start to end, on the generated collection: hear, learn, tag.

Some tracks of the collection are tagged by their listeners; the model learns from those and tags
the others, which it has never heard of. The truth of the collection says how well.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.audio import extract_files, feature_names
from harmonium.data.synthetic import SyntheticCollection
from harmonium.errors import DataError
from harmonium.estimators import DiscriminativeRBM
from harmonium.evaluation import MetricResult, auc_per_tag, grouped_folds

MIN_EXAMPLES = 10
"""A tag needs this many tagged clips to be learnt."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Tagged:
    """What the model made of the untagged clips."""

    model: DiscriminativeRBM
    tags: list[str]  # vocabulary of the model
    examples: NDArray[
        np.int64
    ]  # (n_tags,): clips that listeners tagged so, among those learnt from
    clips: NDArray[np.intp]  # (n_untagged,): rows of the collection
    features: pl.DataFrame  # (n_untagged, 389)
    probabilities: NDArray[np.float32]  # (n_untagged, n_tags)
    truth: NDArray[np.bool_]  # (n_untagged, n_tags)
    auc: MetricResult  # by tag, of the probabilities against the truth


def extract(paths: list[Path], *, jobs: int, progress: Progress) -> NDArray[np.float32]:
    """The features of sound files, (n_files, 389), in parallel processes."""
    extraction = extract_files(paths, jobs=jobs, progress=progress)
    if extraction.failures:
        failure = extraction.failures[0]
        raise DataError(f"{failure.path}: {failure.reason}")
    return extraction.features


def learn_and_tag(
    collection: SyntheticCollection, features: NDArray[np.float32], *, seed: int, verbose: bool
) -> Tagged:
    """Learn from three fifths of the tracks, stop early on a fifth, tag the rest."""
    counts = collection.triples.counts()
    tracks = collection.clips["track"].to_numpy()
    folds = grouped_folds(tracks, counts.labels(min_count=1), n_folds=5, seed=seed)
    untagged = folds == 0
    present = np.asarray((counts.matrix[~untagged] > 0).sum(axis=0)).ravel()
    kept = np.flatnonzero(present >= MIN_EXAMPLES)
    if not len(kept):
        raise DataError(
            f"No tag has {MIN_EXAMPLES} tagged clips to learn from in a collection of "
            f"{collection.n_clips} clips. Ask for more tracks."
        )
    kept = kept[np.argsort(-present[kept], kind="stable")]
    tags = [counts.tags[int(j)] for j in kept]
    Y = pl.DataFrame(counts.labels(min_count=1)[:, kept], schema=tags)
    X = pl.DataFrame(features, schema=feature_names())
    train, valid = folds > 1, folds == 1
    model = DiscriminativeRBM(random_state=seed, verbose=int(verbose))
    model.fit(X.filter(train), Y.filter(train), eval_set=(X.filter(valid), Y.filter(valid)))
    rest = X.filter(untagged)
    probabilities = model.predict_proba(rest)
    truth = collection.truth[untagged][:, kept]
    auc = auc_per_tag(truth.astype(np.float32), probabilities)
    clips = np.flatnonzero(untagged)
    return Tagged(model, tags, present[kept], clips, rest, probabilities, truth, auc)


def save(folder: Path, collection: SyntheticCollection, tagged: Tagged) -> None:
    """The model, and the probability of every tag of every untagged clip as a table."""
    tagged.model.save(folder / "model.safetensors")
    paths = collection.clips["path"].gather(tagged.clips)
    table = pl.DataFrame(tagged.probabilities, schema=tagged.tags).insert_column(0, paths)
    table.write_csv(folder / "tags.csv", float_precision=4)
