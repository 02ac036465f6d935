"""Several tags in one text."""

import pytest

from harmonium.data.splitting import TagSplitter, possible_parts


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
    assert TagSplitter([text]).split(text) == tags


TEXT = "Rock, Kölsch"


def test_an_unknown_part_keeps_a_text_whole():
    assert TagSplitter([TEXT]).split(TEXT) == (TEXT,)


@pytest.mark.parametrize("other", ["KÖLSCH", "Kölsch, Live"])
def test_other_texts_make_a_part_known(other):
    assert TagSplitter([TEXT, other]).split(TEXT) == ("Rock", "Kölsch")


def test_known_tags_make_a_part_known():
    assert TagSplitter([TEXT], known=["kölsch"]).split(TEXT) == ("Rock", "Kölsch")


def test_what_was_imported_whole_is_split_later():
    assert TagSplitter([], known=["jazz/blues"]).split("Jazz/Blues") == ("Jazz", "Blues")


def test_only_the_separators_asked_for():
    splitter = TagSplitter([], separators=("/", "&"))
    assert splitter.split("AC/DC & x; y") == ("AC", "DC", "x; y")


def test_no_separators():
    assert TagSplitter([], separators=()).split("Jazz; Blues") == ("Jazz; Blues",)


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
    assert possible_parts(tag) == parts
