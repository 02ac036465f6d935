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
    FoldTable,
    StoredRows,
    TrainingFiles,
    TrainingSet,
    by_columns,
    even_folds,
    read_training_set,
)
from harmonium.library.learning.fitting import (
    FitTask,
    Hyperparameters,
    choose_thresholds,
    fit,
    fit_one,
    make_curves,
    mean_auc,
    score_tags,
)
from harmonium.library.store.opinions import judge, label_matrix
from harmonium.library.tagger import Tagger, builtin_extractor, builtin_model

LONG = pytest.mark.long
QUICK = functools.partial(fit, to_try=(Hyperparameters(0.01, 0.1),), n_hidden=5)


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_all_folds_but_one_are_one_piece_of_the_file(tmp_path, n_folds):
    folds = np.sort(np.arange(23) % n_folds)
    table = FoldTable(tmp_path / "X", folds, 3, 2)
    values = np.arange(69, dtype=np.float32).reshape(23, 3)
    for rows in np.array_split(np.random.default_rng(0).permutation(23), 4):
        table.put(rows, values[rows])
    np.testing.assert_array_equal(table.values, values[:, :2])
    for fold in range(n_folds):
        n = int((folds != fold).sum())
        others = table.others(fold, n, whole=True).open()
        np.testing.assert_array_equal(np.sort(others, axis=0), values[folds != fold])
        np.testing.assert_array_equal(table.others(fold, n - 1).open(), others[:-1, :2])
        np.testing.assert_array_equal(table.fold(fold).open(), values[folds == fold, :2])
    np.testing.assert_array_equal(table.all(whole=True).open(), values)


def test_a_full_disk_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(DataError, match=r"5 tracks needs 0.0 GB in .* by TMPDIR"):
        FoldTable(tmp_path / "X", np.array([0, 0, 1, 1, 1]), 3)
    assert not (tmp_path / "X").exists()


def test_folds_are_even_and_keep_groups_together():
    groups = np.random.default_rng(0).integers(0, 300, 5000)
    folds = even_folds(groups, np.random.default_rng(1))
    assert all(len(set(folds[groups == group])) == 1 for group in range(300))
    sizes = np.bincount(folds)
    assert len(sizes) == 5
    assert np.ptp(sizes) < 2 * np.bincount(groups).max()


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


def in_files(folder, X, Y, folds, smoothed=None):
    """The training set of these arrays, which are in the order of folds."""
    tables = [FoldTable(folder / name, folds, t.shape[1]) for name, t in (("X", X), ("Y", Y))]
    rows = np.arange(len(X))
    for table, values in zip(tables, (X, Y), strict=True):
        table.put(rows, values)
    files = TrainingFiles(folder, *tables)
    return TrainingSet(tables[0].values, tables[1].values, folds, TAGS, smoothed, files=files)


def test_a_fit_from_files_is_that_of_the_same_rows_in_memory(tmp_path):
    X, truth = small_library.world(60)
    Y, folds = truth.astype(np.float32), np.sort(np.arange(60) % 3)
    examples = in_files(tmp_path, X, Y, folds)
    stored = examples.stored(Hyperparameters(0.01, 0.1), 1, 40)
    into = examples.new_table()
    place = StoredRows(str(into.filename), 5, 20, 40, 5)
    parameters = {"n_hidden": 5, "max_epochs": 3, "validation_fraction": 0.0, "random_state": 0}
    fit_one(FitTask("", parameters, *stored[:2], held=stored[2], into=place))
    rest = np.r_[40:60, 0:20]
    alone = fit_one(FitTask("", parameters, X[rest], Y[rest], held=X[20:40]))
    assert alone.P.tobytes() == np.asarray(into[20:40]).tobytes()
    assert not into[:20].any()
    assert not into[40:].any()


@pytest.mark.parametrize("people", [("ann",), pytest.param(("ann", "bob", "cy"), marks=LONG)])
def test_a_library_larger_than_memory_is_learnt_from_as_a_whole(tmp_path, monkeypatch, people):
    monkeypatch.setattr(train_module, "fit", QUICK)
    monkeypatch.setattr(train_module, "MAX_IN_MEMORY", 25)
    monkeypatch.setattr(train_module, "MAX_KEPT", 30)
    monkeypatch.setattr(fitting, "MAX_TO_SEARCH", 40)
    monkeypatch.setattr(fitting, "MAX_AT_ONCE", 7)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    used = []
    with Library.open(tmp_path / "library.db") as library:
        ids, X, truth = small_library.fill(library, 120, tagged=90, people=people)
        n_tagged = len(library.opinions.triples()["track_id"].unique())

        def watch(what, done, total):
            (folder,) = tmp_path.glob("harmonium-train-*")
            used.append({path.name for path in folder.iterdir()})

        stored = train_module.train(library, progress=watch)
    assert {"X", "Y"} <= used[-1]
    assert ("smoothed" in used[-1]) == stored.report["smoothing_tried"] == (len(people) > 1)
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
    examples = in_files(tmp_path, X, truth.astype(np.float32), np.sort(np.arange(60) % 3))
    task = fitting._Fits(None, 5, 0, np.random.default_rng(0), None, 1).task(
        "Scoring", Hyperparameters(0.01, 0.1), *examples.everything(Hyperparameters(0.01, 0.1)), 2
    )
    task = task._replace(tags=TAGS)

    class Elsewhere:
        full, pending = False, 0

        def submit(self, numbered):
            self.pending, self.task = 1, numbered

        def next(self):
            self.pending = 0
            return SimpleNamespace(task=self.task, result=None, error=FileNotFoundError("X"))

    fits = fitting._Fits(Elsewhere(), 5, 0, np.random.default_rng(0), None, 1)
    (outcome,) = fits.done([task])
    assert outcome.model.tags_.tolist() == list(TAGS)


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

        here, there = (
            read_training_set(library, builtin_extractor(), ids, labels, TAGS, folder=folder)
            for folder in (None, tmp_path)
        )
    examples, order, groups, _ = there
    assert sorted(order.tolist()) == list(range(len(ids)))
    for name in ("X", "Y", "builtin"):
        one, other = (getattr(found[0], name) for found in (here, there))
        np.testing.assert_allclose(other, one[order], rtol=2e-5, atol=1e-6)
    assert np.isnan(examples.Y).any()
    np.testing.assert_array_equal(groups, here[2][order])
    assert (np.diff(examples.folds) >= 0).all()
    assert all(len(set(examples.folds[groups == group])) == 1 for group in set(groups))
    more = Hyperparameters(0.01, 0.1, more_inputs=True)
    both, expected = examples.inputs(more), here[0].inputs(more)[order]
    assert both.shape == (len(ids), n_features + n_more)
    np.testing.assert_allclose(both, expected, rtol=2e-5, atol=1e-5)
