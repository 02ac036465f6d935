"""Training on a library: what is learnt, what is refused, what is stored."""

import dataclasses
import functools
import re
import shutil
import signal
import tempfile
import warnings
from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import small_library
from places import DOCS, HELPERS
from processes_in_tests import start
from small_library import NOISE, TAGS, new_change

from harmonium.errors import DataError, TrainingInterrupted, TrainingWarning
from harmonium.evaluation import grouped_folds
from harmonium.files import try_lock
from harmonium.library import Library
from harmonium.library.learning import examples as examples_module
from harmonium.library.learning import fitting
from harmonium.library.learning import train as train_module
from harmonium.library.learning.examples import (
    Hyperparameters,
    TrainingSet,
    by_columns,
    group_tracks,
    new_table,
)
from harmonium.library.learning.train import TrainingOptions, train
from harmonium.library.tagger import Tagger, thresholds_for

KILLED = HELPERS / "killed.py"
QUICK = functools.partial(fitting.fit, to_try=(Hyperparameters(0.01, 0.1),), n_hidden=10)
SMALL = functools.partial(QUICK, n_hidden=5)


def test_the_tags_are_learnt_stored_scored_by_tracks_not_heard_and_reported(tmp_path, monkeypatch):
    """Of a library of 90 tracks, 60 of them tagged."""
    monkeypatch.setattr(train_module, "fit", QUICK)
    steps = []
    with Library.open(tmp_path / "library.db") as library:
        ids, X, truth = small_library.fill(library, 90, tagged=60)
        library.opinions.say("ann", 1, ["seldom"], change=new_change(library))
        stored = train(library, progress=lambda *step: steps.append(step))
        current = library.models.current()
    scores = {tag["tag"]: tag for tag in stored.report["tags"]}
    assert set(scores) == {*TAGS, NOISE}
    assert current.id == stored.id
    tagger = Tagger(current)
    P = tagger.probabilities(X[60:])
    order = [stored.vocabulary.index(tag) for tag in TAGS]
    unheard = fitting.score_tags(truth[60:].astype(np.float32), P[:, order])
    held_out = np.array([scores[tag]["auc"] for tag in TAGS])
    assert held_out.mean() > 0.75
    assert abs(held_out.mean() - unheard.auc.mean()) < 0.15
    assert all(scores[tag]["learnt"] for tag in ("rock", "jazz"))
    held_ids, held_out = tagger.held_out
    np.testing.assert_array_equal(held_ids, ids[:60])
    assert np.abs(held_out - tagger.probabilities(X[:60])).max() > 0.01  # not of the same model
    np.testing.assert_allclose(tagger.rates * 60, [one["examples"] for one in scores.values()])
    report = stored.report
    assert (report["tracks"], report["people"], report["folds"]) == (60, 1, 5)
    assert not report["smoothing_tried"]
    assert [one["tag"] for one in report["left_out"]] == ["seldom"]
    assert report["left_out"][0]["missing"] == 4
    examples = {tag["tag"]: tag["examples"] for tag in report["tags"]}
    assert [examples[tag] for tag in TAGS] == truth[:60].sum(axis=0).tolist()
    assert [what for what, *_ in steps] == [*("Reading", "First model"), *["Trying settings"] * 2]
    assert steps[-1][1:] == (1, 1)
    for tag, threshold in zip(stored.report["tags"], stored.thresholds, strict=True):
        assert (threshold == fitting.UNREACHABLE) != tag["learnt"]
        assert (tag["threshold"] is None) != tag["learnt"]


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
    assert fitting.score_tags(truth[60:].astype(np.float32), P).auc.mean() > 0.75
    assert thresholds_for(current, 0.8).min() < 1
    known = np.full((2, len(current.vocabulary)), np.nan, np.float32)
    known[0, order[0]] = 1
    completed = Tagger(current).probabilities(X[60:62], known)
    assert completed[0, order[0]] == 1
    np.testing.assert_allclose(completed[1, order], P[1], atol=1e-6)
    with pytest.raises(KeyboardInterrupt):
        train(library, progress=stopping_at("Trying settings"))
    assert library.models.current(whole=False).id == current.id
    assert len(library.models.list()) == 2


def test_the_penalty_is_found_step_by_step():
    X, truth = small_library.world(200)
    Y, groups = truth.astype(np.float32), np.arange(200)
    examples, folds = TrainingSet(X, Y, groups, TAGS), grouped_folds(groups, Y, n_folds=5)
    model, (candidate,), correction = fitting.fit_first(examples)
    tried = []
    for settings in (Hyperparameters(0.0, l2) for l2 in fitting.PENALTIES):
        held_out = fitting.linear_held_out(examples, settings, folds, range(5))
        tried.append(fitting.mean_auc(Y, held_out, folds))
    place = fitting.PENALTIES.index(candidate.hyperparameters.l2)
    assert tried[place] >= max(tried[max(0, place - 1) : place + 2])
    assert candidate.auc == tried[place]
    assert np.isfinite(model.held_out_).all()
    assert correction.slopes.shape == (5,)
    rng = np.random.default_rng(0)
    telling = np.hstack([rng.normal(size=(200, 2)), Y + rng.normal(size=Y.shape)])
    examples = dataclasses.replace(examples, X=telling.astype(np.float32), n_more=5)
    assert fitting.fit_first(examples)[1][0].hyperparameters.more_inputs


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
    assert told[0].report["tracks"] == len(Tagger(told[0]).held_out[0]) == 40
    assert stored.report["tracks"] == 60


def test_of_the_warnings_of_training_only_ctrl_c_is_an_interruption():
    with pytest.raises(KeyboardInterrupt, match="was interrupted"), fitting.interrupts_raise():
        warnings.warn("Training was interrupted in epoch 3", TrainingInterrupted, stacklevel=1)
    with pytest.warns(TrainingWarning, match="did not converge"), fitting.interrupts_raise():
        warnings.warn("It did not converge.", TrainingWarning, stacklevel=1)


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


def test_smoothed_labels_are_tried_and_many_tracks_are_searched_by_a_share(monkeypatch):
    monkeypatch.setattr(fitting, "MAX_TO_SEARCH", 40)
    X, truth = small_library.world(80)
    Y = truth.astype(np.float32)
    soft = np.where(Y == 1, 0.9, 0.1).astype(np.float32)
    steps = []
    examples = TrainingSet(X, Y, np.arange(80), TAGS, smoothed=soft)
    model, candidates = SMALL(examples, progress=lambda *step: steps.append(step))
    assert {one.hyperparameters.smoothed for one in candidates} == {False, True}
    assert candidates[0].auc == max(one.auc for one in candidates)
    assert steps[-1] == ("Fitting", 3, 3)
    assert np.isfinite(model.held_out_).all()
    assert model.held_out_.shape == Y.shape
    assert model.tags_.tolist() == list(TAGS)


def test_a_tag_of_one_artist_cannot_be_judged():
    X, _ = small_library.world(40)
    Y = (np.arange(40)[:, None] < 4).astype(np.float32)
    examples = TrainingSet(X, Y, np.arange(40) // 4, ("rock",))
    with pytest.raises(DataError, match="by one artist"):
        SMALL(examples)


@pytest.mark.parametrize(
    ("about", "by", "n"),
    [
        (lambda i: (f"Artist {i // 3}", "Best of", None), "artist", 20),
        (lambda i: (f"Artist {i % 2}", f"Album {i // 4}", None), "album", 30),  # of each artist
        (lambda i: (None, None, None), "track", 60),
        (lambda i: ("Ann", None, "Song"), "track", 60),
    ],
)
def test_tracks_that_sound_alike_stay_together(about, by, n):
    groups, found = group_tracks([(i, *about(i)) for i in range(60)])
    assert (found, len(set(groups))) == (by, n)


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


def test_a_full_disk_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(DataError, match=r"5 tracks needs 0.0 GB in .* TMPDIR"):
        new_table(tmp_path / "X.npy", 5, 3)
    assert not (tmp_path / "X.npy").exists()


def test_what_takes_all_tracks_is_the_same_tag_by_tag(monkeypatch):
    rng = np.random.default_rng(0)
    Y = np.where(rng.random((200, 7)) < 0.1, np.nan, rng.random((200, 7)) < 0.3)
    Y, P = Y.astype(np.float32), rng.random((200, 7)).astype(np.float32)
    folds, found = np.arange(200) % 5, []
    for most in (10**6, 400):
        monkeypatch.setattr(examples_module, "MAX_NUMBERS", most)
        scores = fitting.score_tags(Y, P, folds)
        thresholds = fitting.choose_thresholds(Y, P, scores)
        found.append([fitting.mean_auc(Y, P, folds), *vars(scores).values(), thresholds])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert by_columns(lambda y: np.array([y.shape[1]]), Y).tolist() == [2, 2, 2, 1]
    groups = rng.integers(0, 40, 200)
    for one, other in zip(
        fitting.make_curves(Y, P, groups),
        fitting.make_curves(Y, P, [str(g) for g in groups]),
        strict=True,
    ):
        np.testing.assert_array_equal(one.effective, other.effective)


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
    assert stored.report["smoothing_tried"] == (len(people) > 1)
    assert list(tmp_path.glob("harmonium-train-*")) == [running]
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
    assert fitting.score_tags(truth[rows].astype(np.float32), held_out[:, order]).auc.mean() > 0.7
    unheard = tagger.probabilities(X[90:])[:, order]
    assert fitting.score_tags(truth[90:].astype(np.float32), unheard).auc.mean() > 0.75


def test_a_worker_that_does_not_see_the_files_leaves_the_fit_to_the_caller(tmp_path):
    X, truth = small_library.world(60)
    settings = {"n_hidden": 5, "n_models": 2, "max_epochs": 2, "random_state": 0}
    new_table(tmp_path / "X.npy", *X.shape)[:] = X
    examples = TrainingSet(tmp_path / "X.npy", truth.astype(np.float32), np.arange(60), TAGS)
    task = fitting.FitTask(Hyperparameters(0.01, 0.1), examples, settings)
    lost = SimpleNamespace(task=task, result=None, error=FileNotFoundError("X"))
    found, model = fitting._next(SimpleNamespace(next=lambda: lost))
    assert found is task
    assert model.held_out_.shape == truth.shape


def test_tracks_of_which_only_a_word_without_meaning_is_said_are_unknown_for_genres(library):
    ids, *_ = small_library.fill(library, tagged=0, people=())
    with library.begin():
        change = new_change(library)
        genres = {1: "jazz", 0: "rock"}
        for number in ids[:40].tolist():
            library.opinions.say("files", number, [genres[number % 2], "calm"], change=change)
        library.opinions.say("files", 41, ["Other"], change=change)
        library.opinions.say("files", 42, ["Other", "calm"], change=change)
        library.opinions.say("files", 43, ["calm"], change=change)
    library.tracks.replace(
        dataclasses.replace(library.tracks.get(43), file_tags={"genre": ["Unknown"]})
    )
    options = TrainingOptions(min_examples=2)
    task = train_module._Task.read(library, options, ExitStack())
    assert 41 not in task.ids
    assert "other" not in task.examples.tags
    jazz = task.examples.Y[:, task.examples.tags.index("jazz")]
    assert np.isnan(jazz[np.isin(task.ids, [42, 43])]).all()
    assert not np.isnan(jazz[~np.isin(task.ids, [42, 43])]).any()


def test_a_genre_in_a_file_says_nothing_about_moods(library):
    ids, *_ = small_library.fill(library, tagged=0, people=())
    say = library.opinions.say
    with library.begin():
        change = new_change(library)
        library.opinions.add_triples(
            pl.DataFrame({"person": "files", "track_id": ids[:60], "tag": ["jazz", "rock"] * 30}),
            change=change,
            kind="file",
        )
        for number in range(1, 21):
            say("ann", number, ["calm", "jazz"] if number % 2 else ["own", "rock"], change=change)
        say("ann", 21, absent=["calm"], change=library.changes.begin("review", ""))
    task = train_module._Task.read(library, TrainingOptions(), ExitStack())
    labels = dict(zip(task.examples.tags, task.examples.Y.T, strict=True))
    assert labels["calm"][:21].tolist() == [1, 0] * 10 + [0]  # described, and answered
    assert np.isnan(labels["calm"][21:]).all()
    assert not np.isnan(labels["jazz"]).any()
    with library.begin():
        for number in range(1, 21):
            say("bob", number, ["calm"], change=new_change(library))
    task = train_module._Task.read(library, TrainingOptions(min_share=0), ExitStack())
    assert not np.isnan(task.examples.Y[:, task.examples.tags.index("calm")]).any()


def test_a_table_with_other_or_nothing_as_the_genre_still_gives_moods(library, tmp_path):
    """Where most tracks have one of several genres, it is unknown of the others; else absent."""
    small_library.fill(library, tagged=0, people=())
    cells = ["Jazz", "Rock", "Rock", "Jazz", "Other", ""]
    rows = [f"{k:03}.ogg,{cells[k % 6]},{'Rainy' if k % 2 else 'Calm'}" for k in range(60)]
    table = tmp_path / "table.csv"

    def labels(**instead):
        text = "\n".join(["path,genre,mood", *rows])
        table.write_text(functools.reduce(lambda a, b: a.replace(*b), instead.items(), text))
        library.import_tags(table, replace=True)
        examples = train_module._Task.read(library, TrainingOptions(), ExitStack()).examples
        return dict(zip(examples.tags, examples.Y.T, strict=True))

    Y, unknown = labels(), np.arange(60) % 6 >= 4
    assert set(Y) == {"jazz", "rock", "rainy", "calm"}
    for genre in ("jazz", "rock"):
        np.testing.assert_array_equal(np.isnan(Y[genre]), unknown)
    np.testing.assert_array_equal(Y["rainy"], np.arange(60) % 2)
    assert labels(Rock="Jazz")["jazz"].sum() == 40  # told from the 20 others
    assert labels(Rock="")["jazz"].sum() == 20
    assert not np.isnan(labels(Rock='"Rock, Jazz"', Other="")["rock"]).any()  # not one of several


def test_a_fit_from_files_is_that_of_the_same_rows_in_memory(tmp_path):
    X, truth = small_library.world(60)
    Y = truth.astype(np.float32)
    new_table(tmp_path / "X.npy", *X.shape)[:] = X
    sets = [TrainingSet(one, Y, np.arange(60), TAGS) for one in (tmp_path / "X.npy", X)]
    there, here = (SMALL(examples)[0] for examples in sets)
    assert there.held_out_.tobytes() == here.held_out_.tobytes()
    assert there.to_bytes()[:8] == here.to_bytes()[:8]
