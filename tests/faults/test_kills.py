"""A command that ends at any statement of the database leaves all of its work or nothing.

`harmonium train`, `write`, `serve`, `features` and `experiment run` have tests of their
own that kill real processes; here each statement of the shorter commands is tried.
"""

import gc
import shutil
from functools import partial

import pytest
import sqlalchemy as sa
from killed import Killed, watch_moments
from noise_files import write
from processes_in_tests import reports_of_killed

from harmonium.library import Library
from harmonium.library.edits import forget, hide_tags, rename_tag
from harmonium.library.learning import fitting
from harmonium.library.learning import train as train_module
from harmonium.library.learning.examples import Hyperparameters
from harmonium.library.model.tagger import Tagger, tag_library
from harmonium.library.models import use_model
from harmonium.library.store import database
from harmonium.library.store.schema import metadata
from harmonium.library.teaching.say import keep_said

TIMES = {"at", "made_at", "added_at"}
TRIED = (Hyperparameters(0.01, 0.1),)


def content(place):
    """All rows of all tables, without times."""
    with Library.open(place, create=False) as library, library.connect() as connection:
        return {
            table.name: sorted(
                connection.execute(sa.select(*(c for c in table.c if c.name not in TIMES))).all(),
                key=repr,
            )
            for table in metadata.sorted_tables
        }


def run(place, work, moment=None):
    """Do some work, up to a moment; how many moments there were."""
    with Library.open(place, create=False) as library:
        seen = watch_moments(library.engine, moment)
        work(library)
    return seen()


@pytest.fixture(scope="module", autouse=True)
def little_to_collect():
    """`kill` collects garbage often: without what other tests have left, that takes no time."""
    gc.collect()
    gc.freeze()


def kill(place, work, moment):
    """End the work at a moment; a process that ends lets go of the database."""
    with pytest.raises(Killed):
        run(place, work, moment)
    gc.collect()


WORK = {
    "say": lambda library: keep_said(library, 7, accepted=["new word"], rejected=["jazz"]),
    "rename": lambda library: rename_tag(library, "rock", "stone"),
    "hide": lambda library: hide_tags(library, ["rock"]),
    "forget": lambda library: forget(library, [3, 4]),
    "use a model": lambda library: use_model(library, 1),
    "undo": lambda library: library.changes.undo(2),
}


@pytest.mark.parametrize("most", [5, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", WORK)
def test_a_change_is_whole_or_not_there(whole, tmp_path, monkeypatch, name, most):
    monkeypatch.setattr(database, "SYNCHRONOUS", "OFF")
    place, work = tmp_path / "library.db", WORK[name]
    shutil.copy(whole, place)
    before = content(place)
    total = run(place, work)
    after = content(place)
    for moment in range(1, total + 1, max(1, total // most)):
        shutil.copy(whole, place)
        kill(place, work, moment)
        left = content(place)
        assert left in (before, after), moment
        if left == before:
            run(place, work)
            assert content(place) == after


@pytest.mark.parametrize("work", [tag_library, Library.learn], ids=["tag", "learn"])
def test_what_can_be_computed_again_goes_on(whole, tmp_path, monkeypatch, work):
    monkeypatch.setattr(database, "SYNCHRONOUS", "OFF")
    start, place = tmp_path / "start.db", tmp_path / "library.db"
    shutil.copy(whole, start)
    with Library.open(start) as library:
        with library.begin() as connection:
            for table in ("prediction", "refined_prediction", "refined_tag", "completed_track"):
                connection.execute(sa.text(f"DELETE FROM {table}"))
        if work is Library.learn:
            tag_library(library)
    shutil.copy(start, place)
    total = run(place, work)
    after = content(place)
    for moment in range(1, total + 1, max(1, total // 5)):
        shutil.copy(start, place)
        kill(place, work, moment)
        run(place, work)
        now = content(place)
        for name in ("track", "opinion", "change", "model", "prediction", "refined_tag"):
            assert now[name] == after[name], (moment, name)


def train(library):
    use_model(library, library.train(use=False).id)


@pytest.mark.parametrize("most", [3, pytest.param(30, marks=pytest.mark.long)])
def test_training_stores_a_model_that_is_whole_or_none(whole, tmp_path, monkeypatch, most):
    """The model in use stays until the new one is there; nothing that people said changes."""
    monkeypatch.setattr(database, "SYNCHRONOUS", "OFF")
    monkeypatch.setattr(train_module, "fit", partial(fitting.fit, to_try=TRIED, n_hidden=5))
    place = tmp_path / "library.db"
    shutil.copy(whole, place)
    before = content(place)
    total = run(place, train)
    after = content(place)
    assert len(after["model"]) == len(before["model"]) + 1
    first = total - (total - 1) // most * (most - 1)  # the last statements store the model
    for moment in range(first, total + 1, max(1, (total - 1) // most)):
        shutil.copy(whole, place)
        kill(place, train, moment)
        left = content(place)
        assert left["opinion"] == before["opinion"]
        assert left["setting"] in (before["setting"], after["setting"])
        with Library.open(place, create=False) as library:
            assert Tagger(library.models.current()).tags
            for model in library.models.list():
                assert Tagger(library.models.get(model.id)).tags
        run(place, train)
        assert len(content(place)["model"]) == len(left["model"]) + 1


@pytest.mark.long
def test_a_process_that_is_killed_at_any_moment_loses_nothing(place, tmp_path):
    for k in range(4):
        write(tmp_path / "music" / f"{k}.flac", k)
    rows = [f"user {k % 3},{k % 4}.flac,tag {k}" for k in range(12)]
    (tmp_path / "tags.csv").write_text("\n".join(["user,path,tag", *rows]))
    Library.open(place).close()
    reports = reports_of_killed("library", place, tmp_path, "7", "3")
    assert {one["command"] for one in reports} == {"index", "import"}
    assert all(one["killed"] for one in reports), reports
    assert all(one["finished"] for one in reports), reports
    assert all(not one["lost"] and not one["wrong"] for one in reports), reports
    # An import is there as a whole or not at all; there are 12 tags of 4 tracks with features.
    assert {one["n_kept"] for one in reports if one["command"] == "import"} <= {8, 20}
