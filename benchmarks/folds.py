"""Grouped folds of a large collection: seconds, sizes, and tags that are not in every fold.

    python benchmarks/folds.py [--clips 50000] [--tags 100]

Tags have heavy tails (the j-th is given to a share of 0.4 / j^1.2 of the clips), 30 % of the labels
are unknown, and groups are tracks of a few clips, then single clips.
"""

import argparse
import time

import numpy as np

from harmonium.evaluation import fold_report, grouped_folds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=50_000)
    parser.add_argument("--tags", type=int, default=100)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    shares = 0.4 / np.arange(1, options.tags + 1) ** 1.2
    Y = (rng.random((options.clips, options.tags)) < shares).astype(float)
    Y[rng.random(Y.shape) < 0.3] = np.nan
    for groups in (
        rng.integers(0, options.clips * 2 // 5, options.clips),
        np.arange(options.clips),
    ):
        start = time.perf_counter()
        folds = grouped_folds(groups, Y)
        elapsed = time.perf_counter() - start
        report = fold_report(folds, groups, Y)
        shares_found = report.positives / report.positives.sum(axis=0)
        print(
            f"{options.clips:,} clips × {options.tags} tags, {len(np.unique(groups)):,} groups: "
            f"{elapsed:.2f} s; fold sizes {report.sizes.min():,} to {report.sizes.max():,}; "
            f"{len(report.incomplete)} tags not in every fold; a fold's share of a tag's positives "
            f"is {shares_found.min():.3f} to {shares_found.max():.3f}"
        )


if __name__ == "__main__":
    main()
