"""Learning from more tracks than fit into memory: from files, with the same answers."""

import functools
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import small_library
from small_library import TAGS

from harmonium.errors import DataError
from harmonium.library import Library
from harmonium.library.learning import examples as examples_module
from harmonium.library.learning import fitting
from harmonium.library.learning import train as train_module
from harmonium.library.learning.examples import (
    TableFile,
    TrainingSet,
    by_columns,
    read_training_set,
)
from harmonium.library.learning.fitting import (
    FitTask,
    Hyperparameters,
    choose_thresholds,
    fit,
    make_curves,
    mean_auc,
    score_tags,
)
from harmonium.library.store.opinions import judge, label_matrix
from harmonium.library.tagger import Tagger, builtin_extractor, builtin_model

LONG = pytest.mark.long
QUICK = functools.partial(fit, to_try=(Hyperparameters(0.01, 0.1),), n_hidden=5)


def test_a_full_disk_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(DataError, match=r"5 tracks needs 0.0 GB in .* TMPDIR"):
        TableFile.new(tmp_path / "X", 5, 3)
    assert not (tmp_path / "X").exists()


def test_what_takes_all_tracks_is_the_same_tag_by_tag(monkeypatch):
    rng = np.random.default_rng(0)
    Y = np.where(rng.random((200, 7)) < 0.1, np.nan, rng.random((200, 7)) < 0.3)
    Y, P = Y.astype(np.float32), rng.random((200, 7)).astype(np.float32)
    found = []
    for most in (10**6, 400):
        monkeypatch.setattr(examples_module, "MAX_NUMBERS", most)
        scores = score_tags(Y, P)
        found.append([mean_auc(Y, P), *vars(scores).values(), choose_thresholds(Y, P, scores)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert by_columns(lambda y: np.array([y.shape[1]]), Y).tolist() == [2, 2, 2, 1]
    groups = rng.integers(0, 40, 200)
    for one, other in zip(
        make_curves(Y, P, groups), make_curves(Y, P, [str(g) for g in groups]), strict=True
    ):
        np.testing.assert_array_equal(one.effective, other.effective)


def in_files(folder, X, Y):
    """The training set of these arrays, with its features in a file."""
    table = TableFile.new(folder / "X", *X.shape)
    table.open("r+")[:] = X
    return TrainingSet(table, Y, np.arange(len(X)), TAGS)


def test_a_fit_from_files_is_that_of_the_same_rows_in_memory(tmp_path):
    X, truth = small_library.world(60)
    Y = truth.astype(np.float32)
    sets = in_files(tmp_path, X, Y), TrainingSet(X, Y, np.arange(60), TAGS)
    there, here = (QUICK(examples)[0] for examples in sets)
    assert there.held_out_.tobytes() == here.held_out_.tobytes()
    assert there.to_bytes()[:8] == here.to_bytes()[:8]


@pytest.mark.parametrize("people", [("ann",), pytest.param(("ann", "bob", "cy"), marks=LONG)])
def test_a_library_larger_than_memory_is_learnt_from_as_a_whole(tmp_path, monkeypatch, people):
    monkeypatch.setattr(train_module, "fit", QUICK)
    monkeypatch.setattr(train_module, "MAX_IN_MEMORY", 25)
    monkeypatch.setattr(train_module, "MAX_KEPT", 30)
    monkeypatch.setattr(fitting, "MAX_TO_SEARCH", 40)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    used = []
    with Library.open(tmp_path / "library.db") as library:
        ids, X, truth = small_library.fill(library, 120, tagged=90, people=people)
        n_tagged = len(library.opinions.triples()["track_id"].unique())

        def watch(what, done, total):
            (folder,) = tmp_path.glob("harmonium-train-*")
            used.append({path.name for path in folder.iterdir()})

        stored = train_module.train(library, progress=watch)
    assert used[-1] == {"X"}
    assert stored.report["smoothing_tried"] == (len(people) > 1)
    assert not list(tmp_path.glob("harmonium-train-*"))
    assert stored.report["tracks"] == n_tagged > 80
    examples = {tag["tag"]: tag["examples"] for tag in stored.report["tags"]}
    assert sum(stored.report["calibration"]["n"]) == n_tagged * len(stored.vocabulary)
    np.testing.assert_allclose([examples[tag] for tag in TAGS], truth[:90].sum(axis=0), atol=12)
    tagger = Tagger(stored)
    kept, held_out = tagger.held_out
    assert len(kept) == 30
    assert set(kept.tolist()) <= set(ids[:90].tolist())
    assert (np.diff(kept) > 0).all()
    rows = np.searchsorted(ids, kept)
    order = [stored.vocabulary.index(tag) for tag in TAGS]
    assert score_tags(truth[rows].astype(np.float32), held_out[:, order]).auc.mean() > 0.7
    unheard = tagger.probabilities(X[90:])[:, order]
    assert score_tags(truth[90:].astype(np.float32), unheard).auc.mean() > 0.75


def test_a_worker_that_does_not_see_the_files_leaves_the_fit_to_the_caller(tmp_path):
    X, truth = small_library.world(60)
    settings = {"n_hidden": 5, "n_models": 2, "max_epochs": 2, "random_state": 0}
    examples = in_files(tmp_path, X, truth.astype(np.float32))
    task = FitTask("Fitting", Hyperparameters(0.01, 0.1), examples, settings)
    lost = SimpleNamespace(task=task, result=None, error=FileNotFoundError("X"))
    found, model = fitting._next(SimpleNamespace(next=lambda: lost))
    assert found is task
    assert model.held_out_.shape == truth.shape


def test_files_hold_what_memory_would_with_the_built_in_model(tmp_path, monkeypatch):
    monkeypatch.setattr(examples_module, "BLOCK", 7)
    n_more, n_features = len(builtin_model().vocabulary), Tagger(builtin_model()).n_features
    with Library.open(tmp_path / "library.db") as library:
        ids, *_ = small_library.fill(library, 40, artists=20)
        X = np.random.default_rng(0).normal(size=(40, n_features)).astype(np.float32)
        library.tracks.put_features(ids, X, extractor=builtin_extractor())
        judged = judge(library.opinions.triples())
        ids = np.unique(judged["track_id"].to_numpy()).astype(np.int64)

        def labels(some):
            return label_matrix(judged, some, TAGS, only_answered=ids[3:5])

        (here, by), (there, _) = (
            read_training_set(library, builtin_extractor(), ids, labels, TAGS, folder)
            for folder in (None, tmp_path)
        )
    assert by == "artist"
    assert len(set(here.groups)) == 20
    assert np.isnan(there.Y).any()
    np.testing.assert_array_equal(there.Y, here.Y)
    alone, more = (Hyperparameters(0.01, 0.1, more_inputs=more) for more in (False, True))
    np.testing.assert_array_equal(there.inputs(more), here.inputs(more))
    assert there.inputs(more).shape == (len(ids), n_features + n_more)
    np.testing.assert_array_equal(here.inputs(alone), X[ids - 1])
    P = Tagger(builtin_model()).probabilities(X[ids - 1])
    np.testing.assert_allclose(there.builtin(7), np.clip(P[:, 7], 1e-4, 1 - 1e-4), atol=1e-5)
