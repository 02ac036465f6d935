"""Paths between two tracks, and smooth orders, by sound."""

from itertools import combinations

import numpy as np
import pytest
import small_library
from command_line import run_main
from small_library import new_change

from harmonium.errors import DataError
from harmonium.library.searching.likeness import similarities, similarity_matrix
from harmonium.library.searching.paths import pool_between, smooth_order, smoothest


def cosines(n, seed):
    V = np.random.default_rng(seed).normal(size=(n, 3))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    return V @ V.T


def cost(C, path):
    path = np.array(path)
    return float((np.maximum(1 - C[path[:-1], path[1:]], 0) ** 3).sum())


@pytest.mark.parametrize("n_stops", [2, 3, 5, 9])
@pytest.mark.parametrize("seed", range(5))
def test_a_path_costs_the_least_of_all_that_go_forwards(n_stops, seed):
    C = cosines(9, seed)
    ways = ([0, *some, 8] for some in combinations(range(1, 8), n_stops - 2))
    path = smoothest(C, n_stops).tolist()
    assert cost(C, path) == pytest.approx(min(cost(C, way) for way in ways))
    assert path == sorted(set(path))
    assert (len(path), path[0], path[-1]) == (n_stops, 0, 8)
    assert smoothest(C, 100).tolist() == [*range(9)]  # there are no more


@pytest.mark.parametrize("seed", range(5))
def test_no_part_of_a_smooth_order_is_better_reversed(seed):
    C = cosines(12, seed)
    order = smooth_order(C).tolist()
    assert sorted(order) == [*range(12)]
    assert order[0] == 0
    for i, j in combinations(range(1, 13), 2):
        assert cost(C, order) <= cost(C, [*order[:i], *order[i:j][::-1], *order[j:]]) + 1e-8
    assert cost(C, order) < cost(C, range(12))
    assert [smooth_order(C[:n, :n]).tolist() for n in (0, 1, 2)] == [[], [0], [0, 1]]


def test_the_pool_is_the_tracks_near_the_line_by_their_progress(monkeypatch):
    monkeypatch.setattr("harmonium.library.searching.paths.N_POOL", 3)
    angles = np.radians([80.0, 30.0, 170.0, 60.0, 10.0, -150.0])  # the ends are at 0 and 90
    pool = pool_between(np.cos(angles), np.sin(angles), 0.0)
    assert len(pool) == 3
    assert set(pool) <= {0, 1, 3, 4}
    assert sorted(pool, key=lambda i: angles[i]) == pool.tolist()


@pytest.fixture
def ids(library):
    """The tracks of a library with a model."""
    _, ids, _ = small_library.trained(library, tagged=25)
    return ids


def test_a_path_leads_over_tracks_that_match(library, ids):
    a, b = int(ids[3]), int(ids[-1])
    path = [
        hit.track.id for hit in library.search("jazz", start=a, end=b, limit=6, min_probability=0.3)
    ]
    assert (path[0], path[-1], len({*path})) == (a, b, 6)
    matching = {h.track.id for h in library.search("jazz", limit=100, min_probability=0.3)}
    assert {*path[1:-1]} <= matching


def test_a_path_compares_tracks_as_a_search_by_likeness_does(library, ids):
    a, b = int(ids[3]), int(ids[-1])
    library.opinions.say("bob", a, present=["live"], absent=["rock"], change=new_change(library))
    path = library.search("jazz", start=a, end=b, limit=6, min_probability=0.3)
    snapshot = library.snapshot()
    tagged = snapshot.columns([0])[0]
    matrix = similarity_matrix(snapshot, snapshot.tags, ids)
    other = int(ids[-2])  # about which nobody has said anything
    alone = similarities(snapshot, snapshot.tags, other, tagged)[1]
    np.testing.assert_allclose(matrix[-2], alone, atol=1e-5)
    like = dict(zip(ids.tolist(), similarities(snapshot, snapshot.tags, a, tagged)[1], strict=True))
    second = path.hits[1]
    assert second.similarity == pytest.approx(like[second.track.id])


def test_a_smooth_order_has_the_same_tracks_in_smaller_steps(library, ids):
    smooth = library.search("jazz", order="smooth", limit=8)
    plain = library.search("jazz", limit=8)
    assert {h.track.id for h in smooth} == {h.track.id for h in plain}
    assert smooth.hits[0].track.id == plain.hits[0].track.id
    library.similar(int(ids[0]))  # computes the sound vectors
    snapshot = library.snapshot()
    matrix = similarity_matrix(snapshot, snapshot.tags, ids)
    rows = [ids.tolist().index(h.track.id) for h in smooth]
    usual = [ids.tolist().index(h.track.id) for h in plain]
    assert cost(matrix, rows) <= cost(matrix, usual) + 1e-8
    assert library.search("jazz -jazz", order="smooth", min_probability=1).hits == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"end": 9}, r"path|Search for"),
        ({"start": 4}, r"path|Search for"),
        ({"start": 4, "end": 4}, r"path|Search for"),
        ({"like": 4, "start": 4}, r"path|Search for"),
        ({"text": "jazz", "order": "smooth", "limit": 1}, "2 to 500"),
    ],
)
def test_orders_that_make_no_sense_are_refused(library, ids, options, message):
    with pytest.raises(DataError, match=message):
        library.search(**options)


def test_the_command_prints_a_path(library, ids, place):
    ends = ("--from", f"#{ids[3]}", "--to", f"#{ids[-1]}")
    done = run_main("search", *ends, "-n", 4, "-rock", "-L", place)
    assert done.exit_code == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4
