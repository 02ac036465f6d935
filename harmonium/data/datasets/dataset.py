"""What every loader returns, what is known before reading, and finding the files.

The data folder may be given. Otherwise the folder in the environment variable HARMONIUM_DATA is
searched, and then the user's data folder. A data folder has one subfolder per dataset; a dataset's
own folder works, too.

Published files do not change, so they are checked by their SHA-256 alone and then parsed. Another
version of a file gets a warning; a file that cannot be parsed is a DataError that names it.
"""

import hashlib
import os
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from harmonium.arrays import Arrays, Codes, Floats, Mask, Places
from harmonium.data.artists import artist_groups
from harmonium.data.coded import encode
from harmonium.data.counts import TagCounts
from harmonium.data.triples import Triples
from harmonium.errors import DataError, DatasetNotFoundError, DataWarning, HarmoniumError
from harmonium.files import user_data_folder

ENVIRONMENT = "HARMONIUM_DATA"


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """What is known about a dataset before its files are read."""

    name: str  # the name that `load` takes
    title: str
    summary: str  # one to three sentences
    files: Mapping[str, Sequence[str]]  # subfolder -> the files needed there; "a|b" is either
    # How many there are with the default options; None for none, or if it depends on the set.
    items: int | None = None
    tags: int | None = None
    features: int | None = None
    triples: int | None = None
    audio: bool = False  # whether the dataset has sound
    min_count: int = 1  # a tag is positive with at least this many users
    min_share: float | None = None  # or this share of an item's listeners, if given
    citation: str
    licence: str
    homepage: str
    how_to_get: str  # what to do when the files are missing


def _read_toml(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


TABLES = _read_toml("datasets.toml")
INFOS = {name: DatasetInfo(name=name, **table) for name, table in TABLES["dataset"].items()}
DIGESTS: dict[str, str] = TABLES["sha256"]  # the SHA-256 of each published file -> its name
MUSICNN_TAGS: dict[str, list[str]] = _read_toml("musicnn_tags.toml")
"""The tags of musicnn's two networks, in the order of their outputs."""


class Labels(NamedTuple):
    """Ternary labels, (n_items, n_tags) with 1, 0 and NaN for unknown, and the tags' names."""

    values: Floats
    tags: pl.Series


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """Items with their tags and whatever else is known about them; row i is items[i] everywhere.

    Arrays are read-only, so that a shared dataset cannot change.
    """

    info: DatasetInfo
    items: pl.Series  # of str, (n,), the items' ids
    counts: TagCounts  # (n, n_tags)
    features: Floats | None = None  # (n, D), not scaled
    feature_names: pl.Series | None = None  # of str, (D,)
    triples: Triples | None = None  # with the same items
    tracks: pl.Series | None = None  # of str, (n,), the track of each item
    artists: pl.Series | None = None  # of str, (n,)
    audio: Sequence[Path] | None = None  # sound files, n of them
    listeners: Codes | None = None  # (n,), how many people judged each item
    # The columns user and item: each pair in which the user judged the item, with or without giving
    # it a tag; None if only those who gave tags are known.
    seen: pl.DataFrame | None = None
    splits: Mapping[str, Places] = field(default_factory=dict)  # official split -> ascending rows

    def __post_init__(self) -> None:
        for array in (self.features, self.listeners, *self.splits.values()):
            if array is not None:
                array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"Dataset('{self.name}': {self.counts})"

    @property
    def name(self) -> str:
        """The name under which it was loaded."""
        return self.info.name

    @property
    def tags(self) -> pl.Series:
        """The tags' names, (n_tags,)."""
        return self.counts.tags

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
        min_count : a tag is positive if at least this many users gave it, negative if nobody did,
            and unknown (NaN) between
        min_share : a tag is positive if at least this share of the item's listeners gave it, and
            negative otherwise: a tag from one listener in forty hardly applies. Only for datasets
            that count listeners.

        Without min_count and min_share, the dataset's own rule applies.
        """
        counts = self.counts if n_tags is None else self.counts.top(n_tags)
        if min_count is not None and min_share is not None:
            raise DataError("Give 'min_count' or 'min_share', not both.")
        if min_count is None and min_share is None:
            min_count = self.info.min_count
            min_share = self.info.min_share
        if min_share is None:
            assert min_count is not None
            return Labels(values=counts.labels(min_count=min_count), tags=counts.tags)
        if self.listeners is None:
            raise DataError(
                f"'min_share' needs the number of listeners of each item, which dataset "
                f"'{self.name}' does not give. Use 'min_count'."
            )
        values = counts.share_labels(min_share=min_share, listeners=self.listeners)
        return Labels(values=values, tags=counts.tags)

    def groups(self, by: Literal["item", "track", "artist"] = "track") -> Codes:
        """A number for each item, (n,), the same for items of one track or artist.

        Spellings of one artist's name ("The Prodigy", "Prodigy") are one artist; see
        `harmonium.data.artist_key`.
        """
        names = {"item": self.items, "track": self.tracks, "artist": self.artists}
        labels = names.get(by)
        if labels is None:
            known = ", ".join(repr(key) for key, value in names.items() if value is not None)
            raise DataError(
                f"Dataset '{self.name}' does not say which {by} an item belongs to. "
                f"'by' can be {known}; got {by!r}."
            )
        if by == "artist":
            return artist_groups(labels)
        return encode(labels).codes


def describe(data: Dataset, *, n_tags: int = 10) -> dict[str, Any]:
    """The dataset's sizes, labels, groups and terms, and its most frequent tags, for JSON."""
    info = data.info
    labels = _count_labels(data)
    per_tag = np.bincount(data.counts.matrix.indices[labels.is_positive], minlength=len(data.tags))
    top = pl.DataFrame({"tag": data.tags, "positive": per_tag})
    top = top.sort(["positive", "tag"], descending=[True, False])
    listeners_per_item = None
    if data.listeners is not None:
        listeners_per_item = [int(data.listeners.min()), int(data.listeners.max())]
    return {
        "name": data.name,
        "title": info.title,
        "summary": info.summary,
        "items": len(data),
        "tags": len(data.tags),
        "features": None if data.features is None else data.features.shape[1],
        "triples": None if data.triples is None else len(data.triples),
        "users": None if data.triples is None else len(data.triples.users),
        "listeners_per_item": listeners_per_item,
        "tracks": None if data.tracks is None else data.tracks.n_unique(),
        "artists": None if data.artists is None else data.artists.n_unique(),
        "audio_files": 0 if data.audio is None else len(data.audio),
        "splits": {name: len(rows) for name, rows in data.splits.items()},
        "rule": labels.rule,
        "labels": {
            "positive": labels.n_positive,
            "negative": labels.n_negative,
            "unknown": labels.n_unknown,
        },
        "top_tags": top.head(n_tags).to_dicts(),
        "citation": info.citation,
        "licence": info.licence,
        "homepage": info.homepage,
    }


class _LabelCounts(NamedTuple):
    """The labels by the dataset's own rule."""

    rule: str  # in words
    is_positive: Mask  # (nnz,) which stored counts are positive labels
    n_positive: int
    n_negative: int
    n_unknown: int


def _count_labels(data: Dataset) -> _LabelCounts:
    """Counted in the sparse matrix: the labels of a large vocabulary would fill the memory."""
    info = data.info
    if info.min_share is not None and data.listeners is not None:
        rule = f"positive from {info.min_share:.0%} of an item's listeners on, negative below"
        is_positive = data.counts.shared(info.min_share, data.listeners)
        n_unknown = 0
    else:
        rule = "positive where given, negative elsewhere"
        if info.min_count > 1:
            rule = (
                f"positive from {info.min_count} users on, negative where nobody gave the tag, "
                "unknown between"
            )
        is_positive = data.counts.frequent(info.min_count)
        n_unknown = int((~is_positive).sum())
    n_positive = int(is_positive.sum())
    return _LabelCounts(
        rule=rule,
        is_positive=is_positive,
        n_positive=n_positive,
        n_negative=len(data) * len(data.tags) - n_positive - n_unknown,
        n_unknown=n_unknown,
    )


# Finding the files


def data_folders(folder: str | Path | None = None) -> list[Path]:
    """The folders that are searched, in this order."""
    if folder is not None:
        return [Path(folder).expanduser()]
    folders = [user_data_folder()]
    named = os.environ.get(ENVIRONMENT)
    if named:
        folders.insert(0, Path(named).expanduser())
    return folders


def is_found(info: DatasetInfo, folder: str | Path | None = None) -> Path | None:
    """The folder of the dataset's first files, or None if any file is missing."""
    try:
        return _folders(info, folder)[0]
    except DatasetNotFoundError:
        return None


def locate(info: DatasetInfo, folder: str | Path | None = None) -> list[Path]:
    """The folder of each of the dataset's subfolders, with a warning about unknown versions."""
    folders = _folders(info, folder)
    unknown = _files_of_unknown_versions(info, folders)
    if unknown:
        warnings.warn(
            f"Dataset '{info.name}': {', '.join(unknown)} differ by SHA-256 from the published "
            f"files that Harmonium was tested with, so other numbers may follow. {info.how_to_get}",
            DataWarning,
            stacklevel=4,  # the caller of load
        )
    return folders


def _files_of_unknown_versions(info: DatasetInfo, folders: Sequence[Path]) -> list[str]:
    """The files that differ from their published version."""
    published = set(DIGESTS.values())
    differing = set()
    for folder, names in zip(folders, info.files.values(), strict=True):
        for name in (choice for choices in names for choice in choices.split("|")):
            file = folder / name
            if name in published and file.is_file():
                digest = hashlib.sha256(file.read_bytes()).hexdigest()
                if digest not in DIGESTS:
                    differing.add(str(file))
    return sorted(differing)


def _folders(info: DatasetInfo, folder: str | Path | None) -> list[Path]:
    """The folder of each of the dataset's subfolders; DatasetNotFoundError if a file is missing."""
    folders = []
    for subfolder, files in info.files.items():
        tails = dict.fromkeys([subfolder, Path(subfolder).name, "."])  # a/b, b and the root itself
        candidates = [root / tail for root in data_folders(folder) for tail in tails]
        missing = {path: _missing_files(path, files) for path in candidates}
        # If none is complete, the closest tells most, such as a folder with one of two files.
        nearest = min(missing, key=lambda path: (len(missing[path]), not path.is_dir()))
        if missing[nearest]:
            wanted = ", ".join(file.replace("|", " or ") for file in missing[nearest])
            places = "".join(f"\n  {path}" for path in missing)
            raise DatasetNotFoundError(
                f"Dataset '{info.name}' was not found: no {wanted} in any of{places}\n"
                f"{info.how_to_get} Homepage: {info.homepage}\n"
                f"If it is elsewhere, name the data folder: with --folder, with folder=... in "
                f"Python, or with the environment variable {ENVIRONMENT}."
            )
        folders.append(nearest)
    return folders


def _missing_files(folder: Path, files: Sequence[str]) -> list[str]:
    """The files that are not in a folder; "a|b" is missing if neither is there."""
    missing = []
    for choices in files:
        if not any((folder / name).is_file() for name in choices.split("|")):
            missing.append(choices)
    return missing


# Reading them


@contextmanager
def reading(
    what: str | Path, way_out: str = "It is damaged, or not the published file."
) -> Iterator[None]:
    """Turn any failure to parse a published file into a DataError that names it."""
    try:
        yield
    except (HarmoniumError, Warning):
        raise
    except Exception as error:  # for damage, NumPy, zipfile, polars and others raise all kinds
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise DataError(f"{what} cannot be read: {reason}. {way_out}") from error


def read_table(
    path: Path, columns: Sequence[str] | None = None, *, separator: str = "\t", quote: str = ""
) -> pl.DataFrame:
    """A text table; if no column names are given, the first line has them."""
    with reading(path):
        raw = path.read_bytes()
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = raw.decode("latin-1")  # the tags of HetRec
        table = pl.read_csv(
            text.encode(),
            has_header=columns is None,
            new_columns=columns,
            separator=separator,
            quote_char=quote or None,
            infer_schema=False,
        )
        blank = pl.all_horizontal(pl.all().is_null())
        return table.rename(str.strip).remove(blank).fill_null("")


def read_arrays(path: Path, *names: str) -> Arrays:
    """The named arrays of an .npz file."""
    # Opened here: np.load leaves a file open if it is not an archive.
    with reading(path), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return {name: archive[name] for name in names}


def strings(values: Any) -> pl.Series:
    """A text array as a series, (n,)."""
    return pl.Series(values.tolist(), dtype=pl.String)
