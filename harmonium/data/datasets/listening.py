"""4Q and GTZAN as musicnn hears them: its features and tag probabilities, and the editors' tags."""

from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.data.datasets.dataset import INFOS, Dataset
from harmonium.data.datasets.locate import locate
from harmonium.data.datasets.published_files import (
    fault,
    feature_matrix,
    not_empty,
    read_arrays,
    read_table,
    strings,
)
from harmonium.data.tag_counts import TagCounts
from harmonium.errors import DataError

COLUMNS = ("item", "kind", "tag")
KINDS = ("mood", "genre")
N_EMBEDDING, N_HEADS = 400, 100

# The tags of the two networks, in the order of their outputs.
_MSD = """
rock, pop, alternative, indie, electronic, female vocalists, dance, 00s,
alternative rock, jazz, beautiful, metal, chillout, male vocalists, classic rock, soul,
indie rock, mellow, electronica, 80s, folk, 90s, chill, instrumental, punk, oldies,
blues, hard rock, ambient, acoustic, experimental, female vocalist, guitar, hip-hop, 70s,
party, country, easy listening, sexy, catchy, funk, electro, heavy metal,
progressive rock, 60s, rnb, indie pop, sad, house, happy
"""
_MTT = """
guitar, classical, slow, techno, strings, drums, electronic, rock, fast, piano, ambient,
beat, violin, vocal, synth, female, indian, opera, male, singing, vocals, no vocals,
harpsichord, loud, quiet, flute, woman, male vocal, no vocal, pop, soft, sitar, solo,
man, classic, choir, voice, new age, dance, male voice, female vocal, beats, harp, cello,
no voice, weird, country, metal, female voice, choral
"""
HEADS = tuple(
    f"{network}: {tag.strip()}"
    for network, tags in (("MSD", _MSD), ("MTT", _MTT))
    for tag in tags.replace("\n", " ").split(",")
)
"""Network and tag of each probability."""


def load(
    name: Literal["4q", "gtzan"],
    folder: str | Path | None = None,
    *,
    features: Literal["embedding", "heads", "both"] | None = "embedding",
    kind: Literal["mood", "genre"] | None = None,
) -> Dataset:
    """Read NAME.npz and NAME_tags.tsv of the folder listening.

    Parameters
    ----------
    features : "embedding", the last hidden layers of MSD_musicnn and MTT_musicnn (400); "heads",
        the probabilities of their tags (100); "both" (500); None, no features
    kind : only moods or only genres
    """
    if features not in ("embedding", "heads", "both", None):
        raise DataError(
            f"'features' must be 'embedding', 'heads', 'both' or None, got {features!r}."
        )
    if kind not in (*KINDS, None):
        raise DataError(f"'kind' must be 'mood', 'genre' or None, got {kind!r}.")
    info = INFOS[name]
    path = locate(info, folder)["listening"]
    arrays = read_arrays(path / f"{name}.npz", ["item", "group", "embedding", "heads"])
    items = strings(arrays["item"])
    table = _table(path / f"{name}_tags.tsv", items, kind)
    X = None if features is None else _features(path / f"{name}.npz", arrays, features)
    group = arrays["group"]
    return Dataset(
        info=info,
        items=items,
        counts=TagCounts.from_columns(
            table["item"], table["tag"], np.ones(len(table), np.int64), all_items=items
        ),
        features=X,
        feature_names=None if features is None else _names(features),
        tracks=items,
        artists=pl.Series([f"artist {number}" for number in group]) if name == "4q" else None,
        splits={}
        if name == "4q"
        else {"train": np.flatnonzero(group != 1), "valid": np.flatnonzero(group == 1)},
    )


def _table(path: Path, items: pl.Series, kind: str | None) -> pl.DataFrame:
    """The rows of the file, each with an item that is known, and a kind."""
    table = read_table(path, COLUMNS, header=True)
    table = table.with_columns(*(not_empty(path, table, name) for name in COLUMNS))
    for column, known in (("item", items), ("kind", pl.Series(KINDS))):
        strange = table.filter(~pl.col(column).is_in(known.implode()))
        if len(strange):
            value, line = strange[column][0], strange["line"][0]
            raise fault(path, line, f"{column} '{value}' is not known.")
    return table if kind is None else table.filter(pl.col("kind") == kind)


def _features(
    path: Path, arrays: dict[str, NDArray[np.generic]], which: str
) -> NDArray[np.float32]:
    """(n, 400, 100 or 500)"""
    embedding = feature_matrix(path, arrays["embedding"], N_EMBEDDING)
    heads = feature_matrix(path, arrays["heads"], N_HEADS)
    both = {"embedding": [embedding], "heads": [heads], "both": [embedding, heads]}
    return np.concatenate(both[which], axis=1)


def _names(which: str) -> pl.Series:
    embedding = [f"{net} {k}" for net in ("MSD", "MTT") for k in range(N_EMBEDDING // 2)]
    both = {"embedding": embedding, "heads": HEADS, "both": [*embedding, *HEADS]}
    return pl.Series(both[which])
