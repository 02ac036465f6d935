"""Names of tags and artists: one spelling, several tags in one text, the tree of genres."""

import unicodedata

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data import Triples, artist_groups, artist_key, normalise_tag, tag_names
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
def test_a_normal_tag_has_single_spaces_and_is_left_alone(tag):
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
        *("The The", "The Who", "The Band", "Bad Company", "Feat", "Little Feat", "Ft. Worth"),
        *("!!!", "†††", "", "13", "Featuring", "Them", "Theory", "Sand", "S & D", "いきものがかり"),
    )
    assert len({artist_key(name) for name in names}) == len(names)


def test_rows_are_of_one_artist_by_any_column_and_by_way_of_others():
    ids = pl.Series(["a", "b", "b", "c", "d", "e"])
    names = pl.Series(["Prodigy", "The Prodigy", "Keith", "Keith!", "Moby", "moby"])
    groups = artist_groups(ids, names)
    assert groups.tolist() == [0, 0, 0, 0, 1, 1]
    assert len(set(artist_groups(names).tolist())) == 3


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("Jazz; Blues", ("Jazz", "Blues")),
        ("Jazz\0Blues", ("Jazz", "Blues")),
        ("Xyzzy|Plugh", ("Xyzzy", "Plugh")),
        ("Jazz/Vocal/Blues", ("Jazz", "Vocal", "Blues")),
        ("Pop, Rock", ("Pop", "Rock")),
        ("rock, Rock", ("rock",)),
        ("R&B/Soul, Jazz", ("R&B/Soul", "Jazz")),
        ("Pop/Rock", ("Pop/Rock",)),
        ("Pop / Rock", ("Pop/Rock",)),
        ("Hip-Hop/Rap", ("Hip-Hop/Rap",)),
        ("Folk, World, & Country", ("Folk, World, & Country",)),
        ("AC/DC", ("AC/DC",)),
        ("Jazz, but not as you know it", ("Jazz, but not as you know it",)),
        (" ; ", ()),
        ("International/Pop/Rock", ("International", "Pop/Rock")),
        ("Comedy/Spoken, Jazz", ("Comedy/Spoken", "Jazz")),
    ],
)
def test_the_tags_of_a_text_by_itself(text, tags):
    assert tag_names.TagSplitter([text]).split(text) == tags


def test_other_texts_make_parts_known_and_separators_asked_for_are_the_only_ones():
    text = "Rock, Kölsch"
    assert tag_names.TagSplitter([text]).split(text) == (text,)
    assert tag_names.TagSplitter([text, "KÖLSCH"]).split(text) == ("Rock", "Kölsch")
    assert tag_names.TagSplitter([text], known=["kölsch"]).split(text) == ("Rock", "Kölsch")
    assert tag_names.TagSplitter([text, "Kölsch, Live"]).split(text) == ("Rock", "Kölsch")
    # What was imported whole does not stay so for ever.
    assert tag_names.TagSplitter([], known=["jazz/blues"]).split("Jazz/Blues") == ("Jazz", "Blues")
    splitter = tag_names.TagSplitter([], separators=("/", "&"))
    assert splitter.split("AC/DC & x; y") == ("AC", "DC", "x; y")
    assert tag_names.TagSplitter([], separators=()).split("Jazz; Blues") == ("Jazz; Blues",)


@pytest.mark.parametrize(
    ("tag", "parts"),
    [
        ("r&b/soul", {"r&b", "r", "b", "soul"}),
        ("drum and bass", {"drum", "bass"}),
        ("hip hop", set()),
        ("bandstand", set()),
    ],
)
def test_what_a_tag_that_was_not_split_may_mean(tag, parts):
    assert tag_names.possible_parts(tag) == parts


def test_kinds_of_kinds_and_other_names_count_and_a_list_has_the_nearest_genre():
    tree = tag_names.builtin_tree()
    assert tree.ancestors("bebop") == ["jazz"]
    assert {"industrial", "metal", "rock"} <= set(tree.ancestors("industrial metal"))
    assert tree.canonical("dnb") == tree.canonical("drum and bass") == "drum & bass"
    assert {"bebop", "be bop", "jazz", "latin jazz"} <= tree.counts_for("jazz")
    assert tree.spellings["hip hop"] == "Hip-Hop"
    assert tree.parents.keys().isdisjoint(tree.aliases)
    assert set(tree.aliases.values()) <= tree.parents.keys()
    assert tree.in_list("bebop", ["Jazz", "Rock"]) == "jazz"
    assert tree.in_list("bebop", ["Be-Bop", "Jazz"]) == "be bop"
    assert tree.in_list("thrash metal", ["rock"]) == "rock"
    assert tree.in_list("bebop", ["rock"]) is None
    assert tag_names.GenreTree.from_dict(tree.to_dict()) == tree
    assert not tag_names.GenreTree.from_dict({})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kinds = 3", "'kinds' must be a table of genres and lists"),
        ("words = ['-']", "'words' must be a list of names"),
        ("[kinds]\na = ['b']\nb = ['a']", "a kind of itself"),
        ("[kinds]\na = ['b']\n[aliases]\nb = 'c'", "'b' is another name"),
        ("genres = []", "There is no 'genres'.*kinds, aliases"),
        ("[", "are not TOML"),
    ],
)
def test_a_tree_that_cannot_be_used(tmp_path, text, message):
    file = tmp_path / "tree.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        tag_names.read_tree(file)
