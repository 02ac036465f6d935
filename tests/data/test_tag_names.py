"""Names of tags: one spelling for each."""

import unicodedata

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data import normalise_tag, tag_names

TEXT = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(" -_ÄßİǅA\t\x1c"))
)


@pytest.mark.parametrize(
    ("tag", "normal"),
    [
        ("Hip-Hop", "hip hop"),
        ("  hip _ hop\t", "hip hop"),
        ("HIP\u00a0–HOP", "hip hop"),  # no-break space, en dash
        ("Ｒｏｃｋ", "rock"),  # full width
        ("Straße", "strasse"),
        ("Cafe\u0301", "café"),
        ("-", ""),
        ("", ""),
        ("rock\x1froll", "rock roll"),
    ],
)
def test_one_spelling_per_tag(tag, normal):
    assert normalise_tag(tag) == normal


@given(TEXT)
@settings(deadline=None, max_examples=300)
def test_a_normal_tag_stays_as_it_is(tag):
    normal = normalise_tag(tag)
    assert normalise_tag(normal) == normal
    assert normal == " ".join(normal.split())
    assert not any(unicodedata.category(c) == "Pd" or c == "_" for c in normal)


@given(st.lists(TEXT, max_size=10))
@settings(deadline=None, max_examples=100)
def test_names_are_normalised_one_by_one(tags):
    tags += [f"a{chr(code)}B" for code in range(128)]
    normal = tag_names.normalise_names(pl.Series(tags, dtype=pl.String))
    assert normal.to_list() == [normalise_tag(tag) for tag in tags]
