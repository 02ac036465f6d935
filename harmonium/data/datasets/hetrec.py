"""HetRec Last.fm: who gave which tag to which artist; and its join with the MSD subset."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from harmonium.data.datasets import msd
from harmonium.data.datasets.dataset import INFOS, Dataset
from harmonium.data.datasets.locate import locate
from harmonium.data.datasets.published_files import fault, not_empty, read_table, whole_numbers
from harmonium.data.name_columns import codes_in
from harmonium.data.triples import Triples

TAGGINGS = "user_taggedartists.dat"
# The published file may have been cut in two, each part with the header.
SECOND_PART = "user_taggedartists_2.dat"
JOIN = "artist_to_msd_tracks.tsv"
INFO, JOINED = INFOS["hetrec"], INFOS["hetrec-msd"]


def load(
    folder: str | Path | None = None, *, joined: bool = False, normalise: bool = False
) -> Dataset:
    """Read the triples (user, artist, tag).

    Parameters
    ----------
    joined : whether only the artists with tracks in the Million Song Subset are kept
    normalise : whether tags are brought to one spelling, so that "hip-hop" and "hip hop" are one
    """
    needed = [*INFO.files["hetrec-lastfm"], *([JOIN] if joined else [])]
    path = locate(replace(INFO, files={"hetrec-lastfm": needed}), folder)["hetrec-lastfm"]
    rows = _taggings(path)
    if joined:
        rows = rows.filter(pl.col("artist").is_in(_join(path / JOIN)["artist"].implode()))
    triples = Triples.from_columns(rows["user"], rows["artist"], rows["tag"], normalise=normalise)
    # Some artists who have tags are not in the file.
    names = _names(path / "artists.dat", ("id", "name", "url", "pictureURL"))
    artists = [names.get(int(item), f"artist {item}") for item in triples.items]
    return Dataset(
        info=INFO,
        items=triples.items,
        triples=triples,
        counts=triples.counts(),
        artists=pl.Series(artists, dtype=pl.String),
    )


def load_joined(
    folder: str | Path | None = None, *, normalise: bool = False, untagged: bool = False
) -> Dataset:
    """Read the triples, the features and the join between artists and tracks.

    Parameters
    ----------
    normalise : whether tags are brought to one spelling
    untagged : whether tracks of artists whom nobody tagged are kept, too
    """
    paths = locate(JOINED, folder)
    join = _grouped(_join(paths["hetrec-lastfm"] / JOIN))
    rows = _taggings(paths["hetrec-lastfm"]).join(join, on="artist", maintain_order="left_right")
    tracks = msd.read_features(paths["msd-subset"] / "features.npz")
    wanted = join["track"] if untagged else rows["track"]
    kept = np.flatnonzero(tracks.ids.is_in(wanted.implode()).to_numpy())
    items = tracks.ids[kept]
    missing = wanted.filter(~wanted.is_in(items.implode()))
    if len(missing):
        problem = f"track '{missing[0]}' is not in the MSD subset's features.npz."
        raise fault(paths["hetrec-lastfm"] / JOIN, None, problem)
    triples = _on_items(
        Triples.from_columns(rows["user"], rows["track"], rows["tag"], normalise=normalise), items
    )
    artist_of = dict(join.select("track", "name").iter_rows())
    return Dataset(
        info=JOINED,
        items=items,
        triples=triples,
        counts=triples.counts(),
        features=tracks.features[kept],
        feature_names=tracks.feature_names,
        tracks=tracks.titles[kept],
        artists=pl.Series([artist_of[track] for track in items], dtype=pl.String),
    )


def _taggings(path: Path) -> pl.DataFrame:
    """The columns user, artist and tag: ids as they stand in the file, and the tag in words."""
    # Latin-1, unlike the other files.
    names = _names(path / "tags.dat", ("tagID", "tagValue"), encoding="latin-1")
    files = [path / TAGGINGS, path / SECOND_PART]
    rows = pl.concat(_tagging_ids(file, names) for file in files if file.is_file())
    tag = pl.col("tagID").replace_strict(list(names), list(names.values()))
    return rows.select(user="userID", artist="artistID", tag=tag)


def _tagging_ids(path: Path, tags: Mapping[int, str]) -> pl.DataFrame:
    """The ids in the rows of one file, whose tags must be among these."""
    columns = ("userID", "artistID", "tagID", "day", "month", "year")
    table = read_table(path, columns, header=True)
    ids = table.with_columns(
        pl.Series(column, whole_numbers(path, table, column)) for column in columns[:3]
    )
    unknown = ~ids["tagID"].is_in(list(tags))
    if unknown.any():
        row = unknown.arg_max() or 0
        raise fault(path, ids["line"][row], f"tag {ids['tagID'][row]} is not in tags.dat.")
    return ids


def _names(path: Path, columns: tuple[str, ...], *, encoding: str = "utf-8") -> dict[int, str]:
    """The first column's numbers -> the second one's names, none of them missing."""
    table = read_table(path, columns, header=True, encoding=encoding)
    numbers = whole_numbers(path, table, columns[0]).tolist()
    return dict(zip(numbers, not_empty(path, table, columns[1]), strict=True))


def _join(path: Path) -> pl.DataFrame:
    """The pairs of the join file, with columns artist, name and track."""
    table = read_table(path, ("artist", "name", "tracks"), header=False)
    return table.select(
        pl.Series("artist", whole_numbers(path, table, "artist")),
        not_empty(path, table, "name"),
        not_empty(path, table, "tracks").str.split(",").alias("track"),
    ).explode("track")


def _grouped(join: pl.DataFrame) -> pl.DataFrame:
    """The join with one name for all artists that are linked by tracks they share.

    "Sex Pistols" and "The Sex Pistols" have the same tracks: both get the name that comes first.
    """
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    first_of: dict[str, str] = {}
    for name, track in join.select("name", "track").iter_rows():
        leader[find(name)] = find(first_of.setdefault(track, name))
    return join.with_columns(
        pl.Series("name", [find(name) for name in join["name"]], dtype=pl.String)
    )


def _on_items(triples: Triples, items: pl.Series) -> Triples:
    """The same triples with codes into these items, of which some may have no triple."""
    new = codes_in(triples.items, items)[triples.item]
    order = np.lexsort((triples.user, triples.tag, new))
    return replace(
        triples,
        user=triples.user[order],
        item=new[order],
        tag=triples.tag[order],
        items=items,
    )
