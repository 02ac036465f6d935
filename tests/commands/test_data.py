"""The commands `harmonium data list` and `show`."""

import json
from functools import partial

import pytest
from command_line import output_of
from dataset_samples import write_samples

from harmonium.data import datasets


@pytest.fixture
def samples(tmp_path, monkeypatch):
    monkeypatch.delenv("HARMONIUM_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("COLUMNS", "80")
    return write_samples(tmp_path / "data")


run = partial(output_of, "data")


class TestList:
    def test_a_line_per_dataset(self, samples):
        lines = run("list", "--folder", samples).splitlines()
        line_of = {line.split()[0]: line for line in lines if line}
        assert {*datasets.names(), "mulan:toy"} <= line_of.keys()
        assert line_of["hetrec"] == f"hetrec\t12523\t9749\t-\t186478\tno\t{samples}/hetrec-lastfm"
        assert line_of["emotify"] == f"emotify\t400\t9\t-\t16184\tyes\t{samples}/emotify"
        assert line_of["mulan:yeast"].endswith("not found")

    def test_as_json(self, samples):
        records = json.loads(run("list", "--json", "-f", samples))
        listed = {record["name"]: record for record in records}
        assert listed["emotify"] == {
            "name": "emotify",
            "title": datasets.info("emotify").title,
            "items": 400,
            "tags": 9,
            "features": None,
            "triples": 16184,
            "audio": True,
            "folder": str(samples / "emotify"),
        }
        assert listed["mulan:yeast"]["folder"] is None


def test_the_figures_of_a_dataset(samples):
    facts = json.loads(run("show", "emotify", "--json", "-f", samples))
    assert (facts["items"], facts["tags"], facts["features"]) == (5, 9, None)
    assert (facts["triples"], facts["users"]) == (13, 5)
    assert facts["listeners_per_item"] == [1, 4]
    assert facts["labels"] == {"positive": 10, "negative": 35, "unknown": 0}
    assert facts["top_tags"][0] == {"tag": "joyful activation", "positive": 2}
    assert facts["audio_files"] == 5
    assert facts["folder"] == str(samples / "emotify")


def test_groups(samples):
    assert "3 tracks, 2 artists" in run("show", "majorminer", "-f", samples)


def test_splits(samples):
    assert "train 2, test 1" in run("show", "mulan:toy", "-f", samples)


def test_unknown_labels(samples):
    facts = json.loads(run("show", "hetrec", "--json", "-t", 1, "-f", samples))
    Y = datasets.load("hetrec", samples).labels().values
    assert [*facts["labels"].values()] == [(Y == 1).sum(), (Y == 0).sum(), (Y != Y).sum()]
    assert facts["labels"]["unknown"] > 0
    assert facts["top_tags"] == [{"tag": "trip-hop", "positive": 1}]
