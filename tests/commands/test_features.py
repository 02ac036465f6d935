"""`harmonium features`: tables, messages, exit codes, interruptions."""

import json
import sqlite3
import time
from contextlib import closing

import numpy as np
import polars as pl
import pytest
import soundfile
from command_line import run_main
from odd_extractors import kept_in_cache
from processes_in_tests import PATIENCE, end, start
from sound_files import RATE, music

from harmonium.audio import extraction, features_of_file

COMMAND = ("-c", "from harmonium.cli import main; main()", "features")


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch):
    monkeypatch.setenv("HARMONIUM_CACHE", str(tmp_path / "default cache"))
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(scope="module")
def songs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("songs")
    for i, name in enumerate(("a.wav", "b.flac", "deep/er/c.ogg")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(folder / name, music(1.5, seed=i), RATE)
    (folder / "cover.jpg").touch()
    return folder


def run(*arguments):
    return run_main("features", "--engine", "serial", *arguments)


class TestTables:
    def test_all_files_of_a_folder(self, songs, tmp_path):
        result = run(songs, "-o", tmp_path / "f.parquet", "-j", "2", "--engine", "processes")
        assert (result.exit_code, result.stderr) == (0, "")
        line = f"3 files, 389 features each: {tmp_path / 'f.parquet'}; "
        assert result.stdout.startswith(line)
        assert result.stdout.count("\n") == 1
        frame = pl.read_parquet(tmp_path / "f.parquet")
        paths = [str(songs / name) for name in ("a.wav", "b.flac", "deep/er/c.ogg")]
        assert frame["path"].to_list() == paths
        X = np.stack([features_of_file(path) for path in paths])
        assert frame.drop("path").to_numpy().tobytes("C") == X.tobytes()

    def test_what_was_cached_is_reported(self, songs, tmp_path):
        assert "from the cache" not in run(songs, "-o", tmp_path / "f.csv").stdout
        assert "; 3 from the cache; " in run(songs, "-o", tmp_path / "f.csv").stdout

    def test_without_a_cache(self, songs, tmp_path):
        run(songs, "-o", tmp_path / "f.csv")
        again = run(songs, "-o", tmp_path / "f.csv", "--no-cache")
        assert "from the cache" not in again.stdout

    def test_a_cache_in_another_folder(self, songs, tmp_path):
        run(songs, "-o", tmp_path / "f.csv", "--cache", tmp_path / "mine")
        assert (tmp_path / "mine" / "features.sqlite").exists()

    def test_another_window_of_another_extractor(self, songs, tmp_path):
        options = ["-e", "timbre", "--seconds", "1.1", "--start", "0.2"]
        run(songs / "a.wav", "-o", tmp_path / "f.npz", *options)
        with np.load(tmp_path / "f.npz") as data:
            assert data["X"].shape == (1, 189)
            assert not np.array_equal(data["X"][0], features_of_file(songs / "a.wav", "timbre"))


class TestFailures:
    def test_some_files(self, songs, tmp_path):
        bad = tmp_path / "bad"
        bad.mkdir()
        (bad / "empty.wav").touch()
        (bad / "two\nlines \x1b[31m.mp3").write_text("text")
        result = run(songs, bad, "-o", tmp_path / "f.csv", "--failures", tmp_path / "bad.csv")
        assert result.exit_code == 1
        assert "3 files, " in result.stdout
        assert "; 2 could not be read; " in result.stdout
        lines = result.stderr.splitlines()
        assert lines[0] == f"{bad / 'empty.wav'}: is empty."
        assert lines[1].startswith(rf"{bad}/two\nlines \x1b[31m.mp3: cannot be decoded: ")
        assert len(lines) == 2
        assert len(pl.read_csv(tmp_path / "f.csv")) == 3
        table = pl.read_csv(tmp_path / "bad.csv")
        assert table.columns == ["path", "reason"]
        assert table["path"].to_list()[1] == str(bad / "two\nlines \x1b[31m.mp3")

    @pytest.mark.parametrize(
        ("path", "message"), [("none.wav", "None of the files"), (".", "No music files")]
    )
    def test_nothing_that_can_be_read(self, tmp_path, path, message):
        result = run(tmp_path / path, "-o", tmp_path / "f.csv")
        assert result.exit_code == 2
        assert f"Error: {message}" in result.stderr
        assert not (tmp_path / "f.csv").exists()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["-o", "f.xls"], "'f.xls' must end in .parquet"),
            (["-o", "none/f.csv"], "there is no folder 'none'"),
            (["-o", "f.csv", "--seconds", "0"], "'seconds' must be a positive number, got 0.0"),
            (["-o", "f.csv", "--time-limit", "0"], "'time_limit' must be positive seconds"),
            (["-o", "f.csv", "-j", "0"], "Invalid value for '--jobs' / '-j'"),
            (["-o", "f.csv", "--failures", "none/f.csv"], "there is no folder 'none'"),
            ([], "Missing option '--output' / '-o'"),
        ],
    )
    def test_wrong_settings(self, songs, tmp_path, monkeypatch, arguments, message):
        monkeypatch.chdir(tmp_path)
        result = run(songs, *arguments)
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())
        assert not list(tmp_path.glob("f.*"))


class TestInterruptions:
    @pytest.mark.long
    def test_kill_9_at_several_moments(self, tmp_path):
        many = tmp_path / "many"  # enough that a run is under way for a while
        many.mkdir()
        for i in range(40):
            soundfile.write(many / f"{i:02d}.flac", music(1.2, seed=i), RATE)
        assert run(many, "-o", tmp_path / "undisturbed.csv", "--no-cache").exit_code == 0
        arguments = (*COMMAND, many, "-o", tmp_path / "f.csv", "-j", 2, "--cache", tmp_path)
        for n_kept in (0, 5, 25):
            process = start(*arguments)
            try:
                while kept_in_cache(tmp_path) < n_kept and process.poll() is None:
                    time.sleep(0.02)
            finally:
                end(process)
            if (tmp_path / "features.sqlite").exists():
                with closing(sqlite3.connect(tmp_path / "features.sqlite", PATIENCE)) as cache:
                    assert cache.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        left = set(tmp_path.glob(".f.csv*"))  # by a process that was killed as it wrote the table
        process = start(*arguments)
        output, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, errors) == (0, "")
        assert int(output.split(" from the cache")[0].split()[-1]) >= 5
        assert (tmp_path / "f.csv").read_bytes() == (tmp_path / "undisturbed.csv").read_bytes()
        assert set(tmp_path.glob(".f.csv*")) == left

    def test_ctrl_c_in_this_process(self, songs, tmp_path, monkeypatch):
        def interrupted(*arguments, progress, **options):
            progress(2, 3)
            raise KeyboardInterrupt

        monkeypatch.setattr(extraction, "extract_files", interrupted)
        result = run(songs, "-o", tmp_path / "f.csv", "--cache", tmp_path)
        assert result.exit_code == 130
        assert f"Stopped after 2 of 3 files. They are kept in {tmp_path};" in result.stderr
        result = run(songs, "-o", tmp_path / "f.csv", "--no-cache")
        assert "Stopped after 2 of 3 files. Nothing was kept" in result.stderr


def test_the_list_of_extractors():
    listed = json.loads(run_main("extractor", "list", "--json").stdout)
    records = {record["name"]: record for record in listed}
    assert (records["musicnn"]["features"], records["musicnn"]["heads"]) == (400, 100)
    assert records["musicnn"]["auc"] > records["paper"]["auc"] > 0.6
    assert records["musicnn"]["milliseconds"] > 0
