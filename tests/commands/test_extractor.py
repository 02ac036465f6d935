"""`harmonium extractor`, and which extractor `harmonium index` takes."""

import errno
import hashlib
import io
import json
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing

import numpy as np
import pytest
from command_line import run, run_main
from processes_in_tests import PATIENCE, end, start, wait_until
from safetensors.numpy import save
from sound_files import timed_noise, write_sndfile
from tiny_musicnn import random_tensors, write_checkpoint, write_tiny_weights

from harmonium.audio import musicnn as weights
from harmonium.audio import musicnn_fetch as fetch
from harmonium.audio.extractors import get_extractor
from harmonium.audio.musicnn_network import Network
from harmonium.commands import features as command
from harmonium.errors import DataError, ModelFileError
from harmonium.library import Library
from harmonium.library.store.schema import EXTRACTOR


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A wheel like musicnn's, with small networks; its digest is the one expected."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as files:
        for seed, name in enumerate(("MSD", "MTT")):
            index, numbers = write_checkpoint(random_tensors(seed))
            files.writestr(f"musicnn/{name}_musicnn/.index", index)
            files.writestr(f"musicnn/{name}_musicnn/.data-00000-of-00001", numbers)
        files.writestr("musicnn-0.1.0.dist-info/LICENSE.md", "as you like")
    monkeypatch.setattr(fetch, "SHA256", hashlib.sha256(data.getvalue()).hexdigest())
    path = tmp_path / "musicnn.whl"
    path.write_bytes(data.getvalue())
    return path


@pytest.fixture
def music(tmp_path):
    folder = tmp_path / "music"
    folder.mkdir()
    for k in range(2):
        write_sndfile(folder / f"{k}.wav", timed_noise(4, 8_000, seed=k), 8_000)
    return folder


@pytest.fixture
def index(tmp_path, monkeypatch, data_home):
    monkeypatch.setenv("HARMONIUM_LIBRARY", str(tmp_path / "library.db"))
    monkeypatch.setenv("HARMONIUM_CACHE", str(tmp_path / "cache"))
    return lambda *arguments: run_main("index", *arguments, "--engine", "serial")


def one_line(text):
    """What a console has broken into lines."""
    return " ".join(text.split())


def used(tmp_path):
    """The extractor that the library was indexed with."""
    with Library.open(str(tmp_path / "library.db")) as library:
        return library.settings.get(EXTRACTOR).partition("@")[0]


# Fetching


def test_the_weights_are_taken_out_of_the_wheel(wheel, data_home):
    done = run("extractor", "download", "musicnn", "--wheel", wheel)
    assert str(weights.weights_file()) in done.stdout
    assert "ISC licence" in done.stdout
    assert "Cite: Pons, Serra" in done.stdout
    assert weights.weights_file().is_relative_to(data_home)
    patch = np.ones((187, 96), np.float32)
    direct = Network(random_tensors(1))(patch)
    np.testing.assert_array_equal(weights.load_networks()[1](patch)[0], direct[0])
    assert "already installed" in run("extractor", "download", "musicnn").stdout


@pytest.fixture
def pip_is_there(monkeypatch):
    """As in most environments, but not in those that uv makes."""
    monkeypatch.setattr(fetch, "find_spec", lambda name: "pip")


@pytest.mark.usefixtures("pip_is_there")
def test_pip_downloads_it_from_where_it_is_set_up_for(wheel, data_home, monkeypatch):
    lines = []

    def pip(command, **options):
        lines.append(command)
        folder = fetch.Path(command[-1])
        (folder / fetch.WHEEL).write_bytes(wheel.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(fetch.subprocess, "run", pip)
    run("extractor", "download", "musicnn")
    assert weights.is_installed()
    assert lines[0][:5] == [sys.executable, "-m", "pip", "download", "musicnn==0.1.0"]
    assert "--no-deps" in lines[0]
    assert not fetch.Path(lines[0][-1]).exists()  # nothing is left behind


@pytest.mark.usefixtures("pip_is_there")
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "WARNING: Retrying: NewConnectionError('...')\nERROR: No matching distribution found",
            r"pip could not download musicnn 0\.1\.0: the package registry cannot be reached\. "
            r".*--wheel FILE",
        ),
        (
            "ERROR: Could not install: [Errno 28] No space left on device",
            r"No space left on device\. .*--wheel FILE",
        ),
        ("", "it gives no reason"),
    ],
)
def test_pip_cannot_download_it(said, reason, data_home, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(fetch.subprocess, "run", lambda *command, **options: failed)
    with pytest.raises(DataError, match=reason):
        fetch.fetch_musicnn()
    done = run_main("extractor", "download", "musicnn")
    assert (done.exit_code, one_line(done.stderr).count("Error:")) == (2, 1)
    assert not weights.is_installed()


def test_there_is_no_pip(data_home, monkeypatch):
    monkeypatch.setattr(fetch, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"pip.* is not installed for .*ensurepip.*--wheel FILE"):
        fetch.fetch_musicnn()


def test_another_file_than_the_wheel(wheel, data_home, tmp_path):
    wheel.write_bytes(wheel.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"musicnn\.whl is not .*, or is damaged: its SHA-256 is"):
        fetch.fetch_musicnn(wheel)
    with pytest.raises(DataError, match="No such file"):
        fetch.fetch_musicnn(tmp_path / "nowhere.whl")
    with pytest.raises(DataError, match="Only musicnn"):
        run("extractor", "download", "vgg")


def test_no_disk_space(wheel, data_home, monkeypatch):
    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(weights, "write_atomically", full)
    with pytest.raises(DataError, match=r"could not be kept: No space left .* need 30 MB"):
        fetch.fetch_musicnn(wheel)
    assert not weights.is_installed()


# Weights that cannot be used


def damage(kind):
    write_tiny_weights()
    file = weights.weights_file()
    data = bytearray(file.read_bytes())
    if kind == "truncated":
        data = data[:-100]
    elif kind == "another file":
        data = bytearray(b"RIFF" + bytes(1000))
    elif kind == "another model":
        data = bytearray(save({"a": np.ones(3, np.float32)}))
    else:
        data[-5] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("kind", ["truncated", "damaged", "another file", "another model"])
def test_weights_that_cannot_be_used_and_the_old_features_work(kind, index, music, tmp_path):
    damage(kind)
    with pytest.raises(ModelFileError, match=r"cannot be used \(.* gets them again"):
        weights.load_networks()
    done = index(music)
    assert (done.exit_code, one_line(done.stderr).count("Error:")) == (2, 1)
    assert "`harmonium extractor download musicnn` gets them again" in one_line(done.stderr)
    assert index(music, "--extractor", "timbre").exit_code == 0
    assert used(tmp_path) == "timbre"


def test_damaged_weights_are_fetched_again(wheel, data_home):
    damage("truncated")
    run("extractor", "download", "musicnn", "--wheel", wheel)
    assert len(weights.load_networks()) == 2


# Which extractor a library is indexed with


def test_without_the_weights_one_line_says_what_is_missing(index, music, tmp_path):
    done = index(music, "--json")
    assert done.exit_code == 0
    assert done.stderr.count("\n") == 1
    assert "`harmonium extractor download musicnn`" in done.stderr
    assert used(tmp_path) == "paper*3"
    assert index("--json").stderr == ""  # said once


def test_a_new_library_is_indexed_with_musicnn_if_it_is_there(index, music, tmp_path):
    write_tiny_weights()
    done = index(music, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert used(tmp_path) == "musicnn"
    with Library.open(str(tmp_path / "library.db")) as library:
        assert library.tracks.features(library.tracks.ids(), extractor="musicnn")[1].shape[1] == 400


def test_a_library_keeps_its_extractor_until_another_is_named(index, music, tmp_path):
    index(music, "--extractor", "timbre")
    write_tiny_weights()
    done = index("--json")
    assert "keeps the features of timbre" in done.stderr
    assert used(tmp_path) == "timbre"
    index("--extractor", "musicnn")
    assert used(tmp_path) == "musicnn"
    assert index("--json").stderr == ""
    assert used(tmp_path) == "musicnn"


def test_windows_are_as_many_as_before_unless_others_are_named(index, music, tmp_path):
    index(music, "--windows", "1")
    assert used(tmp_path) == "paper"
    done = index("--json")
    assert "`harmonium index --windows 3`" in done.stderr
    assert used(tmp_path) == "paper"
    assert index("--windows", "3", "--json").stderr == ""
    assert used(tmp_path) == "paper*3"
    assert index("--json").stderr == ""
    assert used(tmp_path) == "paper*3"
    write_tiny_weights()
    assert "chooses its windows itself" in index("-e", "musicnn", "--windows", "3").stderr


@pytest.fixture
def at_a_terminal(monkeypatch):
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)


@pytest.mark.usefixtures("at_a_terminal")
def test_at_a_terminal_it_asks_once(index, music, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(command.typer, "confirm", lambda *a, **o: bool(asked.append(a)))
    assert index(music).exit_code == 0
    assert used(tmp_path) == "paper*3"
    (tmp_path / "library.db").unlink()
    index(music)
    assert len(asked) == 1


@pytest.mark.usefixtures("at_a_terminal")
def test_yes_at_a_terminal_fetches_it(index, music, tmp_path, monkeypatch):
    monkeypatch.setattr(command.typer, "confirm", lambda *a, **o: True)
    monkeypatch.setattr(fetch, "fetch_musicnn", lambda wheel: write_tiny_weights())
    assert index(music).exit_code == 0
    assert used(tmp_path) == "musicnn"


@pytest.mark.usefixtures("at_a_terminal")
def test_yes_without_a_network_goes_on_with_the_paper(index, music, tmp_path, monkeypatch):
    def fail(wheel):
        raise DataError("The registry cannot be reached.")

    monkeypatch.setattr(command.typer, "confirm", lambda *a, **o: True)
    monkeypatch.setattr(fetch, "fetch_musicnn", fail)
    done = index(music)
    assert done.exit_code == 0
    assert "cannot be reached. Using the paper's features." in done.stderr
    assert used(tmp_path) == "paper*3"


# Listing


def test_the_list_says_how_good_how_fast_and_whether_it_is_there(data_home):
    records = {one["name"]: one for one in json.loads(run("extractor", "list", "--json").stdout)}
    assert records["paper"]["features"] == 389
    assert records["musicnn"]["features"] == 400
    assert records["musicnn"]["heads"] == 100
    assert records["musicnn"]["auc"] > records["paper"]["auc"] > 0.6
    assert records["musicnn"]["milliseconds"] > 0
    assert "`harmonium extractor download musicnn`" in records["musicnn"]["missing"]
    write_tiny_weights()
    done = run("extractor", "list")
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("musicnn")]
    assert row.split("\t")[4] == "yes"


def test_seconds_are_not_for_windows_of_its_own(music, tmp_path):
    with pytest.raises(DataError, match="'musicnn' has windows of its own"):
        run("features", music, "-o", tmp_path / "a.csv", "-e", "musicnn", "--seconds", 5)


# Interruptions


@pytest.mark.long
def test_killed_and_resumed_it_has_the_features_of_an_undisturbed_run(index, tmp_path):
    write_tiny_weights()
    folder = tmp_path / "many"
    folder.mkdir()
    for k in range(8):
        write_sndfile(folder / f"{k}.wav", timed_noise(7, 8_000, seed=k), 8_000)
    command = ("-c", "from harmonium.cli import main; main()", "index", folder, "-j", 2)
    process = start(*command)
    try:
        wait_until(lambda: n_vectors(tmp_path) >= 3, "some files in the cache")
    finally:
        end(process)
    process = start(*command)
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    assert n_vectors(tmp_path) == 8
    extractor = get_extractor("musicnn")
    with Library.open(str(tmp_path / "library.db")) as library:
        tracks = list(library.tracks.all())
        ids = [track.id for track in tracks]
        X, heads = (
            library.tracks.features(ids, extractor="musicnn")[1],
            library.tracks.heads(ids, extractor="musicnn")[1],
        )
    assert len(tracks) == 8
    for track, x, p in zip(tracks, X, heads, strict=True):
        heard = extractor.hear_file(track.path)
        np.testing.assert_allclose(x, heard[:400], atol=1e-6)
        np.testing.assert_allclose(p, heard[400:], atol=1e-6)


def n_vectors(tmp_path):
    """How many files the cache has features of."""
    file = tmp_path / "cache" / "features.sqlite"
    if not file.exists():
        return 0
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        try:
            return database.execute("SELECT count(*) FROM vectors").fetchone()[0]
        except sqlite3.OperationalError:
            return 0
