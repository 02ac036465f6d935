"""Questions in tags: reading, showing, answering."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data import normalise_tag
from harmonium.errors import DataError
from harmonium.library.search import MAX_DEPTH, Query, parse

KNOWN = {"rock", "roll", "hip hop", "drum and bass", "piano", "mellow", "80s", "rock and roll"}

names = st.one_of(
    st.sampled_from(sorted(KNOWN)),
    st.text(max_size=12).map(normalise_tag).filter(bool),
)


def groups(parts):
    one, several = st.tuples(parts), st.lists(parts, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Query, st.just("NOT"), one, st.just("")),
        st.builds(Query, st.sampled_from(["AND", "OR"]), several, st.just("")),
    )


queries = st.recursive(names.map(lambda name: Query("TAG", tag=name)), groups, max_leaves=8)


def show(query):
    """A text that asks the question."""
    if query.operator == "TAG":
        escaped = query.tag.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    parts = [f"({show(part)})" for part in query.parts]
    return f"NOT {parts[0]}" if query.operator == "NOT" else f" {query.operator} ".join(parts)


@given(queries)
@settings(deadline=None, max_examples=300)
def test_what_is_shown_is_read_as_the_same_question(query):
    assert parse(show(query), set(query.tags)) == query


@given(queries, st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=200)
def test_with_certain_tags_a_question_is_answered_as_logic_has_it(query, seed):
    rng = np.random.default_rng(seed)
    truth = {name: rng.random(16) < 0.5 for name in query.tags}
    certain = {name: holds.astype(np.float32) for name, holds in truth.items()}
    found = query.probability(certain.__getitem__)
    for track in range(16):
        holds = {name: bool(column[track]) for name, column in truth.items()}
        assert found[track] == _logic(query, holds)


@given(queries, st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=100)
def test_a_question_about_distinct_tags_has_the_probability_of_independent_tags(query, seed):
    tags = query.tags
    if _n_leaves(query) > len(tags):
        return  # a tag that is asked for twice is not independent of itself
    p = dict(zip(tags, np.random.default_rng(seed).random(len(tags)), strict=True))
    expected = sum(
        np.prod([p[name] if holds else 1 - p[name] for name, holds in world.items()])
        for world in _worlds(tags)
        if _logic(query, world)
    )
    found = query.probability(lambda name: np.array([p[name]]))
    np.testing.assert_allclose(found[0], expected, atol=1e-9)


def _logic(query, holds):
    if query.operator == "TAG":
        return holds[query.tag]
    parts = [_logic(part, holds) for part in query.parts]
    return {"NOT": not parts[0], "AND": all(parts), "OR": any(parts)}[query.operator]


def _worlds(tags):
    for bits in range(2 ** len(tags)):
        yield {name: bool(bits >> i & 1) for i, name in enumerate(tags)}


def _n_leaves(query):
    return sum(map(_n_leaves, query.parts)) or 1


FEW = {"hip", "hop", "hip hop", "rock", "indie", "pop", "indie pop"}
VOICES = {"female voice", "voice", "piano"}
ALIASES = {"female": "female voice", "female vocals": "female voice", "vocals": "voice"}


@pytest.mark.parametrize(
    ("text", "meant", "known", "aliases"),
    [
        ("Rock", '"rock"', KNOWN, {}),
        ("rock piano", '"rock" AND "piano"', KNOWN, {}),
        ("mellow piano -rock", '"mellow" AND "piano" AND (NOT "rock")', KNOWN, {}),
        ("Hip-Hop", '"hip hop"', KNOWN, {}),
        ("-hip hop rock", '(NOT "hip hop") AND "rock"', KNOWN, {}),
        ("drum and bass", '"drum and bass"', KNOWN, {}),
        ("rock and roll", '"rock and roll"', KNOWN, {}),
        ("rock OR roll piano", '"rock" OR ("roll" AND "piano")', KNOWN, {}),
        ("(rock OR roll) piano", '("rock" OR "roll") AND "piano"', KNOWN, {}),
        ("NOT (rock AND NOT roll)", 'NOT ("rock" AND (NOT "roll"))', KNOWN, {}),
        ("-(rock roll)", 'NOT ("rock" AND "roll")', KNOWN, {}),
        ("--rock", 'NOT (NOT "rock")', KNOWN, {}),
        ("hip AND hop", '"hip" AND "hop"', FEW, {}),
        ("hop hip hop", '"hop" AND "hip hop"', FEW, {}),
        ("-indie pop rock", '(NOT "indie pop") AND "rock"', FEW, {}),
        ("female vocals piano", '"female voice" AND "piano"', VOICES, ALIASES),
    ],
)
def test_questions_as_people_write_them(text, meant, known, aliases):
    """As the same in quotes and brackets; words side by side are the fewest tags."""
    assert parse(text, known, aliases) == parse(meant, known)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("rok", r"No track has the tag rok.*Did you mean rock"),
        ("rock or jazz", r"No track has the tag or.*write OR\."),
        ("rock hip", "No track has the tag hip"),
        ('"hip hp"', r'the tag "hip hp".*"hip hop"'),
        ("rock AND", "its end where a tag was expected"),
        ("OR rock", "OR where a tag was expected"),
        ("rock )", "closing bracket"),
        ("(rock", "not closed"),
        ('"rock', "not closed"),
        ('""', "is not a tag"),
        ("(" * (MAX_DEPTH + 1) + "rock" + ")" * (MAX_DEPTH + 1), f"more than {MAX_DEPTH}"),
    ],
)
def test_questions_that_cannot_be_read(text, message):
    with pytest.raises(DataError, match=message):
        parse(text, KNOWN)


def test_words_that_are_equally_few_tags_in_two_ways_want_quotes():
    with pytest.raises(DataError, match='indie AND "pop rock" and as "indie pop" AND rock'):
        parse("indie pop rock", {"indie", "indie pop", "pop rock", "rock"})
