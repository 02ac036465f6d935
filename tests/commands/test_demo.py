"""The README's first command, small: every step of it, and the files it leaves."""

import re
import subprocess
import sys
from contextlib import chdir

import pytest
from command_line import SAYS_WHAT_IS_LOADED
from heard_library import trained_quickly
from typer.testing import CliRunner

from harmonium import demo as steps
from harmonium.cli import app
from harmonium.commands.demo import MIN_TRACKS
from harmonium.library import Library
from harmonium.library.index import index
from harmonium.library.learning.labels import MIN_TRACKS as MIN_TAGGED

N_TRACKS = MIN_TRACKS


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The smallest demo, beside the folder where it is called; its training is shortened."""
    top = tmp_path_factory.mktemp("top")
    (top / "work").mkdir()
    arguments = ["demo", "../demo", "--tracks", str(N_TRACKS), "--jobs", "1"]
    with chdir(top / "work"), trained_quickly(n_hidden=20):
        return top / "demo", CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_the_demo_tells_what_it_does(demo):
    _, result = demo
    assert result.exit_code == 0
    said = " ".join(result.output.split())
    for words in (
        "40 tracks of 10 seconds",
        "40 new tracks in the library",
        "3 people gave",
        "to 20 of the tracks",
        "40 tracks have a probability",
        "Mean AUC",
        *("harmonium index ../demo/audio", "harmonium import ../demo/tags.csv"),
        *("harmonium train", "harmonium tag", "harmonium search"),
        "harmonium serve --library ../demo/library.db",
    ):
        assert words in said
    end = result.output.partition("with your own music:")[2]
    assert re.findall(r"^  harmonium (\w+)", end, re.M) == ["index", "import", "train"]


def test_tagging_a_file_of_it_does_not_wait_for_jax(demo):
    """The cold start of `harmonium tag FILE` is short, since a few tracks need no compiler."""
    folder, _ = demo
    song = next(iter(sorted(folder.rglob("*.wav"))))
    arguments = ["tag", str(song), "--library", str(folder / "library.db"), "--json"]
    command = [sys.executable, "-c", SAYS_WHAT_IS_LOADED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert str(song) in done.stdout
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert {"jax", "sklearn", "matplotlib", "beets"}.isdisjoint(loaded)
    assert "harmonium.connect" not in done.stderr.split()


def test_a_second_run_takes_up_the_first(demo):
    folder, _ = demo
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.wav")}
    music = steps.make_music(folder, N_TRACKS, seed=0, jobs=1, progress=lambda *_: None)
    with Library.open(folder / "library.db") as library:
        assert all(track.title and track.artist for track in library.tracks.all())
        report = index(library, [folder / "audio"], jobs=1)
        again = steps.import_tags(library, music)
    assert (report.new, report.changed, report.extracted, again.n_added) == ([], [], 0, 0)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.wav")} == before


class TestFewestTracks:
    @pytest.mark.parametrize("seed", range(5))
    def test_people_tag_all_of_their_half(self, seed):
        assert MIN_TRACKS // 2 == MIN_TAGGED  # as many as training needs
        music = steps.draw_music(".", MIN_TRACKS, seed=seed)
        assert steps.given_tags(music)["item"].n_unique() == MIN_TAGGED
