"""Last.fm's tags: the Million Song Subset, HetRec's users and artists, and the join of the two."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.arrays import Floats
from harmonium.data.datasets.dataset import INFOS, Dataset
from harmonium.data.datasets.published import locate, read_arrays, read_table, strings
from harmonium.data.tables import encode, positions
from harmonium.data.tag_names import artist_groups, linked_groups, normalise_names
from harmonium.data.triples import TagCounts, Triples
from harmonium.errors import DataError

TAGGINGS = ("user_taggedartists.dat", "user_taggedartists_2.dat")
"""The published file, which may have been cut in two, each part with the header."""
JOIN = "artist_to_msd_tracks.tsv"


def load_msd(
    folder: str | Path | None = None,
    *,
    n_tags: int | None = None,
    normalise: bool = False,
    untagged: bool = False,
) -> Dataset:
    """Read features.npz and lastfm_top500.npz: weights from 0 to 100 per track and tag.

    Parameters
    ----------
    n_tags : only the tags that most tracks have (ties: the file's order), and only the tracks
        that have one of them
    normalise : whether spellings of one tag ("hip-hop", "hip hop") are merged before tags are
        chosen; the larger of two weights holds
    untagged : whether tracks without any of the tags are kept, too
    """
    if n_tags is not None and n_tags < 1:
        raise DataError(f"'n_tags' must be at least 1, got {n_tags}.")
    (path,) = locate(INFOS["msd"], folder)
    tracks, X, names = _tracks(path)
    arrays = read_arrays(path / "lastfm_top500.npz", ("track_id", "Y", "tags"))
    if not strings(arrays["track_id"]).equals(tracks["id"]):
        raise DataError(f"{path}: the two files have different tracks. Get both from one source.")
    weights, tags = arrays["Y"], strings(arrays["tags"])
    if normalise:
        weights, tags = _merged(weights, tags)
    if n_tags is not None:
        columns = np.argsort(-np.count_nonzero(weights, axis=0), kind="stable")[:n_tags]
        weights, tags = weights[:, columns], tags[columns]
    kept = np.flatnonzero(weights.any(axis=1) | untagged)
    tracks = tracks[kept]
    return Dataset(
        info=INFOS["msd"],
        items=tracks["id"],
        counts=TagCounts(tracks["id"], tags, sp.csr_array(weights[kept].astype(np.int32))),
        features=X[kept],
        feature_names=names,
        tracks=tracks["title"],
        artists=tracks["artist"],
    )


def load_hetrec(
    folder: str | Path | None = None, *, joined: bool = False, normalise: bool = False
) -> Dataset:
    """Read the triples (user, artist, tag).

    Parameters
    ----------
    joined : whether only the artists with tracks in the Million Song Subset are kept
    normalise : whether tags are brought to one spelling, so that "hip-hop" and "hip hop" are one
    """
    info = INFOS["hetrec"]
    files = [*info.files["hetrec-lastfm"], *([JOIN] if joined else [])]
    (path,) = locate(replace(info, files={"hetrec-lastfm": files}), folder)
    rows = _taggings(path)
    if joined:
        rows = rows.filter(pl.col("artist").is_in(_join(path)["artist"].implode()))
    triples = Triples.from_columns(rows["user"], rows["artist"], rows["tag"], normalise=normalise)
    # Some artists who have tags are not in the file.
    names = dict(read_table(path / "artists.dat").select("id", "name").iter_rows())
    return Dataset(
        info=info,
        items=triples.items,
        triples=triples,
        counts=triples.counts(),
        artists=pl.Series([names.get(item, f"artist {item}") for item in triples.items]),
    )


def load_hetrec_msd(
    folder: str | Path | None = None, *, normalise: bool = False, untagged: bool = False
) -> Dataset:
    """Read the triples, the features and the join between artists and tracks.

    Parameters
    ----------
    normalise : whether tags are brought to one spelling
    untagged : whether tracks of artists whom nobody tagged are kept, too
    """
    info = INFOS["hetrec-msd"]
    hetrec, msd = locate(info, folder)
    join = _join(hetrec)
    # Artists who share tracks ("Sex Pistols", "The Sex Pistols") are one, under the first name.
    group = linked_groups(join["name"], join["track"])
    first = np.unique(group, return_index=True)[1]
    join = join.with_columns(name=join["name"].gather(first[group]))
    rows = _taggings(hetrec).join(join, on="artist", maintain_order="left_right")
    tracks, X, names = _tracks(msd)
    wanted = join["track"] if untagged else rows["track"]
    kept = np.flatnonzero(tracks["id"].is_in(wanted.implode()).to_numpy())
    artist_of = dict(join.select("track", "name").iter_rows())
    tracks = tracks[kept]
    triples = _on_items(
        Triples.from_columns(rows["user"], rows["track"], rows["tag"], normalise=normalise),
        tracks["id"],
    )
    return Dataset(
        info=info,
        items=tracks["id"],
        triples=triples,
        counts=triples.counts(),
        features=X[kept],
        feature_names=names,
        tracks=tracks["title"],
        artists=pl.Series([artist_of[track] for track in tracks["id"]], dtype=pl.String),
    )


def _tracks(path: Path) -> tuple[pl.DataFrame, Floats, pl.Series]:
    """The tracks of the subset with the columns id, artist and title, their features, and names.

    A title is "artist: title". Where artists have several ids, or names in several spellings, the
    first id stands for all: the Echo Nest has two for "Prodigy" and "The Prodigy".
    """
    names = ("track_id", "X", "artist_id", "artist_name", "title", "columns")
    arrays = read_arrays(path / "features.npz", names)
    ids, artists = strings(arrays["artist_id"]), strings(arrays["artist_name"])
    group = artist_groups(ids, artists)
    table = {
        "id": strings(arrays["track_id"]),
        "artist": ids.gather(np.unique(group, return_index=True)[1][group]),
        "title": artists + ": " + strings(arrays["title"]),
    }
    return pl.DataFrame(table), arrays["X"], strings(arrays["columns"])


def _merged(weights: NDArray[np.int16], tags: pl.Series) -> tuple[NDArray[np.int16], pl.Series]:
    """Tags brought to one spelling each, in order of first appearance; the larger weight holds."""
    code, names = encode(normalise_names(tags))
    merged = np.zeros((len(weights), len(names)), dtype=weights.dtype)
    np.maximum.at(merged.T, code, weights.T)
    return merged, names


def _taggings(path: Path) -> pl.DataFrame:
    """The columns user, artist and tag: ids as they stand in the file, and the tag in words."""
    tags = read_table(path / "tags.dat").select("tagID", tag=pl.col("tagValue").str.strip_chars())
    files = [path / name for name in TAGGINGS if (path / name).is_file()]
    rows = pl.concat([read_table(file) for file in files]).join(
        tags, on="tagID", how="left", maintain_order="left"
    )
    return rows.select("tag", user="userID", artist="artistID")


def _join(path: Path) -> pl.DataFrame:
    """The pairs of the join file, with columns artist, name and track."""
    table = read_table(path / JOIN, ("artist", "name", "track"))
    return table.with_columns(pl.col("track").str.split(",")).explode("track")


def _on_items(triples: Triples, items: pl.Series) -> Triples:
    """The same triples with codes into these items, of which some may have no triple."""
    item = positions(triples.items, items, name="tracks").astype(np.int32)[triples.item]
    order = np.lexsort((triples.user, triples.tag, item))
    return replace(
        triples,
        user=triples.user[order],
        item=item[order],
        tag=triples.tag[order],
        items=items,
    )
