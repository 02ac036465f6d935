"""What `harmonium train` costs by the number of tracks: fits, compilations, processor seconds.

    HARMONIUM_DATA=... python benchmarks/training_size.py [--beside CHECKOUT] [--sizes 100 1000]

MajorMiner's clips stand for tracks, with its most frequent tags. Every measurement is a process of
its own, on one thread: first with an empty cache of compiled programs, then with that one. The
seconds are those of the processor, from the start of Python to the fitted model, so that other
work on the machine hardly changes them. "seen" is the mean AUC of the held-out probabilities that
a library shows, "unseen" that of the model on 1,000 clips of other tracks.

With --beside, another checkout of this repository is measured in turn with this one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

N_UNSEEN = 1000


def measure(size: int, n_tags: int, seed: int) -> dict[str, float]:
    """Fit the model of a library of so many tracks in this process."""
    import numpy as np

    from harmonium.collection.answering.stored_tagger import keep_compiled
    from harmonium.collection.learning.fitting import TrainingSet, fit
    from harmonium.data.datasets import load
    from harmonium.evaluation import auc_per_tag, grouped_folds

    before = time.process_time()
    data = load("majorminer")
    labels = data.labels(n_tags=n_tags)
    assert data.features is not None
    X, Y, groups = data.features, labels.values, data.groups("track")
    order = np.random.default_rng(seed).permutation(len(Y))
    rows, rest = order[:size], order[size:]
    unseen = rest[~np.isin(groups[rest], groups[rows])][:N_UNSEEN]
    loading = time.process_time() - before
    keep_compiled()
    import jax

    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: compiled.append(event)
    )
    folds = grouped_folds(groups[rows], Y[rows], n_folds=5, seed=seed)
    fits: list[int] = []
    fitted = fit(
        TrainingSet(X[rows], Y[rows], folds, tuple(labels.tags)),
        seed=seed,
        progress=lambda what, done, total: fits.append(done),
    )
    seconds = time.process_time() - loading
    return {
        "fits": max(fits),
        "compiled": sum(event.endswith("backend_compile_duration") for event in compiled),
        "seconds": seconds,
        "seen": auc_per_tag(Y[rows], fitted.held_out).mean,
        "unseen": auc_per_tag(Y[unseen], fitted.model.predict_proba(X[unseen])).mean,
    }


def measured(checkout: Path, cache: str, *arguments: int) -> dict[str, float]:
    """The same in a process of its own, by the code of a checkout."""
    environment = os.environ | {
        "PYTHONPATH": str(checkout),
        "JAX_COMPILATION_CACHE_DIR": cache,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, __file__, "--measure", *map(str, arguments)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def main(arguments: list[str] | None = None) -> None:
    here = Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--tags", type=int, default=7)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--measure", type=int, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    codes = {"this": here} | ({"other": options.beside.resolve()} if options.beside else {})
    print("| tracks | seed | code | cache | fits | compiled | seconds | seen | unseen |")
    print("|---|---|---|---|---|---|---|---|---|")
    for size in options.sizes:
        for seed in range(options.seeds):
            for name, checkout in codes.items():
                with tempfile.TemporaryDirectory() as cache:
                    for state in ("empty", "warm"):
                        row = measured(checkout, cache, size, options.tags, seed)
                        print(
                            f"| {size:,} | {seed} | {name} | {state} | {row['fits']} "
                            f"| {row['compiled']} | {row['seconds']:.1f} | {row['seen']:.4f} "
                            f"| {row['unseen']:.4f} |",
                            flush=True,
                        )


if __name__ == "__main__":
    main()
