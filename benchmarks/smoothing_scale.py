"""Memory and seconds of the tag smoother at a million triples, beside implicit's ALS.

    python benchmarks/smoothing_scale.py                        a quarter, a half and a million
    python benchmarks/smoothing_scale.py --sizes 20000 --epochs 3    a check that it runs

Generates triples with heavy tails: a million of 84,000 users and 47,000 tracks with 100 tags, and
as many fewer of each for fewer triples. Each size and each program has a process of its own:

    smoother         TagSmoother with its default settings; seconds of an epoch are the median of
                     those after the first, which compiles; with the scoring of held-out pairs, too
    ALS, tracks      implicit's alternating least squares on the tracks × tags matrix of counts
    ALS, pairs       the same on the (user, track) pairs × tags matrix, the smoother's own rows

ALS has as many factors as the smoother has hidden units, and one thread, as the smoother has. Peak
is the largest resident memory of the process, imports and all. Needs the package implicit.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import report

FULL, N_USERS, N_TRACKS, N_TAGS = 1_000_000, 84_000, 47_000, 100
FACTORS, ITERATIONS = 50, 6


def triples_of(size: int) -> object:
    """Distinct (user, track, tag) triples; users, tracks and tags by power laws."""
    import polars as pl

    from harmonium.data import Triples

    rng = np.random.default_rng(2011)
    share = size / FULL
    n_users, n_tracks = max(int(N_USERS * share), 20), max(int(N_TRACKS * share), 20)

    def draw(n: int, exponent: float, count: int) -> np.ndarray:
        weights = np.arange(1, n + 1, dtype=float) ** -exponent
        return np.searchsorted(np.cumsum(weights) / weights.sum(), rng.random(count)).clip(
            max=n - 1
        )

    found = np.zeros(0, np.int64)
    while len(found) < size:  # a pair has two or three tags, near those of the track's kind
        n_pairs = size // 2
        user, track = draw(n_users, 0.7, n_pairs), draw(n_tracks, 0.7, n_pairs)
        user[:n_users], track[:n_tracks] = np.arange(n_users), np.arange(n_tracks)
        each = 1 + rng.poisson(1.4, n_pairs)
        pair = np.repeat(user * n_tracks + track, each)
        kind = np.repeat(track * 7919 % 10, each)
        tag = np.where(
            rng.random(len(pair)) < 0.7,
            kind * 10 + draw(10, 1.0, len(pair)),
            draw(N_TAGS, 1.0, len(pair)),
        )
        found = np.unique(np.concatenate([found, pair * N_TAGS + tag]))
    found = rng.permutation(found)[:size]
    pair, tag = np.divmod(found, N_TAGS)
    user, track = np.divmod(pair, n_tracks)
    columns = (pl.Series(code).cast(pl.String) for code in (user, track, tag))
    return Triples.from_columns(*columns, normalise=False)


def time_smoother(size: int, epochs: int) -> dict[str, float]:
    from harmonium import TagSmoother

    triples = triples_of(size)
    base = _peak()
    model = TagSmoother(max_epochs=epochs, patience=epochs, refit=False, random_state=0)
    began = time.perf_counter()
    model.fit(triples)
    fitted = time.perf_counter() - began
    began = time.perf_counter()
    model.smooth()
    data = model._data
    return {
        "step": statistics.median(model.history_["seconds"][1:]),
        "fit": fitted,
        "smooth": time.perf_counter() - began,
        "before": base,
        "peak": _peak(),
        "pairs": len(data),
        "users": len(data.users),
        "tracks": len(data.items),
        "rows": len(model.params_.V),
    }


def time_als(size: int, pairs: bool) -> dict[str, float]:
    from implicit.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    from harmonium.data import Conditioning

    data = Conditioning.from_triples(triples_of(size))
    base = _peak()
    matrix = csr_matrix(data.y if pairs else data.counts)
    model = AlternatingLeastSquares(factors=FACTORS, iterations=ITERATIONS, num_threads=1)
    times: list[float] = []
    model.fit_callback = lambda *values: times.append(float(values[1]))
    began = time.perf_counter()
    model.fit(matrix, show_progress=False)
    whole = time.perf_counter() - began
    step = statistics.median(times[1:]) if len(times) > 1 else whole / ITERATIONS
    return {"step": step, "fit": whole, "smooth": 0.0, "before": base, "peak": _peak()}


def _peak() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


PROGRAMS: dict[str, Callable[[int, int], dict[str, float]]] = {
    "smoother": time_smoother,
    "ALS, tracks": lambda size, _: time_als(size, pairs=False),
    "ALS, pairs": lambda size, _: time_als(size, pairs=True),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="250000,500000,1000000", help="numbers of triples")
    parser.add_argument("--epochs", type=int, default=5, help="epochs of the smoother")
    parser.add_argument("--json", type=Path, help="where the results go")
    parser.add_argument("--child", choices=PROGRAMS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    sizes = [int(size) for size in options.sizes.split(",")]
    if options.child:
        print(json.dumps(PROGRAMS[options.child](sizes[0], options.epochs)))
        return
    header = ("triples", "program", "s per step", "s to fit", "s to smooth", "MiB before", "MiB")
    print(("{:>9}  {:<12}" + "{:>13}" * 5).format(*header), flush=True)
    skipped, rows, notes = report.missing("implicit"), [], []
    titles = {
        "smoother": "Harmonium",
        "ALS, pairs": "implicit, pairs × tags",
        "ALS, tracks": "implicit, tracks × tags",
    }
    for size in sizes:
        for name in ["smoother"] if skipped else PROGRAMS:
            result = run_child(name, size, options.epochs)
            rows.append(report.row(f"a pass over {size:,} triples", titles[name], result["step"]))
            memory = [result[key] / 2**20 for key in ("before", "peak")]
            cells = (result["step"], result["fit"], result["smooth"], *memory)
            line = f"{size:>9,}  {name:<12}" + "".join(f"{cell:>13.2f}" for cell in cells)
            print(line, flush=True)
            if name == "smoother":
                sizes_text = ", ".join(
                    f"{int(result[key]):,} {key}" for key in ("pairs", "users", "tracks", "rows")
                )
                print(f"{'':>11}{sizes_text} of V", flush=True)
                notes.append(f"{size:,} triples: {sizes_text} of V; peak {memory[1]:,.0f} MiB.")
    report.write(options.json, rows, notes, skipped)


def run_child(name: str, size: int, epochs: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", name, "--sizes", str(size)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    output = subprocess.run(
        [*command, "--epochs", str(epochs)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ).stdout
    result: dict[str, float] = json.loads(output.splitlines()[-1])
    return result


if __name__ == "__main__":
    main()
