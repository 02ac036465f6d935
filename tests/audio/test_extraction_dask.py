"""Features of many files on a real Dask cluster: the same bits, and a worker's death loses none."""

import os
import signal

import numpy as np
import odd_extractors as odd
import pytest
import soundfile
from dask_cluster import cluster
from odd_extractors import write_levels
from processes_in_tests import is_running, wait_until
from signals import RATE, music

from harmonium.audio import features_of_file
from harmonium.audio.extraction import extract_files, iterate_files


@pytest.fixture(scope="module")
def songs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("songs")
    names = [f"{i:02d}.flac" for i in range(20)] + ["two\nlines.flac", os.fsdecode(b"\xff.flac")]
    for i, name in enumerate(names):
        soundfile.write(os.fsencode(folder / name), music(1.5, seed=i), RATE)
    return [str(folder / name) for name in names]


@pytest.fixture(scope="module")
def expected(songs):
    return np.stack([features_of_file(path) for path in songs])


@pytest.fixture
def running(tmp_path):
    """A scheduler and two workers that nobody restarts."""
    gate = {"ODD_GATE": str(tmp_path / "gate")}
    with cluster(tmp_path, n_workers=2, env=gate) as running:
        yield running


def test_the_same_matrix_to_the_bit_and_a_killed_worker(songs, expected, running, tmp_path):
    done = extract_files([*songs, "none.wav"], engine=running.address, cache=tmp_path)
    assert done.paths == tuple(songs)
    assert done.features.tobytes() == expected.tobytes()
    assert [failure.path for failure in done.failures] == ["none.wav"]
    again = extract_files(songs, engine=running.address, cache=tmp_path)
    assert again.n_cached == len(songs)

    # Now a worker dies in the middle of a file, while others wait.
    paths = write_levels(tmp_path / "levels", [odd.WAITS, *(0.01 * i for i in range(1, 21))])
    expected = extract_files(paths, extractor=odd.extractor(odd.mean_level), engine="serial")
    gate = tmp_path / "gate"
    found = {}
    extractor = odd.extractor(odd.wait_for_the_gate)
    for result in iterate_files(paths, extractor=extractor, engine=running.address):
        if not found:
            victim = int(wait_until(lambda: _text(gate.with_suffix(".pid")), "a file at the gate"))
            os.kill(victim, signal.SIGKILL)
            wait_until(lambda pid=victim: not is_running(pid), "the end of a worker")
            gate.touch()
        found[result.position] = result.vector
    assert sorted(found) == list(range(len(paths)))
    matrix = np.stack([found[i] for i in sorted(found)])
    assert matrix.tobytes() == expected.features.tobytes()
    assert [is_running(worker.pid) for worker in running.workers].count(True) == 1


def _text(file):
    return file.read_text() if file.exists() else ""
