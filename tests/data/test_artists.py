"""Spellings of artists' names."""

import polars as pl
import pytest

from harmonium.data import artist_groups, artist_key


@pytest.mark.parametrize(
    "spellings",
    [
        ("The Prodigy", "Prodigy", "PRODIGY", "Prodigy, The", " prodigy "),
        ("Simon & Garfunkel", "Simon and Garfunkel", "Simon And Garfunkel", "Simon + Garfunkel"),
        ("N*E*R*D", "N.E.R.D.", "NERD"),
        ("Goldie", "Goldie ft. KRS-One", "Goldie Featuring KRS-One", "Goldie (feat. KRS-One)"),
        ("Björk", "Bjork", "Bjo\u0308rk"),
        ("Jay-Z", "Jay Z", "JAY\u2010Z"),
    ],
)
def test_spellings_of_one_artist_have_one_key(spellings):
    assert len({artist_key(name) for name in spellings}) == 1


def test_different_artists_have_different_keys():
    names = (
        "The The",
        "The Who",
        "The Band",
        "Bad Company",
        "Feat",
        "Little Feat",
        "Ft. Worth",
        "!!!",
        "†††",
        "",
        "13",
        "Featuring",
        "Them",
        "Theory",
        "Sand",
        "S & D",
        "いきものがかり",
    )
    assert len({artist_key(name) for name in names}) == len(names)


def test_rows_are_linked_by_any_column():
    ids = pl.Series(["a", "b", "b", "c", "d", "e"])
    names = pl.Series(["Prodigy", "The Prodigy", "Keith", "Keith!", "Moby", "moby"])
    groups = artist_groups(ids, names)
    assert groups.tolist() == [0, 0, 0, 0, 1, 1]
    assert len(set(artist_groups(names).tolist())) == 3
