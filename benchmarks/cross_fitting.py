"""One model against five cross-fitted members, with the defaults of `DiscriminativeRBM`.

    HARMONIUM_DATA=FOLDER python benchmarks/cross_fitting.py [DATASET ...]
    HARMONIUM_DATA=FOLDER python benchmarks/cross_fitting.py --few    # 100 fits on 40 to 80 clips
    HARMONIUM_DATA=FOLDER python benchmarks/cross_fitting.py --sparse # few rows of bibtex: words

Five test folds by artist or item. Columns, each for one model and for five: AUC over tags with no
tag observed; AUC within a clip with one true tag observed, and with half of them; expected
calibration error; log loss; seconds of `fit`.

With --sparse, models learn from 333 or 1,123 random rows of bibtex's official training part, and
are judged on 2,000 other rows of it, by the tags that have five rows in both. The official test
part is not used.
"""

import argparse
import time

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from harmonium import DiscriminativeRBM, LogisticTagger, MLPTagger
from harmonium.estimators.calibration import half_observed, one_observed
from harmonium.evaluation import auc_per_clip, auc_per_tag, grouped_folds, reliability
from harmonium.experiments.datasets import CATALOGUE, load_dataset

USUAL = ("emotify", "cal500", "4q", "gtzan", "birds", "emotions")
N_FOLDS = 5
N_BIBTEX_TRAINING = 4880  # rows of the official training part, which come first


def judged(model, X, Y):
    """The measures of the table, but for the time."""
    P = model.predict_proba(X)
    within = []
    for observed in (one_observed(Y), half_observed(Y)):
        asked = np.where(np.isnan(observed), Y, np.nan)
        within.append(auc_per_clip(asked, model.complete(X, observed)).mean)
    p = np.clip(P.astype(np.float64), 1e-7, 1 - 1e-7)
    loss = -np.nanmean(np.where(np.isnan(Y), np.nan, Y * np.log(p) + (1 - Y) * np.log1p(-p)))
    return auc_per_tag(Y, P).mean, *within, reliability(Y, P).error, loss


def compare(name):
    """A row for a dataset: one → five of each measure, means over the test folds."""
    data = load_dataset(CATALOGUE[name])
    folds = grouped_folds(data.groups, data.Y, n_folds=N_FOLDS, seed=0)
    rows = {1: [], 5: []}
    for fold in range(N_FOLDS):
        train, test = folds != fold, folds == fold
        for n_models, found in rows.items():
            model = DiscriminativeRBM(n_models=n_models, random_state=fold)
            began = time.process_time()
            model.fit(data.X[train], data.Y[train], groups=data.groups[train])
            seconds = time.process_time() - began
            found.append((*judged(model, data.X[test], data.Y[test]), seconds))
    one, five = (np.mean(found, axis=0) for found in rows.values())
    error = np.std(np.subtract(rows[5], rows[1])[:, 0], ddof=1) / np.sqrt(N_FOLDS)
    cells = [f"{a:.4f} → {b:.4f}" for a, b in zip(one[:-1], five[:-1], strict=True)]
    cells[0] += f" (± {error:.4f})"
    print(f"| {name} | {' | '.join(cells)} | {one[-1]:.0f} → {five[-1]:.0f} |", flush=True)


def few():
    """How often a fit on few clips of GTZAN ends untrained: no probability over a half."""
    data = load_dataset(CATALOGUE["gtzan"])
    for n_models in (1, 5):
        accuracies, highest = [], []
        for seed in range(50):
            order = np.random.default_rng(seed).permutation(len(data.X))
            n = (40, 50, 60, 70, 80)[seed % 5]
            train, test = order[:n], order[n : n + 300]
            Y = data.Y[train]
            model = DiscriminativeRBM(n_models=n_models, random_state=seed).fit(data.X[train], Y)
            P = model.predict_proba(data.X[test])
            highest.append(P.max())
            accuracies.append(np.mean(P.argmax(axis=1) == data.Y[test].argmax(axis=1)))
        print(
            f"n_models={n_models}: {sum(p < 0.5 for p in highest)} of {len(highest)} untrained; "
            f"accuracy {np.mean(accuracies):.3f}, lowest {min(accuracies):.3f}"
        )


def sparse(n_draws):
    """The mean AUC of models with their defaults on few rows of sparse binary features."""
    rivals = {
        "DRBM-MP": lambda seed: DiscriminativeRBM(random_state=seed),
        "MLP": lambda seed: MLPTagger(random_state=seed),
        "logistic, idf": lambda seed: LogisticTagger(solver="newton", scale_features="idf"),
        "logistic": lambda seed: LogisticTagger(solver="newton"),
        "logistic, defaults": lambda seed: LogisticTagger(random_state=seed),
        "trees": lambda seed: ExtraTreesClassifier(400, min_samples_leaf=3, random_state=seed),
    }
    data = load_dataset(CATALOGUE["bibtex"])
    print(f"| rows | draw | tags | {' | '.join(rivals)} |\n|---|---|---|{'---|' * len(rivals)}")
    for n in (333, 1123):
        for draw in range(n_draws):
            order = np.random.default_rng((n, draw)).permutation(N_BIBTEX_TRAINING)
            train, test = order[:n], order[n : n + 2000]
            common = [np.sum(data.Y[rows], axis=0) >= 5 for rows in (train, test)]
            tags = np.flatnonzero(np.all(common, axis=0))
            aucs = []
            for make in rivals.values():
                model = make(draw).fit(data.X[train], data.Y[train][:, tags])
                P = model.predict_proba(data.X[test])
                P = np.stack([p[:, -1] for p in P], axis=1) if isinstance(P, list) else P
                aucs.append(auc_per_tag(data.Y[test][:, tags], P).mean)
            cells = " | ".join(f"{auc:.4f}" for auc in aucs)
            print(f"| {n:,} | {draw} | {len(tags)} | {cells} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=USUAL)
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--sparse", action="store_true")
    parser.add_argument("--draws", type=int, default=2, help="of --sparse")
    arguments = parser.parse_args()
    if arguments.few:
        few()
    elif arguments.sparse:
        sparse(arguments.draws)
    else:
        print("| dataset | AUC | one observed | half observed | calibration | log loss | s |")
        print("|---|---|---|---|---|---|---|")
        for name in arguments.datasets:
            compare(name)
