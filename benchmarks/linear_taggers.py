"""Exact logistic regression, ν-SVMs and chains beside loops over scikit-learn's, on MajorMiner.

    python benchmarks/linear_taggers.py [--data FOLDER] [--features mfcc|all] [--tags 40]

One fold of five, grouped by artist, is held out. Seconds are of CPU time in one thread. "Off by" is
the largest difference of a weight from that of the same regression solved to a tolerance of 1e-10.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import report
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.svm import NuSVC
from threadpoolctl import threadpool_limits

from harmonium.data.datasets import load
from harmonium.estimators import ChainTagger, LogisticTagger, SVMTagger
from harmonium.estimators.newton import logistic_regressions
from harmonium.estimators.scaling import standardising
from harmonium.estimators.svm import choose_examples
from harmonium.evaluation import auc_per_tag, grouped_folds

L2 = 1e-3
SOLVERS = (("lbfgs", 1e-4), ("lbfgs", 1e-6), ("newton-cg", 1e-4), ("newton-cholesky", 1e-4))


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


Rows = list[dict[str, Any]]


def logistic(X: np.ndarray, Y: np.ndarray) -> Rows:
    truth = logistic_regressions(X, Y, L2, tolerance=1e-10)
    ours, seconds = timed(lambda: logistic_regressions(X, Y, L2))
    off = np.abs(ours.W - truth.W).max()
    print(f"{'all tags at once':42}{seconds:8.2f} s   off by {off:.1e}", flush=True)
    rows = []
    for solver, tolerance in SOLVERS:
        model = LogisticRegression(C=1 / (len(X) * L2), solver=solver, tol=tolerance, max_iter=5000)
        W, taken = timed(lambda m=model: np.vstack([m.fit(X, y).coef_ for y in Y.T]))
        name = f"scikit-learn, {solver}, tol={tolerance:g}"
        print(f"{name:42}{taken:8.2f} s   off by {np.abs(W - truth.W).max():.1e}", flush=True)
        task = f"logistic regression, scikit-learn's {solver} to {tolerance:g}"
        rows += [report.row(task, "Harmonium", seconds), report.row(task, "scikit-learn", taken)]
    return rows


def svms(X: np.ndarray, Y: np.ndarray) -> Rows:
    _, seconds = timed(lambda: SVMTagger(random_state=0).fit(X, Y))
    print(f"{'SVMTagger':42}{seconds:8.2f} s")
    rng = np.random.default_rng(0)
    rows = [choose_examples(y, y, 200, rng, balanced=True) for y in Y.T]

    def loop() -> None:
        for chosen, y in zip(rows, Y.T, strict=True):
            examples = np.concatenate(chosen)
            NuSVC(nu=0.5, kernel="linear").fit(X[examples], y[examples])

    taken = timed(loop)[1]
    print(f"{'scikit-learn, linear kernel':42}{taken:8.2f} s", flush=True)
    return [report.row("ν-SVMs", "Harmonium", seconds), report.row("ν-SVMs", "scikit-learn", taken)]


def chains(X: np.ndarray, Y: np.ndarray) -> Rows:
    _, seconds = timed(lambda: ChainTagger(10, l2=L2, random_state=0).fit(X, Y))
    print(f"{'ChainTagger, 10 chains':42}{seconds:8.2f} s")
    chain = ClassifierChain(
        LogisticRegression(C=1 / (len(X) * L2), max_iter=5000), chain_method="predict_proba"
    )
    taken = timed(lambda: chain.fit(X, Y))[1]
    print(f"{'scikit-learn, 1 chain':42}{taken:8.2f} s", flush=True)
    task = "a chain (ours: a tenth of ten)"
    return [report.row(task, "Harmonium", seconds / 10), report.row(task, "scikit-learn", taken)]


def quality(X: np.ndarray, Y: np.ndarray, counts: np.ndarray, test: np.ndarray) -> None:
    known = np.where(np.random.default_rng(0).random(Y[test].shape) < 0.5, Y[test], np.nan)
    hidden = np.where(np.isnan(known), Y[test], np.nan)
    for model in (
        LogisticTagger(solver="newton"),
        SVMTagger(0.7, random_state=0),
        ChainTagger(random_state=0),
    ):
        more = {"counts": counts[~test]} if isinstance(model, SVMTagger) else {}
        model.fit(X[~test], Y[~test], **more)
        line = f"{type(model).__name__:42}mean AUC {model.score(X[test], Y[test]):.4f}"
        if isinstance(model, ChainTagger):
            blind = auc_per_tag(hidden, model.predict_proba(X[test])).mean
            informed = auc_per_tag(hidden, model.complete(X[test], known)).mean
            line += f"; of one half of the tags {blind:.4f}, given the other half {informed:.4f}"
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=None, help="folder of the datasets, or HARMONIUM_DATA")
    parser.add_argument("--features", choices=("mfcc", "all"), default="mfcc")
    parser.add_argument("--tags", type=int, default=40, help="how many tags the timings take")
    parser.add_argument("--json", type=Path, help="where the results go; without the quality")
    arguments = parser.parse_args()
    data = load("majorminer", arguments.data, features=arguments.features)
    Y, X = data.labels()[0], data.features
    counts = data.counts.matrix
    counts = counts.toarray() if hasattr(counts, "toarray") else np.asarray(counts)
    test = grouped_folds(data.groups("artist"), Y, seed=0) == 0
    scaled = standardising(X[~test])(X[~test]).astype(np.float64)
    labels = Y[~test][:, : arguments.tags].astype(np.float64)
    print(f"{scaled.shape[0]} clips, {scaled.shape[1]} features, {labels.shape[1]} tags")
    with threadpool_limits(1):
        rows = [*logistic(scaled, labels), *svms(scaled, labels), *chains(scaled, labels)]
        n_clips, n_features = scaled.shape
        note = f"{n_clips:,} clips, {n_features} features, {labels.shape[1]} tags; processor time."
        report.write(arguments.json, rows, [note])
        if not arguments.json:
            quality(X, Y, counts, test)


if __name__ == "__main__":
    main()
