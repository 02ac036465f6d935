"""Every number that a command prints beside the list that it counts."""

import csv
import json
import re

import pytest
from command_line import run
from heard_library import N_TRACKS, RARE, answer_and_hide, make_heard_library

from harmonium.library import Library
from harmonium.library.store import database
from harmonium.library.tags import tag_detail

ANSWERED = "drizzle"  # learnt from answers only


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A library with tags of every sort: trained, learnt from answers, of one track, hidden."""
    top = tmp_path_factory.mktemp("counts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "SYNCHRONOUS", "OFF")
        make_heard_library(top / "music", top / "library.db")
        answer_and_hide(top / "library.db")
    return top / "library.db"


@pytest.fixture(scope="module")
def command(place):
    """The JSON that a command prints."""

    def result(*arguments):
        done = run(*arguments, "--json", "-L", place)
        assert done.exit_code in (0, 1), done.output
        return json.loads(done.stdout)

    return result


@pytest.fixture(scope="module")
def entries(command):
    """Tag → its line in the list of tags, without hidden ones."""
    return {entry["tag"]: entry for entry in command("kind") if not entry["hidden"]}


@pytest.fixture(scope="module")
def search(command):
    """The tracks that a search finds, with their sources."""

    def tracks(*query):
        hits = command("search", *query, "-n", N_TRACKS)
        return {hit["id"]: hit["source"] for hit in hits if hit["holds"]}

    return tracks


def numbers(text):
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


def test_there_is_a_tag_of_every_sort(entries):
    assert {"bass", "drums", ANSWERED, RARE.lower()} <= entries.keys()
    assert "energetic" not in entries
    assert entries[ANSWERED]["predicted"] > 0
    assert entries[ANSWERED]["auc"] is None
    assert entries[RARE.lower()]["predicted"] == 0


def test_a_search_finds_as_many_tracks_as_a_tag_has(entries, search):
    for name, entry in entries.items():
        sources = list(search(f'"{name}"').values())
        assert sources.count("people") == entry["people"], name
        assert sources.count("model") == entry["predicted"], name
        assert len(search(f'-"{name}"')) == N_TRACKS - len(sources), name
        assert len(search(f'"{name}"', "--predicted")) == entry["predicted"], name


def test_a_list_of_tracks_has_as_many_with_a_tag(entries, command):
    listed = [tag["tag"] for file in command("tag") for tag in file["tags"]]
    for name, entry in entries.items():
        assert listed.count(name) == entry["people"] + entry["predicted"], name


def test_an_export_has_as_many_tracks(entries, place, tmp_path):
    target = tmp_path / "tracks.csv"
    for name, entry in entries.items():
        query = ("search", f'"{name}"', "-n", N_TRACKS, "--export", target, "-L", place)
        assert run(*query).exit_code == 0
        with target.open(newline="") as file:
            assert len(list(csv.DictReader(file))) == entry["people"] + entry["predicted"], name


def test_a_tag_has_the_same_numbers_in_all_its_records(entries, place):
    with Library.open(place) as library:
        for name, entry in entries.items():
            detail = tag_detail(library.snapshot(), name)
            for field in ("people", "predicted", "precision", "recall", "auc", "quality"):
                assert getattr(detail, field) == entry[field], (name, field)
            for point in detail.curve:
                if point["threshold"] == entry["threshold"]:
                    assert point["precision"] == entry["precision"]
                    assert point["recall"] == entry["recall"]


def test_totals_of_tags_agree(command):
    learnt = [entry for entry in command("kind") if entry["auc"] is not None]
    assert command("models")[0]["n_learnt"] == len(learnt)


@pytest.mark.parametrize("precision", [0, 0.6, 0.8, 0.95])
def test_tags_are_not_written_for_a_reason_that_holds(entries, place, precision):
    with Library.open(place) as library:
        decisions = library.snapshot().tags.written(precision)
    for name, decision in decisions.items():
        if decision.reason == "imprecise" and decision.best is not None:
            assert decision.best < precision, name
        assert name in entries


def test_what_the_dry_run_lists_is_written(command, place):
    with Library.open(place) as library:
        outline = library.writer.outline(precision=0.6)
    n_tags = sum(tag.n for tag in outline.accepted)
    planned = command("write", "--precision", 0.6, "--dry-run")
    before_and_after = [
        (set(field["before"]), set(field["after"])) for file in planned for field in file["fields"]
    ]
    assert len(planned) == outline.n_files > 0
    assert sum(len(after - before) for before, after in before_and_after) == n_tags
    done = run("write", "--precision", 0.6, "--yes", "-L", place)
    assert numbers(done.stdout)[:2] == [n_tags, len(planned)]
    assert numbers(command("undo", "--list")[0]["summary"])[:2] == [n_tags, len(planned)]
    assert command("write", "--precision", 0.6, "--yes") == {"change": None, "written": []}
    assert command("undo")["files"] == len(planned)
    assert command("write", "--precision", 0.6, "--dry-run") == planned


def test_an_import_says_what_the_list_of_changes_says(command, search, tmp_path):
    table = tmp_path / "tags.csv"
    table.write_text("title,tag\nSong 20,sunny\nSong 21,sunny\nSong 20,bass\nSong 99,sunny\n")
    said = command("import", table)
    change = command("undo", "--list")[0]
    assert said["change"] == change["id"]
    assert numbers(change["summary"])[0] == said["n_added"]
    assert len(search("sunny")) == 2
    command("undo")


def test_hiding_a_tag_learnt_from_answers_ends_its_predictions_at_once(command, search, entries):
    assert len(search(ANSWERED)) > entries[ANSWERED]["people"]
    command("hide", ANSWERED)
    entry = next(entry for entry in command("kind") if entry["tag"] == ANSWERED)
    assert entry["predicted"] == 0
    assert len(search(ANSWERED)) == entry["people"] == entries[ANSWERED]["people"]
