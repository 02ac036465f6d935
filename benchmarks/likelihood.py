"""Ways to train an RBM, by the exact log p(y | x) of training and held-out clips, epoch by epoch.

    HARMONIUM_DATA=FOLDER python benchmarks/likelihood.py --json FILE    # half an hour on one core
    python benchmarks/likelihood.py --show FILE [--figure FILE]          # docs/evaluation.md
    HARMONIUM_DATA=FOLDER python benchmarks/likelihood.py --large        # 100 hidden units, by AIS

Models with 10 hidden units, or of 6 tags, which can be enumerated. All ways start from the same
weights and descend by Adam for 64 epochs, with ℓ2 of 0.1 on U and W. Five test folds. Of the
others, one chooses for each way the learning rate and the epoch, by its exact log p(y | x), and the
rest is learnt from. "MLP" has as many hidden units, and tags that are independent given x.

With --large, models with 100 hidden units on MajorMiner, which nothing can enumerate: log p(y | x)
of the test clips by annealed importance sampling.
"""

import argparse
import json
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from harmonium import rbm
from harmonium.evaluation import auc_per_tag, grouped_folds
from harmonium.experiments.datasets import CATALOGUE, load_dataset
from harmonium.rbm.gradients import log_probabilities
from harmonium.rbm.other_models import CrossEntropy, MLPParams, mlp_logits

USUAL = ["emotions", "yeast"]
HIDDEN = {"emotions": 30, "yeast": 10, "majorminer-104": 10}
WAYS: dict[str, Any] = {
    "exact": rbm.Exact(),
    "CD-1": rbm.ContrastiveDivergence(1),
    "CD-10": rbm.ContrastiveDivergence(10),
    "PCD-1": rbm.PersistentContrastiveDivergence(1),
    "PCD-10": rbm.PersistentContrastiveDivergence(10),
    "PL": rbm.PseudoLikelihood(),
    "LBP": rbm.BeliefPropagation(10, 0.5),
    "mean field": rbm.MeanField(5),
    "MP": rbm.MultiPrediction(3),
    "MLP": CrossEntropy(mlp_logits),
}
STYLES = ("k-", "C0--", "C0-", "C1--", "C1-", "C2-", "C3-", "C4-", "C5-", "C7:")  # in the figure
RATES = (0.003, 0.01, 0.03)
EPOCHS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64)  # where log p is computed
L2, BATCH, N_FOLDS, N_TRAINING = 0.1, 20, 5, 400


class Parts(NamedTuple):
    """Clips to learn from, to choose by and to judge by: features and tags."""

    train: tuple[Any, Any]
    valid: tuple[Any, Any]
    test: tuple[Any, Any]


def parts(name: str, fold: int) -> Parts:
    """The clips of one test fold; features have zero mean and a variance of 1 / D in training."""
    data = load_dataset(CATALOGUE[name])
    folds = grouped_folds(data.groups, data.Y, n_folds=N_FOLDS, seed=0)
    valid, test = folds == (fold + 1) % N_FOLDS, folds == fold
    train = ~(valid | test)
    mean, deviation = data.X[train].mean(axis=0), data.X[train].std(axis=0)
    scale = np.where(deviation > 0, deviation, 1) * np.sqrt(data.X.shape[1])
    X = ((data.X - mean) / scale).astype(np.float32)
    Y = data.Y.astype(np.float32)
    return Parts((X[train], Y[train]), (X[valid], Y[valid]), (X[test], Y[test]))


def first_weights(way: str, n: int, clips: tuple[Any, Any], seed: int) -> Any:
    """The estimators' way to begin: U small, W 1 for features of norm 1, d the tags' log-odds."""
    rng, (X, Y) = np.random.default_rng(seed), clips
    rate = (Y.sum(axis=0) + 1) / (len(Y) + 2)
    U = rng.normal(0, 0.01, (n, Y.shape[1])).astype(np.float32)
    W = rng.normal(0, 1.0, (n, X.shape[1])).astype(np.float32)
    c, d = np.zeros(n, np.float32), np.log(rate / (1 - rate)).astype(np.float32)
    if way == "MLP":
        return MLPParams(10 * U, 0.1 * W, c, d)
    return rbm.Params(U, W, np.zeros((0, Y.shape[1]), np.float32), c, d)


def no_rows(X: Any) -> Any:
    return np.zeros((len(X), 0), np.int32)


@jax.jit
def log_p(params: Any, X: Any, Y: Any) -> Any:
    """log p(y | x) of each clip, exact."""
    if isinstance(params, MLPParams):
        logits = mlp_logits(params, X)
        batch = rbm.Batch(X, None, Y, jnp.ones(1))
        return jax.vmap(lambda o, y: log_probabilities(o[None], batch._replace(y=y[None])).sum())(
            logits, Y
        )
    return rbm.log_likelihood(rbm.condition(params, X, jnp.zeros((len(X), 0), jnp.int32)), Y)


def probabilities(params: Any, X: Any, Y: Any) -> Any:
    """p(y_j = 1 | x), exact."""
    if isinstance(params, MLPParams):
        return np.asarray(jax.nn.sigmoid(mlp_logits(params, X)))
    field = rbm.condition(params, X, no_rows(X))
    return np.asarray(jax.jit(rbm.exact)(field, jnp.full(Y.shape, jnp.nan)).y)


def descended(
    way: str, clips: tuple[Any, Any], n: int, rate: float, seed: int, seen: Callable[[Any], float]
) -> None:
    """Train; ``seen`` gets the parameters after each epoch."""
    X, Y = clips
    start = first_weights(way, n, clips, seed)
    strength = type(start)(*(np.float32(L2 * (name in "UW")) for name in start._fields))
    rbm.train(
        start,
        rbm.Batch(X, no_rows(X), Y, np.ones(len(X), np.float32)),
        gradient=WAYS[way],
        optimiser=rbm.Optimiser("adam"),
        schedule=rbm.Schedule("constant", rate),
        penalty=rbm.Penalty.none(start)._replace(l2=strength),
        batch_size=BATCH,
        max_epochs=EPOCHS[-1],
        patience=EPOCHS[-1],
        seed=seed,
        score=seen,
    )


def run(name: str, fold: int, way: str, rate: float) -> dict[str, Any]:
    """One training: mean log p at each of EPOCHS, and the AUC of the test fold."""
    clips = parts(name, fold)
    some = tuple(part[:N_TRAINING] for part in clips.train)
    curves: dict[str, list[float]] = {"train": [], "valid": [], "test": [], "auc": []}
    epoch = 0

    def seen(params: Any) -> float:
        nonlocal epoch
        epoch += 1
        if epoch in EPOCHS:
            sets = {"train": some, "valid": clips.valid, "test": clips.test}
            for part, (X, Y) in sets.items():
                curves[part].append(float(log_p(params, X, Y).mean()))
            X, Y = clips.test
            curves["auc"].append(float(auc_per_tag(Y, probabilities(params, X, Y)).mean))
        return float(epoch)

    began = time.perf_counter()
    descended(way, clips.train, HIDDEN[name], rate, fold, seen)
    seconds = time.perf_counter() - began
    about = {"dataset": name, "fold": fold, "way": way, "rate": rate, "seconds": seconds}
    return {**about, **curves}


def chosen(runs: list[dict[str, Any]]) -> tuple[dict[str, Any], int]:
    """The run and the place in EPOCHS with the highest log p of the validation fold."""
    best = max(runs, key=lambda run: max(run["valid"]))
    return best, int(np.argmax(best["valid"]))


def by_fold(runs: list[dict[str, Any]], name: str, way: str) -> dict[str, Any]:
    """For each fold what the chosen run has on its test fold, and mean curves at its rate."""
    result: dict[str, list[Any]] = {"test": [], "auc": [], "epoch": [], "rate": [], "curves": []}
    for fold in range(N_FOLDS):
        own = [r for r in runs if (r["dataset"], r["way"], r["fold"]) == (name, way, fold)]
        best, place = chosen(own)
        result["test"].append(best["test"][place])
        result["auc"].append(100 * best["auc"][place])
        result["epoch"].append(EPOCHS[place])
        result["rate"].append(best["rate"])
        result["curves"].append((best["train"], best["test"]))
    return {key: np.array(values) for key, values in result.items()}


def table(runs: list[dict[str, Any]]) -> str:
    lines = []
    for name in dict.fromkeys(run["dataset"] for run in runs):
        exact = by_fold(runs, name, "exact")
        lines += [
            f"\n{name}, {HIDDEN[name]} hidden units\n",
            "| trained by | log p(y \\| x) | less exact | AUC | less exact | epoch | step |",
            "|---|---|---|---|---|---|---|",
        ]
        for way in WAYS:
            own = by_fold(runs, name, way)
            cells = [f"{own['test'].mean():.3f}", "–", f"{own['auc'].mean():.1f}", "–"]
            for place, measure, digits in ((1, "test", 3), (3, "auc", 1)):
                gain = own[measure] - exact[measure]
                error = gain.std(ddof=1) / np.sqrt(N_FOLDS)
                if way != "exact":
                    cells[place] = f"{gain.mean():+.{digits}f} ± {error:.{digits}f}"
            epoch, rate = np.median(own["epoch"]), np.median(own["rate"])
            lines.append(f"| {way} | {' | '.join(cells)} | {epoch:.0f} | {rate:g} |")
    return "\n".join(lines)


def draw(runs: list[dict[str, Any]], file: Path) -> None:
    """Mean log p against epochs: above of training clips, below of the test folds."""
    from matplotlib import pyplot

    names = list(dict.fromkeys(run["dataset"] for run in runs))
    styles = dict(zip(WAYS, STYLES, strict=True))
    figure, grid = pyplot.subplots(
        2, len(names), sharex=True, figsize=(4.2 * len(names), 7), layout="constrained"
    )
    for column, name in enumerate(names):
        for row, what in enumerate(("training clips", "held-out clips")):
            axes = grid[row, column]
            for way, style in styles.items():
                curves = by_fold(runs, name, way)["curves"][:, row].mean(axis=0)
                axes.plot(EPOCHS, curves, style, label=way, linewidth=1.4)
            start = by_fold(runs, name, "exact")["curves"][:, row].mean(axis=0)
            axes.set_ylim(start[0] - 0.1 * np.ptp(start), start.max() + 0.25 * np.ptp(start))
            axes.set_xscale("log")
            axes.set_title(f"{name}, {what}")
            axes.spines[["top", "right"]].set_visible(False)
        grid[1, column].set_xlabel("epoch")
    for axes in grid[:, 0]:
        axes.set_ylabel("log p(y | x), nats per clip")
    grid[0, -1].legend(frameon=False, fontsize="small", ncols=2)
    figure.savefig(file, facecolor="white", metadata={"Date": None})


def large() -> None:
    """A table of log p(y | x) of models with 100 hidden units, and its standard errors."""
    from harmonium import DiscriminativeRBM

    likelihood = {"learning_rate": 0.03, "l2": 0.1, "init_scale": 1.0}
    ways: dict[str, dict[str, Any]] = {
        "CD-1": {"training": "cd", **likelihood},
        "CD-10": {"training": "cd", "training_steps": 10, **likelihood},
        "PCD-10": {"training": "pcd", "training_steps": 10, **likelihood},
        "PL": {"training": "pl", **likelihood},
        "LBP": {"training": "lbp", **likelihood},
        "MP": {},
    }
    data = load_dataset(CATALOGUE["majorminer-104"])
    folds = grouped_folds(data.groups, data.Y, n_folds=N_FOLDS, seed=0)
    print("| trained by | log p(y \\| x) | its error by AIS | AUC |\n|---|---|---|---|")
    for way, settings in ways.items():
        values, errors, aucs = [], [], []
        for fold in range(N_FOLDS):
            test, valid = folds == fold, folds == (fold + 1) % N_FOLDS
            train = ~(test | valid)
            model = DiscriminativeRBM(random_state=fold, **settings)
            model.fit(data.X[train], data.Y[train], (data.X[valid], data.Y[valid]))
            estimate = model.log_likelihood(data.X[test], data.Y[test])
            values.append(estimate.value.mean())
            errors.append(estimate.error.mean())
            aucs.append(100 * model.score(data.X[test], data.Y[test]))
        over_folds = np.std(values, ddof=1) / np.sqrt(N_FOLDS)
        cells = f"{np.mean(values):.3f} ± {over_folds:.3f} | {np.mean(errors):.3f}"
        print(f"| {way} | {cells} | {np.mean(aucs):.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=USUAL, help=", ".join(HIDDEN))
    parser.add_argument(
        "--json", type=Path, help="where to keep the numbers; it goes on from these"
    )
    parser.add_argument("--show", type=Path, help="numbers to show, without measuring")
    parser.add_argument("--figure", type=Path, help="where to draw the curves of --show")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--folds", type=int, default=N_FOLDS)
    options = parser.parse_args()
    if options.large:
        large()
        return
    if options.show:
        runs = json.loads(options.show.read_text())
        print(table(runs))
        if options.figure:
            draw(runs, options.figure)
        return
    runs = []
    if options.json and options.json.exists():
        runs = json.loads(options.json.read_text())
    done = {(run["dataset"], run["way"], run["fold"], run["rate"]) for run in runs}
    for name, way, fold, rate in product(options.datasets, WAYS, range(options.folds), RATES):
        if (name, way, fold, rate) in done:
            continue
        runs.append(run(name, fold, way, rate))
        print(f"{name}, {way}, fold {fold}, {rate}: {runs[-1]['seconds']:.0f} s", flush=True)
        if options.json:
            options.json.write_text(json.dumps(runs) + "\n")
    if options.folds == N_FOLDS:
        print(table(runs))


if __name__ == "__main__":
    main()
