"""What the smoother is conditioned on: the others' tags, users, tracks and clips; odd data."""

import numpy as np
import polars as pl
import pytest
from triple_data import make_world

from harmonium import TagSmoother
from harmonium.data import Conditioning, Triples
from harmonium.errors import DataError
from harmonium.estimators import pairs
from harmonium.estimators.related_tags import relations
from harmonium.estimators.smoothed import Smoothed, changes
from harmonium.estimators.smoother import hold_out, rates_log_likelihood

USERS = ["ann", "ann", "bob", "bob", "cat", "ann", "dan"]
ITEMS = ["x", "x", "x", "x", "x", "y", "z"]
TAGS = ["rock", "loud", "rock", "slow", "loud", "slow", "rock"]


@pytest.fixture(scope="module")
def data():
    """x has three users, y and z one each."""
    return Conditioning.from_triples(Triples.from_columns(USERS, ITEMS, TAGS))


def codes(data, user, item):
    names = data.users.to_list(), data.items.to_list()
    return (
        np.array([names[0].index(u) if u in names[0] else -1 for u in user], np.int32),
        np.array([names[1].index(i) if i in names[1] else -1 for i in item], np.int32),
    )


def mean_of_others(data, user, item):
    """By hand: the tags of the item's users but this one, each (C,), and their number."""
    triples = {(u, i, t) for u, i, t in zip(USERS, ITEMS, TAGS, strict=True)}
    others = sorted({u for u, i, _ in triples if i == item and u != user})
    rows = [[(u, item, t) in triples for t in data.tags] for u in others]
    return np.array(rows, float).reshape(-1, len(data.tags)), len(others)


@pytest.mark.parametrize("prior_users", [0.0, 2.0])
def test_u_is_the_mean_of_the_others_without_oneself(data, prior_users):
    conditions = pairs.conditions_of(data, (), pairs.others_of(data, prior_users))
    rates, spread, _ = conditions.others
    asked = [("ann", "x"), ("bob", "x"), ("cat", "x"), ("dan", "x"), ("new", "x"), ("dan", "y")]
    asked += [("ann", "y"), ("dan", "z"), ("ann", "unheard-of")]  # nobody else's
    u, a = conditions(data, *codes(data, *zip(*asked, strict=True)))
    assert a.shape == (9, 0)
    assert (u[6:] == 0).all()
    for row, (user, item) in zip(u[:6], asked[:6], strict=True):
        tags, n = mean_of_others(data, user, item)
        expected = (tags.sum(axis=0) - n * rates) / (n + prior_users) / spread
        np.testing.assert_allclose(row, expected, rtol=1e-5)


def test_each_part_has_rows_of_its_own():
    parts = pairs.Conditions(("user", "clip"), (3, 4), None)
    columns = {"user": [0, 2, -1], "track": [9, 9, 9], "clip": [3, -1, 0]}
    a = parts.rows(**{name: np.array(values, np.int32) for name, values in columns.items()})
    np.testing.assert_array_equal(a, [[0, 6], [2, -1], [-1, 3]])
    column = parts.column({"user": 1.0, "track": 2.0, "clip": 3.0})
    np.testing.assert_array_equal(column[:, 0], [1, 1, 1, 3, 3, 3, 3])


def test_tracks_that_are_the_clips_are_left_out(data):
    every = ("user", "track", "clip")
    assert pairs.conditions_of(data, every, None).names == ("user", "clip")
    triples = Triples.from_columns(USERS, ITEMS, TAGS)
    shared = Conditioning.from_triples(triples, tracks={"x": "t1", "y": "t1", "z": "t2"})
    assert pairs.conditions_of(shared, every, None) == pairs.Conditions(every, (4, 2, 3), None)
    assert pairs.conditions_of(data, ("track",), None).names == ("track",)


def test_every_pair_finds_its_row(data):
    rows = pairs.pair_rows(data, data.user, data.item)
    np.testing.assert_array_equal(rows, np.arange(len(data)))
    missing = codes(data, ["dan", "new", "ann"], ["x", "x", "unheard-of"])
    np.testing.assert_array_equal(pairs.pair_rows(data, *missing), -1)


def test_without_is_as_if_the_pairs_had_never_been():
    world = make_world()
    data = Conditioning.from_triples(world.triples, tracks=world.tracks)
    rows = np.array([3, 50, 51, 200])
    frame = world.triples.frame()
    for row in rows:
        user, item = data.users[int(data.user[row])], data.items[int(data.item[row])]
        frame = frame.filter((pl.col("user") != user) | (pl.col("item") != item))
    fewer = Conditioning.from_triples(Triples.from_columns(*frame), tracks=world.tracks)
    found = pairs.without(data, rows)
    assert len(found) == len(fewer) == len(data) - 4
    np.testing.assert_array_equal(found.n_users, fewer.n_users)
    order = [fewer.tags.to_list().index(tag) for tag in found.tags]
    np.testing.assert_array_equal(found.counts.toarray(), fewer.counts.toarray()[:, order])


def test_u_has_a_norm_of_about_one():
    data = Conditioning.from_triples(make_world().triples)
    u = pairs.others_of(data, 1.0)(data.counts[data.item] - data.y, data.n_others)
    np.testing.assert_allclose(np.mean(np.sum(u**2, axis=1)), 1, rtol=1e-4)


def test_held_out_pairs_leave_every_clip_a_user():
    data = Conditioning.from_triples(make_world().triples)
    for seed in range(5):
        rows = hold_out(np.random.default_rng(seed), data, 0.5, 10_000)
        assert len(rows) == len(np.unique(rows)) == len(data) // 2
        assert pairs.without(data, rows).n_users.min() == 1
    assert len(hold_out(np.random.default_rng(0), data, 0.99, 10_000)) == len(data) - 128
    assert len(hold_out(np.random.default_rng(0), data, 0.5, 7)) == 7


def test_nothing_is_held_out_where_every_clip_has_one_user(data):
    alone = pairs.without(data, np.array([0, 1]))
    assert len(hold_out(np.random.default_rng(0), alone, 0.5, 100)) == 0
    assert np.isnan(rates_log_likelihood(alone, np.zeros(0, np.intp)))


def test_the_likelihood_of_the_rates(data):
    held_out = np.array([1])
    rates = pairs.tag_rates(pairs.without(data, held_out))
    y = data.y[held_out].toarray()[0]
    expected = np.mean(np.log(np.where(y == 1, rates, 1 - rates)))
    assert rates_log_likelihood(data, held_out) == pytest.approx(expected)


def test_tags_outside_the_vocabulary_still_say_who_saw_what():
    triples = Triples.from_columns([*USERS, "eve"], [*ITEMS, "x"], [*TAGS, "polka"])
    kept, seen = pairs.with_vocabulary(triples, 2, None)
    data = Conditioning.from_triples(kept, pairs=seen)
    assert data.tags.to_list() == ["rock", "loud"]
    row = pairs.pair_rows(data, *codes(data, ["eve"], ["x"]))
    assert data.y[row].sum() == 0
    assert data.n_users[data.items.to_list().index("x")] == 4
    for more in ((["fay"], ["x"]), Triples.from_columns(["fay"], ["x"], ["waltz"])):
        kept, seen = pairs.with_vocabulary(triples, 2, more)
        data = Conditioning.from_triples(kept, pairs=seen)
        assert data.n_users[data.items.to_list().index("x")] == 5
    assert pairs.with_vocabulary(triples, 10, None) == (triples, None)


def test_changes_by_hand(data):
    """Rates, counting one more of each: rock 4/7, loud and slow 3/7."""
    P = np.full(data.counts.shape, 0.3, np.float32)
    place = {name: i for i, name in enumerate(data.items)}
    tag = {name: j for j, name in enumerate(data.tags)}
    P[place["y"], tag["rock"]] = 0.4  # nobody said so of y; the median of x and z is 0.3
    P[place["x"], tag["slow"]] = 0.01  # bob did
    P[[place["z"], place["y"]], tag["loud"]] = 0.29
    P[place["z"], tag["slow"]] = 0.15
    assert changes(data, P).drop("probability").rows() == [
        ("y", "rock", "filled in", 0, 1),
        ("x", "slow", "doubted", 1, 3),
    ]


def test_a_tag_called_item_needs_the_long_table():
    smoothed = Smoothed(pl.Series(["x"]), pl.Series(["item"]), np.ones((1, 1), np.float32))
    with pytest.raises(DataError, match="A tag is called 'item'"):
        smoothed.frame()
    assert smoothed.long().rows() == [("x", "item", 1.0)]


def test_relations_survive_certainty():
    tags = pl.Series(["a", "b", "c"])
    present, absent = np.array([1, 1, 0.2], np.float32), np.array([0, 0, 0.2], np.float32)
    table = relations(tags, present, absent, 0, 5)
    assert table["tag"].to_list() == ["b"]
    assert 20 < table["log_odds"].item() < 40


# the methods whose programs are compiled fastest
TINY = {"n_hidden": 4, "training": "cd", "inference": "mean_field", "max_epochs": 2}
TINY |= {"batch_size": 8, "random_state": 0}


@pytest.mark.parametrize(
    ("users", "items", "tags"),
    [
        (["a"], ["x"], ["rock"]),
        (["a", "b", "c"], ["x", "y", "z"], ["rock", "pop", "jazz"]),
        (["a", "a", "a"], ["x", "y", "z"], ["rock", "rock", "pop"]),
        (["a", "b", "c"], ["x", "x", "x"], ["rock", "rock", "rock"]),
    ],
    ids=["one triple", "each seen once", "one user", "one clip and one tag"],
)
def test_little_data_is_enough(users, items, tags):
    model = TagSmoother(**TINY).fit((users, items, tags))
    values = model.smooth().values
    assert values.shape == (len(set(items)), len(set(tags)))
    assert ((values > 0) & (values < 1)).all()
    assert model.predict_user(users[0], items[0]).values.shape == (1, len(set(tags)))


def test_clips_that_nobody_gave_a_tag_of_the_vocabulary_are_smoothed_too():
    model = TagSmoother(n_tags=1, **TINY).fit((USERS, ITEMS, TAGS))
    assert list(model.tags_) == ["rock"]
    assert set(model.smooth().items) == {"x", "y", "z"}
    seen = (["eve", "ann"], ["w", "w"])
    data = Conditioning.from_triples(Triples.from_columns(USERS, ITEMS, TAGS), pairs=seen)
    conditions = pairs.conditions_of(data, (), pairs.others_of(data, 1.0))
    u, _ = conditions(data, *codes(data, ["new"], ["w"]))
    assert (u < 0).all()  # two users saw it and gave it nothing: not the same as nobody


@pytest.mark.parametrize(
    ("conditioning", "auxiliary", "training"),
    [
        ("other_users", (), "cd"),
        ("other_users", ["user", "track", "clip"], "lbp"),
        ("none", "track", "mean_field"),
        ("none", ("user", "clip"), "pl"),
    ],
)
def test_any_selection_of_conditions_trains_with_any_gradient(conditioning, auxiliary, training):
    tracks = {"x": "t1", "y": "t1", "z": "t2"}
    model = TagSmoother(conditioning, auxiliary, **(TINY | {"training": training}))
    model.fit((USERS, ITEMS, TAGS), tracks=tracks)
    assert model.params_.W.shape == (4, 3 if conditioning == "other_users" else 0)
    sizes = {"user": 4, "track": 2, "clip": 3}
    chosen = [auxiliary] if isinstance(auxiliary, str) else auxiliary
    assert model.params_.V.shape == (sum(sizes[name] for name in chosen), 3)
    assert model.smooth().values.shape == (3, 3)
    assert np.isfinite(model.smooth().values).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"auxiliary": ("user", "artist")}, "'auxiliary' must be a selection .* Got 'artist'"),
        ({"conditioning": "all"}, "The 'conditioning' parameter of TagSmoother must be"),
        ({"n_hidden": 0}, "The 'n_hidden' parameter of TagSmoother must be"),
        ({"hide_user": 1.0}, "The 'hide_user' parameter of TagSmoother must be"),
        ({"inference": "exact", "n_hidden": 30}, "at most 20 units .* 30 hidden units and 25 tags"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    model = TagSmoother(**(TINY | settings))
    tags = [f"tag{j}" for j in range(25)]
    with pytest.raises(ValueError, match=message):
        model.fit((["a"] * 25, ["x"] * 25, tags))


@pytest.mark.parametrize(
    ("triples", "message"),
    [
        (7, "'triples' must be Triples, a file .* Got int instead"),
        (pl.DataFrame({"user": ["a"], "clip": ["x"], "tag": ["t"]}), "'item' is not among"),
        (("missing.csv",), "'triples' must be Triples"),
        ("missing.csv", "There is no file"),
        (([], [], []), "'triples' must hold at least one"),
    ],
    ids=["a number", "a frame of other columns", "a tuple of one", "no file", "nothing"],
)
def test_triples_that_cannot_be(triples, message):
    with pytest.raises(DataError, match=message):
        TagSmoother().fit(triples)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("smooth", ()),
        ("suggest", ("rock",)),
        ("related", ("rock",)),
        ("predict_user", ("ann", "x")),
        ("changes", ()),
        ("save", ("model",)),
        ("params_", ()),
        ("tags_", ()),
    ],
)
def test_it_must_be_fitted_first(name, arguments):
    with pytest.raises(ValueError, match="not fitted yet"):
        getattr(TagSmoother(), name)(*arguments)
