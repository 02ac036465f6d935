"""A promised precision: the library's bound beside MAPIE's controllers, on the same folds.

    HARMONIUM_DATA=FOLDER python benchmarks/promised_precision.py [DATASET ...] [--precision 0.8]

MAPIE is not a dependency: `pip install mapie` (1.6, in which MultiLabelClassificationController is
the former PrecisionRecallController). Five test folds by artist or item. A model's held-out
probabilities of its training clips set the thresholds, and the test fold shows what came of the
promise: the share of the tags given that are right, the share of the tags (of those given at least
ten times) that break the promise, and how many of all true tags are given.

The library's bound and MAPIE per tag may be wrong about one tag in five; MAPIE's one threshold for
all tags, for one in five of the draws. "F1" and "prevalence" promise nothing.
"""

import argparse
import warnings

import numpy as np

from harmonium import DiscriminativeRBM
from harmonium.estimators.thresholds import decision_thresholds
from harmonium.evaluation import evaluate_decisions, grouped_folds
from harmonium.experiments.datasets import CATALOGUE, load_dataset
from harmonium.precision_bound import DOUBT

USUAL = ("emotions", "emotify")
N_FOLDS = 5
FEWEST = 10  # clips that must get a tag for its precision to be judged


def mapie_for_all(Y, P, precision):
    """One threshold for all tags, by learn-then-test."""
    from mapie.risk_control import MultiLabelClassificationController

    controller = MultiLabelClassificationController(
        lambda X: np.asarray(X, float),
        risk="precision",
        method="ltt",
        target_level=precision,
        confidence_level=1 - DOUBT,
    )
    usable = ~np.isnan(Y).any(axis=1) & (Y == 1).any(axis=1)  # it takes no others
    controller.calibrate(P[usable].astype(float), Y[usable].astype(int))
    best = np.ravel(controller.best_predict_param)
    threshold = float(best[0]) if len(best) and best[0] is not None else np.inf
    return np.full(Y.shape[1], threshold if np.isfinite(threshold) else np.inf)


def mapie_per_tag(Y, P, precision):
    """A threshold for each tag, by learn-then-test."""
    from mapie.risk_control import BinaryClassificationController
    from mapie.risk_control import precision as risk

    thresholds = np.full(Y.shape[1], np.inf)
    for tag, (y, p) in enumerate(zip(Y.T, P.T, strict=True)):
        known = ~np.isnan(y)
        controller = BinaryClassificationController(
            lambda X: np.column_stack([1 - X[:, 0], X[:, 0]]),
            risk=risk,
            target_level=precision,
            confidence_level=1 - DOUBT,
        )
        controller.calibrate(p[known, None].astype(float), y[known].astype(int))
        best = controller.best_predict_param
        if best is not None:
            thresholds[tag] = float(np.ravel(best)[0])
    return thresholds


WAYS = {
    "prevalence": lambda Y, P, r: decision_thresholds("prevalence", r, Y, P),
    "F1": lambda Y, P, r: decision_thresholds("f1", r, Y, P),
    "the library's bound": lambda Y, P, r: decision_thresholds("precision", r, Y, P),
    "MAPIE, one threshold": mapie_for_all,
    "MAPIE, per tag": mapie_per_tag,
}


def compare(name, precision):
    """The rows of a dataset."""
    data = load_dataset(CATALOGUE[name])
    folds = grouped_folds(data.groups, data.Y, n_folds=N_FOLDS, seed=0)
    given = {way: np.zeros((N_FOLDS, data.Y.shape[1])) for way in WAYS}
    right = {way: np.zeros((N_FOLDS, data.Y.shape[1])) for way in WAYS}
    macro_f1 = {way: [] for way in WAYS}
    n_true = np.nansum(data.Y)
    for fold in range(N_FOLDS):
        train, test = folds != fold, folds == fold
        model = DiscriminativeRBM(random_state=fold)
        model.fit(data.X[train], data.Y[train], groups=data.groups[train])
        P = model.predict_proba(data.X[test])
        for way, thresholds_of in WAYS.items():
            thresholds = thresholds_of(data.Y[train], model.held_out_, precision)
            said = (thresholds <= P) & ~np.isnan(data.Y[test])
            given[way][fold] = said.sum(axis=0)
            right[way][fold] = (said & (data.Y[test] == 1)).sum(axis=0)
            macro_f1[way].append(evaluate_decisions(data.Y[test], said.astype(int)).macro_f1)
    for way in WAYS:
        judged = given[way] >= FEWEST
        broken = (right[way] < precision * given[way])[judged]
        print(
            f"| {name} | {way} | {right[way].sum() / max(1, given[way].sum()):.3f} "
            f"| {broken.sum()} of {judged.sum()} | {right[way].sum() / n_true:.3f} "
            f"| {np.nanmean(macro_f1[way]):.3f} |",
            flush=True,
        )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=USUAL)
    parser.add_argument("--precision", type=float, default=0.8)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| dataset | thresholds | precision | promise broken | share of true tags | macro F1 |")
    print("|---|---|---|---|---|---|")
    for name in arguments.datasets or USUAL:
        compare(name, arguments.precision)


if __name__ == "__main__":
    main()
