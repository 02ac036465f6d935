"""One spelling per tag."""

import unicodedata

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data import Triples, normalise_tag
from harmonium.data.normalise import normalise_names
from harmonium.errors import DataError

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
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Cafe\u0301", "café"),
        ("ÉLECTRO", "électro"),
        ("r&b", "r&b"),
        ("-", ""),
        ("", ""),
        ("rock\x1froll", "rock roll"),
    ],
)
def test_examples(tag, normal):
    assert normalise_tag(tag) == normal


@given(TEXT)
@settings(deadline=None, max_examples=300)
def test_a_normal_tag_is_left_alone(tag):
    normal = normalise_tag(tag)
    assert normalise_tag(normal) == normal


@given(TEXT)
@settings(deadline=None, max_examples=300)
def test_no_separator_is_left_but_single_spaces(tag):
    normal = normalise_tag(tag)
    assert normal == " ".join(normal.split())
    assert not any(unicodedata.category(c) == "Pd" or c == "_" for c in normal)


@given(st.lists(TEXT, max_size=10))
@settings(deadline=None, max_examples=100)
def test_names_are_normalised_one_by_one(tags):
    normal = normalise_names(pl.Series(tags, dtype=pl.String))
    assert normal.to_list() == [normalise_tag(tag) for tag in tags]


def test_every_ascii_character_is_treated_alike_alone_and_in_bulk():
    tags = [f"a{chr(code)}B" for code in range(128)]
    assert normalise_names(pl.Series(tags)).to_list() == [normalise_tag(tag) for tag in tags]


@pytest.mark.parametrize(
    ("aliases", "message"),
    [
        ({"Hip-Hop": "rap", "hip hop": "hiphop"}, "two meanings, 'rap' and 'hiphop'"),
        ({"a": "b", "b": "a"}, "goes in a circle"),
        ({"a": " "}, "has an empty tag: 'a' -> ''"),
        ({"-": "a"}, "has an empty tag: '' -> 'a'"),
    ],
)
def test_alias_tables_that_make_no_sense(aliases, message):
    with pytest.raises(DataError, match=message):
        Triples.from_columns(["u"], ["i"], ["t"], aliases=aliases)


def test_without_normalisation_aliases_are_taken_literally():
    triples = Triples.from_columns(
        ["u", "u"], ["i", "j"], ["HH", "hh"], normalise=False, aliases={"HH": "Hip-Hop", "x": "x"}
    )
    assert triples.tags.to_list() == ["Hip-Hop", "hh"]
