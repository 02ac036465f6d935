"""Triples from columns, their counts and labels, and the smoother's conditioning."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data import Conditioning, TagCounts, Triples
from harmonium.errors import DataError, DataWarning

SETTINGS = settings(deadline=None, max_examples=60)
ROWS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("wxyz"), st.sampled_from("rst")), max_size=60
)


def columns_of(table, n):
    return [pl.Series([row[i] for row in table], dtype=pl.String) for i in range(n)]


def triples_of(rows):
    return Triples.from_columns(*columns_of(rows, 3))


def test_repeated_triples_and_spellings_of_a_tag_count_once():
    triples = Triples.from_columns(
        ["u1", "u2", "u1", "u1"], [7, 7, 7, 8], ["Hip-Hop", "hip hop", "hip_hop ", "rock"]
    )
    expected = [("u1", "7", "hip hop"), ("u1", "8", "rock"), ("u2", "7", "hip hop")]
    assert sorted(triples.frame().rows()) == expected
    matrix = triples.counts().matrix
    assert matrix.toarray().tolist() == [[2, 0], [0, 1]]
    plain = Triples.from_columns(["u", "u"], ["i", "i"], ["Rock", "rock"], normalise=False)
    assert plain.tags.to_list() == ["Rock", "rock"]
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


def test_whole_numbers_may_be_floats_as_where_some_are_missing_or_none_is_there():
    for none in ([], np.array([])):
        assert len(Triples.from_columns(none, none, none)) == 0
    with pytest.warns(DataWarning, match="1 with an empty user"):
        triples = Triples.from_columns(pd.Series([3, None, 4]), ["i"] * 3, ["rock"] * 3)
    assert triples.users.to_list() == ["3", "4"]
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
def test_counts_equal_a_loop_and_top_tags_are_theirs_and_keep_the_other_codes(rows, n):
    triples = triples_of(rows)
    assert sorted(triples.frame().rows()) == sorted(set(rows))
    counts = triples.counts()
    for i, item in enumerate(counts.items):
        for j, tag in enumerate(counts.tags):
            assert counts.matrix[i, j] == len({u for u, x, t in rows if (x, t) == (item, tag)})
    top = triples.top_tags(n)
    used = {tag: sum(t == tag for _, _, t in set(rows)) for tag in triples.tags}
    expected = sorted(used, key=lambda tag: (-used[tag], tag))[:n]
    counts = counts.top(n)
    assert top.tags.to_list() == expected == counts.tags.to_list()
    np.testing.assert_array_equal(counts.matrix.toarray(), top.counts().matrix.toarray())
    assert counts.matrix.has_canonical_format
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


# Counts and labels

COUNTS = st.lists(
    st.tuples(st.sampled_from("wxyz"), st.sampled_from("rst"), st.integers(0, 3)), max_size=30
)


def counts_of(rows, **options):
    return TagCounts.from_columns(*columns_of(rows, 2), [row[2] for row in rows], **options)


@given(COUNTS, st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_labels_equal_a_loop(rows, min_count):
    counts = counts_of(rows)
    labels = counts.labels(min_count=min_count)
    assert labels.shape == (len(counts.items), len(counts.tags))
    assert counts.matrix.has_canonical_format
    for i, item in enumerate(counts.items):
        for j, tag in enumerate(counts.tags):
            total = sum(n for x, t, n in rows if (x, t) == (item, tag))
            assert counts.matrix[i, j] == total
            expected = 0 if total == 0 else 1 if total >= min_count else np.nan
            np.testing.assert_equal(float(labels[i, j]), float(expected))


def test_counts_of_two_spellings_are_added_up():
    counts = counts_of([("x", "Hip-Hop", 1), ("x", "hip hop", 2), ("x", "rap", 4)])
    assert counts.tags.to_list() == ["hip hop", "rap"]
    assert counts.matrix.toarray().tolist() == [[3, 4]]
    merged = counts_of([("x", "Hip-Hop", 1), ("x", "rap", 4)], aliases={"rap": "hip hop"})
    assert merged.matrix.toarray().tolist() == [[5]]
    for written in ([2.0, 3.0], ["2", " 3 "]):  # whole numbers
        assert TagCounts.from_columns(["x", "x"], ["a", "a"], written).matrix.toarray() == [[5]]
    with pytest.raises(DataError, match="add up to 4,000,000,000"):
        TagCounts.from_columns(["x", "x"], ["a", "a"], [2_000_000_000] * 2)


def test_all_items_gives_the_rows_and_zero_counts_keep_the_item_and_the_tag():
    counts = counts_of([("x", "rock", 0), ("y", "pop", 1)])
    assert counts.matrix.toarray().tolist() == [[0, 0], [0, 1]]
    assert counts.matrix.nnz == 1
    counts = counts_of([("x", "rock", 2), ("y", "pop", 1)], all_items=["z", "y", "x"])
    assert counts.items.to_list() == ["z", "y", "x"]
    assert counts.matrix.toarray().tolist() == [[0, 0], [0, 1], [2, 0]]
    with pytest.raises(DataError, match="'y'"):
        counts_of([("x", "rock", 2), ("y", "pop", 1)], all_items=["x"])
    with pytest.raises(DataError, match="'x'"):
        counts_of([("x", "rock", 2)], all_items=["x", "x"])


@pytest.mark.parametrize("bad", ["-1", "1.5", "many", "", "nan", "inf", "3000000000", "0x10"])
def test_bad_counts_are_left_out_with_a_warning(bad):
    with pytest.warns(DataWarning, match=r"1 of 2 rows .* \(position 1\)"):
        counts = TagCounts.from_columns(["x", "y"], ["a", "b"], ["2", bad])
    assert counts.items.to_list() == ["x"]
    assert counts.tags.to_list() == ["a"]


# Conditioning

PAIRS = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("vwxyz")), max_size=10)


@given(ROWS, PAIRS)
@settings(deadline=None, max_examples=80)
def test_every_pair_equals_a_loop(rows, pairs):
    triples = triples_of(rows)
    given = Conditioning.from_triples(triples, pairs=tuple(columns_of(pairs, 2)))
    seen = {(user, item) for user, item, _ in rows} | set(pairs)

    for matrix in (given.y, given.counts):
        assert matrix.has_canonical_format

    found = list(zip(given.users.gather(given.user), given.items.gather(given.item), strict=True))
    assert len(found) == len(given) == len(seen)
    assert set(found) == seen

    def tags_of(user, item):
        return np.array([(user, item, tag) in set(rows) for tag in triples.tags], float)

    y, others_sum = given.y.toarray(), (given.counts[given.item] - given.y).toarray()
    for row, (user, item) in enumerate(found):
        others = [tags_of(other, item) for other, i in seen if i == item and other != user]
        np.testing.assert_array_equal(y[row], tags_of(user, item))
        assert given.n_others[row] == len(others)
        np.testing.assert_array_equal(others_sum[row], sum(others, np.zeros(len(triples.tags))))

    counts = given.counts.toarray()
    for row, item in enumerate(given.items):
        users = [tags_of(user, item) for user, i in seen if i == item]
        assert given.n_users[row] == len(users)
        np.testing.assert_array_equal(counts[row], sum(users, np.zeros(len(triples.tags))))


def example():
    return Triples.from_columns(
        ["ann", "ben", "ann", "cat", "ann"],
        ["c1", "c1", "c1", "c1", "c2"],
        ["rock", "rock", "pop", "pop", "pop"],
    )


def test_tracks_are_looked_up_for_every_row():
    alone = Conditioning.from_triples(example())
    assert alone.item_track.tolist() == list(range(len(alone.items)))
    assert alone.tracks.to_list() == alone.items.to_list()
    given = Conditioning.from_triples(example(), tracks={"c1": "t9", "c2": "t5"})
    by_row = given.tracks.gather(given.item_track[given.item]).to_list()
    by_item = {"c1": "t9", "c2": "t5"}
    assert by_row == [by_item[item] for item in given.items.gather(given.item)]
    assert given.tracks.gather(given.item_track).to_list() == ["t9", "t5"]
    for tracks in (["t", "t"], np.array(["t", "t"]), pl.Series(["t", "t"])):
        assert Conditioning.from_triples(example(), tracks=tracks).item_track.tolist() == [0, 0]


def test_pairs_of_all_tags_keep_the_users_who_gave_none_of_the_top_ones():
    triples = example()
    top = triples.top_tags(1)
    assert top.tags.to_list() == ["pop"]
    given = Conditioning.from_triples(top, pairs=triples)
    assert len(given) == 4  # ann, ben and cat saw c1, ann saw c2
    assert given.n_users.tolist() == [3, 1]
    assert given.counts.toarray()[:, 0].tolist() == [2, 1]
    assert len(Conditioning.from_triples(top)) == 3
    with pytest.warns(DataWarning, match=r"1 of 2 rows of the pairs .* \(position 1\)"):
        given = Conditioning.from_triples(triples, pairs=(["dan", ""], ["c1", "c1"]))
    assert "dan" in given.users.to_list()


@pytest.mark.parametrize(
    ("options", "keyword"),
    [
        ({"tracks": {"c1": "t"}}, "'c2'"),
        ({"tracks": ["t"]}, "got 1"),
        ({"tracks": ["t", ""]}, "empty"),
        ({"tracks": ["t", "t"], "pairs": (["u"], ["c3"])}, "Give a mapping"),
        ({"pairs": (["u"], ["c1", "c2"])}, "got 1 for 'user', 2 for 'item'"),
    ],
)
def test_tracks_and_pairs_that_do_not_fit(options, keyword):
    with pytest.raises(DataError, match=keyword):
        Conditioning.from_triples(example(), **options)
