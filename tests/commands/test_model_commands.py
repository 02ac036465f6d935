"""The commands that train, tag, search, suggest and examine, as people and programs call them."""

import csv
import dataclasses
import io
import json
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
import small_library
from small_library import TAGS, new_change
from typer.testing import CliRunner

from harmonium.cli import app
from harmonium.errors import DataError, LibraryError
from harmonium.library import Library
from harmonium.library.index import extractor_key
from harmonium.library.learning import train as train_module
from harmonium.library.store.tracks import Track

RUNNER = CliRunner()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A library with a model; commands find it by the environment."""
    file = tmp_path / "library.db"
    with Library.open(file) as library:
        small_library.trained(library, tagged=20)
    monkeypatch.setenv("HARMONIUM_LIBRARY", str(file))
    monkeypatch.setenv("COLUMNS", "200")
    return file


def call(*arguments, code=0):
    done = RUNNER.invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def rows(done):
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_search_prints_a_line_for_each_track(place):
    found = rows(call("search", "rock", "-n", "30"))
    assert len(found) == 30
    assert found[0][:2] == ["1.0000", "people"]
    assert found[-1][1] == "model"
    assert all(path.startswith("/music/") for *_, path in found)


def test_search_as_json_has_the_tags_asked_for(place):
    found = json.loads(call("search", "rock -jazz", "--json", "-n", "30").stdout)
    assert set(found[0]["tags"]) == {"rock", "jazz"}
    hit = next(hit for hit in found if hit["source"] == "model")
    expected = hit["tags"]["rock"] * (1 - hit["tags"]["jazz"])
    assert hit["probability"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("options", [[], ["--relative"]])
def test_search_writes_a_playlist(place, tmp_path, options):
    file = tmp_path / "evening.m3u8"
    done = call("search", "mellow", "--like", "#30", "-n", "4", "-o", str(file), *options)
    paths = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert all(path.startswith("/") != bool(options) for path in paths)
    assert [str((tmp_path / path).resolve()) for path in paths] == [path for *_, path in rows(done)]
    with pytest.raises(DataError, match="must end in"):
        call("search", "mellow", "-o", str(tmp_path / "evening.txt"))


def test_search_exports_tracks_with_their_tags(place, tmp_path):
    file = tmp_path / "evening.xml"
    done = call("search", "rock", "-n", "5", "--export", str(file))
    entries = ElementTree.parse(file).findall("COLLECTION/TRACK")
    places = [unquote(entry.get("Location").removeprefix("file://localhost")) for entry in entries]
    assert places == [path for *_, path in rows(done)]
    assert all("rock" in entry.get("Comments").split(", ") for entry in entries)
    with pytest.raises(DataError, match="'--export' takes"):
        call("search", "rock", "--export", str(tmp_path / "evening.csv"))


def test_only_what_the_model_adds(place):
    everything = rows(call("search", "rock", "-n", "100"))
    added = rows(call("search", "rock", "-n", "100", "--predicted"))
    assert added == [row for row in everything if row[1] == "model"]
    assert 0 < len(added) < len(everything)


def test_a_search_that_finds_nothing_says_so(place):
    with Library.open(place) as library:
        library.opinions.say("bob", 1, ["birds"], change=new_change(library))
        library.tracks.set_state([1], "missing")
    done = call("search", "birds", code=1)
    assert done.stdout == ""
    assert "No tracks found" in done.stderr


def test_what_is_hardly_probable_is_left_out_and_counted(place):
    everything = rows(call("search", "rock", "-n", "1000", "-p", "0"))
    low = sum(float(p) < 0.5 for p, *_ in everything)
    assert low
    done = call("search", "rock", "-n", "1000", "-p", "0.5")
    assert rows(done) == everything[:-low]
    assert f"{low} track{'s' if low > 1 else ''} below 50 % not shown" in done.stderr
    assert "not shown" not in call("search", "rock", "-n", "1", "-p", "0.5").stderr


@pytest.mark.parametrize(
    "words",
    [
        ["rock", "-jazz"],
        ["-n5", "rock", "-jazz"],
        ["-jazz", "rock"],
        ["--", "rock", "-jazz"],
        ["rock", "NOT", "jazz"],
    ],
)
def test_a_tag_with_a_minus_is_no_option(place, words):
    assert rows(call("search", *words))[:5] == rows(call("search", "rock NOT jazz", "-n", "5"))


def test_a_minus_before_the_letters_of_options(place):
    """-n, -p, -o and -L are options of search; -nopL is a tag."""
    with pytest.raises(DataError, match="No track has the tag nopl"):
        call("search", "rock", "-nopL")
    assert call("search", "rock", "--tob", code=2)


def test_what_nobody_speaks_of_is_not_the_model_s(tmp_path):
    file = tmp_path / "library.db"
    with Library.open(file) as library:
        small_library.fill(library, tagged=5)
    done = call("search", "rock", "-hip hop", "-L", str(file))
    assert {source for _, source, _ in rows(done)} == {"people"}
    assert done.stderr.startswith("No model yet")
    with Library.open(file) as library:
        library.models.add(small_library.quick_model())
        small_library.tag_library(library)
    found = rows(call("search", "-random", "-n", "100", "-L", str(file)))
    assert {source for _, source, _ in found} == {"nobody"}


def test_a_question_with_an_unknown_tag_names_near_ones(place):
    with pytest.raises(DataError, match="Did you mean rock"):
        call("search", "rokc")


def test_tag_shows_what_people_say_and_what_the_model_says(place):
    found = rows(call("tag", "#1", "--top", "5"))
    assert {source for *_, source in found} == {"people", "model"}
    probabilities = [float(p) for _, _, p, source in found if source == "model"]
    assert probabilities == sorted(probabilities, reverse=True)


def test_tag_with_what_is_known(place):
    (record,) = json.loads(call("tag", "#50", "--known", "rock, -mellow", "--json").stdout)
    assert record["tags"][0] == {
        "tag": "rock",
        "probability": 1.0,
        "source": "given",
        "precision": None,
    }
    assert "mellow" not in {tag["tag"] for tag in record["tags"]}
    with pytest.raises(DataError, match="needs files"):
        call("tag", "--known", "rock")


def test_tag_chooses_by_probability(place):
    chosen = rows(call("tag", "#50", "--min-probability", "0"))
    assert {tag for _, tag, *_ in chosen} == set(TAGS)  # what is not learnt is not predicted
    assert rows(call("tag", "#50", "--min-probability", "1")) == []


def test_the_whole_library_as_csv_and_as_json(place):
    table = list(csv.DictReader(io.StringIO(call("tag", "--csv").stdout)))
    records = json.loads(call("tag", "--json").stdout)
    assert len(records) == 60
    assert len(table) == sum(len(record["tags"]) for record in records)
    assert table[0]["path"] == records[0]["path"]
    with pytest.raises(DataError, match="not both"):
        call("tag", "--json", "--csv")


def test_a_file_that_is_not_there_is_neither_file_nor_track(place):
    with pytest.raises(LibraryError, match=r"no file 'nosuch.mp3'. There is no track"):
        call("tag", "nosuch.mp3")


def test_tagging_the_library_says_how_much_is_new(place):
    assert "No new tracks tagged by model 1; 60 in all" in call("tag").stdout
    assert "60 tracks tagged" in call("tag", "--again").stdout
    with Library.open(place) as library:
        library.tracks.set_state([1, 2], "missing")
        library.tracks.put([Track("/music/new.mp3", "a new sound")])
    shown = call("tag").stdout
    assert "58 in all" in shown
    assert "1 track without features" in shown


def test_a_file_that_cannot_be_heard_is_listed(place, tmp_path):
    with Library.open(place) as library:
        library.models.add(_with_paper_features(library.models.current()))
    bad = tmp_path / "bad.wav"
    bad.write_bytes(b"no music")
    done = call("tag", str(bad), code=2)
    assert "bad.wav" in done.stderr


def _with_paper_features(model):
    return dataclasses.replace(model, extractor=extractor_key("paper"))


def test_features_that_are_not_what_they_were_are_refused(place, tmp_path):
    with Library.open(place) as library:
        current = library.models.current()
        library.models.add(dataclasses.replace(current, extractor="paper@older"))
    file = tmp_path / "song.wav"
    file.write_bytes(b"no music")
    with pytest.raises(LibraryError, match="other features than 'paper' gives now"):
        call("tag", str(file))


def test_suggest_and_related(place):
    suggested = rows(call("suggest", "rock, mellow", "-n", "2"))
    assert len(suggested) == 2
    assert call("suggest", "rock", "mellow", "-n", "2").stdout.splitlines() == [
        "\t".join(row) for row in suggested
    ]
    related = json.loads(call("related", "rock", "--json").stdout)
    assert related[-1]["tag"] == "jazz"
    assert related[-1]["log_odds"] < 0
    assert rows(call("related", "rock"))[-1][0] == "jazz"


def test_doctor_has_an_exit_code_for_missing_files(place):
    call("doctor")
    with Library.open(place) as library:
        library.tracks.set_state([4], "missing")
    assert rows(call("doctor", code=1))[0] == ["missing", "/music/003.ogg"]
    health = json.loads(call("doctor", "--json", code=1).stdout)
    assert health["missing"] == ["/music/003.ogg"]
    assert isinstance(health["doubts"], list)


@pytest.mark.parametrize(
    "arguments",
    [("search", "rock"), ("tag", "#1"), ("tag",), ("suggest", "rock"), ("doctor",), ("train",)],
)
def test_without_a_library_the_way_to_one_is_said(tmp_path, arguments):
    with pytest.raises(LibraryError, match="`harmonium index FOLDER` makes one"):
        call(*arguments, "-L", str(tmp_path / "none.db"))


def test_without_a_model_the_one_that_comes_along_answers(tmp_path):
    file = tmp_path / "library.db"
    with Library.open(file) as library:
        small_library.fill(library, 20)
    with pytest.raises(LibraryError, match="`harmonium train` makes one"):
        call("tag", "-L", str(file))
    more = [row[0] for row in rows(call("related", "metal", "-L", str(file), "-n", "8"))]
    assert "heavy metal" in more[:8]
    assert len(rows(call("suggest", "rap", "-L", str(file)))) == 10


@pytest.mark.parametrize("in_use", [1, 2])
def test_a_training_that_is_stopped_says_which_model_there_is(tmp_path, monkeypatch, in_use):
    model = small_library.quick_model()
    file = tmp_path / "library.db"
    with Library.open(file) as library:
        library.models.add(model)

    def train(library, options, progress, first, **where):
        first(dataclasses.replace(model, id=library.models.add(model, use=in_use == 2)))
        raise KeyboardInterrupt

    monkeypatch.setattr(train_module, "train", train)
    done = CliRunner().invoke(app, ["train", "-L", str(file)])
    assert done.exit_code == 130
    said = {1: "Model 1 stays in use", 2: "The first model (2) is in use"}
    assert said[in_use] in done.stderr


def report_of(*tags, **more):
    """The report of a training."""
    names = ("tag", "examples", "auc", "error", "learnt", "threshold", "precision", "write_from")
    return {"tags": [dict(zip(names, tag, strict=False)) for tag in tags], **more}


ROCK, ODD = ("rock", 20, 0.9, 0.05, True, 0.4, 0.6, 0.7), ("odd", 5, 0.55, 0.1, False, None)


def test_train_reports_the_tags_by_line_or_as_json(tmp_path, monkeypatch):
    model = small_library.quick_model()
    report, seen = report_of(ROCK, ODD), []

    def train(library, options, progress, first, **where):
        first(dataclasses.replace(model, report={"mean_auc": None, "seconds": 1}))
        seen.append(options)
        return dataclasses.replace(model, id=1, report=report)

    monkeypatch.setattr(train_module, "train", train)
    file = tmp_path / "library.db"
    Library.open(file).close()
    done = call("train", "-L", str(file), "--min-examples", "7", "--no-smooth")
    assert rows(done) == [
        ["rock", "20", "0.90", "0.05", "0.40", "0.60", "0.70", ""],
        ["odd", "5", "0.55", "0.10", "", "", "", "not learnt"],
    ]
    assert seen[0].min_examples == 7
    assert not seen[0].smooth
    assert json.loads(call("train", "-L", str(file), "--json").stdout)["tags"] == report["tags"]


def test_where_nothing_is_learnt_train_says_what_to_do(tmp_path, monkeypatch):
    nothing = dataclasses.replace(
        small_library.quick_model(),
        id=1,
        vocabulary=["odd"],
        thresholds=np.array([2.0], np.float32),
        report=report_of(ODD),
    )
    monkeypatch.setattr(train_module, "train", lambda *_, **__: nothing)
    file = tmp_path / "library.db"
    Library.open(file).close()
    done = call("train", "-L", str(file), code=1)
    assert "No tag was learnt" in done.stderr
    assert "came closest: odd (5)" in done.stderr


class TestOnATerminal:
    """What people see; Rich takes FORCE_COLOR for a terminal."""

    @pytest.fixture(autouse=True)
    def terminal(self, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "dumb")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["search", "rock", "-n", "30"], ["tagged", "Song", " %"]),
            (["tag", "#1", "--top", "5"], ["tagged", "Probability"]),
            (["tag", "#50", "--min-probability", "1"], ["--top 5 shows"]),
            (["suggest", "rock"], ["Usual"]),
            (["related", "rock"], ["Without"]),
        ],
    )
    def test_what_is_shown(self, place, arguments, words):
        shown = call(*arguments).stdout
        assert all(word in shown for word in words)

    def test_the_doctor_shows_a_few_of_each_kind(self, place):
        with Library.open(place) as library:
            library.tracks.set_state(range(1, 6), "missing")
        shown = call("doctor", "--limit", "2", code=1).stdout
        assert "Missing files: 5" in shown
        assert "and 3 more" in shown

    def test_the_report_of_training_says_what_was_left_out(self, place, monkeypatch):
        lacking = [{"tag": f"tag {i}", "reason": "4 more tracks with it"} for i in range(21)]
        report = report_of(
            *(ROCK, ODD),
            **{"people": 2, "tracks": 40, "seconds": 3.0, "mean_auc": 0.7, "folds": 5},
            **{"grouped_by": "artist", "smoothing_tried": True, "smoothed": False},
            left_out=lacking,
        )
        trained = dataclasses.replace(small_library.quick_model(), id=1, report=report)
        monkeypatch.setattr(train_module, "train", lambda *_, **__: trained)
        shown = " ".join(call("train").stdout.split())
        assert "1 of 2 tags learnt from 40 tracks tagged by 2 people" in shown
        assert "not learnt" in shown
        assert "21 tags skipped" in shown
        assert "tag 0: 4 more tracks with it" in shown
        assert "tags as given" in shown
