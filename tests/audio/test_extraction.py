"""Features of many files: right, in order, from the cache, and whatever the files do."""

import os
import shutil
from dataclasses import replace

import numpy as np
import odd_extractors as odd
import polars as pl
import pytest
from odd_extractors import CRASHES, HANGS, Counting, write_level, write_levels
from processes_in_tests import wait_until

from harmonium.audio import cache as cache_module
from harmonium.audio import extraction
from harmonium.audio.cache import FeatureCache, file_status
from harmonium.audio.extraction import (
    Extraction,
    KnownFile,
    extract_files,
    iterate_files,
    write_features,
)
from harmonium.engine import EngineError
from harmonium.errors import DataError

ENGINES = ["processes", "serial"]
LEVELS = odd.extractor(odd.mean_level)


@pytest.fixture(autouse=True)
def stamps_count_at_once(monkeypatch):
    """Files made by tests are too new for their stamps to be trusted otherwise."""
    monkeypatch.setattr(cache_module, "SETTLED_NS", 0)


@pytest.fixture
def counted(tmp_path):
    """An extractor that counts its calls, and extracts with it in this process, with a cache."""

    def make(**options):
        function = Counting(**options)

        def extract(*paths, **more):
            settings = {"extractor": odd.extractor(function), "engine": "serial"} | more
            return extract_files(paths, cache=tmp_path / "cache", **settings)

        return function, extract

    return make


def reasons(done):
    return {failure.path: failure.reason for failure in done.failures}


class TestMatrix:
    def test_files_that_cannot_be_used(self, tmp_path):
        good = write_levels(tmp_path / "good", [0.1, 0.2])
        (tmp_path / "empty.wav").touch()
        paths = [tmp_path / "empty.wav", good[0], tmp_path / "none.wav", good[1]]
        done = extract_files(paths, extractor=LEVELS, jobs=2, cache=tmp_path / "cache")
        assert (done.rows.tolist(), done.n_cached) == ([1, 3], 0)
        assert done.features.shape == (2, 2)
        np.testing.assert_allclose(done.features[:, 0], [0.1, 0.2], atol=1e-4)
        assert reasons(done) == {
            str(paths[0]): "is empty.",
            str(paths[2]): "cannot be opened: No such file or directory.",
        }

    def test_progress_counts_the_files(self, tmp_path):
        paths = write_levels(tmp_path, [0.1, 0.2])
        calls = []
        extract_files(
            paths, extractor=LEVELS, engine="serial", progress=lambda *call: calls.append(call)
        )
        assert calls == [(1, 2), (2, 2)]


class TestCache:
    def test_a_changed_file_is_done_again(self, tmp_path, counted):
        a, b = write_levels(tmp_path, [0.1, 0.2])
        function, extract = counted()
        extract(a, b)
        before = a.stat()
        probe = tmp_path / "probe"

        def later():  # the file system's clock goes in steps
            probe.touch()
            return probe.stat().st_ctime_ns > before.st_ctime_ns

        wait_until(later, "the clock of the file system")
        write_level(a, 0.4)  # as long as before, and pretending to be as old
        os.utime(a, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (a.stat().st_size, a.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
        done = extract(a, b)
        assert (function.calls, done.n_cached) == (3, 1)
        np.testing.assert_allclose(done.features[:, 0], [0.4, 0.2], atol=1e-4)

    def test_files_that_moved_are_known(self, tmp_path, counted):
        a, b, c = write_levels(tmp_path, [0.1, 0.2, 0.3])
        function, extract = counted()
        first, again = extract(a, b, c), extract(a, b, c)
        assert (function.calls, first.n_cached, again.n_cached) == (3, 0, 3)
        renamed, copied = tmp_path / "renamed.wav", tmp_path / "copied.wav"
        a.rename(renamed)
        shutil.copyfile(b, copied)
        os.utime(c)
        done = extract(renamed, copied, c)
        assert (function.calls, done.n_cached) == (3, 3)
        assert done.features.tobytes() == first.features.tobytes()
        # From now on, they are known by their new names, without reading them.
        recipe = f"{odd.extractor(function).version}; from the middle"
        with FeatureCache(tmp_path / "cache", recipe) as cache:
            for path in (renamed, copied, c):
                assert cache.find_by_path(str(path), file_status(path)) is not None

    @pytest.mark.parametrize("change", [{}, {"seconds": 0.1}, {"revision": "2"}, {"name": "even"}])
    def test_other_settings_are_computed_anew(self, tmp_path, counted, change):
        paths = write_levels(tmp_path, [0.1, 0.2])
        function, extract = counted()
        extract(*paths)
        changed = {"extractor": replace(odd.extractor(function), **change)} if change else {}
        assert extract(*paths, **changed or {"start": 0.01}).n_cached == 0
        assert function.calls == 4

    def test_failures_are_not_kept(self, tmp_path, counted):
        path = write_level(tmp_path / "a.wav", 0.1)
        function, extract = counted()
        extract(path)
        longer = replace(odd.extractor(function), feature_names=("a", "b", "c"))
        for _ in range(2):
            assert "a vector of 3 numbers" in extract(path, extractor=longer).failures[0].reason
        assert function.calls == 3

    def test_a_digest_of_a_file_that_is_another_now_is_not_used(self, tmp_path):
        options = {"extractor": LEVELS, "engine": "serial", "cache": tmp_path / "cache"}
        for path in write_levels(tmp_path, [0.1, 0.2]):
            status = file_status(path)
            was = KnownFile(str(path), b"sound", status.size, status.modified - 1)
            (found,) = iterate_files([was], **options)
            assert not found.cached


class TestTrouble:
    def test_a_crash_takes_only_its_file(self, tmp_path):
        paths = write_levels(tmp_path, [0.1, CRASHES, 0.2, 0.3, CRASHES + 0.005, 0.05])
        extractor = odd.extractor(odd.crash_or_hang)
        done = extract_files(paths, extractor=extractor, jobs=2, cache=tmp_path / "cache")
        assert done.rows.tolist() == [0, 2, 3, 5]
        reason = "makes the decoder crash: the process that worked on it died (SIGSEGV)."
        assert reasons(done) == {str(paths[i]): reason for i in (1, 4)}

    def test_a_hang_takes_only_its_file(self, tmp_path):
        paths = write_levels(tmp_path, [0.1, HANGS, 0.2])
        options = {"extractor": odd.extractor(odd.crash_or_hang), "cache": tmp_path / "cache"}
        extract_files(paths[::2], jobs=1, **options)  # so that only one file has to be in time
        done = extract_files(paths, jobs=1, time_limit=2, **options)
        assert done.rows.tolist() == [0, 2]
        reason = "makes the decoder hang: it took longer than 2 s and was stopped."
        assert reasons(done) == {str(paths[1]): reason}

    def test_a_file_that_vanishes_while_it_is_read(self, tmp_path, monkeypatch, counted):
        a, b = write_levels(tmp_path, [0.1, 0.2])
        _, extract = counted(then=lambda calls: a.unlink(missing_ok=True))
        done = extract(a, b)
        assert reasons(done) == {str(a): "cannot be read: No such file or directory."}
        assert done.paths == (str(b),)

    def test_a_file_that_vanishes_after_it_was_read(self, tmp_path, monkeypatch, counted):
        b, c = write_levels(tmp_path, [0.2, 0.3])
        _, extract = counted()
        extract(b)

        def digest_and_vanish(path, real=extraction.file_digest):
            digest = real(path)
            c.unlink()
            return digest

        monkeypatch.setattr(extraction, "file_digest", digest_and_vanish)
        assert reasons(extract(b, c)) == {str(c): "vanished while it was read."}

    def test_a_file_that_changes_once_while_it_is_read(self, tmp_path, counted):
        path = write_level(tmp_path / "a.wav", 0.1)

        def change(calls):
            if calls == 1:
                write_level(path, 0.3, seconds=0.4)

        function, extract = counted(then=change)
        done = extract(path)
        assert function.calls == 2
        np.testing.assert_allclose(done.features[0, 0], 0.3, atol=1e-4)
        assert (extract(path).n_cached, function.calls) == (1, 2)

    def test_a_file_that_keeps_changing(self, tmp_path, counted):
        path = write_level(tmp_path / "a.wav", 0.1)

        def then(calls):
            write_level(path, 0.1, seconds=0.3 + calls / 100)

        function, extract = counted(then=then)
        assert reasons(extract(path)) == {str(path): "changed while it was read, 3 times."}
        assert function.calls == 3

    def test_an_extractor_that_cannot_be_sent_to_the_workers(self, tmp_path):
        path = write_level(tmp_path / "a.wav", 0.1)
        local = odd.extractor(lambda samples, rate: odd.mean_level(samples, rate))
        with pytest.raises(EngineError, match="'odd' cannot be sent to other processes"):
            extract_files([path], extractor=local, jobs=1)
        assert extract_files([path], extractor=local, engine="serial").paths

    def test_an_extractor_that_the_workers_cannot_load(self, tmp_path):
        path = write_level(tmp_path / "a.wav", 0.1)
        with pytest.raises(EngineError, match="no module named 'only_here'"):
            extract_files([path], extractor=odd.extractor(odd.OnlyHere()), jobs=1)

    @pytest.mark.parametrize("engine", ENGINES)
    def test_wrong_settings_are_not_the_files_fault(self, tmp_path, engine):
        path = write_level(tmp_path / "a.wav", 0.1)
        with pytest.raises(DataError, match="'start' must be a number of seconds"):
            extract_files([path], extractor=LEVELS, start=-1, engine=engine, jobs=1)


# The tables of features.

NAMES = ("timbre: mean, MFCC 0", "[μ], two; three", "plain")


def some_features(paths):
    X = np.random.default_rng(0).normal(size=(len(paths), 3)).astype(np.float32)
    X[:1] = [1e-38, -3.4e38, 1 / 3]
    return Extraction(
        features=X,
        paths=tuple(paths),
        rows=np.arange(len(paths)),
        feature_names=NAMES,
        failures=(),
        n_cached=0,
        heads=np.zeros((len(paths), 0)),
    )


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".PARQUET", ".npz"])
@pytest.mark.parametrize("paths", [["a/b.mp3", "two\nlines, and a comma.wav", "🎵.ogg"], []])
def test_tables_to_the_bit(tmp_path, ending, paths):
    done = some_features(paths)
    file = tmp_path / f"features{ending}"
    write_features(file, done)
    if ending == ".npz":
        with np.load(file) as data:
            names = data["path"]
            columns = data["columns"]
            X = data["X"]
    else:
        frame = pl.read_csv(file) if ending == ".csv" else pl.read_parquet(file)
        first, *columns = frame.columns
        assert first == "path"
        names = frame["path"]
        X = frame.drop("path").to_numpy()
    assert tuple(names) == done.paths
    assert tuple(columns) == NAMES
    assert X.astype(np.float32).tobytes("C") == done.features.tobytes()
    assert [file.name for file in tmp_path.iterdir()] == [file.name]


def test_names_that_are_not_utf8(tmp_path):
    done = some_features([os.fsdecode(b"caf\xe9.mp3"), "café.mp3"])
    write_features(tmp_path / "features.csv", done)
    assert pl.read_csv(tmp_path / "features.csv")["path"].to_list() == [r"caf\xe9.mp3", "café.mp3"]
    write_features(tmp_path / "features.parquet", done)
    frame = pl.read_parquet(tmp_path / "features.parquet")
    assert frame.columns == ["path", "path_bytes", *NAMES]
    assert frame["path_bytes"].to_list() == [os.fsencode(path) for path in done.paths]
