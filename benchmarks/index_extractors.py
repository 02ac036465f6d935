"""Tracks of three minutes from files to a library, with each extractor: seconds and memory.

    python benchmarks/index_extractors.py [NAME ...] [--tracks 1000] [--jobs 2] [--folder DIR]

The tracks are MP3 files, stereo at 44.1 kHz, made of clips of the generated collection. A dozen are
encoded; the others are these, cut off at another place of their beginning, so that all sounds are
different. `harmonium index` runs in its own process, without a cache of features. Seconds on
the clock, processor seconds of all processes, and the resident memory of the largest process.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import soundfile
import soxr

from harmonium.synthetic import make_collection

RATE, SECONDS, ENCODED = 44_100, 180, 12
CUT = 4_000
"""Bytes cut off more for each further track: a quarter of a second."""


def make_tracks(folder: Path, n_tracks: int) -> None:
    collection = make_collection(ENCODED * 2, 1)
    clips = [collection.samples(i) for i in range(collection.n_clips)]
    sources = []
    for k in range(min(ENCODED, n_tracks)):
        order = np.random.default_rng(k).integers(0, len(clips), 40)
        mono = np.concatenate([clips[i] for i in order])[: SECONDS * collection.rate]
        mono = soxr.resample(mono.astype(np.float32), collection.rate, RATE)
        file = folder / f"source-{k}.mp3"
        with soundfile.SoundFile(
            file, "w", RATE, 2, format="MP3", bitrate_mode="CONSTANT", compression_level=0.5
        ) as out:
            for start in range(0, len(mono), 4096):
                out.write(np.repeat(mono[start : start + 4096, None], 2, axis=1))
        sources.append(file.read_bytes())
        file.unlink()
    for number in range(n_tracks):
        data = sources[number % len(sources)]
        (folder / f"{number:04d}.mp3").write_bytes(data[CUT * (1 + number // len(sources)) :])


PROGRAM = """
import resource, sys
from harmonium.cli import main
try:
    main()
finally:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    spent = sum(one.ru_utime + one.ru_stime for one in usage)
    print(spent, *(one.ru_maxrss // 1024 for one in usage), file=sys.stderr)
"""


def index(folder: Path, name: str, jobs: int) -> str:
    """A row of the table."""
    with tempfile.TemporaryDirectory() as place:
        environment = {**os.environ, "HARMONIUM_LIBRARY": str(Path(place) / "library.db")}
        options = ["-e", name, "-j", str(jobs), "--no-cache"]
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "index", str(folder), *options],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        seconds = time.perf_counter() - began
    spent, own, worker = done.stderr.split()[-3:]
    tracks = done.stdout.split()[-1]
    return f"| {name} | {tracks} | {seconds:.0f} | {float(spent):.0f} | {own} | {worker} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=["paper", "musicnn"])
    parser.add_argument("--tracks", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where the tracks are made; else thrown away")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not any(folder.iterdir()):
            make_tracks(folder, options.tracks)
        print(
            "| extractor | tracks | s | processor s | MiB, command | MiB, largest worker |\n"
            "|---|---|---|---|---|---|",
            flush=True,
        )
        for name in options.names:
            print(index(folder, name, options.jobs), flush=True)


if __name__ == "__main__":
    main()
