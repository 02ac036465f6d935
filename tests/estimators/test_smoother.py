"""TagSmoother: what it learns of a known world, how it answers, and its files."""

from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from triple_data import TAGS, WORDS, make_world

from harmonium import TagSmoother
from harmonium.errors import DataError, DataWarning, ModelFileError, TrainingInterrupted
from harmonium.estimators import smoother as module
from harmonium.estimators.model_files import read_model, write_model
from harmonium.evaluation import auc_per_tag

QUICK = {"n_hidden": 8, "learning_rate": 0.03, "max_epochs": 40, "batch_size": 64}
QUICK["random_state"] = 0


@pytest.fixture(scope="module")
def world():
    return make_world()


@pytest.fixture(scope="module")
def fitted(world):
    return TagSmoother(n_tags=np.int64(12), **QUICK).fit(world.triples, tracks=world.tracks)


def test_smoothing_ranks_better_than_counts(world, fitted):
    raw, smoothed = world.triples.counts().matrix.toarray(), fitted.smooth().values
    before, after = (auc_per_tag(world.truth.astype(np.float32), S).mean for S in (raw, smoothed))
    assert after > before + 0.02


def test_training_stops_at_the_best_epoch(fitted):
    scores = fitted.history_["validation"]
    assert fitted.best_epoch_ == 1 + int(np.argmax(scores))
    assert max(scores) > fitted.baseline_ + 0.02
    assert len(scores) == fitted.n_iter_ == len(fitted.history_["seconds"])


def test_related_finds_the_planted_relations_the_strongest_first(fitted):
    for trait, other in (("loud", "calm"), ("calm", "loud"), ("old", "new")):
        words = WORDS[trait]
        found = dict(fitted.related(words[0], n=20).select("tag", "log_odds").iter_rows())
        assert words[0] not in found
        same = [found[word] for word in words[1:]]
        opposite = [found[word] for word in WORDS[other]]
        assert np.mean(same) > 0.15, trait
        assert np.mean(opposite) < -0.15, trait
    table = fitted.related("loud", n=3)
    assert table.columns == ["tag", "log_odds", "with", "without"]
    assert table["log_odds"].is_sorted(descending=True)
    assert (table["log_odds"][:3] > 0).all()
    assert (table["log_odds"][-3:] < 0).all()
    odds = [np.log(table[c] / (1 - table[c])) for c in ("with", "without")]
    np.testing.assert_allclose(table["log_odds"], odds[0] - odds[1], atol=1e-3)


def test_suggest_says_what_goes_with_the_tags_it_knows_in_any_spelling(fitted):
    table = fitted.suggest(["loud", "heavy"], n=4)
    assert table.columns == ["tag", "probability", "usual"]
    assert {"guitar", "rock"} <= set(table["tag"])
    assert not {"loud", "heavy"} & set(table["tag"])
    assert table["probability"].is_sorted(descending=True)
    likelier = table.filter(pl.col("tag").is_in(["guitar", "rock"]))
    assert (likelier["probability"] > likelier["usual"]).all()
    assert fitted.suggest("Loud").equals(fitted.suggest(["loud"]))
    with pytest.warns(DataWarning, match="'polka' is not among the 12 tags of the model"):
        table = fitted.suggest(["loud", "polka"])
    assert table.equals(fitted.suggest("loud"))
    with pytest.raises(DataError, match=r"'pianos' is not among .* Did you mean 'piano'"):
        fitted.suggest("pianos")
    with pytest.raises(DataError, match="'polka' is not among"):
        fitted.related("polka")


@pytest.mark.parametrize("seed", range(2))
def test_a_last_batch_of_few_pairs_does_not_spoil_the_model(seed):
    """501 pairs in batches of 50: the one pair of the last batch may be held out."""
    rng = np.random.default_rng(0)
    pairs = np.array([divmod(pair, 60) for pair in rng.choice(60 * 60, 501, replace=False)])
    users, items = ([str(i) for i in codes] for codes in pairs.T)
    tags = [TAGS[(user + item) % len(TAGS)] for user, item in pairs]
    model = TagSmoother(n_hidden=4, max_epochs=6, random_state=seed).fit((users, items, tags))
    assert len(model._data) == 501
    assert np.isfinite(model.history_["log_likelihood"]).all()
    assert np.isfinite(model.smooth().values).all()
    assert model.best_epoch_ > 0


def test_smooth_gives_every_tag_of_every_clip(world, fitted):
    smoothed = fitted.smooth()
    assert smoothed.items.to_list() == list(fitted.items_) == world.triples.items.to_list()
    assert smoothed.tags.to_list() == list(fitted.tags_) == world.triples.tags.to_list()
    assert smoothed.values.shape == (128, 12)
    assert ((smoothed.values > 0) & (smoothed.values < 1)).all()
    assert repr(smoothed) == "Smoothed(128 items × 12 tags)"


def test_smooth_gives_the_clips_asked_for(fitted):
    some = fitted.smooth(["clip007", "clip003"])
    assert some.items.to_list() == ["clip007", "clip003"]
    np.testing.assert_allclose(some.values, fitted.smooth().values[[7, 3]], atol=1e-6)
    assert fitted.smooth("clip007").items.to_list() == ["clip007"]
    with pytest.raises(DataError, match="'clip999' is not among the 128"):
        fitted.smooth(["clip001", "clip999"])


def test_the_long_table_has_the_values_of_the_wide_one(fitted):
    smoothed = fitted.smooth()
    wide, long = smoothed.frame(), smoothed.long()
    assert wide.columns == ["item", *fitted.tags_]
    np.testing.assert_array_equal(wide.drop("item").to_numpy(), smoothed.values)
    assert long.columns == ["item", "tag", "probability"]
    row = long.filter((pl.col("item") == "clip005") & (pl.col("tag") == "rock"))
    assert row["probability"].item() == wide.filter(pl.col("item") == "clip005")["rock"].item()


def test_changes_are_those_of_all_clips(fitted):
    assert fitted.changes().equals(fitted.changes(fitted.smooth()))
    with pytest.raises(DataError, match="'smoothed' must have all 128 clips"):
        fitted.changes(fitted.smooth(["clip007", "clip003"]))


def test_the_chance_that_any_user_gives_a_tag(world, fitted):
    """1 - (1 - p)^(n + 1), counted user by user; doubts go by a new user's p all the same."""
    new_user = fitted.smooth()
    items = new_user.items.to_list()
    users_of = dict.fromkeys(items, 0)
    pairs = zip(world.triples.user, world.triples.items.gather(world.triples.item), strict=True)
    for _, item in set(pairs):
        users_of[item] += 1
    expected = np.empty(new_user.values.shape)
    for row, item in enumerate(items):
        of_none = 1.0
        for _ in range(users_of[item] + 1):
            of_none = of_none * (1 - new_user.values[row].astype(np.float64))
        expected[row] = 1 - of_none
    of_any = copy(fitted).set_params(target="any_user")
    np.testing.assert_allclose(of_any.smooth().values, expected, rtol=1e-5, atol=1e-7)
    assert (of_any.smooth(items[3]).values[0] == of_any.smooth().values[3]).all()
    assert (expected > new_user.values).all()
    assert of_any.changes().equals(fitted.changes())
    assert of_any.changes(of_any.smooth()).equals(fitted.changes())


def test_a_known_user_has_habits(fitted):
    users = list(fitted.users_)
    known = fitted.predict_user(users, "clip001")
    assert known.values.shape == (25, 12)
    assert known.items.to_list() == ["clip001"] * 25
    assert np.ptp(known.values, axis=0).min() > 0.01
    new = fitted.smooth("clip001").values[0]
    pets = [fitted.tags_.tolist().index(TAGS[int(user[4:]) % len(TAGS)]) for user in users]
    gains = known.values[np.arange(25), pets] - new[pets]
    assert np.mean(gains > 0) > 0.8
    assert gains.mean() > 0.03
    nobody = fitted.predict_user("nobody", ["clip001", "clip002"])  # is a new user
    np.testing.assert_array_equal(nobody.values, fitted.smooth(["clip001", "clip002"]).values)
    nowhere = fitted.predict_user([*users, "nobody"], "clip999").values
    assert np.ptp(nowhere, axis=0).min() > 0.01
    given = np.full((1, 12), np.nan, np.float32)
    np.testing.assert_allclose(nowhere[-1], fitted._without_clip(given)[0], atol=1e-6)
    with pytest.raises(DataError, match="Got 2 users and 3 clips"):
        fitted.predict_user(["a", "b"], ["clip001", "clip002", "clip003"])


def test_what_the_user_gave_the_clip_is_not_used(fitted):
    """The answer for a pair stays the same if that pair had other tags; a new user's does not."""
    data, row = fitted._data, 17
    user, clip = data.users[int(data.user[row])], data.items[int(data.item[row])]
    y = data.y.toarray()
    y[row] = 1 - y[row]
    changed = copy(fitted)
    changed._data = replace(data, y=csr_array(y))
    one, other = (m.predict_user(user, clip).values for m in (fitted, changed))
    np.testing.assert_array_equal(one, other)
    assert np.abs(fitted.smooth(clip).values - changed.smooth(clip).values).max() > 0.01


def test_triples_come_in_any_container(world, tmp_path):
    frame = world.triples.frame()
    frame.write_csv(tmp_path / "triples.csv")
    columns = {name: frame[name].to_list() for name in ("user", "item", "tag")}
    given = (frame, pd.DataFrame(columns), tmp_path / "triples.csv", tuple(columns.values()))
    models = [TagSmoother(**QUICK).fit(triples, tracks=world.tracks) for triples in given]
    assert len({model.smooth().values.tobytes() for model in models}) == 1


def test_l1_makes_exact_zeros(world, fitted):
    assert fitted.params_.W.all()
    sparse = TagSmoother(rows_l1=1.0, others_l1=0.3, **QUICK)
    sparse.fit(world.triples, tracks=world.tracks)
    assert 0.2 < np.mean(sparse.params_.V == 0) < 1
    assert 0.1 < np.mean(sparse.params_.W == 0) < 1
    empty = TagSmoother(rows_l1=50.0, **QUICK).fit(world.triples, tracks=world.tracks)
    assert not empty.params_.V.any()


def test_ctrl_c_keeps_the_best_so_far(world, monkeypatch):
    calls = []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return -1.0 / len(calls)

    monkeypatch.setattr(module, "log_likelihood", interrupted)
    with pytest.warns(TrainingInterrupted, match="those of epoch 3"):
        model = TagSmoother(**QUICK).fit(world.triples, tracks=world.tracks)
    assert model.best_epoch_ == model.n_iter_ == 3
    assert model.smooth().values.shape == (128, 12)


@pytest.fixture
def file(fitted, tmp_path):
    fitted.save(tmp_path / "smoother.safetensors")
    return tmp_path / "smoother.safetensors"


def test_a_smoother_comes_back_to_the_bit(fitted, file):
    loaded = TagSmoother.load(file)
    assert loaded.to_bytes() == file.read_bytes()
    assert loaded.get_params() == fitted.get_params()
    assert loaded.smooth().frame().equals(fitted.smooth().frame())
    one, other = (m.predict_user(m.users_, "clip001").values for m in (loaded, fitted))
    assert one.tobytes() == other.tobytes()
    assert loaded.related("loud").equals(fitted.related("loud"))
    assert loaded.changes().equals(fitted.changes())
    for name in ("history_", "best_epoch_", "n_iter_", "baseline_"):
        assert getattr(loaded, name) == getattr(fitted, name)


def test_names_in_any_script_come_back(tmp_path):
    users, items = ["Ünal", "村上"], ["Für Elise 🎹", "x" * 300]
    model = TagSmoother("none", n_hidden=4, training="cd", max_epochs=1, random_state=0)
    model.fit((users, items, ["klavier", "音楽"]))
    model.save(tmp_path / "m")
    loaded = TagSmoother.load(tmp_path / "m")
    assert list(loaded.users_) == users
    assert list(loaded.items_) == items
    assert list(loaded.tags_) == ["klavier", "音楽"]
    assert loaded.params_.W.shape == (4, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, d: a.pop("params.U"), "KeyError"),
        (lambda a, d: a.update({"params.V": a["params.V"][1:]}), "have the shapes"),
        (lambda a, d: a.update({"pairs.user": a["pairs.user"] + 1000}), "codes outside"),
        (lambda a, d: a.update({"pairs.item": a["pairs.item"][:-1]}), "differ in length"),
        (lambda a, d: a.update({"users.text": a["users.text"][:-1]}), "names of users"),
        (lambda a, d: a.update({"params.c": a["params.c"].astype("f8")}), "must hold float32"),
        (lambda a, d: a.update({"others.rates": a["others.rates"][1:]}), "another vocabulary"),
        (lambda a, d: d["parameters"].update(n_hidden=9), "have the shapes"),
        (lambda a, d: d["parameters"].update(nonsense=9), "TypeError"),
        (lambda a, d: d.pop("parts"), "KeyError"),
        (lambda a, d: a["params.V"].fill(np.nan), "params.V .*finite"),
        (lambda a, d: a.update({"others.spread": a["others.spread"] * 0}), "spread"),
        (lambda a, d: d["parameters"].update(n_jobs=0), "n_jobs"),
    ],
    ids=[
        "no U", "short V", "strange users", "short items", "short names", "double", "rates",
        "other size", "other settings", "no parts", "NaN", "no spread", "no jobs",
    ],
)  # fmt: skip
def test_files_that_are_not_whole_are_refused(file, tmp_path, change, message):
    arrays, about = read_model(file)
    change(arrays, about)
    write_model(tmp_path / "bad", arrays, about)
    with pytest.raises(ModelFileError, match=message):
        TagSmoother.load(tmp_path / "bad")
