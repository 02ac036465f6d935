"""Which tags go where: modes, lists, aliases, fields."""

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.errors import DataError
from harmonium.library.filetags import MODES, Rules
from harmonium.library.filetags.rules import combine, fold

NAMES = st.lists(st.sampled_from(["rock", "Rock", "ROCK ", "jazz", "é", "e\u0301", "a b", "A  B"]))


def folded(values):
    return {fold(value) for value in values}


@settings(deadline=None)
@given(NAMES, NAMES)
def test_merge_keeps_what_is_there_first_and_adds_each_spelling_once(before, new):
    after = combine(tuple(before), tuple(new), "merge")
    assert after[: len(before)] == tuple(before)
    assert folded(after) == folded(before) | folded(new)
    assert folded(after[len(before) :]).isdisjoint(folded(before))
    assert combine(after, tuple(new), "merge") == after


@settings(deadline=None)
@given(NAMES, NAMES)
def test_append_adds_whatever_is_not_there_letter_for_letter(before, new):
    after = combine(tuple(before), tuple(new), "append")
    assert after[: len(before)] == tuple(before)
    assert list(after[len(before) :]) == [value for value in new if value not in before]
    assert combine(after, tuple(new), "append") == after


@settings(deadline=None)
@given(NAMES, NAMES)
def test_overwrite_and_only_if_empty(before, new):
    before, new = tuple(before), tuple(new)
    assert combine(before, new, "overwrite") == (new or before)
    assert combine(before, new, "only-if-empty") == (before or new)


@pytest.mark.parametrize("mode", MODES)
def test_no_tags_change_nothing_in_any_mode(mode):
    assert combine(("Rock",), (), mode) == ("Rock",)


def test_tags_go_to_their_fields_and_the_others_to_the_default():
    rules = Rules(fields={"Sad": "mood", "party": "grouping"})
    wanted, left_out = rules.sort(["rock", "sad", "Party"])
    assert {name: list(tags) for name, tags in wanted.items()} == {
        "genre": ["rock"],
        "mood": ["sad"],
        "grouping": ["Party"],
    }
    assert not left_out


def test_without_a_default_field_other_tags_are_left_out():
    wanted, left_out = Rules(fields={"sad": "mood"}, default_field=None).sort(["rock", "sad"])
    assert list(wanted) == ["mood"]
    assert left_out == [("rock", "no field is named for it")]


def test_lists_know_a_tag_by_its_name_and_by_its_alias():
    aliases = {"hip hop": "Hip-Hop", "dnb": "Drum and Bass", "noise": "Noise Music"}
    rules = Rules(
        aliases=aliases,
        whitelist=["HIP HOP", "drum and bass", "noise", "loud"],
        ignore=["noise music", "LOUD"],
    )
    wanted, left_out = rules.sort(["Hip  Hop", "dnb", "noise", "loud", "rock"])
    assert list(wanted["genre"]) == ["Hip-Hop", "Drum and Bass"]
    assert [(one.tag, one.reason) for one in left_out] == [
        ("noise", "on the ignore list"),
        ("loud", "on the ignore list"),
        ("rock", "not on the whitelist"),
    ]


def test_an_empty_whitelist_lets_nothing_through():
    assert Rules(whitelist=[]).sort(["rock"])[0] == {}


def test_tags_of_one_name_become_one_with_the_higher_score():
    rules = Rules(aliases={"hiphop": "Hip-Hop", "rap": "hip-hop"}, scores=True)
    wanted, _ = rules.sort({"hiphop": 0.4, "rap": 0.9, "rock": 0.1})
    assert wanted == {"genre": {"Hip-Hop": 0.9, "rock": 0.1}}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "replace"}, "'mode' must be one of 'merge', 'append'.*got 'replace'"),
        ({"id3_version": 2}, "'id3_version' must be one of 3, 4, got 2"),
        ({"grouping_frame": "TIT2"}, "'grouping_frame' must be one of 'TIT1', 'GRP1'"),
        ({"default_field": "title"}, "'default_field' must be one of .*got 'title'"),
        ({"fields": {"sad": "moods"}}, r"'fields\['sad'\]' must be one of .*got 'moods'"),
        ({"whitelist": "rock"}, "'whitelist' must be a list of tags"),
        ({"ignore": "rock"}, "'ignore' must be a list of tags"),
        ({"aliases": {"rock": " "}}, "'aliases' must hold names, got ' '"),
        ({"separator": ""}, "'separator' must be text without NUL"),
    ],
)
def test_rules_that_are_none_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        Rules(**options)


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ("rock", "'tags' must be names or a mapping"),
        (["rock", ""], "'tags' must hold names, got ''"),
        (["rock", 3], "'tags' must hold names, got 3"),
        (["a\0b"], "control character"),
        (["a\nb"], "control character"),
        (["\udce9"], "not valid Unicode"),
    ],
)
def test_tags_that_cannot_be_written_are_refused(tags, message):
    with pytest.raises(DataError, match=message):
        Rules().sort(tags)


def test_scores_must_be_there_to_be_written():
    with pytest.raises(DataError, match="mapping of names to scores"):
        Rules(scores=True).sort(["rock"])


def test_rules_go_through_json():
    rules = Rules(mode="append", fields={"sad": "mood"}, ignore=["x"], separator="/")
    again = Rules(**json.loads(json.dumps(dataclasses.asdict(rules))))
    assert again.sort(["sad", "x"]) == rules.sort(["sad", "x"])
