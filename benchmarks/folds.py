"""Grouped folds of a large collection: seconds, sizes, and tags that are not in every fold.

    python benchmarks/folds.py [--clips 50000] [--tags 100] [--sparse]

With 100,000 clips and 10,000 tags, use --sparse: a dense matrix has 8 GB.

Tags have heavy tails (the j-th is given to a share of 0.4 / j^1.2 of the clips), 30 % of the labels
are unknown, and groups are tracks of a few clips, then single clips.
"""

import argparse
import time

import numpy as np
from scipy import sparse

from harmonium.evaluation import fold_report, grouped_folds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=50_000)
    parser.add_argument("--tags", type=int, default=100)
    parser.add_argument("--sparse", action="store_true", help="all labels known, stored sparsely")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    shares = 0.4 / np.arange(1, options.tags + 1) ** 1.2
    if options.sparse:
        Y = sparse_labels(rng, options.clips, shares)
    else:
        Y = (rng.random((options.clips, options.tags)) < shares).astype(float)
        Y[rng.random(Y.shape) < 0.3] = np.nan
    for groups in (
        rng.integers(0, options.clips * 2 // 5, options.clips),
        np.arange(options.clips),
    ):
        start = time.process_time()
        folds = grouped_folds(groups, Y)
        elapsed = time.process_time() - start
        report = fold_report(folds, groups, Y)
        n_positive = report.positives.sum(axis=0)
        frequent = n_positive >= 50
        shares_found = report.positives[:, frequent] / n_positive[frequent]
        print(
            f"{options.clips:,} clips × {options.tags:,} tags, {len(np.unique(groups)):,} groups: "
            f"{elapsed:.2f} processor seconds; fold sizes {report.sizes.min():,} to "
            f"{report.sizes.max():,}; {len(report.incomplete)} tags not in every fold; a fold's "
            f"share of the positives of a tag with 50 or more is {shares_found.min():.3f} to "
            f"{shares_found.max():.3f}"
        )


def sparse_labels(rng: np.random.Generator, n_clips: int, shares: np.ndarray) -> sparse.csr_array:
    """Tags in at least three clips each; every label is known."""
    n_positive = np.maximum(rng.binomial(n_clips, shares), 3)
    clips = [rng.choice(n_clips, size=n, replace=False) for n in n_positive]
    tags = np.repeat(np.arange(len(shares)), n_positive)
    ones = np.ones(len(tags), dtype=np.float32)
    return sparse.csr_array((ones, (np.concatenate(clips), tags)), shape=(n_clips, len(shares)))


if __name__ == "__main__":
    main()
