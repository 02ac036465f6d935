"""The same command on one core, in local processes and on a Dask cluster: seconds, and how many
times as fast as on one core.

    python benchmarks/engines.py [--files 40] [--tagged 1000] [--rounds 1] [--only index,train]

Each command runs in its own process, as a user would start it. Its BLAS has one thread. A
cluster has workers with one thread and 4 GiB each, and has done the same work once before, as one's
own would have; local processes are started by the command itself. Needs the extra "dask".

- index: sound of the generated collection, 30 s each, heard by musicnn, into a new library;
- experiment: recipes/small/figure3.toml;
- train: a library with 389 made-up features and 20 tags, all that `harmonium train` does.
"""

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import soundfile
from distributed import LocalCluster
from scaling import make_library

from harmonium.engine.processes import ONE_THREAD
from harmonium.library import Library
from harmonium.synthetic import make_collection

RECIPE = Path(__file__).parents[1] / "recipes" / "small" / "figure3.toml"

Words = list[str]


@contextlib.contextmanager
def way(name: str) -> Iterator[Words]:
    """The options of a way to do the work, whose cluster stands as long as the block."""
    kind, _, n = name.partition(" ")
    if kind == "serial":
        yield ["--engine", kind]
    elif kind == "processes":
        yield ["--engine", kind, "--jobs", n]
    else:
        with LocalCluster(
            n_workers=int(n), threads_per_worker=1, memory_limit="4GiB", dashboard_address=None
        ) as cluster:
            yield ["--engine", cluster.scheduler_address]


def index_files(folder: Path, n: int) -> Callable[[Path], Words]:
    collection = make_collection(min(n, 100), 1)
    music = folder / "music"
    music.mkdir()
    for i in range(n):
        sound = np.resize(collection.samples(i % collection.n_clips), 30 * collection.rate)
        sound[-1] = i / n  # each file is another
        soundfile.write(music / f"{i:04}.flac", sound, collection.rate)
    return lambda place: ["index", str(music), "--library", str(place), "--extractor", "musicnn"]


def experiment() -> Callable[[Path], Words]:
    return lambda place: ["experiment", "run", str(RECIPE), "-o", str(place)]


def train_library(folder: Path, n: int) -> Callable[[Path], Words]:
    with Library.open(folder / "tagged.db") as library:
        make_library(library, n, 389, 20)

    def words(place: Path) -> Words:
        shutil.copy(folder / "tagged.db", place)
        return ["train", "--library", str(place)]

    return words


def seconds(words: Words) -> float:
    """How long a command takes that finds nothing in its cache."""
    command = [sys.executable, "-m", "harmonium", *words]
    with tempfile.TemporaryDirectory() as cache:
        env = os.environ | ONE_THREAD | {"XDG_CACHE_HOME": cache}
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--tagged", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="index,experiment,train")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make = {
            "index": lambda: index_files(folder, options.files),
            "experiment": experiment,
            "train": lambda: train_library(folder, options.tagged),
        }
        for name in options.only.split(","):
            words, alone = make[name](), None
            for one in ("serial", f"processes {cores}", "Dask 1", f"Dask {cores}"):
                with way(one) as where:
                    before = 1 if one.startswith("Dask") else 0
                    taken = [
                        seconds([*words(folder / f"{name} {one} {number}.db"), *where])
                        for number in range(before + options.rounds)
                    ]
                median = statistics.median(taken[before:])
                alone = alone or median
                print(f"{name:10}  {one:12}  {median:6.1f} s  {alone / median:4.2f}", flush=True)


if __name__ == "__main__":
    main()
