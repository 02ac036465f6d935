"""The README's first command, small: every step of it, and the files it leaves."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from harmonium.cli import app
from harmonium.collection import Library
from harmonium.demo import story
from harmonium.demo.page import Card, Guess, Results, TagScore, render_page, spectrogram_png
from harmonium.errors import DataError

N_TRACKS = 60


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    arguments = ["demo", str(folder), "--tracks", str(N_TRACKS), "--jobs", "1"]
    return folder, CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_the_demo_tells_what_it_does(demo):
    folder, result = demo
    assert result.exit_code == 0
    said = " ".join(result.output.split())
    for words in (
        "60 tracks of 10 seconds",
        "60 new tracks in the library",
        "3 people gave",
        "to 30 of the tracks",
        "60 tracks have a probability",
        "Mean AUC",
        str(folder / "results.html"),
    ):
        assert words in said


def test_every_step_says_its_command(demo):
    said = " ".join(demo[1].output.split())
    for command in ("index", "import", "train", "tag", "search"):
        assert f"harmonium {command}" in said


def test_it_ends_with_three_commands_for_one_s_own_music(demo):
    end = demo[1].output.partition("with your own music:")[2]
    assert re.findall(r"^  harmonium (\w+)", end, re.M) == ["index", "import", "train"]


def test_the_library_is_as_the_commands_make_it(demo):
    with Library.open(demo[0] / "library.db", create=False) as library:
        assert library.tracks.count("present") == N_TRACKS
        assert all(track.title and track.artist for track in library.tracks.all())
        assert len(library.opinions.people()) == 3
        assert library.opinions.triples()["track_id"].n_unique() == N_TRACKS // 2
        model = library.models.current()
        assert library.predictions.count(model.id) == N_TRACKS


def test_tagging_a_file_of_it_does_not_wait_for_jax(demo):
    """The cold start of `harmonium tag FILE` is short, since a few tracks need no compiler."""
    folder, _ = demo
    code = (
        "import sys, harmonium.cli\n"
        "try: harmonium.cli.main()\n"
        "finally: sys.stderr.write(' '.join(sys.modules))"
    )
    song = next(iter(sorted(folder.rglob("*.wav"))))
    arguments = ["tag", str(song), "--library", str(folder / "library.db"), "--json"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(song) in done.stdout
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert {"jax", "sklearn", "alembic", "matplotlib"}.isdisjoint(loaded)


def test_people_tag_only_their_half(demo):
    said = pl.read_csv(demo[0] / "tags.csv")
    assert said.columns == ["user", "item", "tag"]
    assert said["item"].n_unique() == N_TRACKS // 2
    assert said["user"].n_unique() == 3


def test_the_page_shows_and_plays_tracks_that_nobody_tagged(demo):
    folder, _ = demo
    page = Elements((folder / "results.html").read_text(encoding="utf-8"))
    sounds = [unquote(element["src"]) for element in page.of("audio")]
    assert len(sounds) == 24
    assert all((folder / sound).is_file() for sound in sounds)
    tagged = set(pl.read_csv(folder / "tags.csv")["item"])
    assert tagged.isdisjoint(sounds)
    assert len(page.of("img")) == len(sounds)


def test_a_second_run_takes_up_the_first(demo):
    folder, _ = demo
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.wav")}
    music = story.make_music(folder, N_TRACKS, seed=0, jobs=1, progress=ignore)
    with Library.open(folder / "library.db") as library:
        report = story.index_music(library, music, jobs=1, progress=ignore)
        again = story.import_tags(library, music)
    assert (report.new, report.changed, report.heard, again.n_added) == ([], [], 0, 0)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.wav")} == before


def ignore(done, total):
    """No progress is shown."""


def test_too_small_a_collection_says_what_is_needed(tmp_path):
    with pytest.raises(DataError, match="track"):
        CliRunner().invoke(
            app, ["demo", str(tmp_path), "--tracks", "20", "--jobs", "1"], catch_exceptions=False
        )


class TestPage:
    def test_nothing_in_names_acts_on_the_page(self):
        page = render_page(_results(name="<b>&\"'"))
        assert "<b>&" not in page
        elements = Elements(page)
        assert "b>&" in "".join(elements.texts)

    def test_the_probabilities_are_there_for_the_script(self):
        (card,) = Elements(render_page(_results())).of("article")
        assert card["data-tags"] == '{"rock": 0.75, "calm": 0.25}'

    def test_paths_are_quoted(self):
        (audio,) = Elements(render_page(_results())).of("audio")
        assert audio["src"] == "audio/An%20artist%23/50%25.wav"

    def test_it_loads_nothing_from_elsewhere(self):
        assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", render_page(_results()))

    def test_a_picture_of_a_sound(self):
        rng = np.random.default_rng(0)
        picture = spectrogram_png(rng.normal(size=220_500).astype(np.float32) / 10)
        assert picture.startswith(b"\x89PNG")
        width, height = (int.from_bytes(picture[i : i + 4]) for i in (16, 20))
        assert 300 < width < 600
        assert height == 40


def _results(name="rock"):
    guesses = [Guess(name, 0.75, True), Guess("calm", 0.25, False)]
    card = Card("A title", "An artist", "audio/An artist#/50%.wav", b"", guesses)
    return Results(
        facts={"tracks": "1"},
        scores=[TagScore(name, 3, 0.9)],
        query="rock",
        hits=[(name, 0.9)],
        cards=[card],
        next_steps=[("harmonium index", name)],
    )


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its texts."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.texts = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    def of(self, tag):
        return [attributes for name, attributes in self.found if name == tag]
