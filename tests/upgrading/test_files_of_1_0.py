"""A library and models made by version 1.0 open, and say what they said then."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import harmonium
from harmonium.library import Library

FOLDER = Path(__file__).parent
EXPECTED = json.loads((FOLDER / "expected-1.0.json").read_text(encoding="utf-8"))
MODELS = FOLDER / "models-1.0"


@pytest.fixture
def library(tmp_path):
    place = tmp_path / "library.db"
    place.write_bytes(gzip.decompress((FOLDER / "library-1.0.db.gz").read_bytes()))
    with Library.open(place, create=False) as library:
        yield library


def test_its_tags_are_the_same(library):
    tags = {entry.tag: [entry.owner, entry.people, entry.hidden] for entry in library.tags.list()}
    expected = {
        tag: [owner, people, hidden]
        # Version 1.0 also counted as predicted what people had given.
        for tag, (owner, people, _, hidden) in EXPECTED["tags"].items()
    }
    assert tags == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [("rock", "rock"), ("late night", "late night"), ('"jazz music" -rock', "jazz -rock")],
)
def test_a_search_finds_the_same(library, query, expected):
    probabilities = {hit.track.path: hit.probability for hit in library.search(query, limit=100)}
    assert probabilities == pytest.approx(EXPECTED[expected], abs=1e-4)


def test_a_saved_search_finds_the_same(library):
    assert [hit.track.path for hit in library.searches.run("Evening")] == EXPECTED["evening"]


def test_its_changes_can_be_undone(library):
    assert [change.command for change in library.changes.list()] == EXPECTED["changes"]
    assert "live" not in [hit.tag for hit in library.tags.list() if not hit.hidden]
    library.undo()  # the saved search
    library.undo()  # hiding "live"
    assert not next(entry for entry in library.tags.list() if entry.tag == "live").hidden


def test_it_learns_from_a_new_answer(library):
    def probability():
        hits = library.search("rock", limit=100)
        return next(hit.probability for hit in hits if hit.track.path == "/music/046.ogg")

    before = probability()
    library.say([42, 48], "rock")
    assert probability() > before


@pytest.mark.parametrize("name", EXPECTED["models"])
def test_a_model_file_predicts_the_same(name):
    model = harmonium.load(MODELS / f"{name}.safetensors")
    X = np.load(MODELS / "X.npy")
    if name == "TagSmoother":
        predicted = model.smooth().frame().drop("item").to_numpy()
    elif name == "SVMTagger":
        predicted = model.decision_function(X)
    else:
        predicted = model.predict_proba(X)
    np.testing.assert_allclose(predicted, EXPECTED["models"][name], atol=2e-5)
