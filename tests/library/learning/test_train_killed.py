"""kill -9 while training: the library opens, nothing is half stored, a second run finishes."""

import os
import random
import signal
import subprocess
import sys

import pytest
import small_library
from places import HELPERS

from harmonium.library import Library
from harmonium.library.tagger import Tagger

SCRIPT = HELPERS / "killed.py"


def start(place, mode, cache):
    paths = [str(SCRIPT.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), mode, place],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HARMONIUM_CACHE": str(cache), "PYTHONPATH": os.pathsep.join(paths)},
    )


def assert_whole(library):
    """There is no model, or, if the kill came too late, a whole one that is in use."""
    models = library.models.list()
    assert (library.models.current() is None) == (not models)
    for model in models:
        assert Tagger(library.models.get(model.id)).tags == tuple(model.vocabulary)


@pytest.mark.long
def test_killed_training_stores_nothing_by_half_and_the_next_run_finishes(tmp_path):
    place = str(tmp_path / "library.db")
    with Library.open(place) as library:
        small_library.fill(library, 40)
        before = library.opinions.triples()
    for seed in range(2):
        steps = random.Random(seed).randint(1, 6)  # of 12
        with start(place, "train", tmp_path / "cache") as child:
            for _ in range(steps):
                child.stdout.readline()
            child.kill()
        assert child.returncode == -signal.SIGKILL
        with Library.open(place, create=False) as library:
            assert_whole(library)
    with start(place, "train", tmp_path / "cache") as child:
        child.stdout.read()
    assert child.returncode == 0
    with Library.open(place, create=False) as library:
        assert library.models.current().report["tracks"] == 40
        assert library.opinions.triples().equals(before)


def test_killed_while_the_model_is_stored(tmp_path):
    place = str(tmp_path / "library.db")
    Library.open(place).close()
    with start(place, "store", tmp_path / "cache") as child:
        child.stdout.read()
    assert child.returncode == -signal.SIGKILL
    with Library.open(place, create=False) as library:
        assert library.models.list() == []
        number = library.models.add(small_library.quick_model())
        assert library.models.current().id == number
