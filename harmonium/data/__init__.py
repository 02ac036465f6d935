"""Triples of (user, item, tag), the labels made from them, and public datasets."""

from harmonium.data.aliases import read_aliases as read_aliases
from harmonium.data.artists import artist_groups as artist_groups
from harmonium.data.artists import artist_key as artist_key
from harmonium.data.conditioning import Conditioning as Conditioning
from harmonium.data.counts import TagCounts as TagCounts
from harmonium.data.counts import read_counts as read_counts
from harmonium.data.tag_names import normalise_tag as normalise_tag
from harmonium.data.triples import Triples as Triples
from harmonium.data.triples import read_triples as read_triples
