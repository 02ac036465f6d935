"""Mean AUC of every model on the public datasets, by five grouped folds, and seconds to train.

    HARMONIUM_DATA=... python benchmarks/models.py                      every dataset and model
    HARMONIUM_DATA=... python benchmarks/models.py --datasets majorminer-mfcc --models "DRBM;MLP"

For each of five test folds (no artist in two of them) the next fold is the validation fold. Each
model tries its settings, equally many for every model, on the other three folds; the settings and
the number of epochs that are best on the validation fold then train the model on all four, and that
one is scored on the test fold. "Known half" is the AUC of a random half of the tags when the other
half is given (`complete`), "same half" that of the same tags when nothing is. Seconds are of one
training on three folds, compilation included, one process per core.
"""

import argparse
import itertools
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

import numpy as np

DATASETS = ("majorminer-mfcc", "majorminer-all", "msd-50")


def grid(**values: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]


RATES = (0.003, 0.01)
SETTINGS = {
    "DRBM": grid(learning_rate=RATES, l2=(0.03, 0.1, 0.3)),
    "DRBM, PL": grid(learning_rate=RATES, l2=(0.03, 0.1, 0.3)),
    "hybrid": grid(generative_weight=(0.003, 0.01, 0.03), l2=(0.1, 0.3)),
    "RBM": grid(learning_rate=RATES, l2=(0.0, 0.1, 0.3)),
    "MLP": grid(learning_rate=RATES, l2=(0.1, 0.3, 1.0)),
    "LOG": grid(learning_rate=(0.01, 0.03), l2=(0.0, 0.003, 0.03)),
    "LOG, exact": grid(l2=(1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)),
    "SVM": grid(nu=(0.4, 0.5, 0.6, 0.7, 0.8, 0.9)),
    "chains": grid(l2=(1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)),
    "scikit-learn MLP": grid(alpha=(1e-2, 1.0, 3.0), max_iter=(20, 60)),
    "scikit-learn LOG": grid(C=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3)),
}


class OfScikitLearn:
    """scikit-learn's own classifiers, on standardised features, scored as the others are."""

    def __init__(self, classifier: Any) -> None:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        self.pipeline = make_pipeline(StandardScaler(), classifier)

    def fit(self, X: np.ndarray, Y: np.ndarray, eval_set: object = None) -> "OfScikitLearn":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a network that max_iter stops says so each time
            self.pipeline.fit(X, Y)
        return self

    def score(self, X: np.ndarray, Y: np.ndarray) -> float:
        from harmonium.evaluation import auc_per_tag

        return auc_per_tag(Y, self.pipeline.predict_proba(X)).mean


def build(model: str, settings: dict[str, Any], seed: int) -> Any:
    from harmonium import estimators as ours

    if model == "scikit-learn MLP":
        from sklearn.neural_network import MLPClassifier

        return OfScikitLearn(MLPClassifier(100, random_state=seed, **settings))
    if model == "scikit-learn LOG":
        from sklearn.linear_model import LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier

        return OfScikitLearn(OneVsRestClassifier(LogisticRegression(max_iter=1000, **settings)))
    if model == "LOG, exact":
        return ours.ExactLogisticTagger(**settings)
    if model == "DRBM, PL":
        settings = {"training": "pl", **settings}
    kinds = {
        "RBM": ours.GenerativeRBM,
        "MLP": ours.MLPTagger,
        "LOG": ours.LogisticTagger,
        "SVM": ours.SVMTagger,
        "chains": ours.ChainTagger,
    }
    return kinds.get(model, ours.DiscriminativeRBM)(random_state=seed, **settings)


def read(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, ternary labels and artists."""
    from harmonium.data.datasets import load

    if name.startswith("majorminer"):
        data = load("majorminer", features=name.removeprefix("majorminer-"))
        labels = data.labels()
    else:
        data = load("msd", n_tags=50)
        labels = data.labels(n_tags=50)
    return data.features, labels.values, data.groups("artist")


def run(dataset: str, model: str, fold: int, seed: int) -> dict[str, Any]:
    """One test fold: choose the settings on the validation fold, score on the test fold."""
    from harmonium.evaluation import auc_per_tag, grouped_folds

    X, Y, artists = read(dataset)
    folds = grouped_folds(artists, Y, n_folds=5, seed=seed)
    test, valid = folds == fold, folds == (fold + 1) % 5
    train = ~(test | valid)
    fitted, seconds = [], []
    for settings in SETTINGS[model]:
        began = time.perf_counter()
        estimator = build(model, settings, fold).fit(X[train], Y[train], (X[valid], Y[valid]))
        seconds.append(time.perf_counter() - began)
        fitted.append((estimator.score(X[valid], Y[valid]), estimator, settings))
    valid_auc, chosen, settings = max(fitted, key=lambda entry: entry[0])
    best = refitted(model, settings, fold, chosen, X[~test], Y[~test])
    epochs = getattr(chosen, "best_epoch_", 0)
    result = {
        "dataset": dataset,
        "model": model,
        "fold": fold,
        "auc": best.score(X[test], Y[test]),
        "valid_auc": valid_auc,
        "auc_of_three_folds": chosen.score(X[test], Y[test]),
        "seconds": float(np.median(seconds)),
        "to_best": sum(chosen.history_["seconds"][:epochs]) if epochs else None,
        "settings": settings,
    }
    if hasattr(best, "complete"):
        hidden = np.random.default_rng(fold).random(Y[test].shape) < 0.5
        given = np.where(hidden, np.nan, Y[test])
        asked = np.where(hidden, Y[test], np.nan)
        result["known_half"] = auc_per_tag(asked, best.complete(X[test], given)).mean
        result["same_half"] = auc_per_tag(asked, best.predict_proba(X[test])).mean
    return result


def refitted(
    model: str, settings: dict[str, Any], seed: int, chosen: Any, X: np.ndarray, Y: np.ndarray
) -> Any:
    """The chosen model trained on more clips, for as many epochs as were best for it."""
    if hasattr(chosen, "best_epoch_"):
        settings = {**settings, "max_epochs": chosen.best_epoch_, "validation_fraction": 0.0}
    return build(model, settings, seed).fit(X, Y)


def mean_and_error(values: list[float]) -> str:
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.4f}"


def table(results: list[dict[str, Any]]) -> str:
    lines = [
        "| dataset | model | mean AUC | of three folds | same half | known half | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for dataset, model in dict.fromkeys((r["dataset"], r["model"]) for r in results):
        rows = [r for r in results if (r["dataset"], r["model"]) == (dataset, model)]
        halves = [
            mean_and_error([r[k] for r in rows]) if k in rows[0] else "–"
            for k in ("same_half", "known_half")
        ]
        seconds = np.median([r["seconds"] for r in rows])
        aucs = [mean_and_error([r[k] for r in rows]) for k in ("auc", "auc_of_three_folds")]
        cells = [dataset, model, *aucs, *halves, f"{seconds:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--models", default="", help="all by default, separated by ;")
    parser.add_argument("--seed", type=int, default=0, help="of the folds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    models = options.models.split(";") if options.models else list(SETTINGS)
    tasks = list(itertools.product(options.datasets.split(","), models, range(5)))
    began, results = time.perf_counter(), []
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run, *task, options.seed) for task in tasks]
        for done in as_completed(futures):
            r = done.result()
            results.append(r)
            print(
                f"{len(results)}/{len(tasks)} {r['dataset']}, {r['model']}, fold {r['fold']}: "
                f"AUC {r['auc']:.4f} with {r['settings']}"
                + (f", best after {r['to_best']:.1f} s of training" if r["to_best"] else ""),
                flush=True,
            )
    order = {task: i for i, task in enumerate(tasks)}
    results.sort(key=lambda r: order[r["dataset"], r["model"], r["fold"]])
    print("\n" + table(results))
    print(f"\n{time.perf_counter() - began:.0f} s in all, {options.jobs} processes.")


if __name__ == "__main__":
    main()
