"""How good and how fast extractors are: what `harmonium extractor list` shows.

    HARMONIUM_DATA=... OMP_NUM_THREADS=1 python benchmarks/extractors.py \\
        [NAME ...] [--cache DIR]

On the 400 Emotify clips of 15 s. AUC: logistic regression to convergence with each extractor's
features, in five folds; of the other four, each validates once and chooses the penalty, and the
score of a fold is the mean over these. Milliseconds: processor time of one thread for a clip from
the file on, the mean over the first clips. With several names, the last row has all of them side by
side. Other models, and fewer excerpts: benchmarks/ears.py.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harmonium.audio import extract_files, get_extractor
from harmonium.data.datasets import load
from harmonium.estimators import LogisticTagger
from harmonium.evaluation import auc_per_tag, grouped_folds, nested_folds

PENALTIES = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0)


def score(X: NDArray[np.float32], Y: NDArray[np.float32], folds: NDArray[np.int64]) -> float:
    """Mean over tags and folds of the AUC, the penalty chosen by validation."""
    scores = []
    for split in nested_folds(folds):
        models = [
            LogisticTagger(solver="newton", l2=l2).fit(X[split.train], Y[split.train])
            for l2 in PENALTIES
        ]
        valid = [auc_per_tag(Y[split.valid], m.predict_proba(X[split.valid])).mean for m in models]
        best = models[int(np.argmax(valid))]
        scores.append(auc_per_tag(Y[split.test], best.predict_proba(X[split.test])).mean)
    return float(np.mean(scores))


def milliseconds(name: str, paths: list[str]) -> float:
    """For a clip, after a first one that loads what must be loaded."""
    extractor = get_extractor(name)
    extractor.extract(paths[0])
    began = time.process_time()
    for path in paths:
        extractor.extract(path)
    return 1000 * (time.process_time() - began) / len(paths)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=["paper", "musicnn"])
    parser.add_argument("--cache", type=Path, help="a cache of features")
    parser.add_argument("--timed", type=int, default=40, help="clips that are timed")
    options = parser.parse_args()
    data = load("emotify")
    assert data.audio is not None
    paths, Y = [str(path) for path in data.audio], data.labels().values
    folds = grouped_folds(np.arange(len(paths)), Y)
    print("| extractor | features | AUC | ms a clip |\n|---|---|---|---|", flush=True)
    features = []
    for name in options.names:
        features.append(extract_files(paths, extractor=name, cache=options.cache).features)
        spent = milliseconds(name, paths[: options.timed])
        auc = score(features[-1], Y, folds)
        print(f"| {name} | {features[-1].shape[1]} | {auc:.3f} | {spent:.0f} |", flush=True)
    if len(features) > 1:
        X = np.concatenate(features, axis=1)
        print(f"| {' and '.join(options.names)} | {X.shape[1]} | {score(X, Y, folds):.3f} | |")


if __name__ == "__main__":
    main()
