"""Other spellings of tags."""

import pytest

from harmonium.data import Triples
from harmonium.errors import DataError


@pytest.mark.parametrize(
    ("aliases", "message"),
    [
        ({"Hip-Hop": "rap", "hip hop": "hiphop"}, "two meanings, 'rap' and 'hiphop'"),
        ({"a": "b", "b": "a"}, "circle"),
        ({"a": "b", "b": "c", "c": "b"}, "circle"),
        ({"a": " "}, "empty tag: 'a' -> ''"),
        ({"-": "a"}, "empty tag: '' -> 'a'"),
    ],
)
def test_alias_tables_that_make_no_sense(aliases, message):
    with pytest.raises(DataError, match=message):
        Triples.from_columns(["u"], ["i"], ["t"], aliases=aliases)


def test_without_normalisation_aliases_are_taken_literally():
    options = {"normalise": False, "aliases": {"HH": "Hip-Hop", "x": "x"}}
    triples = Triples.from_columns(["u", "u"], ["i", "j"], ["HH", "hh"], **options)
    assert triples.tags.to_list() == ["Hip-Hop", "hh"]
