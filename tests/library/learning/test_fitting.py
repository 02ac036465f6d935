"""Fitting: which settings are tried, on which tracks, and where."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest
import small_library
from small_library import TAGS

from harmonium.errors import DataError
from harmonium.estimators.calibration import stored_recalibration
from harmonium.evaluation import grouped_folds
from harmonium.library.learning import fitting
from harmonium.library.learning.examples import Hyperparameters, TrainingSet, new_table
from harmonium.library.learning.scores import mean_auc

SMALL = functools.partial(fitting.fit, to_try=(Hyperparameters(0.01, 0.1),), n_hidden=5)


def test_the_penalty_is_found_step_by_step():
    X, truth = small_library.world(200)
    Y, groups = truth.astype(np.float32), np.arange(200)
    examples, folds = TrainingSet(X, Y, groups, TAGS), grouped_folds(groups, Y, n_folds=5)
    fitted = fitting.fit_first(examples)
    (candidate,) = fitted.candidates
    tried = []
    for settings in (Hyperparameters(0.0, l2) for l2 in fitting.PENALTIES):
        held_out = fitting.linear_held_out(examples, settings, folds, range(5))
        tried.append(mean_auc(Y, held_out, folds))
    place = fitting.PENALTIES.index(candidate.hyperparameters.l2)
    assert tried[place] >= max(tried[max(0, place - 1) : place + 2])
    assert candidate.auc == tried[place]
    assert np.isfinite(fitted.held_out).all()
    assert stored_recalibration(fitted.arrays, n_tags=5).slopes.shape == (5,)


def test_the_first_answer_takes_the_built_in_model_s_log_odds_if_they_help():
    _, truth = small_library.world(200)
    Y, rng = truth.astype(np.float32), np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(200, 2)), Y + rng.normal(size=Y.shape)]).astype(np.float32)
    examples = TrainingSet(X, Y, np.arange(200), TAGS, n_builtin=5)
    (candidate,) = fitting.fit_first(examples).candidates
    assert candidate.hyperparameters.more_inputs


def test_smoothed_labels_are_tried_with_the_best_setting():
    X, truth = small_library.world(80)
    Y = truth.astype(np.float32)
    soft = np.where(Y == 1, 0.9, 0.1).astype(np.float32)
    fitted = SMALL(TrainingSet(X, Y, np.arange(80), TAGS, smoothed=soft))
    assert {one.hyperparameters.smoothed for one in fitted.candidates} == {False, True}
    assert fitted.candidates[0].auc == max(one.auc for one in fitted.candidates)


def test_settings_are_tried_with_a_share_of_many_tracks(monkeypatch):
    monkeypatch.setattr(fitting, "MAX_TO_SEARCH", 40)
    X, truth = small_library.world(80)
    Y = truth.astype(np.float32)
    steps = []
    examples = TrainingSet(X, Y, np.arange(80), TAGS)
    fitted = SMALL(examples, progress=lambda *step: steps.append(step))
    assert steps == [
        *(("Trying settings", 0, 2), ("Trying settings", 1, 2)),
        ("Fitting", 2, 2),
    ]
    assert np.isfinite(fitted.held_out).all()
    assert fitted.held_out.shape == Y.shape
    assert fitted.estimator.tags_.tolist() == list(TAGS)


def test_a_tag_of_one_artist_cannot_be_judged():
    X, _ = small_library.world(40)
    Y = (np.arange(40)[:, None] < 4).astype(np.float32)
    examples = TrainingSet(X, Y, np.arange(40) // 4, ("rock",))
    with pytest.raises(DataError, match="by one artist"):
        SMALL(examples)


def test_a_worker_that_does_not_see_the_files_leaves_the_fit_to_the_caller(tmp_path):
    X, truth = small_library.world(60)
    parameters = fitting.NetworkParameters(
        n_hidden=5,
        n_models=2,
        learning_rate=0.01,
        l2=0.1,
        batch_size=10,
        max_epochs=2,
        patience=2,
        random_state=0,
    )
    new_table(tmp_path / "X.npy", *X.shape)[:] = X
    examples = TrainingSet(tmp_path / "X.npy", truth.astype(np.float32), np.arange(60), TAGS)
    task = fitting.FitTask(Hyperparameters(0.01, 0.1), examples, parameters)
    lost = SimpleNamespace(task=task, result=None, error=FileNotFoundError("X"))
    fitted_task, model = fitting.next_fitted(SimpleNamespace(next=lambda: lost))
    assert fitted_task is task
    assert model.held_out_.shape == truth.shape


def test_a_fit_from_files_is_that_of_the_same_rows_in_memory(tmp_path):
    X, truth = small_library.world(60)
    Y = truth.astype(np.float32)
    new_table(tmp_path / "X.npy", *X.shape)[:] = X
    sets = [TrainingSet(one, Y, np.arange(60), TAGS) for one in (tmp_path / "X.npy", X)]
    from_file, in_memory = (SMALL(examples) for examples in sets)
    assert from_file.held_out.tobytes() == in_memory.held_out.tobytes()
    assert from_file.estimator.to_bytes()[:8] == in_memory.estimator.to_bytes()[:8]
