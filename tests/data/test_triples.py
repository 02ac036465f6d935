"""Triples from columns, and parts of them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triple_rows import ROWS, triples_of

from harmonium.data import Triples
from harmonium.errors import DataError, DataWarning

SETTINGS = settings(deadline=None, max_examples=60)


def test_repeated_triples_count_once():
    """So do spellings of one tag."""
    triples = Triples.from_columns(
        ["u1", "u2", "u1", "u1"], [7, 7, 7, 8], ["Hip-Hop", "hip hop", "hip_hop ", "rock"]
    )
    expected = [("u1", "7", "hip hop"), ("u1", "8", "rock"), ("u2", "7", "hip hop")]
    assert sorted(triples.frame().rows()) == expected
    matrix = triples.counts().matrix
    assert matrix.toarray().tolist() == [[2, 0], [0, 1]]


def test_without_normalisation_spellings_are_kept():
    plain = Triples.from_columns(["u", "u"], ["i", "i"], ["Rock", "rock"], normalise=False)
    assert plain.tags.to_list() == ["Rock", "rock"]


def test_names_are_in_order_of_first_appearance():
    ordered = Triples.from_columns(["z", "a", "z"], ["10", "9", "1"], ["rock", "pop", "Rock"])
    assert ordered.users.to_list() == ["z", "a"]
    assert ordered.items.to_list() == ["10", "9", "1"]
    assert ordered.tags.to_list() == ["rock", "pop"]


@pytest.mark.parametrize(
    "columns", [list, tuple, np.array, pl.Series, pd.Series, lambda x: np.array(x, object)]
)
def test_columns_may_be_any_sequence_of_texts_or_integers(columns):
    triples = Triples.from_columns(columns(["u"]), columns([30]), columns(["rock"]))
    assert triples.frame().rows() == [("u", "30", "rock")]


@pytest.mark.parametrize("nothing", [[], np.array([])], ids=["list", "array"])
def test_no_triples(nothing):
    assert len(Triples.from_columns(nothing, nothing, nothing)) == 0


def test_whole_numbers_may_be_floats_where_some_are_missing():
    with pytest.warns(DataWarning, match="1 with an empty user"):
        triples = Triples.from_columns(pd.Series([3, None, 4]), ["i"] * 3, ["rock"] * 3)
    assert triples.users.to_list() == ["3", "4"]


def test_triples_print_in_one_line():
    triples = Triples.from_columns(["3", "4"], ["i"] * 2, ["rock"] * 2)
    assert repr(triples) == "Triples(2: 2 users, 1 item, 1 tag)"
    assert repr(triples.counts()) == "TagCounts(1 item × 1 tag)"


def test_rows_with_an_empty_name_are_left_out_with_one_warning():
    with pytest.warns(DataWarning) as caught:
        triples = Triples.from_columns(
            ["u", "", "u", None, "w", "w"],
            ["i", "i", " ", "i", "j", "i"],
            ["rock", "x", "y", "z", "--", "pop"],
        )
    assert [str(warning.message) for warning in caught] == [
        "4 of 6 rows of the columns were left out: 2 with an empty user (positions 1, 3), "
        "1 with an empty item (position 2), 1 with an empty tag (position 4)."
    ]
    assert caught[0].filename == __file__
    assert triples.frame().rows() == [("u", "i", "rock"), ("w", "i", "pop")]
    assert triples.items.to_list() == ["i"]
    assert triples.tags.to_list() == ["rock", "pop"]


@pytest.mark.parametrize(
    ("columns", "keyword"),
    [
        ((["u"], ["i", "j"], ["t"]), "got 1 for 'user', 2 for 'item', 1 for 'tag'"),
        *(((["u"], [number], ["t"]), "got Float64") for number in (1.5, np.inf, 1e30)),
        ((["u"], [True], ["t"]), "got Boolean"),
        ((["u", 1], ["i", "i"], ["t", "t"]), "'user'"),
        ((3, ["i"], ["t"]), "got int"),
        ((["u", "u"], ["i", "i"], ["", "_"]), "None of the 2 rows"),
    ],
)
def test_columns_that_cannot_be_used(columns, keyword):
    with pytest.raises(DataError, match=keyword):
        Triples.from_columns(*columns)


@given(ROWS, st.integers(1, 5))
@SETTINGS
def test_core_equals_a_naive_fixpoint(rows, k):
    left = set(rows)
    while True:
        keep = {
            row for row in left if all(sum(o[i] == row[i] for o in left) >= k for i in range(3))
        }
        if keep == left:
            break
        left = keep
    core = triples_of(rows).core(k)
    assert sorted(core.frame().rows()) == sorted(left)
    for i, names in enumerate((core.users, core.items, core.tags)):
        assert sorted(names) == sorted({row[i] for row in left})


@given(ROWS, st.integers(1, 4))
@SETTINGS
def test_top_tags_keep_the_other_codes(rows, n):
    triples = triples_of(rows)
    top = triples.top_tags(n)
    used = {tag: sum(t == tag for _, _, t in set(rows)) for tag in triples.tags}
    expected = sorted(used, key=lambda tag: (-used[tag], tag))[:n]
    assert top.tags.to_list() == expected
    assert sorted(top.frame().rows()) == sorted(row for row in set(rows) if row[2] in expected)
    assert top.users.to_list() == triples.users.to_list()
    assert top.items.to_list() == triples.items.to_list()


@given(ROWS, st.randoms(use_true_random=False))
@SETTINGS
def test_select_items_gives_the_items_asked_for_in_that_order(rows, random):
    triples = triples_of(rows)
    wanted = random.sample(triples.items.to_list(), random.randint(0, len(triples.items)))
    selected = triples.select_items(pl.Series(wanted, dtype=pl.String))
    assert selected.items.to_list() == wanted
    assert sorted(selected.frame().rows()) == sorted(row for row in set(rows) if row[1] in wanted)


@pytest.mark.parametrize(
    ("call", "keyword"),
    [
        (lambda triples: triples.select_items(["i", "j"]), "'j'"),
        (lambda triples: triples.select_items(["i", "i"]), "once"),
        (lambda triples: triples.top_tags(0), "got 0"),
        (lambda triples: triples.core(0), "'k'"),
        (lambda triples: triples.counts().labels(min_count=0), "'min_count'"),
        (lambda triples: triples.counts().share_labels(min_share=0, listeners=None), "'min_share'"),
    ],
)
def test_what_cannot_be_asked_of_triples(call, keyword):
    with pytest.raises(DataError, match=keyword):
        call(Triples.from_columns(["u"], ["i"], ["t"]))
