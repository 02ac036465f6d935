"""The commands that train, tag, search, suggest and examine, as people and programs call them."""

import csv
import dataclasses
import io
import json

import numpy as np
import pytest
import small_library
from command_line import run, run_main
from rich.text import Text
from small_library import TAGS, new_change
from sound_files import timed_noise, write_sndfile

from harmonium.audio.extractors import extractor_key
from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.errors import DataError, LibraryError
from harmonium.library import Library
from harmonium.library.learning import train as train_module
from harmonium.library.model.tag_table import NotWritten, Tag, WriteDecision
from harmonium.library.store.reports import ExcludedTag, ModelReport, TagReport
from harmonium.library.store.tracks import Track


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A library with a model; commands find it by the environment."""
    file = tmp_path / "library.db"
    with Library.open(file) as library:
        small_library.trained(library, tagged=20)
    monkeypatch.setenv("HARMONIUM_LIBRARY", str(file))
    monkeypatch.setenv("COLUMNS", "200")
    return file


@pytest.fixture
def empty(tmp_path):
    """A library of nothing; its place."""
    file = tmp_path / "library.db"
    Library.open(file).close()
    return str(file)


def call(*arguments, code=0):
    done = run(*arguments)
    assert done.exit_code == code, done.output
    return done


def rows(done):
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_search_prints_lines(place):
    found = rows(call("search", "rock", "-n", "100"))
    assert rows(call("search", "rock", "-n", "30")) == found[:30]
    assert found[0][:2] == ["1.0000", "people"]
    assert all(path.startswith("/music/") for *_, path in found)


def test_search_for_what_the_model_adds(place):
    found = rows(call("search", "rock", "-n", "100"))
    added = rows(call("search", "rock", "-n", "100", "--predicted"))
    assert added == [row for row in found if row[1] == "model"] != []


def test_search_prints_json(place):
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


def test_an_export_has_the_predicted_tracks_that_were_asked_for(place, tmp_path, monkeypatch):
    """With the tag that was searched for, also where write would not add it."""
    never = WriteDecision(reason=NotWritten.IMPRECISE)
    monkeypatch.setattr(Tag, "written", lambda tag, precision: never)
    file = tmp_path / "rock.csv"
    with Library.open(place) as library:
        least = library.snapshot().tags["rock"].threshold
    call("search", "rock", "--predicted", "-n", "60", "-p", str(least), "--export", str(file))
    found = rows(call("search", "rock", "--predicted", "-n", "60", "-p", str(least)))
    with file.open(newline="") as opened:
        lines = list(csv.DictReader(opened))
    assert [line["path"] for line in lines] == [path for *_, path in found] != []
    assert all("rock" in line["tags"].split("; ") for line in lines)


def test_an_export_names_no_tag_below_its_threshold(place, tmp_path):
    call("search", "rock", "-p", "0", "-n", "60", "--export", str(tmp_path / "all.csv"))
    with (tmp_path / "all.csv").open(newline="") as file:
        tags = [row["tags"].split("; ") for row in csv.DictReader(file)]
    assert 0 < sum("rock" in tags_of_track for tags_of_track in tags) < len(tags)


def test_a_search_counts_what_it_leaves_out(place):
    everything = rows(call("search", "rock", "-n", "1000", "-p", "0"))
    low = sum(float(p) < 0.5 for p, *_ in everything)
    assert low
    done = call("search", "rock", "-n", "1000", "-p", "0.5")
    assert rows(done) == everything[:-low]
    assert f"{low} track{'s' if low > 1 else ''} below 50 % not shown" in done.stderr
    assert "not shown" not in call("search", "rock", "-n", "1", "-p", "0.5").stderr


def test_a_search_that_finds_nothing(place):
    with Library.open(place) as library:
        library.opinions.say("bob", 1, ["birds"], change=new_change(library))
        library.tracks.set_state([1], "missing")
    done = call("search", "birds", code=1)
    assert done.stdout == ""
    assert "No tracks found" in done.stderr


def test_an_unknown_option(place):
    call("search", "birds", "--tob", code=2)


@pytest.mark.parametrize(
    "words", ["rock -jazz", "-n5 rock -jazz", "-jazz rock", "-- rock -jazz", "rock NOT jazz"]
)
def test_a_tag_with_a_minus_is_no_option(place, words):
    assert rows(call("search", *words.split()))[:5] == rows(
        call("search", "rock NOT jazz", "-n", "5")
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "rokc"], "Did you mean rock"),
        (["search", "rock", "-nopL"], "No track has the tag nopl"),  # though -n and -L are options
        (["search", "rock", "-o", "evening.txt"], "must end in"),
        (["search", "rock", "--export", "evening.ods"], "'--export' takes"),
        (["tag", "--known", "rock"], "needs files"),
        (["tag", "#50", "--known", "rok"], "no tag 'rok'.*Did you mean rock"),
        (["tag", "#50", "--known", "rock, -rock"], "'rock' cannot be both"),
        (["tag", "--json", "--csv"], "not both"),
        (["tag", "--over-time", "rock"], "needs one file"),
        (["tag", "nosuch.mp3"], r"no file 'nosuch.mp3'. There is no track"),
    ],
)
def test_what_cannot_be_asked(place, arguments, message):
    with pytest.raises((DataError, LibraryError), match=message):
        call(*arguments)


def test_what_nobody_speaks_of_is_not_the_model_s(empty):
    with Library.open(empty) as library:
        small_library.fill(library, tagged=5)
    done = call("search", "rock", "-hip hop", "-L", empty)
    assert {source for _, source, _ in rows(done)} == {"people"}
    assert done.stderr.startswith("No model yet")
    with Library.open(empty) as library:
        library.models.add(small_library.quick_model())
        small_library.tag_library(library)
    found = rows(call("search", "-random", "-n", "100", "-L", empty))
    assert {source for _, source, _ in found} == {"nobody"}


def test_tag_shows_people_beside_the_model(place):
    shown = rows(call("tag", "#1", "--top", "5"))
    assert {source for *_, source in shown} == {"people", "model"}


def test_tag_shows_the_most_telling_tags_first(place):
    shown = rows(call("tag", "#1", "--top", "5"))
    with Library.open(place) as library:
        tagged = next(file for file in library.tagged() if file.track.id == 1)
    gain = tagged.tagger.information_gain(tagged.probabilities)
    gains = dict(zip(tagged.tagger.tags, gain, strict=True))
    order = [gains[tag] for _, tag, _, source in shown if source == "model"]
    assert order == sorted(order, reverse=True)


def test_tags_by_their_probability(place):
    chosen = rows(call("tag", "#50", "--min-probability", "0"))
    assert {tag for _, tag, *_ in chosen} == set(TAGS)  # what is not learnt is not predicted
    assert rows(call("tag", "#50", "--min-probability", "1")) == []


def test_tag_takes_known_tags(place):
    (record,) = json.loads(call("tag", "#50", "--known", "rock, -mellow", "--json").stdout)
    known = {"tag": "rock", "shown": "rock", "probability": 1.0}
    assert record["tags"][0] == {**known, "source": "given", "precision": None}
    assert "mellow" not in {tag["tag"] for tag in record["tags"]}


def test_a_tag_over_time_of_a_file_without_a_library(empty, tmp_path):
    write_sndfile(tmp_path / "a.wav", timed_noise(7, 16_000), 16_000)
    asked = ("tag", tmp_path / "a.wav", "--over-time", "Jazz")
    record = json.loads(call(*asked, "--json").stdout)
    assert list(record["tags"]) == ["jazz"]
    table = list(csv.DictReader(io.StringIO(call(*asked, "--csv").stdout)))
    assert [float(row["probability"]) for row in table] == record["tags"]["jazz"]
    assert len(rows(call(*asked))) == len(table) == 2


def test_a_file_is_tagged_before_the_library_of_the_environment_is_made(tmp_path, monkeypatch):
    write_sndfile(tmp_path / "a.wav", timed_noise(7, 16_000), 16_000)
    library = tmp_path / "data" / "library.db"
    monkeypatch.setenv("HARMONIUM_LIBRARY", str(library))
    (record,) = json.loads(call("tag", tmp_path / "a.wav", "--json").stdout)
    assert record["features"]
    assert not library.parent.exists()
    with pytest.raises(LibraryError, match="There is no library"):
        call("tag", tmp_path / "a.wav", "--library", tmp_path / "misspelt.db")


@pytest.fixture
def heard(place):
    """The same with a model that knows audio features."""
    with Library.open(place) as library:
        library.models.add(small_library.quick_model(features=True))
        library.tag_all()
    return place


@pytest.fixture
def values(heard):
    """The audio features of a track, as tag prints them."""
    lines = rows(call("tag", "#50"))
    return {name: float(value) for _, name, value, source in lines if source == "feature"}


def test_audio_features_as_json(values):
    assert list(values) == list(AUDIO_FEATURES)
    (record,) = json.loads(call("tag", "#50", "--json").stdout)
    assert record["features"] == pytest.approx(values, abs=1e-4)


def test_audio_features_as_columns(values):
    (record,) = json.loads(call("tag", "#50", "--json").stdout)
    table = list(csv.DictReader(io.StringIO(call("tag", "--csv", "-p", "1").stdout)))
    assert len({row["path"] for row in table}) == 60  # those without any tag, too
    (row,) = (row for row in table if row["path"] == record["path"])
    assert {name: float(row[name]) for name in AUDIO_FEATURES} == pytest.approx(values, abs=1e-3)


def test_audio_features_below_the_tags(values, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    last = call("tag", "#50").stdout.rstrip().splitlines()[-1]
    assert last.startswith(f"energy {values['energy']:.2f} · valence {values['valence']:.2f}")


def test_search_by_audio_features(heard):
    found = json.loads(call("search", "energy:0.5..", "--sort", "-energy", "--json").stdout)
    energies = [hit["features"]["energy"] for hit in found]
    assert energies == sorted(energies)
    assert energies[0] >= 0.5
    assert list(found[0]["features"]) == list(AUDIO_FEATURES)


def test_the_highest_value_comes_first(heard):
    everything = json.loads(call("tag", "--json").stdout)
    highest = max(everything, key=lambda record: record["features"]["energy"])
    assert rows(call("search", "--sort", "energy", "-n", "1"))[0][-1] == highest["path"]


def test_less_likely_tracks_are_counted_in_any_order(heard):
    done = call("search", "rock", "--sort", "valence", "-n", "100")
    assert "less likely tracks not shown" in done.stderr


def test_an_order_that_does_not_exist(heard):
    with pytest.raises(DataError, match="energy"):
        run("search", "rock", "--sort", "enrgy")


def test_audio_features_that_were_searched_for_are_columns(heard, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    done = call("search", "energy:0.9..")
    heading, first, *_ = Text.from_ansi(done.stdout).plain.splitlines()
    assert heading.split() == ["Energy", "Probability", "Track", "File"]
    assert float(first.split()[0]) >= 0.9


def test_the_tags_of_the_library_for_programs(place):
    table = list(csv.DictReader(io.StringIO(call("tag", "--csv").stdout)))
    records = json.loads(call("tag", "--json").stdout)
    assert len(records) == 60
    assert len(table) == sum(len(record["tags"]) for record in records)
    assert table[0]["path"] == records[0]["path"]


def test_how_many_tracks_are_new(place):
    assert "No new tracks tagged by model 1; 60 in all" in call("tag").stdout
    assert "60 tracks tagged" in call("tag", "--again").stdout


def test_tracks_that_cannot_be_tagged(place):
    with Library.open(place) as library:
        library.tracks.set_state([1, 2], "missing")
        library.tracks.put([Track("/music/new.mp3", "a new sound")])
    assert len(json.loads(call("tag", "--json").stdout)) == 58
    shown = call("tag").stdout
    assert "58 in all" in shown
    assert "1 track without features" in shown


@pytest.mark.parametrize(
    ("extractor", "words"),
    [
        (extractor_key("paper"), "song.wav"),
        ("paper@older", "features differ from those that 'paper' gives now"),
    ],
)
def test_files_that_cannot_be_tagged(place, tmp_path, extractor, words):
    with Library.open(place) as library:
        current = library.models.current()
        library.models.add(dataclasses.replace(current, extractor=extractor))
    (tmp_path / "song.wav").write_bytes(b"no music")
    done = run_main("tag", tmp_path / "song.wav")
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())


def test_doctor_has_an_exit_code_for_missing_files(place):
    call("doctor")
    with Library.open(place) as library:
        library.tracks.set_state([4], "missing")
    assert rows(call("doctor", code=1))[0] == ["missing", "/music/003.ogg"]
    health = json.loads(call("doctor", "--json", code=1).stdout)
    assert health["missing"] == ["/music/003.ogg"]


def test_doctor_shows_a_few(place, monkeypatch):
    with Library.open(place) as library:
        library.tracks.set_state(range(1, 6), "missing")
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = call("doctor", "--limit", "2", code=1).stdout
    assert "Missing files: 5" in shown
    assert "and 3 more" in shown


@pytest.mark.parametrize(
    "arguments",
    [("search", "rock"), ("tag", "#1"), ("tag",), ("suggest", "rock"), ("doctor",), ("train",)],
)
def test_without_a_library_the_way_to_one_is_said(tmp_path, arguments):
    with pytest.raises(LibraryError, match="`harmonium index FOLDER`"):
        call(*arguments, "-L", str(tmp_path / "none.db"))


def test_without_a_model_the_library_cannot_be_tagged(empty):
    with Library.open(empty) as library:
        small_library.fill(library, 20)
    with pytest.raises(LibraryError, match="harmonium train"):
        call("tag", "-L", empty)


def test_without_a_model_the_built_in_one_answers(empty):
    with Library.open(empty) as library:
        small_library.fill(library, 20)
    more = [row[0] for row in rows(call("related", "metal", "-L", empty, "-n", "8"))]
    assert "heavy metal" in more[:8]
    assert len(rows(call("suggest", "rap", "-L", empty))) == 10


@pytest.mark.parametrize(
    ("in_use", "said"), [(1, "Model 1 stays in use"), (2, "The first model (2) is in use")]
)
def test_a_training_that_is_stopped_says_which_model_there_is(empty, monkeypatch, in_use, said):
    model = small_library.quick_model()
    with Library.open(empty) as library:
        library.models.add(model)

    def train(library, options, progress, first, **where):
        first(dataclasses.replace(model, id=library.models.add(model, use=in_use == 2)))
        raise KeyboardInterrupt

    monkeypatch.setattr(train_module, "train", train)
    assert said in call("train", "-L", empty, code=130).stderr


ROCK = TagReport(
    tag="rock",
    examples=20,
    auc=0.9,
    error=0.05,
    learnt=True,
    threshold=0.4,
    precision=0.6,
    write_from=0.7,
)
ODD = TagReport(tag="odd", examples=5, auc=0.55, error=0.1)


@pytest.fixture
def training(monkeypatch):
    """Lets `train` return the quick model with other values; gives the options of each call."""

    def prepare(**values):
        model = dataclasses.replace(small_library.quick_model(), id=1, **values)
        seen = []

        def train(library, options, progress, first, **where):
            report = dataclasses.replace(model.report, mean_auc=None, seconds=1.0)
            first(dataclasses.replace(model, report=report))
            seen.append(options)
            return model

        monkeypatch.setattr(train_module, "train", train)
        return seen

    return prepare


def test_train_reports_the_tags(empty, training):
    training(report=ModelReport(tags=(ROCK, ODD)))
    assert rows(call("train", "-L", empty)) == [
        ["rock", "20", "0.90", "0.05", "0.40", "0.60", "0.70", ""],
        ["odd", "5", "0.55", "0.10", "", "", "", "not learnt"],
    ]


def test_train_passes_its_options_on(empty, training):
    seen = training(report=ModelReport(tags=(ROCK, ODD)))
    call("train", "-L", empty, "--min-examples", "7", "--no-smooth")
    assert (seen[0].min_examples, seen[0].smooth) == (7, False)


def test_train_reports_the_tags_as_json(empty, training):
    report = ModelReport(tags=(ROCK, ODD))
    training(report=report)
    printed = json.loads(call("train", "-L", empty, "--json").stdout)
    assert printed["tags"] == report["tags"]


def test_train_says_what_to_do_if_nothing_was_learnt(empty, training):
    thresholds = np.array([np.nan], np.float32)
    training(vocabulary=["odd"], thresholds=thresholds, report=ModelReport(tags=(ODD,)))
    done = call("train", "-L", empty, code=1)
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
            (["search", "rock", "-n", "30"], ["tagged", "Song", " %", "-n 150 shows more"]),
            (["tag", "#1", "--top", "5"], ["tagged", "Probability"]),
            (["tag", "#50", "--min-probability", "1"], ["--top 5 shows"]),
            (["suggest", "rock"], ["Usual"]),
            (["related", "rock"], ["Without"]),
        ],
    )
    def test_what_is_shown(self, place, arguments, words):
        shown = call(*arguments).stdout
        assert all(word in shown for word in words)

    def test_the_report_of_training_says_what_was_left_out(self, place, training):
        lacking = [
            ExcludedTag(tag=f"tag {i}", examples=1, missing=4, reason="4 more tracks with it")
            for i in range(21)
        ]
        report = ModelReport(
            tags=(ROCK, ODD),
            left_out=tuple(lacking),
            people=2,
            tracks=40,
            seconds=3.0,
            mean_auc=0.7,
            folds=5,
            grouped_by="artist",
            smoothing_tried=True,
        )
        training(report=report)
        done = call("train")
        shown = " ".join([*done.stdout.split(), *done.stderr.split()])
        for words in (
            "after 1 s: 1 of 23 tags.",  # that people gave; the built-in ones are not counted
            "1 of 23 tags learnt from 40 tracks tagged by 2 people",
            "not learnt",
            "21 tags skipped",
            "tag 0: 4 more tracks with it",
            "tags as given",
        ):
            assert words in shown
