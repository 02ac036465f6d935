"""Do probabilities mean what they say? Calibration on test folds, with and without the correction.

    HARMONIUM_DATA=... python benchmarks/calibration.py                    all, about five minutes
    HARMONIUM_DATA=... python benchmarks/calibration.py --datasets hetrec-msd --training smoothed

A `DiscriminativeRBM` learns from three of five folds, stops early on the next one and is tested on
the last; each fold is the test fold once. It is trained by contrastive divergence with the settings
below, or with `--method default` as it is by default. It is asked with the sound
alone ("sound"), with one true tag of a clip told ("one"), and with half of a clip's tags told
("half"), about the tags that are not told. "smoothed" learns from smoothed tags, and is corrected
and tested by raw ones.

    none        the model's own probabilities
    ours        `calibrate=True`, the default: one correction for all three questions
    platt       a logistic regression of each tag's label on its log-odds, as "sigmoid" of
                scikit-learn's CalibratedClassifierCV
    isotonic    an increasing step function for each tag, as its "isotonic"
    base rate   the share of the validation clips that have the tag, for every clip

The last three are fitted to the validation fold too, for each question on its own: they know which
question is asked. ECE: the calibration error in ten bins of equally many clips, mean over tags, all
test folds pooled; "floor" is what perfectly calibrated probabilities as those would show, since the
truth is drawn and the clips are few. ECE, all: that of all tags together (`reliability`). Log loss
and AUC: means over tags.
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from harmonium.estimators import DiscriminativeRBM
from harmonium.evaluation import (
    auc_per_tag,
    calibration_error_per_tag,
    grouped_folds,
    log_loss_per_tag,
    reliability,
)
from harmonium.experiments.datasets import CATALOGUE, load_dataset
from harmonium.experiments.judging import questions
from harmonium.experiments.recipe import ONE
from harmonium.experiments.run import _smoothed_tags

N_FOLDS, SEED = 5, 0
METHODS = {
    "cd": {
        "training": "cd",
        "inference": "lbp",
        "inference_steps": 20,
        "init_scale": 1.0,
        "l2": 0.1,
        "l2_tags": None,
    },
    "default": {},
}


def platt(p: Any, y: Any, q: Any) -> Any:
    def features(s: Any) -> Any:
        return logit(np.clip(s, 1e-7, 1 - 1e-7))[:, None]

    return LogisticRegression(C=1e6).fit(features(p), y).predict_proba(features(q))[:, 1]


def isotonic(p: Any, y: Any, q: Any) -> Any:
    return IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(p, y).predict(q)


def base_rate(p: Any, y: Any, q: Any) -> Any:
    return np.full(len(q), y.mean())


RIVALS = {"platt": platt, "isotonic": isotonic, "base rate": base_rate}


def by_tag(rival: Any, P: Any, Y: Any, Q: Any) -> Any:
    """A rival fitted to probabilities P and labels Y, tag by tag, and used on Q."""
    out = np.empty_like(Q)
    for tag in range(Q.shape[1]):
        known = ~np.isnan(Y[:, tag])
        y, p = Y[known, tag], P[known, tag].astype(float)
        one_class = len(np.unique(y)) < 2
        fit = base_rate if one_class else rival
        out[:, tag] = fit(p, y, Q[:, tag].astype(float)) if len(y) else 0.0
    return np.clip(out, 0, 1)


def predictions(
    spec: Any, data: Any, smoothed: bool, settings: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """Labels asked about, and probabilities by method, for each question; share predicted."""
    X, Y = data.X, data.Y
    folds = grouped_folds(data.groups, Y, n_folds=N_FOLDS, seed=SEED)
    kinds = {"sound": 0.0, "one": ONE, "half": 0.5}
    told = {kind: questions(Y, known, (SEED,)) for kind, known in kinds.items()}
    asked = {kind: about.asked for kind, about in told.items()}
    methods = ("none", "ours", *RIVALS)
    found = {k: {m: np.zeros_like(labels) for m in methods} for k, labels in asked.items()}
    yes = np.zeros_like(Y)
    for test_fold in range(N_FOLDS):
        valid_fold = (test_fold + 1) % N_FOLDS
        test, valid = folds == test_fold, folds == valid_fold
        train = ~(test | valid)
        targets = Y
        if smoothed:
            targets = _smoothed_tags(spec, N_FOLDS, test_fold, valid_fold, SEED)
        model = DiscriminativeRBM(random_state=SEED, **settings)
        model.fit(X[train], targets[train], (X[valid], Y[valid]))
        yes[test] = model.predict(X[test])
        for kind, (clips, known, labels) in told.items():
            to_fit, to_test = valid[clips], test[clips]
            P, Q = (model.infer(X[clips[rows]], known[rows]).y for rows in (to_fit, to_test))
            found[kind]["none"][to_test] = Q
            found[kind]["ours"][to_test] = model.complete(X[clips[to_test]], known[to_test])
            for name, rival in RIVALS.items():
                found[kind][name][to_test] = by_tag(rival, P, labels[to_fit], Q)
    return asked, found, yes


def show(label: str, asked: Any, found: Any, yes: Any) -> None:
    rng = np.random.default_rng(SEED)
    for kind, methods in found.items():
        Y = asked[kind]
        known = ~np.isnan(Y)
        for name, P in methods.items():
            P = np.where(known, P, 0.0)  # what was told is not asked about
            drawn = np.where(known, (rng.random(P.shape) < P).astype(float), np.nan)
            numbers = (
                calibration_error_per_tag(Y, P).mean,
                calibration_error_per_tag(drawn, P).mean,
                reliability(Y, P).error,
                log_loss_per_tag(Y, P).mean,
                auc_per_tag(Y, P).mean,
                P[known].mean(),
                Y[known].mean(),
            )
            print(f"{label:<26}{kind:<7}{name:<11}" + "".join(f"{x:8.4f}" for x in numbers))
    said, true = yes[~np.isnan(asked["sound"])].mean(), np.nanmean(asked["sound"])
    print(f"{label:<26}predict gives {said:.4f}; true {true:.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ("majorminer-104", "msd-50", "hetrec-msd")
    parser.add_argument("--datasets", nargs="+", default=names, choices=CATALOGUE)
    parser.add_argument(
        "--training", nargs="+", default=("raw", "smoothed"), choices=("raw", "smoothed")
    )
    parser.add_argument("--method", default="cd", choices=METHODS)
    args = parser.parse_args()
    settings = METHODS[args.method]
    warnings.simplefilter("ignore")
    heads = ("ECE", "floor", "all", "loss", "AUC", "mean p", "true")
    print(f"{'':<26}{'asked':<7}{'':<11}" + "".join(f"{head:>8}" for head in heads))
    for training in args.training:
        for name in args.datasets:
            spec = CATALOGUE[name]
            if training == "smoothed" and not spec.has_triples:
                continue
            began = time.perf_counter()
            results = predictions(spec, load_dataset(spec), training == "smoothed", settings)
            show(f"{name}, {training}", *results)
            print(f"{'':<26}{time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
