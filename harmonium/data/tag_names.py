"""Names of tags: one spelling for each, and their kinds."""

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from harmonium.files import read_toml

AUDIO_FEATURES = (
    "energy",
    "valence",
    "danceability",
    "acousticness",
    "instrumentalness",
    "liveness",
    "speechiness",
)
"""Tags of the built-in model without a threshold: their probability is a value from 0 to 1, and
they are not listed or written as tags."""

# White space, underscores, Unicode's dashes, and the minus sign.
_ASCII_SEPARATORS = r"[\s\x1c-\x1f_\-]+"
_SEPARATORS = re.compile(
    r"[\s\x1c-\x1f_\-\u058a\u05be\u1400\u1806\u2010-\u2015\u2212\u2e17\u2e1a\u2e3a\u2e3b\u2e40"
    r"\u2e5d\u301c\u3030\u30a0\U00010ead]+"
)

OWN = "own"  # the kind of a tag if nothing else is known
KINDS = ("genre", "mood", "instrument", "voice", "era", "sound", OWN)  # the kinds of tags
NO_TAG = "none"  # instead of a kind: for words that are not tags, see `not_tags.toml`
_NUMBER = re.compile(r"\(?\d+\)?")


def normalise_tag(tag: str) -> str:
    """The tag in lower case, with single spaces between words.

    Unicode's compatibility form (NFKC) makes full-width and decomposed letters plain, case is
    folded, and runs of white space, hyphens, dashes and underscores become one space, with none
    left at the ends: "Hip-Hop", "hip_hop " and "HIP  HOP" are all "hip hop".
    """
    folded = unicodedata.normalize("NFKC", tag).casefold()
    return _SEPARATORS.sub(" ", unicodedata.normalize("NFKC", folded)).strip(" ")


def normalise_names(names: pl.Series) -> pl.Series:
    """normalise_tag of each name, (n,)."""
    # For ASCII, NFKC changes nothing and folding is lower case: polars does all at once.
    normal = names.str.to_lowercase().str.replace_all(_ASCII_SEPARATORS, " ").str.strip_chars(" ")
    others = np.flatnonzero((names.str.len_bytes() != names.str.len_chars()).to_numpy())
    if len(others):
        normal = normal.scatter(others, [normalise_tag(name) for name in names.gather(others)])
    return normal


@cache
def words_that_are_not_tags() -> frozenset[str]:
    """The words of `not_tags.toml`, normalised."""
    table = read_toml(Path(__file__).with_name("not_tags.toml"), "The words that are not tags")
    return frozenset(map(normalise_tag, table["words"]))


def kind_of(name: str, kinds: Mapping[str, str]) -> str:
    """The kind of a normalised tag, from ``kinds`` if known; `NO_TAG` for a bare number."""
    kind = kinds.get(name)
    if kind:
        return kind
    return NO_TAG if _NUMBER.fullmatch(name) else OWN
