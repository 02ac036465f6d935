"""What a library of many tracks costs: training from files, and each step by the track.

    python benchmarks/scaling.py --train 50000 120000 [--sample 50000] [--features 389] [--tags 20]
    python benchmarks/scaling.py --costs 10000 100000 [--library postgresql://…]
    python benchmarks/scaling.py --epoch

--train makes a library of so many tagged tracks, with made-up features and tags that follow from
them, and trains on it with `harmonium.library.learning.train.train`, in its own process.
Peak memory is what the system could not have taken back (RssAnon, seen every 20 ms); beside it is
the largest resident memory with the pages of the mapped files. The AUC is that of 10,000 tracks
that nobody tagged. With --sample, the same tracks are learnt from by a random choice of so many, as
`train` did it before. --epochs bounds the passes over the tracks: memory does not depend on them.

--costs makes libraries of so many tracks with 389 made-up features, three tags of people a track
and predictions of 100 tags, and measures what a track costs: bytes on the disk, and time of the
processor in this process, which other work on the machine hardly changes. With --library, a new
library in PostgreSQL; that server's own time is not counted.

--epoch measures what a pass over the tracks costs in training: 389 features, 100 tags.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl

N_UNTAGGED = 10_000


def make_library(library, n, n_features, n_tags, seed=0):
    """Tracks with features and tags that follow from them; the last are not tagged.

    Returns the features and the truth of those.
    """
    from harmonium.library.store.tracks import Track

    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(n_features, n_features)) / np.sqrt(n_features)
    straight, bent = (rng.normal(size=(n_features, n_tags)) for _ in range(2))
    rates = np.geomspace(0.02, 0.3, n_tags)
    names = [f"tag {j:02}" for j in range(n_tags)]
    last = None
    for start in range(0, n + N_UNTAGGED, 5000):
        size = min(5000, n + N_UNTAGGED - start)
        X = rng.normal(size=(size, n_features)).astype(np.float32)
        noise = np.sqrt(n_features) * rng.normal(size=(size, n_tags))
        drive = X @ straight + np.abs(X @ mixing) @ bent + noise
        Y = drive > [np.quantile(drive[:, j], 1 - rate) for j, rate in enumerate(rates)]
        files = [
            Track(f"/music/{i:08}", f"{i:064x}", title=f"Song {i}", artist=f"Artist {i // 10}")
            for i in range(start, start + size)
        ]
        with library.begin():
            ids = np.array(library.tracks.put(files))
            library.tracks.put_features(ids, X, extractor="made up")
        tagged = np.arange(start, start + size) < n
        rows, columns = np.nonzero(Y & tagged[:, None])
        if len(rows):
            frame = pl.DataFrame(
                {
                    "person": "me",
                    "track_id": ids[rows],
                    "tag": np.array(names)[columns],
                },
                schema_overrides={"person": pl.String},
            )
            with library.begin():
                change = library.changes.begin("import", "made up")
            library.opinions.add_triples(frame, change=change)
        unseen = X[~tagged], Y[~tagged]
        last = (
            unseen if last is None else tuple(map(np.concatenate, zip(last, unseen, strict=True)))
        )
    library.settings.set("extractor", "made up")
    return (*last, names)


class PeakMemory(threading.Thread):
    """The most anonymous memory that this process had, looked at every 20 ms; in MiB."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most = 0.0
        self.start()

    def run(self):
        while True:
            self.most = max(self.most, status("RssAnon"))
            time.sleep(0.02)


def status(name):
    """A line of /proc/self/status, in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def measure_training(options):
    """Train on the library that was made, in this process."""
    from harmonium.evaluation import auc_per_tag
    from harmonium.library import Library
    from harmonium.library.learning import fitting, train
    from harmonium.library.model.tagger import Tagger

    if options["epochs"]:
        fitting.usual_epochs = lambda n, batch: options["epochs"]
    unseen = np.load(options["unseen"])
    with Library.open(options["place"], create=False) as library:
        if options["sample"]:
            everything = library.opinions.triples()
            ids = everything["track_id"].unique().to_numpy()
            some = np.random.default_rng(0).choice(ids, options["sample"], replace=False)
            chosen = everything.filter(pl.col("track_id").is_in(pl.Series(some).implode()))
            library.opinions.triples = lambda: chosen
        import jax  # noqa: F401

        peak, began = PeakMemory(), time.perf_counter()
        cpu = time.process_time()
        stored = train.train(library, train.TrainingOptions(smooth=False))
        cpu, seconds = time.process_time() - cpu, time.perf_counter() - began
        memory, resident = peak.most, status("VmHWM")
        tagger = Tagger(stored)
    P = tagger.probabilities(unseen["X"])
    order = [stored.vocabulary.index(tag) for tag in unseen["names"].tolist()]
    epochs = tagger.arrays["history.seconds"]
    return {
        "tracks": stored.report.tracks,
        "memory": memory,
        "resident": resident,
        "seconds": seconds,
        "cpu": cpu,
        "epochs": len(epochs),
        "held_out": stored.report.mean_auc,
        "auc": auc_per_tag(unseen["Y"].astype(np.float32), P[:, order]).mean,
        "model_mb": len(stored.bytes) / 1e6,
    }


def in_a_process(task, options):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--do", task, json.dumps(options)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def train_sizes(options):
    from harmonium.library import Library

    print(
        "| tracks | learnt from | peak memory, MiB | resident, MiB | CPU s | epochs "
        "| AUC held out | AUC of 10,000 others | model, MB |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for n in options.train:
        with tempfile.TemporaryDirectory() as folder:
            place = str(Path(folder) / "library.db")
            with Library.open(place) as library:
                X, Y, names = make_library(library, n, options.features, options.tags)
            unseen = str(Path(folder) / "unseen.npz")
            np.savez(unseen, X=X, Y=Y, names=np.array(names))
            for sample in dict.fromkeys([0, *([options.sample] if options.sample < n else [])]):
                asked = {
                    **{"place": place, "unseen": unseen},
                    **{"sample": sample, "epochs": options.epochs},
                }
                found = in_a_process("training", asked)
                print(
                    f"| {n:,} | {found['tracks']:,} | {found['memory']:,.0f} "
                    f"| {found['resident']:,.0f} | {found['cpu']:,.0f} | {found['epochs']} "
                    f"| {found['held_out']:.4f} | {found['auc']:.4f} | {found['model_mb']:.1f} |",
                    flush=True,
                )


def cpu_ms(work, rounds=1):
    """Time of the processor, in ms: the median of some rounds."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        found.append(1000 * (time.process_time() - began))
    return statistics.median(found)


def measure_costs(sizes, place):
    import collection_search as made_up
    import sqlalchemy as sa

    from harmonium.library import Library
    from harmonium.library.model.tagger import tag_library
    from harmonium.library.sound import update_sound_vectors

    print(
        "| tracks | bytes a track | store, ms a track | tag, ms a track | one tag, ms "
        "| three tags, ms | like another, ms | peak memory, MiB |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "library.db"
            with Library.open(place or str(file)) as library:
                stored = cpu_ms(lambda: made_up.add_tracks(library, n))  # noqa: B023
                made_up.add_opinions(library, n, 3 * n)
                made_up.add_model(library)
                tagged = cpu_ms(lambda: tag_library(library))
                update_sound_vectors(library)
                times = [
                    cpu_ms(lambda: library.search(question), 9)  # noqa: B023
                    for question in made_up.QUESTIONS[:2]
                ]
                times.append(cpu_ms(lambda: library.search(like=7), 9))
                if place:
                    size = library.fetch(sa.text("select pg_database_size(current_database())"))[0][
                        0
                    ]
            if not place:
                size = sum(path.stat().st_size for path in Path(folder).iterdir())
        shown = " | ".join(f"{ms:.1f}" for ms in times)
        print(
            f"| {n:,} | {size / n:,.0f} | {stored / n:.3f} | {tagged / n:.3f} | {shown} "
            f"| {status('VmHWM'):,.0f} |",
            flush=True,
        )


def measure_epoch():
    """Time of the processor for one more pass over 10,000 tracks, by the track."""
    from harmonium import DiscriminativeRBM

    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 389)).astype(np.float32)
    Y = (X @ rng.normal(size=(389, 100)) > 30).astype(np.float32)
    seconds = {}
    for epochs in (1, 1, 6):  # the first time, programs are compiled
        model = DiscriminativeRBM(
            n_hidden=100, batch_size=20, max_epochs=epochs, validation_fraction=0.0, random_state=0
        )
        seconds[epochs] = cpu_ms(lambda: model.fit(X, Y))  # noqa: B023
    print(f"{(seconds[6] - seconds[1]) / 5 / 10_000 * 1000:.1f} µs a track and epoch")
    began = time.process_time()
    model.predict_proba(X)
    print(f"{(time.process_time() - began) / 10_000 * 1e6:.1f} µs a track, predicted")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=int, nargs="+", default=[])
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--features", type=int, default=389)
    parser.add_argument("--tags", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--costs", type=int, nargs="+", default=[])
    parser.add_argument("--library")
    parser.add_argument("--epoch", action="store_true")
    parser.add_argument("--do", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.do:
        task, given = options.do
        print(json.dumps({"training": measure_training}[task](json.loads(given))))
        return
    if options.train:
        train_sizes(options)
    if options.costs:
        measure_costs(options.costs, options.library)
    if options.epoch:
        measure_epoch()


if __name__ == "__main__":
    main()
