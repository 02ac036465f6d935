"""What every loader gives: a Dataset; what is known before it is read; and its statistics."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.arrays import Codes, Floats
from harmonium.data.tables import encode
from harmonium.data.tag_names import artist_groups
from harmonium.data.triples import TagCounts, Triples
from harmonium.errors import DataError


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """What is known of a dataset before its files are read."""

    name: str  # the name that `load` takes
    title: str
    summary: str  # one to three sentences
    files: Mapping[str, Sequence[str]]  # subfolder -> the files needed there; "a|b" is either
    # How many there are with the default options; None for none, or where it depends on the set.
    items: int | None = None
    tags: int | None = None
    features: int | None = None
    triples: int | None = None
    audio: bool = False  # whether the dataset has sound
    min_count: int = 1  # number of users from which a tag is positive
    min_share: float | None = None  # or the share of an item's listeners, where it is given
    citation: str
    licence: str
    homepage: str
    how_to_get: str  # what to do when the files are missing


_TABLES = tomllib.loads(Path(__file__).with_name("datasets.toml").read_text(encoding="utf-8"))

INFOS = {name: DatasetInfo(name=name, **table) for name, table in _TABLES["dataset"].items()}
MULAN_SETS: dict[str, dict[str, Any]] = _TABLES["mulan"]
"""Set in Mulan's form -> the attributes that are known of this one."""
DIGESTS: dict[str, str] = _TABLES["sha256"]
"""The SHA-256 of each published file -> its name."""


class Labels(NamedTuple):
    """Ternary labels, (n_items, n_tags) with 1, 0 and NaN for unknown, and the tags' names."""

    values: Floats
    tags: pl.Series


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Items with their tags and whatever else is known of them; row i is items[i] everywhere.

    Arrays are read-only: a dataset that is shared stays what the files say.
    """

    info: DatasetInfo
    items: pl.Series  # of str, (n,), the items' ids
    counts: TagCounts  # (n, n_tags)
    features: Floats | None = None  # (n, D), not scaled
    feature_names: pl.Series | None = None  # of str, (D,)
    triples: Triples | None = None  # whose items are these items
    tracks: pl.Series | None = None  # of str, (n,), the track of each item
    artists: pl.Series | None = None  # of str, (n,)
    audio: Sequence[Path] | None = None  # sound files, n of them
    listeners: Codes | None = None  # (n,), how many people judged each item
    # The columns user and item: each pair in which the user judged the item, with or without giving
    # it a tag; None where only those who gave tags are known.
    seen: pl.DataFrame | None = None
    splits: Mapping[str, NDArray[np.intp]] = field(default_factory=dict)
    """Name of an official split -> row numbers, ascending."""

    def __post_init__(self) -> None:
        _check_rows(self)
        for array in (self.features, self.listeners, *self.splits.values()):
            if array is not None:
                array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def name(self) -> str:
        """The name under which it was loaded."""
        return self.info.name

    @property
    def tags(self) -> pl.Series:
        """The tags' names, (n_tags,)."""
        return self.counts.tags

    @property
    def min_count(self) -> int:
        """Number of users from which a tag is positive, unless `labels` is told otherwise."""
        return self.info.min_count

    @property
    def min_share(self) -> float | None:
        """Share of listeners from which a tag is positive, for datasets that count listeners."""
        return self.info.min_share

    @property
    def citation(self) -> str:
        """The publication to cite."""
        return self.info.citation

    @property
    def licence(self) -> str:
        """The terms of use."""
        return self.info.licence

    @property
    def homepage(self) -> str:
        """Where the dataset comes from."""
        return self.info.homepage

    def labels(
        self,
        n_tags: int | None = None,
        *,
        min_count: int | None = None,
        min_share: float | None = None,
    ) -> Labels:
        """Labels of the n_tags most popular tags (by default of all tags, in their own order).

        Parameters
        ----------
        n_tags : how many tags, those with the largest total count first
        min_count : a tag is positive from so many users on, negative where nobody gave it, and
            unknown (NaN) between
        min_share : a tag is positive where at least this share of the item's listeners gave it,
            and negative elsewhere: what one listener in forty marked hardly applies. Only for
            datasets that count listeners.

        Without min_count and min_share, the dataset's own rule holds.
        """
        counts = self.counts if n_tags is None else self.counts.top(n_tags)
        if min_count is not None and min_share is not None:
            raise DataError("Give 'min_count' or 'min_share', not both.")
        if min_count is None and min_share is None:
            min_count, min_share = self.min_count, self.min_share
        if min_share is None:
            assert min_count is not None
            return Labels(counts.labels(min_count=min_count), counts.tags)
        if self.listeners is None:
            raise DataError(
                f"'min_share' needs the number of listeners of each item, which dataset "
                f"'{self.name}' does not give. Use 'min_count'."
            )
        labels = counts.share_labels(min_share=min_share, listeners=self.listeners)
        return Labels(labels, counts.tags)

    def groups(self, by: Literal["item", "track", "artist"] = "track") -> Codes:
        """A number for each item, (n,), the same for items of one track or of one artist.

        Spellings of one artist's name ("The Prodigy", "Prodigy") are one artist; see
        `harmonium.data.artist_key`.
        """
        names = {"item": self.items, "track": self.tracks, "artist": self.artists}
        if by not in names:
            raise DataError(f"'by' must be 'item', 'track' or 'artist', got {by!r}.")
        labels = names[by]
        if labels is None:
            known = ", ".join(repr(key) for key, value in names.items() if value is not None)
            raise DataError(
                f"Dataset '{self.name}' does not say which {by} an item belongs to. "
                f"It can be grouped by {known}."
            )
        return artist_groups(labels) if by == "artist" else encode(labels)[0]


def _check_rows(data: Dataset) -> None:
    """Raise DataError unless every part is about the same items in the same order."""
    n, features, names = len(data.items), data.features, data.feature_names
    if data.items.n_unique() != n:
        twice = data.items.filter(data.items.is_duplicated())[0]
        raise DataError(f"Dataset '{data.name}': item '{twice}' occurs more than once.")
    aligned = {"counts": data.counts, "triples": data.triples}
    wrong = [part for part, one in aligned.items() if one and not one.items.equals(data.items)]
    for part in ("features", "tracks", "artists", "audio", "listeners"):
        value = getattr(data, part)
        if value is not None and len(value) != n:
            wrong.append(part)
    if features is not None and (features.ndim, features.dtype) != (2, np.float32):
        wrong.append("features")
    if names is not None and (features is None or len(names) != features.shape[1]):
        wrong.append("feature_names")
    if any(len(rows) and not 0 <= rows.min() <= rows.max() < n for rows in data.splits.values()):
        wrong.append("splits")
    if wrong:
        raise DataError(f"Dataset '{data.name}': '{wrong[0]}' does not fit its {n} items.")


def describe(data: Dataset, *, n_tags: int = 10) -> dict[str, Any]:
    """The dataset's sizes, labels, groups and terms, as plain JSON values.

    Parameters
    ----------
    n_tags : how many tags to list, those with most positive items first
    """
    triples, heard = data.triples, data.listeners
    return {
        "name": data.name,
        "title": data.info.title,
        "summary": data.info.summary,
        "items": len(data),
        "tags": len(data.tags),
        "features": None if data.features is None else data.features.shape[1],
        "triples": None if triples is None else len(triples),
        "users": None if triples is None else len(triples.users),
        "listeners_per_item": None if heard is None else [int(heard.min()), int(heard.max())],
        "tracks": None if data.tracks is None else data.tracks.n_unique(),
        "artists": None if data.artists is None else data.artists.n_unique(),
        "audio_files": 0 if data.audio is None else len(data.audio),
        "splits": {name: len(rows) for name, rows in data.splits.items()},
        "rule": _rule(data),
        **_label_figures(data, n_tags),
        "citation": data.citation,
        "licence": data.licence,
        "homepage": data.homepage,
    }


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


def _label_figures(data: Dataset, n_tags: int) -> dict[str, Any]:
    """How many labels are positive, negative and unknown, and the tags with most positives.

    Counted in the sparse matrix: the labels of a large vocabulary would fill the memory.
    """
    counts = data.counts
    if data.min_share is not None and data.listeners is not None:
        is_positive = counts.shared(data.min_share, data.listeners)
        unknown = 0
    else:
        is_positive = counts.frequent(data.min_count)
        unknown = int((~is_positive).sum())
    positive = int(is_positive.sum())
    cells = len(data) * len(data.tags)
    per_tag = np.bincount(counts.matrix.indices[is_positive], minlength=len(data.tags))
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
