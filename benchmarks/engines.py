"""The same work on one core, in local processes and on a Dask cluster: seconds, and how many times
as fast as on one core.

    python benchmarks/engines.py [--files 40] [--tagged 2000] [--rounds 3] [--only index,train]

A cluster has workers with one thread and 4 GiB each. It stands before the work begins, as one's own
would; local processes are started by the work itself. Each way is tried once before it is timed,
so that nobody waits for the first import from the disk. The median of the rounds counts.

- index: sound of the generated collection, 30 s each, into a new library in SQLite;
- experiment: recipes/small/figure3.toml, without features of sound, which are extracted before;
- train: a library with 389 made-up features and 20 tags, everything that `harmonium train` does.
"""

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import soundfile
from distributed import LocalCluster
from scaling import make_library

from harmonium.collection import Library
from harmonium.collection.indexing.run import index
from harmonium.collection.learning.train import train
from harmonium.experiments.recipe import parse_recipe
from harmonium.experiments.results import open_results
from harmonium.experiments.run import run_experiment
from harmonium.synthetic import make_collection

RECIPE = Path(__file__).parents[1] / "recipes" / "small" / "figure3.toml"


@contextlib.contextmanager
def way(name: str) -> Iterator[dict[str, object]]:
    """The options of a way to do the work, whose cluster stands as long as the block."""
    kind, _, n = name.partition(" ")
    if kind != "Dask":
        yield {"engine": kind, **({"jobs": int(n)} if n else {})}
        return
    with LocalCluster(
        n_workers=int(n), threads_per_worker=1, memory_limit="4GiB", dashboard_address=None
    ) as cluster:
        yield {"engine": cluster.scheduler_address}


def index_files(folder: Path, n: int) -> Callable[..., None]:
    collection = make_collection(min(n, 100), 1)
    music = folder / "music"
    music.mkdir()
    for i in range(n):
        sound = np.resize(collection.samples(i % collection.n_clips), 30 * collection.rate)
        sound[-1] = i / n  # each file is another
        soundfile.write(music / f"{i:04}.flac", sound, collection.rate)

    def work(place: Path, most: int | None = None, **options: object) -> None:
        files = sorted(music.iterdir())[:most]
        with Library.open(place) as library:
            report = index(library, files, extractor="musicnn", **options)  # type: ignore[arg-type]
            assert report.heard == len(files)

    return work


def experiment(folder: Path) -> Callable[..., None]:
    text = RECIPE.read_text(encoding="utf-8")

    def work(place: Path, most: int | None = None, **options: object) -> None:
        with open_results(place, text) as store:
            run_experiment(parse_recipe(text), store, **options)  # type: ignore[arg-type]

    return work


def train_library(folder: Path, n: int) -> Callable[..., None]:
    with Library.open(folder / "tagged.db") as library:
        make_library(library, n, 389, 20)

    def work(place: Path, most: int | None = None, **options: object) -> None:
        with Library.open(folder / "tagged.db") as library:
            train(library, **options)  # type: ignore[arg-type]

    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--tagged", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="index,experiment,train")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    ways = ["serial", f"processes {cores}", "Dask 1", f"Dask {cores}"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make: dict[str, Callable[[], Callable[..., None]]] = {
            "index": lambda: index_files(folder, options.files),
            "experiment": lambda: experiment(folder),
            "train": lambda: train_library(folder, options.tagged),
        }
        for name in options.only.split(","):
            work = make[name]()
            alone = None
            for one in ways:
                taken = []
                with way(one) as where:
                    for number in range(options.rounds + 1):
                        place = folder / f"{name}-{one}-{number}"
                        began = time.perf_counter()
                        work(place, most=None if number else 2 * cores, **where)
                        taken.append(time.perf_counter() - began)
                median = statistics.median(taken[1:])
                alone = alone or median
                print(f"{name:10}  {one:12}  {median:6.1f} s  {alone / median:4.2f}", flush=True)


if __name__ == "__main__":
    main()
