"""Triples of (user, item, tag), the labels made from them, and public datasets."""

from harmonium.data.tag_names import artist_groups as artist_groups
from harmonium.data.tag_names import artist_key as artist_key
from harmonium.data.tag_names import normalise_tag as normalise_tag
from harmonium.data.triples import Conditioning as Conditioning
from harmonium.data.triples import TagCounts as TagCounts
from harmonium.data.triples import Triples as Triples
from harmonium.data.triples import read_aliases as read_aliases
from harmonium.data.triples import read_counts as read_counts
from harmonium.data.triples import read_triples as read_triples
