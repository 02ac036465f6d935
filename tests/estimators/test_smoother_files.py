"""Smoothers as files: back to the bit, and nothing but smoothers."""

import numpy as np
import pytest
from triple_data import make_world

from harmonium import TagSmoother
from harmonium.errors import ModelFileError
from harmonium.estimators.model_files import read_model, write_model


@pytest.fixture(scope="module")
def fitted():
    world = make_world()
    settings = {"n_hidden": 8, "max_epochs": 3, "batch_size": 64, "random_state": 0}
    return TagSmoother(n_tags=np.int64(12), **settings).fit(world.triples, tracks=world.tracks)


@pytest.fixture
def file(fitted, tmp_path):
    fitted.save(tmp_path / "smoother.safetensors")
    return tmp_path / "smoother.safetensors"


def test_a_smoother_comes_back_to_the_bit(fitted, file):
    loaded = TagSmoother.load(file)
    assert loaded.to_bytes() == file.read_bytes()
    assert loaded.get_params() == fitted.get_params()
    for one, other in zip(loaded.params_, fitted.params_, strict=True):
        assert one.tobytes() == other.tobytes()
    assert loaded.smooth().values.tobytes() == fitted.smooth().values.tobytes()
    assert loaded.smooth().frame().equals(fitted.smooth().frame())
    users = list(fitted.users_)
    one, other = (m.predict_user(users, "clip001").values for m in (loaded, fitted))
    assert one.tobytes() == other.tobytes()
    assert loaded.related("loud").equals(fitted.related("loud"))
    assert loaded.changes().equals(fitted.changes())
    assert loaded.history_ == fitted.history_
    assert (loaded.best_epoch_, loaded.n_iter_) == (fitted.best_epoch_, fitted.n_iter_)
    assert loaded.baseline_ == fitted.baseline_
    assert loaded.zeros_ == fitted.zeros_


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
