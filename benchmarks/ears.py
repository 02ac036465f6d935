"""What better ears are worth: models by features on Emotify, and with how few excerpts.

    HARMONIUM_DATA=... OMP_NUM_THREADS=1 python benchmarks/ears.py \\
        [--jobs 2] [--scores FILE] [--figure FILE]

The labels and the five folds are those of `harmonium experiment`. For each test fold, each of the
other four validates once, and the other three, 240 excerpts, are learnt from. A validation fold
stops training; of a model's penalties, the one with the best mean AUC over the four is taken. The
score of a test fold is the mean of its four runs ("240"). Then the model is trained once more on
all four folds with that penalty, for as many epochs as were best in the mean over the four
("320"). Networks and RBMs have 100 hidden units.

The learning curve takes some of the 240 excerpts, drawn anew for each of the 20 runs; validation
folds are used whole. Nobody who has tagged 10 tracks has 80 more to validate on: models "by
default" have their default settings and nothing but the excerpts drawn.

Finished scores are kept in --scores, and a run that was stopped goes on with the others.
"""

import argparse
import json
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harmonium import DiscriminativeRBM, estimators
from harmonium.audio import extract_files
from harmonium.data.datasets import load
from harmonium.evaluation import auc_per_tag, grouped_folds, nested_folds
from harmonium.experiments.datasets import CATALOGUE
from harmonium.files import user_cache_folder

ALL = 240
SIZES = (10, 20, 50, 100, ALL)
SEEDED = {"random_state": 0, "calibrate": False}
BY_DEFAULT = ("LOG, by default", "DRBM-MP, by default")
MODELS = {
    "LOG": ("LogisticTagger", SEEDED, (0.03, 0.3, 1.0)),
    "MLP": ("MLPTagger", SEEDED, (0.3, 1.0, 3.0)),
    "DRBM": (
        "DiscriminativeRBM",
        {**SEEDED, "training": "cd", "training_steps": 10, "learning_rate": 0.03},
        (0.3, 1.0, 3.0),
    ),
    "DRBM-MP": ("DiscriminativeRBM", SEEDED, (0.3, 1.0, 3.0)),
    BY_DEFAULT[0]: ("LogisticTagger", {"solver": "newton"}, (1e-3,)),
    BY_DEFAULT[1]: ("DiscriminativeRBM", SEEDED, (DiscriminativeRBM().l2,)),
}
"""Name -> the class, its settings, and the ℓ2 penalties to choose from."""

FEATURES = ("paper", "paper*3", "musicnn", "paper*3+musicnn")
IN_CURVE = ("LOG", "MLP", "DRBM-MP", *BY_DEFAULT)
Matrix = NDArray[np.float32]
Task = tuple[str, str, int]


def score(task: Task, X: Matrix, Y: Matrix, folds: NDArray[np.int64]) -> dict[str, list[float]]:
    """The mean AUC over tags in each test fold, for 240 (or fewer) and for 320 excerpts."""
    _, name, size = task
    kind, settings, penalties = MODELS[name]

    def fitted(l2: float, rows: NDArray[np.int64], *validation: object, **more: object):
        model = getattr(estimators, kind)(**{**settings, "l2": l2, **more})
        return model.fit(X[rows], Y[rows], *validation)

    def auc(model, rows: NDArray[np.int64]) -> float:
        return float(auc_per_tag(Y[rows], model.predict_proba(X[rows])).mean)

    scores: dict[str, list[float]] = {"240": [], "320": []}
    for test_fold in range(5):
        runs: dict[float, list[tuple[float, float, int]]] = {l2: [] for l2 in penalties}
        for split in nested_folds(folds):
            if split.test_fold != test_fold:
                continue
            rng = np.random.default_rng((split.test_fold, split.valid_fold, size))
            train = split.train if size == ALL else rng.permutation(split.train)[:size]
            valid = () if name in BY_DEFAULT else ((X[split.valid], Y[split.valid]),)
            for l2 in penalties:
                model = fitted(l2, train, *valid)
                epoch = getattr(model, "best_epoch_", 0)
                runs[l2].append((auc(model, split.valid), auc(model, split.test), epoch))
        best = max(penalties, key=lambda l2: np.mean([run[0] for run in runs[l2]]))
        scores["240"].append(float(np.mean([run[1] for run in runs[best]])))
        if size == ALL and name not in BY_DEFAULT:
            epochs = max(1, round(np.mean([run[2] for run in runs[best]])))
            rows = np.flatnonzero(folds != test_fold)
            model = fitted(best, rows, validation_fraction=0.0, max_epochs=epochs)
            scores["320"].append(auc(model, np.flatnonzero(folds == test_fold)))
    return scores


def mean_and_error(values: NDArray[np.float64]) -> str:
    return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def show(scores: dict[Task, dict[str, list[float]]]) -> None:
    """The tables: models by features, their differences, and the learning curve."""
    header = "| " + " | ".join(FEATURES) + " |\n" + "|---" * (len(FEATURES) + 1) + "|"
    names = [name for name in MODELS if name not in BY_DEFAULT]
    for which in ("240", "320"):
        by = {(f, n): np.array(scores[f, n, ALL][which]) for f in FEATURES for n in names}
        print(f"\n| {which} excerpts {header}")
        for name in names:
            cells = (mean_and_error(by[f, name]) for f in FEATURES)
            print(f"| {name} | " + " | ".join(cells) + " |")
        for rival in names[:-1]:
            cells = (mean_and_error(by[f, "DRBM-MP"] - by[f, rival]) for f in FEATURES)
            print(f"| DRBM-MP less {rival} | " + " | ".join(cells) + " |")
    print(
        "\n| excerpts | " + " | ".join(map(str, SIZES)) + " |\n" + "|---" * (len(SIZES) + 1) + "|"
    )
    for f, name in ((f, n) for f in ("paper*3", "musicnn") for n in IN_CURVE):
        cells = (mean_and_error(np.array(scores[f, name, size]["240"])) for size in SIZES)
        print(f"| {f}, {name} | " + " | ".join(cells) + " |")


def draw(scores: dict[Task, dict[str, list[float]]], path: Path) -> None:
    """The learning curve."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
    looks = dict(
        zip(IN_CURVE, ((":", "s"), ("--", "^"), ("-", "o"), (":", "+"), ("-.", "x")), strict=True)
    )
    for f, colour in (("musicnn", "C0"), ("paper*3", "C1")):
        for name in IN_CURVE:
            folds = np.array([scores[f, name, size]["240"] for size in SIZES])
            error = (
                folds.std(axis=1, ddof=1) / np.sqrt(folds.shape[1]) if name == "DRBM-MP" else None
            )
            line, marker = looks[name]
            axes.errorbar(
                *(SIZES, folds.mean(axis=1), error),
                **{"color": colour, "linestyle": line, "marker": marker, "markersize": 4},
                **{"capsize": 2, "linewidth": 1.2, "label": f"{f}, {name}"},
            )
    axes.set(xscale="log", xlabel="excerpts to learn from", ylabel="mean AUC over emotions")
    axes.set_xticks(SIZES, labels=map(str, SIZES))
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    figure.legend(fontsize=8, loc="outside right upper")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--scores", type=Path, default=Path("results/ears.jsonl"))
    parser.add_argument("--figure", type=Path, help="where to draw the learning curve")
    options = parser.parse_args()
    spec, data = CATALOGUE["emotify"], load("emotify")
    Y = data.labels(spec.n_tags).values
    folds = grouped_folds(data.groups(spec.groups), Y)
    X = {
        name: extract_files(data.audio or [], extractor=name, cache=user_cache_folder()).features
        for name in ("paper", "paper*3", "musicnn")
    }
    X["paper*3+musicnn"] = np.concatenate([X["paper*3"], X["musicnn"]], axis=1)
    tasks = [(f, name, ALL) for name in MODELS if name not in BY_DEFAULT for f in FEATURES]
    tasks += [(f, n, size) for f in ("musicnn", "paper*3") for n in IN_CURVE for size in SIZES]
    options.scores.parent.mkdir(parents=True, exist_ok=True)
    lines = options.scores.read_text().splitlines() if options.scores.exists() else []
    scores = {tuple(task): found for task, found in map(json.loads, lines)}
    todo = [task for task in dict.fromkeys(tasks) if task not in scores]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        waiting = {pool.submit(score, task, X[task[0]], Y, folds): task for task in todo}
        for n_done, future in enumerate(as_completed(waiting), 1):
            task, found = waiting[future], future.result()
            scores[task] = found
            with options.scores.open("a") as file:
                file.write(json.dumps([task, found]) + "\n")
            print(f"{n_done} of {len(todo)}: {task} {np.mean(found['240']):.3f}", flush=True)
    show(scores)
    if options.figure:
        draw(scores, options.figure)


if __name__ == "__main__":
    main()
