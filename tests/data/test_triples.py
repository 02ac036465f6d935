"""Triples from columns, their counts, top tags, selections and core."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data import Triples
from harmonium.errors import DataError, DataWarning

SETTINGS = settings(deadline=None, max_examples=60)
ROWS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("wxyz"), st.sampled_from("rst")), max_size=60
)


def triples_of(rows, **options):
    columns = [pl.Series([row[i] for row in rows], dtype=pl.String) for i in range(3)]
    return Triples.from_columns(*columns, **options)


def test_repeated_triples_and_spellings_of_a_tag_count_once():
    triples = Triples.from_columns(
        ["u1", "u2", "u1", "u1"], [7, 7, 7, 8], ["Hip-Hop", "hip hop", "hip_hop ", "rock"]
    )
    assert sorted(triples.frame().rows()) == [
        ("u1", "7", "hip hop"),
        ("u1", "8", "rock"),
        ("u2", "7", "hip hop"),
    ]
    assert len(triples) == 3
    assert triples.counts().matrix.toarray().tolist() == [[2, 0], [0, 1]]


def test_names_are_in_order_of_first_appearance():
    triples = Triples.from_columns(["z", "a", "z"], ["10", "9", "1"], ["rock", "pop", "Rock"])
    assert triples.users.to_list() == ["z", "a"]
    assert triples.items.to_list() == ["10", "9", "1"]
    assert triples.tags.to_list() == ["rock", "pop"]


def test_codes_and_matrices_have_the_promised_types():
    triples = Triples.from_columns(["u", "v"], ["i", "j"], ["rock", "pop"])
    assert {triples.user.dtype, triples.item.dtype, triples.tag.dtype} == {np.dtype(np.int32)}
    matrix = triples.counts().matrix
    assert matrix.dtype == np.int32
    assert matrix.format == "csr"
    assert matrix.has_canonical_format
    assert triples.counts().labels(min_count=1).dtype == np.float32


def test_normalisation_can_be_turned_off():
    triples = Triples.from_columns(["u", "u"], ["i", "i"], ["Rock", "rock"], normalise=False)
    assert triples.tags.to_list() == ["Rock", "rock"]


def test_aliases_merge_spellings_after_normalisation():
    triples = Triples.from_columns(
        ["u", "u", "v"],
        ["i", "i", "i"],
        ["Female Vocals", "female-vocalists", "fem"],
        aliases={"FEMALE_vocals": "Female Vocalists", "fem": "female vocals"},
    )
    assert triples.frame().rows() == [
        ("u", "i", "female vocalists"),
        ("v", "i", "female vocalists"),
    ]


@pytest.mark.parametrize(
    "columns", [list, tuple, np.array, pl.Series, lambda x: np.array(x, object)]
)
def test_columns_may_be_any_sequence(columns):
    triples = Triples.from_columns(columns(["u"]), columns(["i"]), columns(["rock"]))
    assert triples.frame().rows() == [("u", "i", "rock")]


def test_columns_may_be_integers_and_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"user": [1, 2], "item": [30, 30], "tag": ["rock", "pop"]})
    triples = Triples.from_columns(frame["user"], frame["item"].to_numpy(), frame["tag"])
    assert triples.frame().rows() == [("1", "30", "rock"), ("2", "30", "pop")]


def test_no_rows_are_no_triples():
    triples = Triples.from_columns([], [], [])
    assert len(triples) == 0
    assert triples.counts().labels(min_count=1).shape == (0, 0)
    assert len(triples.core(3)) == 0
    assert len(triples.top_tags(5).tags) == 0


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


def test_only_the_first_places_are_named():
    with pytest.warns(
        DataWarning, match=r"7 with an empty tag \(positions 0, 1, 2, 3, 4 and 2 more\)"
    ):
        Triples.from_columns(["u"] * 8, ["i"] * 8, [""] * 7 + ["rock"])


def test_it_is_an_error_if_no_row_can_be_used():
    with pytest.raises(DataError, match=r"None of the 2 rows .* 2 with an empty tag"):
        Triples.from_columns(["u", "u"], ["i", "i"], ["", "_"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((["u"], ["i", "j"], ["t"]), "equal length, got 1 for 'user', 2 for 'item', 1 for 'tag'"),
        ((["u"], [1.5], ["t"]), "'item' must hold strings or whole numbers, got Float64"),
        ((["u"], [True], ["t"]), "'item' must hold strings or whole numbers, got Boolean"),
        ((["u", 1], ["i", "i"], ["t", "t"]), "'user' must be one sequence of values of one type"),
        ((3, ["i"], ["t"]), "'user' must be one sequence of values of one type, got int"),
    ],
)
def test_columns_that_cannot_be_used(columns, message):
    with pytest.raises(DataError, match=message):
        Triples.from_columns(*columns)


@given(ROWS)
@SETTINGS
def test_counts_equal_a_loop(rows):
    triples = triples_of(rows)
    assert sorted(triples.frame().rows()) == sorted(set(rows))
    counts = triples.counts()
    for i, item in enumerate(counts.items):
        for j, tag in enumerate(counts.tags):
            assert counts.matrix[i, j] == len({u for u, x, t in rows if (x, t) == (item, tag)})


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
def test_top_tags_are_those_of_the_counts_and_keep_the_other_codes(rows, n):
    triples = triples_of(rows)
    top = triples.top_tags(n)
    used = {tag: sum(t == tag for _, _, t in set(rows)) for tag in triples.tags}
    expected = sorted(used, key=lambda tag: (-used[tag], tag))[:n]
    assert top.tags.to_list() == expected == triples.counts().top(n).tags.to_list()
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
    by_index = triples.select_items(
        np.array([triples.items.to_list().index(i) for i in wanted], int)
    )
    assert by_index.frame().equals(selected.frame())


def test_select_items_names_what_is_not_there():
    triples = Triples.from_columns(["u"], ["i"], ["t"])
    with pytest.raises(DataError, match=r"'items' has names that are not among the 1 known: 'j'"):
        triples.select_items(["i", "j"])
    with pytest.raises(DataError, match="indices from 0 to 0, got 1 to 1"):
        triples.select_items([1])
    with pytest.raises(DataError, match="each item once"):
        triples.select_items(["i", "i"])


@pytest.mark.parametrize("n", [0, -1])
def test_numbers_below_one_are_refused(n):
    triples = Triples.from_columns(["u"], ["i"], ["t"])
    with pytest.raises(DataError, match=f"at least 1, got {n}"):
        triples.top_tags(n)
    with pytest.raises(DataError, match=f"'k' must be at least 1, got {n}"):
        triples.core(n)
