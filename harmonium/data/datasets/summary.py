"""A dataset in figures, for people and for programs."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.data.datasets.base import Dataset


def describe(data: Dataset, *, n_tags: int = 10) -> dict[str, Any]:
    """The dataset's sizes, labels, groups and terms, as plain JSON values.

    Parameters
    ----------
    n_tags : how many tags to list, those with most positive items first
    """
    triples = data.triples
    return {
        "name": data.name,
        "title": data.info.title,
        "summary": data.info.summary,
        "items": len(data),
        "tags": len(data.tags),
        "features": None if data.features is None else data.features.shape[1],
        "triples": None if triples is None else len(triples),
        "users": None if triples is None else len(triples.users),
        "listeners_per_item": _range(data.listeners),
        "tracks": None if data.tracks is None else data.tracks.n_unique(),
        "artists": None if data.artists is None else data.artists.n_unique(),
        "audio_files": 0 if data.audio is None else len(data.audio),
        "splits": {name: len(rows) for name, rows in data.splits.items()},
        "rule": _rule(data),
        **_labels(data, n_tags),
        "citation": data.citation,
        "licence": data.licence,
        "homepage": data.homepage,
    }


def _range(values: NDArray[np.int32] | None) -> list[int] | None:
    return None if values is None else [int(values.min()), int(values.max())]


def _rule(data: Dataset) -> str:
    """When a tag is positive, negative or unknown, in words."""
    if data.min_share is not None:
        return f"positive from {data.min_share:.0%} of an item's listeners on, negative below"
    if data.min_count == 1:
        return "positive where given, negative elsewhere"
    return (
        f"positive from {data.min_count} users on, negative where nobody gave the tag, "
        "unknown between"
    )


def _labels(data: Dataset, n_tags: int) -> dict[str, Any]:
    """How many labels are positive, negative and unknown, and the tags with most positives.

    Counted in the sparse matrix: the labels of a large vocabulary would fill the memory.
    """
    given, column = data.counts.matrix.data, data.counts.matrix.indices
    row = np.repeat(np.arange(len(data)), np.diff(data.counts.matrix.indptr))
    if data.min_share is not None and data.listeners is not None:
        is_positive = given / data.listeners[row] >= data.min_share
        unknown = 0
    else:
        is_positive = given >= data.min_count
        unknown = int((~is_positive).sum())
    positive = int(is_positive.sum())
    cells = len(data) * len(data.tags)
    per_tag = np.bincount(column[is_positive], minlength=len(data.tags))
    top = pl.DataFrame({"tag": data.tags, "positive": per_tag}).sort(
        ["positive", "tag"], descending=[True, False]
    )
    return {
        "labels": {
            "positive": positive,
            "negative": cells - positive - unknown,
            "unknown": unknown,
        },
        "top_tags": top.head(n_tags).to_dicts(),
    }
