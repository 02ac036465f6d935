"""4Q and GTZAN as musicnn hears them: its features and tag probabilities, and the editors' tags."""

from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from harmonium.data.datasets.dataset import INFOS, Dataset
from harmonium.data.datasets.published import (
    check_option,
    locate,
    read_arrays,
    read_table,
    strings,
)
from harmonium.data.triples import TagCounts

N_EMBEDDING, N_HEADS = 400, 100

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
"""Network and tag of each probability, in the order of the networks' outputs."""
_COLUMNS = {
    "embedding": tuple(f"{net} {k}" for net in ("MSD", "MTT") for k in range(N_EMBEDDING // 2)),
    "heads": HEADS,
}


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
    check_option("features", features, ("embedding", "heads", "both"))
    check_option("kind", kind, ("mood", "genre"))
    info = INFOS[name]
    (path,) = locate(info, folder)
    arrays = read_arrays(path / f"{name}.npz", ("item", "group", "embedding", "heads"))
    items, group = strings(arrays["item"]), arrays["group"]
    table = read_table(path / f"{name}_tags.tsv")
    if kind is not None:
        table = table.filter(pl.col("kind") == kind)
    ones = np.ones(len(table), np.int64)
    parts = [*_COLUMNS] if features == "both" else [features] if features else []
    valid = group == 1
    return Dataset(
        info=info,
        items=items,
        counts=TagCounts.from_columns(table["item"], table["tag"], ones, all_items=items),
        features=np.concatenate([arrays[part] for part in parts], axis=1) if parts else None,
        feature_names=pl.Series([n for p in parts for n in _COLUMNS[p]]) if parts else None,
        tracks=items,
        artists=pl.Series([f"artist {number}" for number in group]) if name == "4q" else None,
        splits={"train": np.flatnonzero(~valid), "valid": np.flatnonzero(valid)}
        if name == "gtzan"
        else {},
    )
