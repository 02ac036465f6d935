"""Rules of writing in layers: which win, what is joined, and that the docs name them all."""

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import DOCS

from harmonium.errors import DataError
from harmonium.library.filetags.rules import RULE_NAMES, join_layers, make_rules, parse_pairs

NAMES = st.text("abc", min_size=1, max_size=3)


@given(st.lists(st.dictionaries(NAMES, st.sampled_from(["genre", "mood"])), max_size=4))
def test_the_last_layer_wins_for_each_tag(layers):
    rules = make_rules([{"fields": layer} for layer in layers])
    for tag in {tag for layer in layers for tag in layer}:
        assert rules.fields[tag] == [layer[tag] for layer in layers if tag in layer][-1]


@given(st.lists(st.lists(NAMES, max_size=3), max_size=4))
def test_tags_to_ignore_add_up(layers):
    found = join_layers([{"ignore": layer} for layer in layers]).get("ignore", [])
    assert set(found) == {tag for layer in layers for tag in layer}
    assert len(found) == len(set(found))


def test_what_a_layer_does_not_say_stays():
    assert join_layers([{"mode": "append"}, {"mode": None}]) == {"mode": "append"}
    assert make_rules([{"default_field": "none"}]).default_field is None


@given(NAMES, NAMES)
def test_pairs(tag, value):
    assert parse_pairs([f"{tag}={value}"], "--alias") == {tag: value}
    assert parse_pairs([f" {tag} =x= {value} "], "--alias") == {f"{tag} =x": value}


@pytest.mark.parametrize("pair", ["", "=", "a=", "=b", "a", " = "])
def test_what_is_no_pair(pair):
    with pytest.raises(DataError, match="takes TAG=VALUE"):
        parse_pairs([pair], "--alias")


def test_the_rules_of_the_docs_are_rules():
    page = (DOCS / "library.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S)
    rules = make_rules([tomllib.loads(text)])
    assert rules.fields == {"mellow": "mood"}
    assert rules.aliases == {"hip hop": "Hip-Hop"}


def test_the_docs_name_every_rule():
    page = (DOCS / "library.md").read_text(encoding="utf-8")
    table = page.partition("## Write")[2].partition("```toml")[0]
    named = set(re.findall(r"\| `\[?(\w+)\]?` \|", table))
    assert named == {*RULE_NAMES} - {"separator"}
