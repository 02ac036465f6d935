"""Damaged input of every kind gives an answer or one clear error; `make fuzz` tries more."""

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from fuzz_targets import TARGETS, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tag_structures import FILES

from harmonium.data.genres import GenreTree
from harmonium.errors import DataError
from harmonium.library.filetags import Rules
from harmonium.library.filetags.rules import RULE_NAMES, make_rules

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "25"))
FOUND = sorted(path for path in Path(__file__).with_name("found").glob("*/*"))

PIECES = st.binary(max_size=3) | st.sampled_from(
    [b"\0", b"\xff\xff\xff\xff", b'"', b",", b"\n", b"9" * 20, b"1e400", b"[" * 2000, b"\xe2\x80"]
)
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4), PIECES), max_size=6)


def damaged(seed, edits, end):
    """The seed with pieces put in place of others, and cut off."""
    content = bytearray(seed)
    for place, length, piece in edits:
        start = int(place * len(content))
        content[start : start + length] = piece
    return bytes(content[: int(end * len(content)) + 1])


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_are_understood(name):
    for seed in TARGETS[name].seeds():
        run(name, seed)


DAMAGED = given(which=st.integers(0, 50), edits=EDITS, end=st.just(1.0) | st.floats(0, 1))


@pytest.mark.parametrize("name", [name for name in TARGETS if name != "parquet_table"])
@settings(deadline=None, max_examples=EXAMPLES)
@DAMAGED
def test_damage_gives_an_answer_or_one_clear_error(name, which, edits, end):
    seeds = TARGETS[name].seeds()
    run(name, damaged(seeds[which % len(seeds)], edits, end))


@settings(deadline=None, max_examples=EXAMPLES // 20)
@DAMAGED
def test_damaged_parquet(which, edits, end):
    seeds = TARGETS["parquet_table"].seeds()
    data = damaged(seeds[which % len(seeds)][4:-4], edits, end)
    run("parquet_table", b"PAR1" + data + b"PAR1")


@settings(
    deadline=None,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(FILES)
def test_odd_structures_of_tags_give_an_answer_or_one_clear_error(data):
    run("file_tags", data)


@pytest.mark.parametrize("path", FOUND, ids=[f"{p.parent.name}-{p.name}" for p in FOUND])
def test_what_was_found_once_does_no_more_harm(path):
    run(path.parent.name, path.read_bytes())


# TOML whose values are of any kind. -----------------------------------------------------------

INNER = ["name", "estimator", "options", "settings", "search", "known", "clips", "inference", "x"]
WORDS = st.sampled_from(["one", "search", "emotify", "MLPTagger", "merge", "genre"])
SCALARS = st.booleans() | st.integers(-3, 10**20) | st.floats() | st.text(max_size=4) | WORDS
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(INNER) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.sampled_from(RULE_NAMES), VALUES, max_size=4), max_size=3))
@settings(deadline=None, max_examples=50)
def test_rules_of_any_values(layers):
    with suppress(DataError):
        assert isinstance(make_rules(layers), Rules)


TREE_KEYS = st.sampled_from(["kinds", "aliases", "compounds", "words"])
NAMES = st.text("ab -", max_size=3)
TREES = st.dictionaries(NAMES, NAMES | st.lists(NAMES, max_size=2), max_size=4)


@given(st.dictionaries(TREE_KEYS, TREES | st.lists(NAMES, max_size=3) | VALUES, max_size=4))
@settings(deadline=None, max_examples=50)
def test_a_tree_of_any_values(table):
    try:
        tree = GenreTree.from_dict(table)
    except DataError:
        return
    assert GenreTree.from_dict(json.loads(json.dumps(tree.to_dict()))) == tree
