"""`harmonium features`: tables, messages, exit codes, interruptions."""

import os
import re
import signal
import sqlite3

import numpy as np
import polars as pl
import pytest
import soundfile
from command_line import run_main
from odd_extractors import WAITS, kept_in_cache, package_of_extractor, write_levels
from processes_in_tests import PATIENCE, end, start, wait_until
from sound_files import RATE, music

from harmonium.audio import features_of_file

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
        result = run(songs, "-o", tmp_path / "f.parquet")
        assert result.exit_code == 0
        assert result.stderr == ""
        line = f"3 files, 389 features each: {tmp_path / 'f.parquet'}; "
        assert result.stdout.startswith(line)
        assert result.stdout.count("\n") == 1
        frame = pl.read_parquet(tmp_path / "f.parquet")
        paths = [str(songs / name) for name in ("a.wav", "b.flac", "deep/er/c.ogg")]
        assert frame["path"].to_list() == paths
        X = np.stack([features_of_file(path) for path in paths])
        assert frame.drop("path").to_numpy().tobytes("C") == X.tobytes()

    def test_what_was_cached_is_said_unless_there_is_no_cache(self, songs, tmp_path):
        for options, said in (([], False), ([], True), (["--no-cache"], False)):
            result = run(songs, "-o", tmp_path / "f.csv", *options)
            assert ("; 3 from the cache; " in result.stdout) == said
        run(songs, "-o", tmp_path / "f.csv", "--cache", tmp_path / "mine")
        assert (tmp_path / "mine" / "features.sqlite").exists()

    def test_extractor_and_window(self, songs, tmp_path):
        options = ["-e", "timbre", "--seconds", "1.1", "--start", "0.2"]
        run(songs / "a.wav", "-o", tmp_path / "f.npz", *options)
        with np.load(tmp_path / "f.npz") as data:
            assert data["X"].shape == (1, 189)
            assert not np.array_equal(data["X"][0], features_of_file(songs / "a.wav", "timbre"))

    def test_processes(self, songs, tmp_path):
        done = run(songs, "-o", tmp_path / "p.csv", "-j", "2", "--engine", "processes")
        assert done.exit_code == 0
        run(songs, "-o", tmp_path / "s.csv", "--no-cache")
        assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "s.csv").read_bytes()


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

    def test_on_a_terminal_some_are_listed(self, tmp_path, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        paths = [tmp_path / f"{i}.wav" for i in range(40)]
        shown = re.sub(r"\x1b\[[0-9;]*m", "", run(*paths, "-o", tmp_path / "f.csv").stderr)
        assert "and 10 more; --failures FILE writes all of them" in shown
        assert "No such file" in shown

    def test_no_file_that_can_be_read_and_no_file(self, tmp_path):
        for path, word in (
            (tmp_path / "none.wav", "None of the files"),
            (tmp_path, "No music files"),
        ):
            result = run(path, "-o", tmp_path / "f.csv")
            assert result.exit_code == 2
            assert f"Error: {word}" in result.stderr
        assert not (tmp_path / "f.csv").exists()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["-o", "f.xls"], "must end in .parquet, .csv, .npz, got 'f.xls'"),
            (["-o", "none/f.csv"], "there is no folder 'none'"),
            (["-o", "f.csv", "-e", "papre"], "There is no extractor 'papre'"),
            (["-o", "f.csv", "--seconds", "0"], "'seconds' must be a positive number, got 0.0"),
            (["-o", "f.csv", "--start", "-1"], "Invalid value for '--start'"),
            (["-o", "f.csv", "--time-limit", "0"], "'time_limit' must be positive seconds"),
            (["-o", "f.csv", "-j", "0"], "Invalid value for '--jobs' / '-j'"),
            (["-o", "f.csv", "--failures", "none/f.csv"], "there is no folder 'none'"),
            ([], "Missing option '--output' / '-o'"),
            (["-o", "f.csv", "--engine", "threads"], "'engine' must be 'processes', 'serial'"),
        ],
    )
    def test_wrong_settings(self, songs, tmp_path, monkeypatch, arguments, message):
        monkeypatch.chdir(tmp_path)
        result = run(songs, *arguments)
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())
        assert not list(tmp_path.glob("f.*"))


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Enough files that a run is under way for a while."""
    folder = tmp_path_factory.mktemp("many")
    for i in range(40):
        soundfile.write(folder / f"{i:02d}.flac", music(1.2, seed=i), RATE)
    return folder


@pytest.fixture(scope="module")
def undisturbed(many, tmp_path_factory):
    file = tmp_path_factory.mktemp("undisturbed") / "f.csv"
    assert run(many, "-o", file, "--no-cache").exit_code == 0
    return file.read_bytes()


class TestInterruptions:
    @pytest.mark.long
    def test_kill_9_at_several_moments(self, many, undisturbed, tmp_path):
        arguments = (*COMMAND, many, "-o", tmp_path / "f.csv", "-j", 2, "--cache", tmp_path)
        for n_kept in (0, 5, 25):
            process = start(*arguments)
            try:
                wait_until(
                    lambda n=n_kept, p=process: (
                        kept_in_cache(tmp_path) >= n or p.poll() is not None
                    ),
                    f"{n_kept} files in the cache",
                )
            finally:
                end(process)
            if (tmp_path / "features.sqlite").exists():
                assert _is_whole(tmp_path / "features.sqlite")
        left = set(tmp_path.glob(".f.csv*"))  # by a process that was killed as it wrote the table
        process = start(*arguments)
        output, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, errors) == (0, "")
        assert int(output.split(" from the cache")[0].split()[-1]) >= 5
        assert (tmp_path / "f.csv").read_bytes() == undisturbed
        assert set(tmp_path.glob(".f.csv*")) == left

    def test_ctrl_c_says_how_to_go_on(self, tmp_path):
        """By the extractor of another package, under which one file waits for a gate."""
        paths = write_levels(tmp_path / "files", [0.1, 0.2, WAITS, 0.3, 0.35])
        arguments = (*COMMAND, *paths, "-e", "gated", "-j", 2, "-o", tmp_path / "f.csv")
        surroundings = {
            "packages": [package_of_extractor(tmp_path / "package")],
            "env": {"ODD_GATE": str(tmp_path / "gate")},
        }
        process = start(*arguments, "--cache", tmp_path, **surroundings)
        try:
            wait_until(lambda: kept_in_cache(tmp_path) == 4, "all files but one")
            os.killpg(process.pid, signal.SIGINT)
            output, errors = process.communicate(timeout=PATIENCE)
        finally:
            end(process)
        assert (process.returncode, output) == (130, "")
        said, kept = errors.split(". ", 1)
        # A file is in the cache a moment before it is counted.
        assert said in ("Stopped after 3 of 5 files", "Stopped after 4 of 5 files")
        assert kept == f"They are kept in {tmp_path}; the same command continues.\n"
        (tmp_path / "gate").touch()
        tables = []
        for options in (["--cache", tmp_path], ["--no-cache"]):
            process = start(*arguments, *options, **surroundings)
            output, errors = process.communicate(timeout=PATIENCE)
            assert (process.returncode, errors) == (0, "")
            assert ("; 4 from the cache" in output) == (options[0] == "--cache")
            tables.append((tmp_path / "f.csv").read_bytes())
        assert tables[0] == tables[1]

    def test_ctrl_c_in_this_process(self, songs, tmp_path, monkeypatch):
        from harmonium.audio import extraction

        def interrupted(*arguments, progress, **options):
            progress(2, 3)
            raise KeyboardInterrupt

        monkeypatch.setattr(extraction, "extract_files", interrupted)
        result = run(songs, "-o", tmp_path / "f.csv", "--cache", tmp_path)
        assert result.exit_code == 130
        assert f"Stopped after 2 of 3 files. They are kept in {tmp_path};" in result.stderr
        result = run(songs, "-o", tmp_path / "f.csv", "--no-cache")
        assert "Stopped after 2 of 3 files. Nothing was kept" in result.stderr


def _is_whole(file):
    database = sqlite3.connect(file, timeout=PATIENCE)
    try:
        return database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        database.close()
