"""Several tags in one text, and those that only look so."""

import pytest

from harmonium.data.tag_splitting import TagSplitter, possible_parts


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("Jazz; Blues", ("Jazz", "Blues")),
        ("Jazz\0Blues", ("Jazz", "Blues")),
        ("Xyzzy|Plugh", ("Xyzzy", "Plugh")),
        ("Jazz/Vocal/Blues", ("Jazz", "Vocal", "Blues")),
        ("Pop, Rock", ("Pop", "Rock")),
        ("live, loud", ("live", "loud")),
        ("rock, Rock", ("rock",)),
        ("R&B/Soul, Jazz", ("R&B/Soul", "Jazz")),
        ("Pop/Rock", ("Pop/Rock",)),
        ("Pop / Rock", ("Pop/Rock",)),
        ("Hip-Hop/Rap", ("Hip-Hop/Rap",)),
        ("Drum & Bass", ("Drum & Bass",)),
        ("Folk, World, & Country", ("Folk, World, & Country",)),
        ("AC/DC", ("AC/DC",)),
        ("Jazz, but not as you know it", ("Jazz, but not as you know it",)),
        (" ; ", ()),
    ],
)
def test_a_text_by_itself(text, tags):
    assert TagSplitter([text]).split(text) == tags


def test_what_else_is_there_makes_parts_known():
    text = "Rock, Kölsch"
    assert TagSplitter([text]).split(text) == (text,)
    assert TagSplitter([text, "KÖLSCH"]).split(text) == ("Rock", "Kölsch")
    assert TagSplitter([text], known=["kölsch"]).split(text) == ("Rock", "Kölsch")
    assert TagSplitter([text, "Kölsch, Live"]).split(text) == ("Rock", "Kölsch")


def test_a_text_that_was_imported_whole_does_not_stay_so_for_ever():
    assert TagSplitter([], known=["jazz/blues"]).split("Jazz/Blues") == ("Jazz", "Blues")


def test_separators_that_are_asked_for_are_the_only_ones():
    assert TagSplitter([], separators=("/", "&")).split("AC/DC & x; y") == ("AC", "DC", "x; y")
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
def test_what_an_unparted_tag_may_mean(tag, parts):
    assert possible_parts(tag) == parts
