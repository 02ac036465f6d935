"""Small files of sound, and extractors that do what decoders may do to their process."""

import os
import signal
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
from engine_tasks import OnlyThere
from processes_in_tests import PATIENCE, end, start, wait_until
from scipy.io import wavfile

from harmonium.audio import Extractor

RATE = 8_000
CRASHES, HANGS, WAITS = 0.75, 0.5, 0.25  # the level of a file says what becomes of it


def write_level(path, level, seconds=0.25):
    """A WAV file of one constant level, up to full scale 1."""
    samples = np.full(int(seconds * RATE), round(level * 32768), np.int16)
    wavfile.write(path, RATE, samples)
    return path


def write_levels(folder, levels):
    folder.mkdir(exist_ok=True)
    return [write_level(folder / f"{i:03d}.wav", x) for i, x in enumerate(levels)]


def extractor(function, **options):
    features = ("mean", "length")
    return Extractor("odd", function, features, rate=RATE, seconds=0.2, **options)


def mean_level(samples, rate):
    return [samples.mean(), len(samples)]


def crash_or_hang(samples, rate):
    level = samples.mean()
    if abs(level - CRASHES) < 0.01:
        os.kill(os.getpid(), signal.SIGSEGV)
    if abs(level - HANGS) < 0.01:
        time.sleep(1000)
    return mean_level(samples, rate)


def be_killed(samples, rate):
    """As by a person, or where memory has run out, while the variable ODD_KILLED is set."""
    if "ODD_KILLED" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    return mean_level(samples, rate)


def wait_for_the_gate(samples, rate):
    """Files of one level take as long as the file ODD_GATE is not there; ODD_GATE.pid tells who."""
    if abs(samples.mean() - WAITS) < 0.01:
        gate = Path(os.environ["ODD_GATE"])
        part = gate.with_suffix(f".{os.getpid()}")
        part.write_text(str(os.getpid()))
        part.replace(gate.with_suffix(".pid"))
        while not gate.exists():
            time.sleep(0.01)
    return mean_level(samples, rate)


class Counting:
    """Counts how often it is called; for the engine "serial"."""

    def __init__(self, then=None):
        self.calls = 0
        self.then = then

    def __call__(self, samples, rate):
        self.calls += 1
        if self.then:
            self.then(self.calls)
        return mean_level(samples, rate)


class OnlyHere(OnlyThere):
    """A function that cannot be loaded in another process."""

    def __call__(self, samples, rate):
        return mean_level(samples, rate)


def package_of_extractor(folder):
    """A folder that looks like an installed package with the extractor "gated"."""
    about = folder / "gated_music-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gated-music\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[harmonium.extractors]\ngated = gated_music:it\n")
    (folder / "gated_music.py").write_text(
        "import odd_extractors as odd\nit = odd.extractor(odd.wait_for_the_gate)\n"
    )
    return folder


def kept_in_cache(folder):
    """How many files a cache has; -1 where there is none yet."""
    file = folder / "features.sqlite"
    with suppress(sqlite3.OperationalError):  # the tables may be missing, too
        if file.exists():
            with closing(sqlite3.connect(file, timeout=PATIENCE)) as cache:
                return cache.execute("SELECT count(*) FROM vectors").fetchone()[0]
    return -1


def stop_features(folder, gate, *engine):
    """Ctrl-C for `harmonium features` while one file is at the gate; what it then says.

    The same command goes on, and its table is that of an undisturbed run.
    """
    paths = write_levels(folder / "files", [0.1, 0.2, WAITS, 0.3, 0.35])
    code = "from harmonium.cli import main; main()"
    command = ("-c", code, "features", *paths, "-e", "gated", "-o", folder / "f.csv")
    disturbed, alone = (*engine, "--cache", folder), ("--engine", "serial", "--no-cache")
    packages = [package_of_extractor(folder / "package")]
    options = {"packages": packages, "env": {"ODD_GATE": str(gate)}}
    process = start(*command, *disturbed, **options)
    try:
        wait_until(lambda: kept_in_cache(folder) == 4, "all files but one")
        os.killpg(process.pid, signal.SIGINT)
        output, said = process.communicate(timeout=PATIENCE)
    finally:
        end(process)
    assert (process.returncode, output) == (130, "")
    gate.touch()
    tables = []
    for arguments in (disturbed, alone):
        process = start(*command, *arguments, **options)
        output, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        assert ("; 4 from the cache" in output) == (arguments is disturbed)
        tables.append((folder / "f.csv").read_bytes())
    assert tables[0] == tables[1]
    return said
