"""AUC of all tags: ``auc_per_tag`` beside a loop over scikit-learn's ``roc_auc_score``.

    python benchmarks/auc.py [--clips 20000] [--tags 100] [--repeats 7]

Both run in turn, in one process, on the same labels and scores; times are medians of processor
time, since both use one thread. The second table has the size of a validation fold, scored after
every epoch of training. Memory is the peak of what a call allocates, as tracemalloc sees it.
"""

import argparse
import statistics
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import report
from sklearn.metrics import roc_auc_score

from harmonium.evaluation import auc_per_tag


def sklearn_loop(Y: np.ndarray, S: np.ndarray) -> list[float]:
    known = ~np.isnan(Y)
    if known.all():
        return [roc_auc_score(Y[:, tag], S[:, tag]) for tag in range(Y.shape[1])]
    return [roc_auc_score(y[k], s[k]) for y, s, k in zip(Y.T, S.T, known.T, strict=True)]


def cases(n_clips: int, n_tags: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    S = rng.random((n_clips, n_tags)) ** 3
    rare = (rng.random(S.shape) < 0.08).astype(float)
    half = (rng.random(S.shape) < 0.5).astype(float)
    partly_known = np.where(rng.random(S.shape) < 0.2, np.nan, rare)
    return {
        "float64 scores, 8 % positive": (rare, S),
        "float64 scores, 50 % positive": (half, S),
        "float32 scores": (rare, S.astype(np.float32)),
        "1,001 distinct scores (ties)": (rare, S.round(3)),
        "scores from -30 to 30": (rare, 60 * S - 30),
        "20 % of labels unknown": (partly_known, S),
        "Fortran order": (np.asfortranarray(rare), np.asfortranarray(S)),
    }


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def peak_bytes(call: Callable[[], object]) -> int:
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def compare(n_clips: int, n_tags: int, repeats: int) -> tuple[list[dict[str, object]], float]:
    """The rows of the report, and the largest difference."""
    rows, largest = [], 0.0
    print(f"\n{n_clips:,} clips × {n_tags} tags, medians of {repeats}")
    print(f"{'':32}{'sklearn':>11}{'harmonium':>11}{'ratio':>8}{'largest':>11}{'peak memory':>16}")
    print(f"{'':32}{'ms':>11}{'ms':>11}{'':>8}{'difference':>11}{'sklearn':>10} / ours")
    for name, (Y, S) in cases(n_clips, n_tags).items():
        difference = np.abs(np.subtract(auc_per_tag(Y, S), sklearn_loop(Y, S))).max()
        theirs, ours = [], []
        for _ in range(repeats):
            theirs.append(seconds(lambda: sklearn_loop(Y, S)))  # noqa: B023
            ours.append(seconds(lambda: auc_per_tag(Y, S)))  # noqa: B023
        slow, fast = 1e3 * statistics.median(theirs), 1e3 * statistics.median(ours)
        memory = [peak_bytes(lambda: f(Y, S)) / 2**20 for f in (sklearn_loop, auc_per_tag)]  # noqa: B023
        largest = max(largest, float(difference))
        rows.append(report.row(name, "Harmonium", fast / 1e3))
        rows.append(report.row(name, "scikit-learn", slow / 1e3))
        print(
            f"{name:32}{slow:11.2f}{fast:11.3f}{slow / fast:7.1f}×{difference:11.1e}"
            f"{memory[0]:10.1f} / {memory[1]:.1f} MiB",
            flush=True,
        )
    return rows, largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=20_000)
    parser.add_argument("--tags", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path, help="where the results go")
    options = parser.parse_args()
    rows, largest = compare(options.clips, options.tags, options.repeats)
    if not options.json:
        compare(400, 40, 10 * options.repeats)
    note = f"The largest difference between the two is {largest:.1e}."
    report.write(options.json, rows, [note])


if __name__ == "__main__":
    main()
