"""Training on a library: what is learnt, what is refused, what is stored."""

import dataclasses
import functools
import inspect
import re
import signal
import tempfile
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import small_library
from places import DOCS, HELPERS
from processes_in_tests import start
from small_library import NOISE, TAGS, new_change
from tag_rows import written_from

from harmonium.errors import DataError
from harmonium.files import try_lock
from harmonium.library import Library
from harmonium.library.learning import fitting
from harmonium.library.learning import train as train_module
from harmonium.library.learning.examples import Hyperparameters
from harmonium.library.learning.labels import TrainingOptions
from harmonium.library.learning.scores import score_tags
from harmonium.library.learning.train import train
from harmonium.library.model.tagger import Tagger
from harmonium.rbm import training

KILLED = HELPERS / "killed.py"
QUICK = functools.partial(fitting.fit, to_try=(Hyperparameters(0.01, 0.1),), n_hidden=10)
SMALL = functools.partial(QUICK, n_hidden=5)


@pytest.fixture(scope="module")
def learnt(tmp_path_factory):
    """A library of 90 tracks, 60 of them tagged, and what was learnt from it."""
    steps = []
    with (
        pytest.MonkeyPatch.context() as patch,
        Library.open(tmp_path_factory.mktemp("learnt") / "library.db") as library,
    ):
        patch.setattr(train_module, "fit", QUICK)
        ids, X, truth = small_library.fill(library, 90, tagged=60)
        library.opinions.say("ann", 1, ["seldom"], change=new_change(library))
        stored = train(library, progress=lambda *step: steps.append(step))
        yield SimpleNamespace(
            ids=ids, X=X, truth=truth, steps=steps, stored=stored, current=library.models.current()
        )


def test_the_stored_model_is_in_use(learnt):
    assert learnt.current.id == learnt.stored.id
    assert learnt.current.report == learnt.stored.report
    assert set(learnt.stored.vocabulary) == {*TAGS, NOISE}


def test_the_scores_are_those_of_tracks_that_were_not_learnt_from(learnt):
    reports = {tag.tag: tag for tag in learnt.stored.report.tags}
    order = [learnt.stored.vocabulary.index(tag) for tag in TAGS]
    P = Tagger(learnt.current).probabilities(learnt.X[60:])
    unheard = score_tags(learnt.truth[60:].astype(np.float32), P[:, order])
    held_out = np.array([reports[tag].auc for tag in TAGS])
    assert held_out.mean() > 0.75
    assert abs(held_out.mean() - unheard.auc.mean()) < 0.15
    assert all(reports[tag].learnt for tag in ("rock", "jazz"))


def test_held_out_probabilities_are_kept_in_the_model(learnt):
    tagger = Tagger(learnt.current)
    ids, held_out = tagger.held_out
    np.testing.assert_array_equal(ids, learnt.ids[:60])
    now = tagger.probabilities(learnt.X[:60])
    assert np.abs(held_out - now).max() > 0.01  # not of the same model


def test_the_report_counts_what_was_learnt_from(learnt):
    report = learnt.stored.report
    assert (report.tracks, report.people, report.folds) == (60, 1, 5)
    assert not report.smoothing_tried
    assert [excluded.tag for excluded in report.left_out] == ["seldom"]
    assert report.left_out[0].missing == 4
    examples = {tag.tag: tag.examples for tag in report.tags}
    assert [examples[tag] for tag in TAGS] == learnt.truth[:60].sum(axis=0).tolist()
    rates = Tagger(learnt.current).rates
    np.testing.assert_allclose(rates * 60, [tag.examples for tag in report.tags])


def test_only_learnt_tags_have_a_threshold(learnt):
    tags = learnt.stored.report.tags
    assert {tag.learnt for tag in tags} == {True, False}
    for tag, threshold in zip(tags, learnt.stored.thresholds, strict=True):
        assert np.isnan(threshold) != tag.learnt
        assert (tag.threshold is None) != tag.learnt


def test_training_says_what_it_is_doing(learnt):
    assert learnt.steps == [
        ("Reading", 0, 0),
        ("First model", 0, 0),
        ("Trying settings", 0, 1),
        ("Trying settings", 1, 1),
    ]


def stopping_at(step):
    def stop(what, done, total):
        if what == step:
            raise KeyboardInterrupt

    return stop


def test_an_interruption_keeps_the_first_answer(library, tmp_path, monkeypatch):
    """It is in use where there was no model; a former one stays in use."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    _, X, truth = small_library.fill(library, 90, tagged=60)
    with pytest.raises(KeyboardInterrupt):
        train(library, progress=stopping_at("First model"))
    assert library.models.list() == []
    told = []

    def note(model):
        assert not list(tmp_path.glob("harmonium-train-*"))
        told.append(model)

    with pytest.raises(KeyboardInterrupt):
        train(library, progress=stopping_at("Trying settings"), first=note)
    current = library.models.current()
    assert (current.id, current.name) == (told[0].id, "LogisticTagger")
    order = [current.vocabulary.index(tag) for tag in TAGS]
    P = Tagger(current).probabilities(X[60:])[:, order]
    assert score_tags(truth[60:].astype(np.float32), P).auc.mean() > 0.75
    assert any(written_from(current, 0.8).values())
    known = np.full((2, len(current.vocabulary)), np.nan, np.float32)
    known[0, order[0]] = 1
    completed = Tagger(current).probabilities(X[60:62], known)
    assert completed[0, order[0]] == 1
    np.testing.assert_allclose(completed[1, order], P[1], atol=1e-6)
    with pytest.raises(KeyboardInterrupt):
        train(library, progress=stopping_at("Trying settings"))
    assert library.models.current(whole=False).id == current.id
    assert len(library.models.list()) == 2


def test_the_model_takes_the_place_of_a_first_answer_from_some_of_the_tracks(tmp_path, monkeypatch):
    monkeypatch.setattr(train_module, "fit", QUICK)
    monkeypatch.setattr(train_module, "MAX_FIRST", 40)
    told = []

    def use(first):
        told.append(first)
        library.predictions.put(first.id, ids, np.zeros((60, len(first.vocabulary))))

    with Library.open(tmp_path / "library.db") as library:
        ids, *_ = small_library.fill(library, 60)
        stored = train(library, first=use)
        assert [one.id for one in library.models.list()] == [stored.id]
        assert not len(library.predictions.columns(stored.id, [0])[0])  # the first one's are gone
    assert told[0].report.tracks == len(Tagger(told[0]).held_out[0]) == 40
    assert stored.report.tracks == 60


def test_ctrl_c_in_the_middle_of_a_fit_stores_no_model(library, monkeypatch):
    """Estimators keep the best parameters so far; a library wants all or nothing."""
    small_library.fill(library, 90, tagged=60)
    epochs = []

    def interrupt(*arguments, **options):
        epochs.append(1)
        if len(epochs) == 3:
            signal.raise_signal(signal.SIGINT)
        return one_epoch(*arguments, **options)

    one_epoch = training._epoch
    monkeypatch.setattr(training, "_epoch", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(library)
    assert len(epochs) == 3  # it stopped at the end of the epoch
    assert [model.name for model in library.models.list()] == ["LogisticTagger"]


def test_too_little_to_learn_from_says_what_is_needed(library):
    with pytest.raises(DataError, match=r"no features to learn from. `harmonium index"):
        train(library)
    small_library.fill(library, 40, tagged=12)
    with pytest.raises(DataError, match=r"12 tracks have both features and tags.*Tag 8 more"):
        train(library)
    frame = pl.DataFrame({"person": "bob", "track_id": np.arange(13, 31), "tag": "birds"})
    library.opinions.add_triples(frame, change=new_change(library))
    with pytest.raises(DataError, match=r"No tag has 25 tracks.*'birds', which needs 7 more"):
        train(library, TrainingOptions(min_examples=25))
    assert library.models.current() is None


def test_the_example_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(train_module, "fit", QUICK)
    with Library.open("library.db") as library:
        small_library.fill(library, 90, tagged=60)
    page = (DOCS / "library.md").read_text(encoding="utf-8")
    (code,) = (c for c in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S) if "train(" in c)
    exec(compile(code, "docs/library.md", "exec"), {})
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == len(TAGS) + 1 + 3
    assert all(line.startswith("/music/") for line in shown[-3:])


def test_killed_while_the_model_is_stored(tmp_path):
    place = str(tmp_path / "library.db")
    Library.open(place).close()
    with start(KILLED, "store", place) as child:
        child.stdout.read()
    assert child.returncode == -signal.SIGKILL
    with Library.open(place, create=False) as library:
        assert library.models.list() == []
        number = library.models.add(small_library.quick_model())
        assert library.models.current().id == number


@pytest.mark.parametrize(
    "people", [("ann",), pytest.param(("ann", "bob", "cy"), marks=pytest.mark.long)]
)
def test_a_library_larger_than_memory_is_learnt_from_as_a_whole(tmp_path, monkeypatch, people):
    monkeypatch.setattr(train_module, "fit", SMALL)
    monkeypatch.setattr(train_module, "MAX_IN_MEMORY", 25)
    monkeypatch.setattr(train_module, "MAX_KEPT", 30)
    monkeypatch.setattr(fitting, "MAX_TO_SEARCH", 40)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    used = []
    killed, running = (tmp_path / f"harmonium-train-{name}" for name in ("killed", "running"))
    for folder in (killed, running):
        folder.mkdir()
        (folder / "lock").touch()
    with Library.open(tmp_path / "library.db") as library, (running / "lock").open() as lock:
        try_lock(lock.fileno())
        ids, X, truth = small_library.fill(library, 120, tagged=90, people=people)
        n_tagged = len(library.opinions.triples()["track_id"].unique())

        def watch(what, done, total):
            if what != "Reading":
                (folder,) = {*tmp_path.glob("harmonium-train-*")} - {running}
                used.append({path.name for path in folder.iterdir()})

        stored = train_module.train(library, progress=watch)
    assert used[-1] == {"X.npy", "lock"}
    assert stored.report.smoothing_tried == (len(people) > 1)
    assert list(tmp_path.glob("harmonium-train-*")) == [running]
    assert stored.report.tracks == n_tagged > 80
    examples = {tag.tag: tag.examples for tag in stored.report.tags}
    assert sum(stored.report.calibration.n) == n_tagged * len(stored.vocabulary)
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


def test_the_defaults_of_the_verb_are_those_of_the_options():
    parameters = inspect.signature(Library.train).parameters
    for option in dataclasses.fields(TrainingOptions):
        assert parameters[option.name].default == option.default
