"""Which tags are new to a file, and how its fields change; no file is read or written."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.library.filetags import (
    FIELDS,
    MODES,
    FilePlan,
    FileTags,
    PlainLayout,
    Rules,
    layout_of,
)
from harmonium.library.filetags.rules import fold

NAMES = ["rock", "Rock", "ROCK ", "jazz", "Other", "other", "Hip-Hop", "hip hop", "80", "a; b"]


def file_with(values, rules, format=None, version=None):
    """A file as a library remembers it."""
    return FileTags.known(layout_of(format), version, values, rules.id3)


def changes(values, tags, rules):
    plan = FilePlan(file_with(values, rules), rules)
    return {
        change.field: change.after
        for change in plan.changes([plan.place(tag) for tag in tags], dict.fromkeys(tags, 0.5))
    }


def test_tags_of_one_name_become_one_with_the_higher_score():
    rules = Rules(aliases={"hiphop": "Hip-Hop", "rap": "hip-hop"}, scores=True)
    plan = FilePlan(file_with({}, rules), rules)
    scores = {"hiphop": 0.4, "rap": 0.9, "rock": 0.1}
    genre, scored = plan.changes([plan.place(tag) for tag in scores], scores)
    assert genre.after == ("Hip-Hop", "rock")
    assert scored.after == ("Hip-Hop=0.900", "rock=0.100")


def test_a_field_with_only_words_that_are_not_tags_counts_as_empty():
    rules = Rules(kinds={"other": "none"}, mode="only-if-empty")
    assert changes({"genre": ["Other"]}, ["rock"], rules) == {"genre": ("rock",)}
    assert changes({"grouping": ["Other"]}, ["rock"], Rules(default_field="grouping")) == {
        "grouping": ("Other", "rock")
    }


@pytest.mark.parametrize(("format", "version"), [("MP3", "ID3v2.3"), ("FLAC", "Vorbis comment")])
def test_what_a_format_cannot_hold_is_refused_as_in_the_file(format, version):
    rules = Rules()
    plan = FilePlan(file_with({}, rules, format, version), rules)
    refused = {name for name in NAMES if plan.place(name).refused}
    assert refused == ({"80", "a; b"} if format == "MP3" else set())


def test_a_comment_takes_no_tag_that_it_would_split():
    rules = Rules(default_field="comment")
    plan = FilePlan(file_with({}, rules), rules)
    assert "several tags" in plan.place("a; b").refused


@settings(deadline=None, max_examples=300)
@given(
    st.dictionaries(st.sampled_from(FIELDS), st.lists(st.sampled_from(NAMES), max_size=3)),
    st.lists(st.sampled_from(NAMES), unique_by=fold),
    st.sampled_from(MODES),
    st.sampled_from(FIELDS),
    st.sampled_from([None, "MP3", "MP4"]),
)
def test_a_tag_is_new_by_itself_where_it_is_new_among_others(values, tags, mode, field, format):
    rules = Rules(mode=mode, default_field=field, kinds={"other": "none"}, fields={"none": field})
    plan = FilePlan(file_with(values, rules, format), rules)
    placed = [plan.place(tag) for tag in tags]
    added = {(change.field, name) for change in plan.changes(placed) for name in change.added}
    alone = {(one.field, one.name) for one in placed if not one.refused and plan.is_new(one)}
    assert added == alone


def test_a_layout_without_a_format_has_each_field_under_its_own_name():
    assert isinstance(layout_of(None), PlainLayout)
    plan = FilePlan(file_with({"mood": ["calm"]}, Rules()), Rules())
    assert plan.file.at(["mood"]) == ("calm",)
