"""Which tags go where: modes, lists, aliases, fields."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.errors import DataError
from harmonium.library.filetags import MODES, Rules
from harmonium.library.filetags.rules import (
    checked_tags,
    combine,
    fold,
    join_layers,
    make_rules,
    parse_pairs,
)

NAMES = st.lists(st.sampled_from(["rock", "Rock", "ROCK ", "jazz", "é", "e\u0301", "a b", "A  B"]))


def folded(values):
    return {fold(value) for value in values}


@settings(deadline=None)
@given(NAMES, NAMES)
def test_the_modes(before, new):
    before, new = tuple(before), tuple(new)
    merged, appended = (combine(before, new, mode) for mode in ("merge", "append"))
    assert merged[: len(before)] == appended[: len(before)] == before
    added = merged[len(before) :]
    assert folded(merged) == folded(before) | folded(new)
    assert folded(added).isdisjoint(folded(before))
    assert [*appended[len(before) :]] == [value for value in new if value not in before]
    assert combine(merged, new, "merge") == merged
    assert combine(appended, new, "append") == appended
    assert combine(before, new, "overwrite") == (new or before)
    assert combine(before, new, "only-if-empty") == (before or new)
    assert all(combine(before, (), mode) == before for mode in MODES)


def test_a_tag_goes_to_its_field_or_to_the_default():
    rules = Rules(fields={"Sad": "mood", "party": "grouping"})
    placed = [rules.place(tag) for tag in ("rock", "sad", "Party")]
    assert [one.field for one in placed] == ["genre", "mood", "grouping"]
    assert not any(one.refused for one in placed)


def test_a_tag_without_a_field_is_refused():
    placed = Rules(fields={"sad": "mood"}, default_field=None).place("rock")
    assert (placed.field, placed.refused) == (None, "it has no field")


def test_lists_know_a_tag_by_any_of_its_names():
    aliases = {"hip hop": "Hip-Hop", "dnb": "Drum and Bass", "noise": "Noise Music"}
    whitelist = ["HIP HOP", "drum and bass", "noise", "loud"]
    rules = Rules(aliases=aliases, whitelist=whitelist, ignore=["noise music", "LOUD"])
    placed = [rules.place(tag) for tag in ("Hip  Hop", "dnb", "noise", "loud", "rock")]
    assert [one.name for one in placed if not one.refused] == ["Hip-Hop", "Drum and Bass"]
    left_out = [one for one in placed if one.refused]
    assert [one.tag for one in left_out] == ["noise", "loud", "rock"]
    assert ["ignore" in one.refused for one in left_out] == [True, True, False]
    assert Rules(whitelist=[]).place("rock").refused


@pytest.mark.parametrize(
    ("options", "got"),
    [
        ({"mode": "replace"}, "'replace'"),
        ({"id3_version": 2}, "2"),
        ({"grouping_frame": "TIT2"}, "'TIT2'"),
        ({"default_field": "title"}, "'title'"),
        ({"fields": {"sad": "moods"}}, "'moods'"),
        ({"whitelist": "rock"}, "'rock'"),
        ({"ignore": "rock"}, "'rock'"),
        ({"aliases": {"rock": " "}}, "' '"),
        ({"separator": ""}, "''"),
    ],
)
def test_invalid_rules_are_refused(options, got):
    with pytest.raises(DataError, match=f"'{next(iter(options))}.*got {got}"):
        Rules(**options)


@pytest.mark.parametrize(
    "tags", ["rock", ["rock", ""], ["rock", 3], ["a\0b"], ["a\nb"], ["\udce9"]]
)
def test_tags_that_cannot_be_written_are_refused(tags):
    with pytest.raises(DataError, match="'tags'"):
        checked_tags(tags, scores_needed=False)


def test_scores_are_required_where_they_are_written():
    assert checked_tags({" rock ": 0.5}, scores_needed=True) == {"rock": 0.5}
    with pytest.raises(DataError, match="map names to scores"):
        checked_tags(["rock"], scores_needed=True)


def test_the_last_layer_wins():
    first = {"fields": {"a": "genre", "b": "mood"}, "mode": "append"}
    second = {"fields": {"a": "mood"}, "mode": None, "default_field": "none"}
    joined = join_layers([first, second])
    assert joined["fields"] == {"a": "mood", "b": "mood"}
    assert joined["mode"] == "append"
    assert make_rules([first, second]).default_field is None


def test_tags_to_ignore_add_up_over_layers():
    assert join_layers([{"ignore": ["x"]}, {"ignore": ["y", "x"]}])["ignore"] == ["x", "y"]


def test_pairs():
    assert parse_pairs([" a =x= b "], "--alias") == {"a =x": "b"}


@pytest.mark.parametrize("pair", ["", "=", "a=", "=b", "a", " = "])
def test_what_is_no_pair(pair):
    with pytest.raises(DataError, match="takes TAG=VALUE"):
        parse_pairs([pair], "--alias")
