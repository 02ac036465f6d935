"""The Million Song Subset with Last.fm's tags: weights from 0 to 100 per track and tag."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.data.artists import artist_groups
from harmonium.data.codes import encode
from harmonium.data.datasets.dataset import INFOS, Dataset
from harmonium.data.datasets.locate import locate
from harmonium.data.datasets.published_files import fault, feature_matrix, read_arrays, strings
from harmonium.data.normalise import normalise_names
from harmonium.data.tag_counts import TagCounts
from harmonium.errors import DataError

INFO = INFOS["msd"]


class TrackFeatures(NamedTuple):
    """What features.npz holds, row by row."""

    ids: pl.Series
    features: NDArray[np.float32]
    feature_names: pl.Series
    artists: pl.Series
    titles: pl.Series


def load(
    folder: str | Path | None = None,
    *,
    n_tags: int | None = None,
    normalise: bool = False,
    untagged: bool = False,
) -> Dataset:
    """Read features.npz and lastfm_top500.npz.

    Parameters
    ----------
    n_tags : only the tags that most tracks have (ties: the file's order), and only the tracks
        that have one of them
    normalise : whether spellings of one tag ("hip-hop", "hip hop") are merged before tags are
        chosen; the larger of two weights holds
    untagged : whether tracks without any of the tags are kept, too
    """
    path = locate(INFO, folder)["msd-subset"]
    tracks = read_features(path / "features.npz")
    weights, tags = _weights(path / "lastfm_top500.npz", tracks.ids)
    if normalise:
        weights, tags = _merge(weights, tags)
    if n_tags is not None:
        if n_tags < 1:
            raise DataError(f"'n_tags' must be at least 1, got {n_tags}.")
        columns = np.argsort(-np.count_nonzero(weights, axis=0), kind="stable")[:n_tags]
        weights, tags = weights[:, columns], tags[columns]
    kept = np.flatnonzero(weights.any(axis=1) | untagged)
    items = tracks.ids[kept]
    return Dataset(
        info=INFO,
        items=items,
        counts=TagCounts(items, tags, sp.csr_array(weights[kept].astype(np.int32))),
        features=tracks.features[kept],
        feature_names=tracks.feature_names,
        tracks=tracks.titles[kept],
        artists=tracks.artists[kept],
    )


def read_features(path: Path) -> TrackFeatures:
    """The tracks of features.npz, each named "artist: title"."""
    arrays = read_arrays(path, ["track_id", "X", "artist_id", "artist_name", "title"], ["columns"])
    names = strings(arrays["columns"])
    return TrackFeatures(
        ids=strings(arrays["track_id"]),
        features=feature_matrix(path, arrays["X"], len(names)),
        feature_names=names,
        artists=_one_id_each(strings(arrays["artist_id"]), strings(arrays["artist_name"])),
        titles=strings(arrays["artist_name"]) + ": " + strings(arrays["title"]),
    )


def _one_id_each(ids: pl.Series, names: pl.Series) -> pl.Series:
    """The ids (n,), where artists with several ids, or names in several spellings, have the first.

    The Echo Nest has two ids for "Prodigy" and "The Prodigy".
    """
    artist = artist_groups(ids, names)
    return ids.gather(np.unique(artist, return_index=True)[1][artist])


def _weights(path: Path, ids: pl.Series) -> tuple[NDArray[np.int16], pl.Series]:
    """The weights of these tracks, (n, n_tags), and the tags."""
    arrays = read_arrays(path, ["track_id", "Y"], ["tags"])
    tags, weights = strings(arrays["tags"]), arrays["Y"]
    if weights.ndim != 2 or weights.dtype.kind not in "iu" or weights.shape[1] != len(tags):
        problem = f"'Y' must be whole numbers for {len(tags)} tags, got {weights.dtype} of shape"
        raise fault(path, None, f"{problem} {weights.shape}.")
    if weights.min() < 0 or weights.max() > 100:
        row = np.flatnonzero(((weights < 0) | (weights > 100)).any(axis=1))[0]
        raise fault(path, None, f"row {row} has a weight that is not from 0 to 100.")
    if not strings(arrays["track_id"]).equals(ids):
        raise fault(path, None, "its tracks are not those of features.npz, in the same order.")
    return weights, tags


def _merge(weights: NDArray[np.int16], tags: pl.Series) -> tuple[NDArray[np.int16], pl.Series]:
    """Tags brought to one spelling each, in order of first appearance; the larger weight holds."""
    code, names = encode(normalise_names(tags))
    merged = np.zeros((len(weights), len(names)), dtype=weights.dtype)
    for column, target in enumerate(code):
        np.maximum(merged[:, target], weights[:, column], out=merged[:, target])
    _, first = np.unique(code, return_index=True)
    order = np.argsort(first)
    return merged[:, order], names[order]
