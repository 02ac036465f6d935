"""What ``fit`` and ``partial_fit`` do: early stopping, going on, tiny data, seeds, interrupts."""

import multiprocessing
import os
import signal
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
from places import HELPERS, PROJECT
from sklearn.exceptions import ConvergenceWarning
from tagging_data import fingerprint, quick

from harmonium import DiscriminativeRBM, GenerativeRBM, LogisticTagger, MLPTagger, TagRBM
from harmonium.errors import DataError, HarmoniumError, TrainingInterrupted, TrainingWarning
from harmonium.estimators import early_stopping, trainer

CUT = 60  # clips per call of partial_fit


@pytest.mark.parametrize("averaging", [0.0, 5.0])
def test_early_stopping_keeps_the_parameters_of_the_best_epoch(train, held_out, averaging):
    # a rate that makes the validation AUC go up and down
    model = quick(learning_rate=0.2, max_epochs=100, patience=4, averaging=averaging)
    model.fit(*train, eval_set=held_out)
    auc = model.history_["auc"]
    assert model.n_iter_ == len(auc) < 100
    assert auc[model.best_epoch_ - 1] == max(auc)
    assert model.best_epoch_ == model.n_iter_ - 4
    assert model.score(*held_out) == pytest.approx(max(auc), abs=1e-12)


def test_among_epochs_of_equal_auc_the_likelihood_decides(train):
    """Two clips are ranked right after a few epochs, long before there is a model."""
    clear = np.abs(train.X[:, 0] + 0.75 * train.X[:, 4] - 0.5).argsort()[-40:]
    X, Y = train.X[clear], train.Y[clear, :1]
    two = [np.flatnonzero(Y[:, 0] == value)[0] for value in (0, 1)]
    model = quick(max_epochs=30).fit(X, Y, eval_set=(X[two], Y[two]))
    assert model.best_epoch_ > model.history_["auc"].index(1.0) + 5
    absent, present = model.predict_proba(X[two])[:, 0]
    assert absent < 0.3
    assert present > 0.6


def test_without_validation_the_last_of_all_epochs_is_kept(train):
    model = quick(validation_fraction=0, max_epochs=6, patience=1, calibrate=True).fit(*train)
    assert (model.n_iter_, model.best_epoch_, model.recalibration_) == (6, 6, None)
    assert np.isnan(model.history_["auc"]).all()


def test_a_tag_may_be_unknown_in_the_validation_clips(train, held_out):
    Y = held_out.Y.copy()
    Y[:, 2] = np.nan
    model = quick().fit(*train, eval_set=(held_out.X, Y))
    assert max(model.history_["auc"]) > 0.85
    assert model.thresholds_[2] == 0.5


def test_validation_clips_that_cannot_be_ranked_do_not_stop_training(train, held_out):
    alike = (held_out.X, np.ones_like(held_out.Y))
    assert quick(max_epochs=3, patience=1).fit(*train, eval_set=alike).n_iter_ == 3


def test_two_clips_are_enough_to_fit(train):
    P = quick(max_epochs=3).fit(train.X[:2], train.Y[:2]).predict_proba(train.X)
    assert ((P > 0) & (P < 1)).all()


def test_a_tag_may_be_always_there_or_never(train, held_out):
    Y = train.Y.copy()
    Y[:, 0] = 1
    Y[:, 1] = 0
    model = quick().fit(train.X, Y)
    assert ((model.predict_proba(held_out.X)[:, :2] > 0.5) == [True, False]).all()
    assert (model.predict(held_out.X)[:, :2] == [1, 0]).all()


class TestWarmStart:
    @pytest.fixture
    def first(self, train, held_out):
        return quick(max_epochs=3, warm_start=True).fit(*train, eval_set=held_out)

    @pytest.fixture
    def both(self, first, train, held_out):
        """The histories after the first fit, and after the second; and the model."""
        history = dict(first.history_)
        return history, first.fit(*train, eval_set=held_out)

    def test_goes_on_where_it_stopped(self, both):
        history, model = both
        assert model.history_["log_likelihood"][3] > history["log_likelihood"][0]
        assert max(model.history_["auc"][3:]) > max(history["auc"])

    def test_adds_to_the_history(self, both):
        history, model = both
        assert model.n_iter_ == len(model.history_["auc"]) == 6
        assert model.history_["log_likelihood"][:3] == history["log_likelihood"]

    def test_keeps_the_best_epoch_of_the_second_training(self, both, held_out):
        _, model = both
        best = max(model.history_["auc"][3:])
        assert model.history_["auc"][model.best_epoch_ - 1] == best
        assert model.score(*held_out) == pytest.approx(best, abs=1e-12)


def test_partial_fit_takes_unknown_tags(train):
    model = quick().partial_fit(train.X[:CUT], train.Y[:CUT])
    Y = train.Y[:CUT].copy()
    Y[:, 0] = np.nan
    assert np.isfinite(model.partial_fit(train.X[:CUT], Y).predict_proba(train.X)).all()


def test_partial_fit_keeps_the_scaling_of_the_first_clips(train):
    model = quick().partial_fit(train.X[:CUT], train.Y[:CUT])
    before = model.predict_proba(train.X)
    model.set_params(learning_rate=1e-12, averaging=0)
    model.partial_fit(1000 * train.X[CUT : 2 * CUT], train.Y[CUT : 2 * CUT])
    np.testing.assert_allclose(model.predict_proba(train.X), before, atol=1e-6)


def test_partial_fit_of_named_classes(train):
    y = np.where(train.Y[:, 0] == 1, "yes", "no")
    only = np.resize(np.flatnonzero(y == "yes"), 300)
    model = quick().partial_fit(train.X[only], y[only], classes=["yes", "no"])
    assert model.classes_.tolist() == ["no", "yes"]
    model.partial_fit(train.X, y)
    assert set(model.predict(train.X)) <= {"no", "yes"}
    with pytest.raises(ValueError, match=r"y must hold the classes 'no' and 'yes'.*'maybe'"):
        model.partial_fit(train.X[:2], ["maybe", "no"])
    with pytest.raises(DataError, match="Only binary classification is supported"):
        quick().partial_fit(train.X, train.Y[:, 0], classes=[0, 1, 2])


def test_training_that_goes_on_draws_other_random_numbers(train, monkeypatch):
    seeds = []

    def spy(stack, data, **options):
        seeds.extend(stack.seeds)
        return original(stack, data, **options)

    original = trainer.train_stack
    monkeypatch.setattr(trainer, "train_stack", spy)
    model = quick(warm_start=True, max_epochs=2).fit(*train).fit(*train)
    model.partial_fit(*train)
    assert len(set(seeds)) == 3


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_the_size_of_a_model_that_goes_on_cannot_change(train, method):
    model = quick(max_epochs=1, warm_start=True).fit(*train)
    model.set_params(n_hidden=9)
    with pytest.raises(ValueError, match=r"\'U\': \(8, 4\).*but .*\'U\': \(9, 4\)"):
        getattr(model, method)(*train)
    assert model.predict_proba(train.X).shape == (300, 4)


def test_the_same_seed_gives_the_same_bits():
    assert fingerprint() == fingerprint() != fingerprint(random_state=1)


def test_another_process_gives_the_same_bits():
    environment = {**os.environ, "PYTHONPATH": str(HELPERS)}
    command = [sys.executable, "-c", "import tagging_data as t; print(t.fingerprint())"]
    other = subprocess.check_output(command, env=environment, cwd=PROJECT, text=True)
    assert other.strip() == fingerprint()


@pytest.fixture
def interrupt_in_epoch(monkeypatch):
    """Sends this process the signal of Ctrl-C while the given epoch is being scored."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    original, calls = early_stopping.mean_auc, []

    def arrange(epoch):
        def score(*arrays):
            calls.append(arrays)
            if len(calls) == epoch:
                signal.raise_signal(signal.SIGINT)
            return original(*arrays)

        monkeypatch.setattr(early_stopping, "mean_auc", score)

    yield arrange
    signal.signal(signal.SIGINT, old)


def test_an_interrupt_keeps_the_best_parameters_so_far(train, held_out, interrupt_in_epoch):
    interrupt_in_epoch(5)
    model = quick(max_epochs=50)
    with pytest.warns(TrainingInterrupted, match=r"interrupted in epoch 5; .* of epoch [1-4], are"):
        model.fit(*train, eval_set=held_out)
    assert {len(column) for column in model.history_.values()} == {4}
    assert model.n_iter_ == 4
    assert model.history_["auc"][model.best_epoch_ - 1] == max(model.history_["auc"])
    assert model.score(*held_out) == pytest.approx(max(model.history_["auc"]), abs=1e-12)
    without = quick(max_epochs=4).fit(*train, eval_set=held_out)
    for one, other in zip(model.params_, without.params_, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_interrupt_in_the_first_epoch_leaves_a_model_that_works(
    train, held_out, interrupt_in_epoch
):
    interrupt_in_epoch(1)
    model = quick()
    with pytest.warns(TrainingInterrupted, match=r"interrupted in epoch 1; .* those of the start"):
        model.fit(*train, eval_set=held_out)
    assert (model.n_iter_, model.best_epoch_) == (0, 0)
    start = model.predict_proba(held_out.X).mean(axis=0)  # about the base rate of each tag
    np.testing.assert_allclose(start, train.Y.mean(axis=0), atol=0.05)


def test_too_few_epochs_are_told_in_scikit_learn_s_way(train, held_out):
    with pytest.warns(ConvergenceWarning, match=r"max_epochs=3 .* best in epoch [1-3]\. Raise"):
        quick(max_epochs=3).fit(*train, eval_set=held_out)


@pytest.mark.parametrize(
    "settings",
    [{"patience": 1}, {"schedule": "cosine"}, {"validation_fraction": 0}],
    ids=["stopped", "planned", "nothing to stop by"],
)
def test_no_warning_where_the_last_epoch_is_as_it_should_be(train, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(**{"max_epochs": 60, **settings}).fit(*train)


@pytest.mark.parametrize("kind", [DiscriminativeRBM, MLPTagger, LogisticTagger, GenerativeRBM])
def test_training_that_diverged_is_told(kind, train):
    model = kind(learning_rate=1e6, max_epochs=5, random_state=0)
    with pytest.warns(TrainingWarning, match=r"diverged.* smaller learning_rate"):
        model.fit(*train)


def test_training_of_a_model_of_tags_alone_that_diverged_is_told(train):
    with pytest.warns(TrainingWarning, match="diverged"):
        TagRBM(8, learning_rate=1e6, max_epochs=5, random_state=0).fit(train.Y)


class TestVerbose:
    def test_shows_a_progress_bar_on_stderr(self, train, held_out, capsys):
        quick(max_epochs=3, verbose=1).fit(*train, eval_set=held_out)
        shown = capsys.readouterr()
        assert shown.out == ""
        assert all(text in shown.err for text in ("DiscriminativeRBM", "epoch 3/3", "best 0."))

    def test_shows_no_score_without_validation(self, train, capsys):
        quick(max_epochs=2, verbose=1, validation_fraction=0).fit(*train)
        shown = capsys.readouterr().err
        assert "epoch 2/2" in shown
        assert "AUC" not in shown

    def test_shows_nothing_by_default(self, train, capsys):
        quick(max_epochs=2).fit(*train)
        assert capsys.readouterr() == ("", "")


# Models in several processes: what works, and what is refused rather than left to hang.

MESSAGE = "process forked from one that has used JAX"


def outcome(work, queue) -> None:
    try:
        work()
        queue.put("done")
    except HarmoniumError as error:
        queue.put(str(error))


def in_a_fork(work) -> str:
    """What becomes of the work in a forked process; "hangs" after a while."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=outcome, args=(work, queue))
    child.start()
    try:
        return queue.get(timeout=30)
    except Exception:
        return "hangs"
    finally:
        child.kill()
        child.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:os.fork")
@pytest.mark.parametrize("method", ["predict_proba", "fit", "partial_fit"])
def test_a_fork_is_refused(train, fitted, method):
    network = MLPTagger(max_epochs=1, random_state=0).fit(*train)
    for model in (fitted, network):
        use = getattr(quick() if method == "fit" else model, method)
        said = in_a_fork(lambda use=use: use(train.X) if method == "predict_proba" else use(*train))
        assert MESSAGE in said
        assert "loky" in said


@pytest.mark.long
def test_joblibs_processes_predict(train, fitted):
    halves = np.array_split(train.X, 2)
    predict = joblib.delayed(type(fitted).predict_proba)
    parts = joblib.Parallel(n_jobs=2)(predict(fitted, half) for half in halves)
    np.testing.assert_allclose(np.vstack(parts), fitted.predict_proba(train.X), atol=1e-6)
