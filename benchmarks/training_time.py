"""Every model beside scikit-learn's: mean AUC from the experiment's results, seconds measured here.

    harmonium experiment run recipes/models.toml -o results/models      the AUCs, settings searched
    python benchmarks/training_time.py results/models   the seconds, and the table

The experiment may run anywhere, on a GPU for instance; seconds to train are to be compared only if
all models were timed alike. So this trains each model once more on the clips of one split, in one
process and one thread, with the settings that the search chose most often: four times, of which the
first does not count, so that compilation is not in it (add about a second for it, once per
process), and of the others the median.
"""

import argparse
import collections
import json
import os
import statistics
import time
import warnings
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (after the threads are set)


def usual_settings(chosen: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """The settings that most test folds chose."""
    texts = collections.Counter(json.dumps(settings, sort_keys=True) for settings in chosen)
    return json.loads(texts.most_common(1)[0][0])


def seconds_to_train(arm: Any, settings: dict[str, Any], n_folds: int, seed: int) -> float:
    """The median of three trainings, after a first, on the first split of the protocol."""
    from harmonium.evaluation import grouped_folds, nested_folds
    from harmonium.experiments.datasets import load_dataset
    from harmonium.experiments.models import build_model

    data = load_dataset(arm.dataset)
    folds = grouped_folds(data.groups, data.Y, n_folds=n_folds, seed=seed)
    split = next(nested_folds(folds))
    X, Y = data.features(arm.features), data.Y
    took = []
    for _ in range(4):
        model = build_model(arm.model.estimator, settings, seed=0)
        began = time.perf_counter()
        model.fit(X[split.train], Y[split.train], (X[split.valid], Y[split.valid]))
        took.append(time.perf_counter() - began)
    return statistics.median(took[1:])


BESIDE = {"MLP": "MLP", "LOG": "LOG", "LOG exact": "LOG"}
"""Model → scikit-learn's that it is compared with."""


def differences(summary: Any) -> list[str]:
    """AUC less that of scikit-learn's model, in points, with the error of the paired difference."""
    aucs = {
        (first.arm.dataset.label, first.arm.model.name): np.nanmean(first.aucs, axis=1)
        for first, *_ in summary.arms
    }
    lines = []
    for (dataset, model), own in aucs.items():
        other = aucs.get((dataset, f"scikit-learn {BESIDE.get(model)}"))
        if other is not None and len(other) == len(own):
            apart = 100 * (own - other)
            error = apart.std(ddof=1) / np.sqrt(len(apart))
            lines.append(f"{dataset}, {model}: {apart.mean():+.2f} ± {error:.2f} points")
    return lines


def main(arguments: list[str] | None = None) -> None:
    from harmonium.experiments.report import summarise
    from harmonium.experiments.results import read_results

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the folder of the experiment's results")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    recipe, results, measurements = read_results(options.results)
    summary = summarise(recipe, results, measurements)
    print("| dataset | model | mean AUC | seconds to train |\n|---|---|---|---|")
    for found, *_ in summary.arms:
        if not found.complete:
            continue
        by_fold = np.nanmean(found.aucs, axis=1)
        error = by_fold.std(ddof=1) / np.sqrt(len(by_fold))
        settings = usual_settings([state.settings for state in found.states])
        seconds = seconds_to_train(found.arm, settings, recipe.n_folds, recipe.seed)
        print(
            f"| {found.arm.dataset.label} | {found.arm.model.name} "
            f"| {by_fold.mean():.4f} ± {error:.4f} | {seconds:.2f} |",
            flush=True,
        )
    print("\nLess scikit-learn's, paired over folds:", *differences(summary), sep="\n")


if __name__ == "__main__":
    main()
