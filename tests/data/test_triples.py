import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.data import Triples

ROWS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("wxyz"), st.sampled_from("rst")), max_size=60
)


def triples_of(rows):
    users, items, tags = ([row[i] for row in rows] for i in range(3))
    return Triples.from_columns(*(pl.Series(c, dtype=pl.String) for c in (users, items, tags)))


@given(ROWS)
@settings(deadline=None, max_examples=100)
def test_counts_equal_a_loop(rows):
    triples = triples_of(rows)
    assert sorted(triples.frame().rows()) == sorted(set(rows))
    counts = triples.counts()
    for i, item in enumerate(counts.items):
        for j, tag in enumerate(counts.tags):
            assert counts.matrix[i, j] == len({u for u, x, t in rows if (x, t) == (item, tag)})


@given(ROWS, st.integers(1, 5))
@settings(deadline=None, max_examples=100)
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
    assert set(core.users) == {row[0] for row in left}


def test_labels_are_ternary():
    triples = Triples.from_columns(
        ["u1", "u2", "u1", "u1"], [7, 7, 7, 8], ["Hip-Hop", "hip hop", "hip_hop ", "rock"]
    )
    counts = triples.counts().top(2)
    assert counts.tags.to_list() == ["hip hop", "rock"]
    np.testing.assert_array_equal(counts.labels(min_count=2), [[1, 0], [0, np.nan]])
    np.testing.assert_array_equal(counts.select(["8", "7"]).labels(min_count=1), [[0, 1], [1, 0]])
