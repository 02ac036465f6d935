"""Triples of (user, item, tag), the labels made from them, and the datasets that hold them."""

from harmonium.data.tag_names import artist_groups, artist_key, normalise_tag
from harmonium.data.triples import (
    Conditioning,
    TagCounts,
    Triples,
    read_aliases,
    read_counts,
    read_triples,
)

__all__ = [
    "Conditioning",
    "TagCounts",
    "Triples",
    "artist_groups",
    "artist_key",
    "normalise_tag",
    "read_aliases",
    "read_counts",
    "read_triples",
]
