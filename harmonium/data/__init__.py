"""Triples of (user, item, tag), the labels made from them, and the datasets that hold them."""

from harmonium.data.artists import artist_groups, artist_key
from harmonium.data.conditioning import Conditioning
from harmonium.data.normalise import normalise_tag
from harmonium.data.tag_counts import TagCounts
from harmonium.data.tag_files import read_aliases, read_counts, read_triples
from harmonium.data.triples import Triples

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
