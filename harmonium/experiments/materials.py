"""Datasets as experiments take them: features, ternary labels, groups, and what smoothing needs."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.audio import FeatureParameters, extract_files
from harmonium.data import Triples
from harmonium.data.datasets import Dataset, load
from harmonium.engine import available_cores
from harmonium.errors import DataError
from harmonium.experiments.catalogue import has_audio
from harmonium.experiments.specs import GENERATED, DatasetSpec
from harmonium.synthetic import SyntheticCollection, make_collection
from harmonium.user_folders import user_cache_folder

Progress = Callable[[int, int], None]
"""Called with (files done, files)."""


@dataclass(frozen=True, eq=False)
class Listening:
    """Who said what of which item, for the smoother."""

    triples: Triples
    """Of the kept tags."""
    pairs: tuple[pl.Series, pl.Series]
    """Users and items: who saw what, with or without giving it one of the kept tags."""
    items: pl.Series
    """(n,) the item of each row, of which several may share one."""
    tracks: pl.Series
    """(n,) the track of each row."""


@dataclass(frozen=True, eq=False)
class Material:
    """A dataset, ready for training and testing."""

    X: NDArray[np.float32]
    """(n, D) features."""
    Y: NDArray[np.float32]
    """(n, C) labels: 0, 1, NaN."""
    tags: tuple[str, ...]
    groups: NDArray[np.int32]
    """(n,) what no two folds share."""
    counts: NDArray[np.float32]
    """(n, C) how many people gave the tag: whom the SVM takes first."""
    timbre: int
    """The first so many features are about timbre; 0 where it is not known."""
    listening: Listening | None

    def features(self, group: str) -> NDArray[np.float32]:
        """All features, or one group of them."""
        if group == "all":
            return self.X
        if not self.timbre:
            raise DataError(
                f"features = '{group}' needs a dataset with audio, whose features are known to be "
                "about timbre or rhythm: emotify or generated."
            )
        return self.X[:, : self.timbre] if group == "timbre" else self.X[:, self.timbre :]


@lru_cache(maxsize=2)
def material(spec: DatasetSpec) -> Material:
    """Read a dataset; kept in memory for the next runs on it."""
    return _generated(spec) if spec.name == GENERATED else _public(spec)


def _public(spec: DatasetSpec) -> Material:
    data = load(spec.name, **spec.options)
    labels = data.labels(spec.n_tags)
    kept = _kept(labels.values, spec)
    names = labels.tags.gather(kept)
    columns = _columns(data.tags, names)
    X, timbre = _features(data)
    return Material(
        X=X,
        Y=labels.values[:, kept],
        tags=tuple(names),
        groups=data.groups(spec.groups),
        counts=data.counts.matrix[:, columns].toarray().astype(np.float32),
        timbre=timbre,
        listening=_listening(data, names),
    )


def _kept(Y: NDArray[np.float32], spec: DatasetSpec) -> NDArray[np.intp]:
    kept = np.flatnonzero(np.nansum(Y, axis=0) >= spec.min_positives)
    if not len(kept):
        raise DataError(
            f"No tag of '{spec.label}' has {spec.min_positives} positive clips. "
            "Lower 'min_positives'."
        )
    return kept


def _columns(tags: pl.Series, wanted: pl.Series) -> NDArray[np.intp]:
    place = {tag: i for i, tag in enumerate(tags)}
    return np.array([place[tag] for tag in wanted])


def _features(data: Dataset) -> tuple[NDArray[np.float32], int]:
    """The dataset's own features, or those of its audio; and how many are about timbre."""
    if data.features is not None:
        return data.features, 0
    if data.audio is None:
        raise DataError(f"Dataset '{data.name}' has neither features nor audio to train on.")
    return heard(data.audio, engine="serial"), FeatureParameters().n_timbre


def heard(
    paths: Sequence[Path], *, engine: str = "processes", progress: Progress | None = None
) -> NDArray[np.float32]:
    """The features of sound files, (n_files, 389), from the user's cache where they are there."""
    extraction = extract_files(paths, engine=engine, cache=user_cache_folder(), progress=progress)
    if extraction.failures:
        failure = extraction.failures[0]
        raise DataError(f"{failure.path} cannot be used: {failure.reason}")
    return extraction.features


def prepare(spec: DatasetSpec, *, progress: Progress | None = None) -> None:
    """Hear a dataset's sound files with all cores, so that runs find the features ready."""
    if spec.name == GENERATED:
        collection, folder = _collection(spec)
        collection.write(folder, jobs=available_cores())
        heard(_paths(collection, folder), progress=progress)
    elif has_audio(spec):
        data = load(spec.name, **spec.options)
        heard(data.audio or (), progress=progress)


def _listening(data: Dataset, tags: pl.Series) -> Listening | None:
    if data.triples is None:
        return None
    triples, items = data.triples, data.items
    if data.name == "hetrec-msd":  # the tags are the artist's: one of the tracks stands for all
        artist = data.groups("artist")
        items = items.gather(np.unique(artist, return_index=True)[1][artist])
    users, seen = triples.users.gather(triples.user), triples.items.gather(triples.item)
    if data.seen is not None:
        users, seen = data.seen["user"], data.seen["item"]
    return Listening(
        triples=_of_tags(triples, tags),
        pairs=(users, seen),
        items=items,
        tracks=items if data.tracks is None else data.tracks,
    )


def _of_tags(triples: Triples, tags: pl.Series) -> Triples:
    """The triples of these tags, in this order of tags; users and items keep their codes."""
    new = np.full(len(triples.tags), -1, np.int32)
    new[_columns(triples.tags, tags)] = np.arange(len(tags), dtype=np.int32)
    rows = new[triples.tag] >= 0
    return Triples(
        triples.user[rows],
        triples.item[rows],
        new[triples.tag[rows]],
        users=triples.users,
        items=triples.items,
        tags=tags,
    )


def _generated(spec: DatasetSpec) -> Material:
    """The generated collection, written to the user's cache and heard by the audio layer."""
    collection, folder = _collection(spec)
    collection.write(folder, jobs=1)
    counts = collection.triples.counts()
    counts = counts if spec.n_tags is None else counts.top(spec.n_tags)
    Y = counts.labels(min_count=1)
    kept = _kept(Y, spec)
    names = counts.tags.gather(kept)
    triples, tracks = collection.triples, collection.clips["track"]
    return Material(
        X=heard(_paths(collection, folder), engine="serial"),
        Y=Y[:, kept],
        tags=tuple(names),
        groups=np.unique(tracks.to_numpy(), return_inverse=True)[1].astype(np.int32),
        counts=counts.matrix[:, kept].toarray().astype(np.float32),
        timbre=FeatureParameters().n_timbre,
        listening=Listening(
            triples=_of_tags(triples, names),
            pairs=(triples.users.gather(triples.user), triples.items.gather(triples.item)),
            items=triples.items,
            tracks=tracks,
        ),
    )


def _collection(spec: DatasetSpec) -> tuple[SyntheticCollection, Path]:
    """The collection, and where its sound is kept."""
    options = json.dumps(spec.options, sort_keys=True)
    name = hashlib.blake2b(options.encode(), digest_size=6).hexdigest()
    return make_collection(**spec.options), user_cache_folder() / "generated" / name


def _paths(collection: SyntheticCollection, folder: Path) -> list[Path]:
    return [folder / path for path in collection.clips["path"]]
