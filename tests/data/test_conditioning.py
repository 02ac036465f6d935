"""What the smoother learns from."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triple_rows import ROWS, columns_of, triples_of

from harmonium.data import Conditioning, Triples
from harmonium.errors import DataError, DataWarning

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

    y = given.y.toarray()
    others_sum = (given.counts[given.item] - given.y).toarray()
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


def test_by_default_each_item_is_its_own_track():
    alone = Conditioning.from_triples(example())
    assert alone.item_track.tolist() == list(range(len(alone.items)))
    assert alone.tracks.to_list() == alone.items.to_list()


def test_tracks_are_looked_up_for_every_row():
    given = Conditioning.from_triples(example(), tracks={"c1": "t9", "c2": "t5"})
    by_row = given.tracks.gather(given.item_track[given.item]).to_list()
    by_item = {"c1": "t9", "c2": "t5"}
    assert by_row == [by_item[item] for item in given.items.gather(given.item)]
    assert given.tracks.gather(given.item_track).to_list() == ["t9", "t5"]


@pytest.mark.parametrize("kind", [list, np.array, pl.Series])
def test_tracks_in_the_order_of_the_items(kind):
    tracks = kind(["t", "t"])
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


def test_bad_pairs_are_left_out():
    triples = example()
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
def test_options_that_do_not_fit(options, keyword):
    with pytest.raises(DataError, match=keyword):
        Conditioning.from_triples(example(), **options)
