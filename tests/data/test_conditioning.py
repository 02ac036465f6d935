"""The smoother's conditioning against a plain loop."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data import Conditioning, Triples
from harmonium.errors import DataError, DataWarning

ROWS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("wxyz"), st.sampled_from("rst")), max_size=40
)
PAIRS = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("vwxyz")), max_size=10)


def columns(table, n):
    return [pl.Series([row[i] for row in table], dtype=pl.String) for i in range(n)]


def triples_of(rows):
    return Triples.from_columns(*columns(rows, 3))


@given(ROWS, PAIRS)
@settings(deadline=None, max_examples=80)
def test_every_pair_equals_a_loop(rows, pairs):
    triples = triples_of(rows)
    given = Conditioning.from_triples(triples, pairs=tuple(columns(pairs, 2)))
    seen = {(user, item) for user, item, _ in rows} | set(pairs)

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


def test_an_item_with_one_user_has_no_others():
    given = Conditioning.from_triples(example())
    (row,) = np.flatnonzero(given.item == given.items.to_list().index("c2"))
    assert given.n_others[row] == 0


def test_matrices_are_sparse_and_of_the_promised_types():
    given = Conditioning.from_triples(example())
    for matrix in (given.y, given.counts):
        assert matrix.format == "csr"
        assert matrix.dtype == np.float32
        assert matrix.has_canonical_format
    assert given.y.nnz == len(example())
    assert {a.dtype for a in (given.user, given.item, given.track, given.n_others)} == {
        np.dtype(np.int32)
    }


@pytest.mark.parametrize(
    "tracks", [{"c1": "t", "c2": "t"}, ["t", "t"], np.array(["t", "t"]), pl.Series(["t", "t"])]
)
def test_clips_of_one_track_share_its_index(tracks):
    given = Conditioning.from_triples(example(), tracks=tracks)
    assert given.tracks.to_list() == ["t"]
    assert given.track.tolist() == [0] * len(given)
    assert given.item_track.tolist() == [0, 0]


def test_tracks_are_looked_up_for_every_row():
    given = Conditioning.from_triples(example(), tracks={"c1": "t9", "c2": "t5"})
    by_row = given.tracks.gather(given.track).to_list()
    by_item = {"c1": "t9", "c2": "t5"}
    assert by_row == [by_item[item] for item in given.items.gather(given.item)]
    assert given.tracks.gather(given.item_track).to_list() == ["t9", "t5"]


def test_without_tracks_each_item_is_its_own():
    given = Conditioning.from_triples(example())
    assert given.track.tolist() == given.item.tolist()
    assert given.tracks.to_list() == given.items.to_list()


def test_pairs_of_all_tags_keep_the_users_who_gave_none_of_the_top_ones():
    triples = example()
    top = triples.top_tags(1)
    assert top.tags.to_list() == ["pop"]
    given = Conditioning.from_triples(top, pairs=triples)
    assert len(given) == 4  # ann, ben and cat saw c1, ann saw c2
    assert given.n_users.tolist() == [3, 1]
    assert given.counts.toarray()[:, 0].tolist() == [2, 1]
    assert len(Conditioning.from_triples(top)) == 3


def test_bad_pairs_are_left_out_with_a_warning():
    with pytest.warns(
        DataWarning, match=r"1 of 2 rows of the pairs .* an empty user \(position 1\)"
    ):
        given = Conditioning.from_triples(example(), pairs=(["dan", ""], ["c1", "c1"]))
    assert "dan" in given.users.to_list()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tracks": {"c1": "t"}}, "has none for 1 of them, such as 'c2'"),
        ({"tracks": ["t"]}, "a track for each of the 2 items, got 1"),
        ({"tracks": ["t", ""]}, "'tracks' has an empty name"),
        (
            {"tracks": ["t", "t"], "pairs": (["u"], ["c3"])},
            "Give a mapping, as 'pairs' has 1 further",
        ),
        ({"pairs": (["u"], ["c1", "c2"])}, "equal length, got 1 for 'user', 2 for 'item'"),
    ],
)
def test_what_does_not_fit(options, message):
    with pytest.raises(DataError, match=message):
        Conditioning.from_triples(example(), **options)


def test_no_triples():
    given = Conditioning.from_triples(triples_of([]))
    assert len(given) == 0
    assert given.counts.shape == given.y.shape == (0, 0)
