"""The loaders of published datasets: each finds its files, parses them, and returns a Dataset.

docs/datasets.md describes their options.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
import scipy.sparse as sp

from harmonium.arrays import Codes, Floats, Mask
from harmonium.data.artists import artist_groups, linked_groups
from harmonium.data.coded import Coded, codes_in, encode, positions
from harmonium.data.counts import TagCounts
from harmonium.data.datasets.dataset import (
    INFOS,
    MUSICNN_TAGS,
    Dataset,
    locate,
    read_arrays,
    read_table,
    reading,
    strings,
)
from harmonium.data.tag_names import normalise_names
from harmonium.data.triples import Triples, sorted_triples
from harmonium.errors import DataError

N_MFCC = 104
N_EMBEDDING = 400
EMOTIONS = (
    "amazement",
    "solemnity",
    "tenderness",
    "nostalgia",
    "calmness",
    "power",
    "joyful_activation",
    "tension",
    "sadness",
)
PROFILE = ("age", "gender", "mother tongue", "mood")
AUDIO = ("clips/{genre}_{number}.ogg", "{genre}/{number}.mp3", "emotifymusic/{genre}/{number}.mp3")
"""Where the sound of an excerpt may be: short clips, or the layout of the published archive."""
HEADS = tuple(f"{net}: {tag}" for net, tags in MUSICNN_TAGS.items() for tag in tags)
"""Network and tag of each probability, in the order of the networks' outputs."""
_MUSICNN_COLUMNS = {
    "embedding": tuple(f"{net} {k}" for net in MUSICNN_TAGS for k in range(N_EMBEDDING // 2)),
    "heads": HEADS,
}
TAGGINGS = ("user_taggedartists.dat", "user_taggedartists_2.dat")
"""The published file, which may have been cut in two, each part with the header."""
JOIN = "artist_to_msd_tracks.tsv"

N_FEATURES = 389
CLIPS_PER_TRACK = 5  # clips per track in the paper's MTurk data
SIZES = {  # the published number of rows
    "mturk": {"train": 597, "valid": 123, "test": 195},
    "majmin": {"train": 1587, "valid": 471, "test": 480},
}


def _check_option(name: str, value: str | None, allowed: Sequence[str]) -> None:
    if value not in (*allowed, None):
        listed = ", ".join(map(repr, allowed))
        raise DataError(f"'{name}' must be {listed} or None, got {value!r}.")


def load_majorminer(
    folder: str | Path | None = None, *, features: Literal["mfcc", "all"] | None = "mfcc"
) -> Dataset:
    """Read majorminer.tsv and features.npz, of which "mfcc" are the first 104 columns."""
    _check_option("features", features, ("mfcc", "all"))
    info = INFOS["majorminer"]
    if not features:
        info = replace(info, files={"majorminer": ("majorminer.tsv",)})
    (path,) = locate(info, folder)
    names = ("clip", "title", "artist", "album", "offset", "tag", "count")
    table = read_table(path / "majorminer.tsv", names).with_columns(
        pl.col("artist").str.strip_chars().replace("", "(unknown)")
    )
    clips = table.unique("clip", keep="first").sort("clip")
    X = None
    columns = None
    if features is not None:
        arrays = read_arrays(path / "features.npz", "clip_id", "X", "columns")
        n_columns = N_MFCC if features == "mfcc" else len(arrays["columns"])
        rows = positions(clips["clip"], strings(arrays["clip_id"]), name="clips")
        X = arrays["X"][rows, :n_columns]
        columns = strings(arrays["columns"][:n_columns])
    return Dataset(
        info=INFOS["majorminer"],
        items=clips["clip"],
        counts=TagCounts.from_columns(
            table["clip"], table["tag"], table["count"], all_items=clips["clip"], normalise=False
        ),
        features=X,
        feature_names=columns,
        tracks=clips["artist"] + ": " + clips["title"],
        artists=clips["artist"],
    )


def load_emotify(folder: str | Path | None = None) -> Dataset:
    """Read data.csv, one row per listener and excerpt, and find the sound files.

    Listeners who agree in age, gender, mother tongue and mood are one pseudo-user, numbered from
    the second such listener of an excerpt on. Those who never marked anything are users, too.
    """
    (path,) = locate(INFOS["emotify"], folder)
    track = pl.col("track id").cast(pl.Int64) - 1
    number_of_profile = pl.int_range(pl.len()).over("track id", *PROFILE) + 1
    profile = pl.format("age {}, gender {}, {}, mood {}", *PROFILE)
    numbered_profile = pl.format("{}, no. {}", profile, number_of_profile)
    user = pl.when(number_of_profile == 1).then(profile).otherwise(numbered_profile)
    table = (
        read_table(path / "data.csv", separator=",", quote='"')
        .with_columns(pl.all().str.strip_chars())
        .with_columns(track=track, number=track % 100 + 1)
        .with_columns(item=pl.format("{}_{}", "genre", "number"), user=user)
    )
    excerpts = table.unique("item").sort("track")
    items = excerpts["item"]
    item_of_row = codes_in(table["item"], items)
    triples = _emotify_triples(table, item_of_row, items)
    return Dataset(
        info=INFOS["emotify"],
        items=items,
        triples=triples,
        counts=triples.counts(),
        tracks=items,
        audio=_emotify_audio(path, excerpts),
        listeners=np.bincount(item_of_row).astype(np.int32),
        seen=table.select("user", "item"),
    )


def _emotify_triples(table: pl.DataFrame, item_of_row: Codes, items: pl.Series) -> Triples:
    """Who marked which emotion of which excerpt."""
    users = table["user"].unique().sort()
    user_of_row = codes_in(table["user"], users)
    row, emotion = np.nonzero(table.select(pl.col(EMOTIONS).cast(pl.Int8)).to_numpy())
    tags = pl.Series([name.replace("_", " ") for name in EMOTIONS])
    return sorted_triples(
        Coded(user_of_row[row], users),
        Coded(item_of_row[row], items),
        Coded(emotion.astype(np.int32), tags),
    )


def _emotify_audio(path: Path, excerpts: pl.DataFrame) -> list[Path] | None:
    """The sound file of each excerpt, n of them, or None if there is no sound at all."""
    for pattern in AUDIO:
        files = [path / pattern.format(**row) for row in excerpts.iter_rows(named=True)]
        missing = [file for file in files if not file.is_file()]
        if not missing:
            return files
        if len(missing) < len(files):
            raise DataError(
                f"{missing[0]} is missing, and so are {len(missing) - 1} others of the "
                f"{len(files)} excerpts. Copy them all, or none."
            )
    return None


def load_listening(
    name: Literal["4q", "gtzan"],
    folder: str | Path | None = None,
    *,
    features: Literal["embedding", "heads", "both"] | None = "embedding",
) -> Dataset:
    """Read NAME.npz, each clip's musicnn features, and NAME_tags.tsv, the editors' tags.

    "embedding" are the last hidden layers of MSD_musicnn and MTT_musicnn (400), and "heads" the
    probabilities of their tags (100).
    """
    _check_option("features", features, ("embedding", "heads", "both"))
    (path,) = locate(INFOS[name], folder)
    arrays = read_arrays(path / f"{name}.npz", "item", "group", "embedding", "heads")
    items = strings(arrays["item"])
    group = arrays["group"]
    table = read_table(path / f"{name}_tags.tsv")
    ones = np.ones(len(table), np.int64)
    X = None
    columns = None
    if features is not None:
        parts = ("embedding", "heads") if features == "both" else (features,)
        X = np.concatenate([arrays[part] for part in parts], axis=1)
        columns = pl.Series([column for part in parts for column in _MUSICNN_COLUMNS[part]])
    artists = None
    splits = {}
    if name == "4q":
        artists = pl.Series([f"artist {number}" for number in group])
    else:
        splits = {"train": np.flatnonzero(group != 1), "valid": np.flatnonzero(group == 1)}
    return Dataset(
        info=INFOS[name],
        items=items,
        counts=TagCounts.from_columns(table["item"], table["tag"], ones, all_items=items),
        features=X,
        feature_names=columns,
        tracks=items,
        artists=artists,
        splits=splits,
    )


def load_msd(
    folder: str | Path | None = None, *, n_tags: int | None = None, normalise: bool = False
) -> Dataset:
    """Read features.npz and lastfm_top500.npz: weights from 0 to 100 per track and tag.

    ``n_tags`` chooses the tags that most tracks have (ties: the file's order), after merging
    spellings of one tag; the larger weight counts.
    """
    if n_tags is not None and n_tags < 1:
        raise DataError(f"'n_tags' must be at least 1, got {n_tags}.")
    (path,) = locate(INFOS["msd"], folder)
    msd = _msd_tracks(path)
    tracks = msd.tracks
    arrays = read_arrays(path / "lastfm_top500.npz", "track_id", "Y", "tags")
    if not strings(arrays["track_id"]).equals(tracks["id"]):
        raise DataError(f"{path}: the two files have different tracks. Get both from one source.")
    weights = arrays["Y"]
    tags = strings(arrays["tags"])
    if normalise:
        merged_tags = encode(normalise_names(tags))
        tags = merged_tags.names
        merged = np.zeros((len(weights), len(tags)), dtype=weights.dtype)
        np.maximum.at(merged.T, merged_tags.codes, weights.T)
        weights = merged
    if n_tags is not None:
        columns = np.argsort(-np.count_nonzero(weights, axis=0), kind="stable")[:n_tags]
        weights = weights[:, columns]
        tags = tags[columns]
    kept = np.flatnonzero(weights.any(axis=1))
    tracks = tracks[kept]
    matrix = sp.csr_array(weights[kept].astype(np.int32))
    return Dataset(
        info=INFOS["msd"],
        items=tracks["id"],
        counts=TagCounts(items=tracks["id"], tags=tags, matrix=matrix),
        features=msd.features[kept],
        feature_names=msd.feature_names,
        tracks=tracks["title"],
        artists=tracks["artist"],
    )


def load_hetrec(folder: str | Path | None = None, *, normalise: bool = False) -> Dataset:
    """Read the triples (user, artist, tag)."""
    (path,) = locate(INFOS["hetrec"], folder)
    rows = _taggings(path)
    triples = Triples.from_columns(rows["user"], rows["artist"], rows["tag"], normalise=normalise)
    names = dict(read_table(path / "artists.dat").select("id", "name").iter_rows())
    # Some artists who have tags are not in the file.
    artists = pl.Series([names.get(item, f"artist {item}") for item in triples.items])
    return Dataset(
        info=INFOS["hetrec"],
        items=triples.items,
        triples=triples,
        counts=triples.counts(),
        artists=artists,
    )


def load_hetrec_msd(folder: str | Path | None = None, *, normalise: bool = False) -> Dataset:
    """Read the triples, the features and the join between artists and tracks."""
    hetrec_folder, msd_folder = locate(INFOS["hetrec-msd"], folder)
    join = _artists_and_tracks(hetrec_folder)
    taggings = _taggings(hetrec_folder).join(join, on="artist", maintain_order="left_right")
    msd = _msd_tracks(msd_folder)
    kept = np.flatnonzero(msd.tracks["id"].is_in(taggings["track"].implode()).to_numpy())
    tracks = msd.tracks[kept]
    in_order_of_tags = Triples.from_columns(
        taggings["user"], taggings["track"], taggings["tag"], normalise=normalise
    )
    place_of_item = positions(in_order_of_tags.items, tracks["id"], name="tracks")
    triples = sorted_triples(
        Coded(in_order_of_tags.user, in_order_of_tags.users),
        Coded(place_of_item.astype(np.int32)[in_order_of_tags.item], tracks["id"]),
        Coded(in_order_of_tags.tag, in_order_of_tags.tags),
    )
    artist_of = dict(join.select("track", "name").iter_rows())
    return Dataset(
        info=INFOS["hetrec-msd"],
        items=tracks["id"],
        triples=triples,
        counts=triples.counts(),
        features=msd.features[kept],
        feature_names=msd.feature_names,
        tracks=tracks["title"],
        artists=pl.Series([artist_of[track] for track in tracks["id"]], dtype=pl.String),
    )


def _artists_and_tracks(folder: Path) -> pl.DataFrame:
    """The columns artist, name and track, a row for each track of each artist.

    Artists who share tracks ("Sex Pistols", "The Sex Pistols") are one, under the first name.
    """
    join = read_table(folder / JOIN, ("artist", "name", "track"))
    join = join.with_columns(pl.col("track").str.split(",")).explode("track")
    group = linked_groups(join["name"], join["track"])
    _, first_row = np.unique(group, return_index=True)
    return join.with_columns(name=join["name"].gather(first_row[group]))


class _MsdTracks(NamedTuple):
    tracks: pl.DataFrame  # with the columns id, artist and title
    features: Floats  # (n_tracks, D)
    feature_names: pl.Series  # (D,)


def _msd_tracks(path: Path) -> _MsdTracks:
    """The tracks of the subset.

    A title is "artist: title". Where artists have several ids, or names in several spellings, the
    first id stands for all: the Echo Nest has two for "Prodigy" and "The Prodigy".
    """
    names = ("track_id", "X", "artist_id", "artist_name", "title", "columns")
    arrays = read_arrays(path / "features.npz", *names)
    ids = strings(arrays["artist_id"])
    artists = strings(arrays["artist_name"])
    group = artist_groups(ids, artists)
    _, first_row = np.unique(group, return_index=True)
    tracks = pl.DataFrame(
        {
            "id": strings(arrays["track_id"]),
            "artist": ids.gather(first_row[group]),
            "title": artists + ": " + strings(arrays["title"]),
        }
    )
    return _MsdTracks(tracks=tracks, features=arrays["X"], feature_names=strings(arrays["columns"]))


def _taggings(path: Path) -> pl.DataFrame:
    """The columns user, artist and tag: ids as in the file, and the tag in words."""
    tags = read_table(path / "tags.dat").select("tagID", tag=pl.col("tagValue").str.strip_chars())
    files = [path / name for name in TAGGINGS if (path / name).is_file()]
    rows = pl.concat([read_table(file) for file in files]).join(
        tags, on="tagID", how="left", maintain_order="left"
    )
    return rows.select("tag", user="userID", artist="artistID")


def load_paper_files(
    name: str, folder: str | Path | None = None, *, check_sizes: bool = True
) -> Dataset:
    """Read `NAME_{train,valid,test}.libsvm`; check_sizes=False allows a part of the rows.

    They are as published with MLPython, multi-label libsvm files: `label,label feature:value ...`,
    one item a line. Labels count from 0 and features from 1; an item may have no label. The files
    do not say which clips are of one track, so `CLIPS_PER_TRACK` lines in a row are taken as one:
    unless somebody shuffled them, few tracks are split.
    """
    (path,) = locate(INFOS[name], folder)
    features: list[Floats] = []
    labels: list[Mask] = []
    names: list[str] = []
    tracks: list[str] = []
    splits = {}
    for split, n_rows in SIZES[name].items():
        file = path / f"{name}_{split}.libsvm"
        X, Y = read_split(file, name, n_rows if check_sizes else None)
        features.append(X)
        labels.append(Y)
        splits[split] = np.arange(len(names), len(names) + len(X))
        names += [f"{split} {row:04d}" for row in range(len(X))]
        tracks += [f"{split} {row // CLIPS_PER_TRACK:04d}" for row in range(len(X))]
    items = pl.Series(names, dtype=pl.String)
    Y = np.concatenate(labels)
    tags = pl.Series([f"tag {tag:02d}" for tag in range(Y.shape[1])])
    return Dataset(
        info=INFOS[name],
        items=items,
        counts=TagCounts(items=items, tags=tags, matrix=sp.csr_array(Y.astype(np.int32))),
        features=np.concatenate(features),
        tracks=pl.Series(tracks, dtype=pl.String),
        splits=splits,
    )


def read_split(path: Path, name: str, n_rows: int | None) -> tuple[Floats, Mask]:
    """Features and labels of one file, which must have ``n_rows`` rows."""
    from sklearn.datasets import load_svmlight_file

    with reading(path):
        X, given = load_svmlight_file(
            str(path), n_features=N_FEATURES, dtype=np.float32, multilabel=True, zero_based=False
        )
        labels = np.zeros((len(given), INFOS[name].tags or 0), dtype=np.bool_)
        for row, ids in enumerate(given):
            labels[row, np.array(ids, dtype=np.intp)] = True
    if n_rows not in (None, len(labels)):
        raise DataError(f"{path} has {len(labels)} rows where the published file has {n_rows}.")
    return X.toarray(), labels
