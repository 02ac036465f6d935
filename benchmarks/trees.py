"""Where extremely randomised trees are ahead of the RBM, and what could be had from them.

    HARMONIUM_DATA=FOLDER python benchmarks/trees.py [DATASET ...]     # emotify, birds by default

Mean AUC over tags and five test folds of: trees; the RBM with its defaults; the RBM with features
through quantiles and through a signed logarithm; the RBM on the 60 features that trees use most; on
all features and the trees' held-out log-odds; and the mean of both models' log-odds. Then the tags
on which trees gain most, with their positives, and the features that trees use most.
"""

import sys

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from harmonium import DiscriminativeRBM
from harmonium.evaluation import auc_per_tag, grouped_folds
from harmonium.experiments.datasets import CATALOGUE, load_dataset
from harmonium.logistic import limited_log_odds

N_FOLDS = 5


def fit_trees(X, Y):
    """Trees for all tags at once."""
    return ExtraTreesClassifier(400, min_samples_leaf=3, random_state=0, n_jobs=2).fit(X, Y)


def log_odds(trees, X):
    """What they say, (n, n_tags); a tag that they never met has the lowest."""
    P = [p[:, 1] if p.shape[1] == 2 else 0 * p[:, 0] for p in trees.predict_proba(X)]
    return limited_log_odds(np.clip(np.stack(P, axis=1), 1e-3, 1 - 1e-3))


def rbm(X, Y, new, **settings):
    """What the RBM says of new clips, as log-odds."""
    model = DiscriminativeRBM(random_state=0, **settings).fit(X, Y)
    return limited_log_odds(model.predict_proba(new))


def signed_log(X, like):
    """sign(x - m) log(1 + |x - m| / s), with the median m and the median deviation s."""
    middle = np.median(like, axis=0)
    spread = np.median(np.abs(like - middle), axis=0) + 1e-9
    return np.sign(X - middle) * np.log1p(np.abs(X - middle) / spread)


def compare(name):
    """All of it for one dataset."""
    data = load_dataset(CATALOGUE[name])
    X, Y = data.X, data.Y
    folds = grouped_folds(data.groups, Y, n_folds=N_FOLDS, seed=0)
    scores, by_tag, importance = {}, {}, 0
    for fold in range(N_FOLDS):
        train, test = folds != fold, folds == fold
        trees = fit_trees(X[train], Y[train])
        importance = importance + trees.feature_importances_
        top = np.argsort(-trees.feature_importances_)[:60]
        inner = grouped_folds(data.groups[train], Y[train], n_folds=N_FOLDS, seed=1)
        held_out = np.zeros(Y[train].shape)
        for k in range(N_FOLDS):
            others = fit_trees(X[train][inner != k], Y[train][inner != k])
            held_out[inner == k] = log_odds(others, X[train][inner == k])
        said = {"trees": log_odds(trees, X[test]), "RBM": rbm(X[train], Y[train], X[test])}
        said["quantile"] = rbm(X[train], Y[train], X[test], scale_features="quantile")
        logs = [signed_log(part, X[train]) for part in (X[train], X[test])]
        said["log"] = rbm(logs[0], Y[train], logs[1], scale_features="standard")
        said["60 features"] = rbm(X[train][:, top], Y[train], X[test][:, top])
        more = np.hstack([X[train], held_out]), Y[train], np.hstack([X[test], said["trees"]])
        said["trees as inputs"] = rbm(*more)
        said["mean of both"] = said["trees"] + said["RBM"]
        for model, scored in said.items():
            found = auc_per_tag(Y[test], scored)
            scores.setdefault(model, []).append(found.mean)
            by_tag.setdefault(model, []).append(found.values)
    print(name, ", ".join(f"{model} {np.mean(auc):.3f}" for model, auc in scores.items()))
    gain = np.nanmean(by_tag["trees"], axis=0) - np.nanmean(by_tag["RBM"], axis=0)
    positives = np.nansum(Y, axis=0).astype(int)
    best = [f"{data.tags[j]} ({positives[j]}) {gain[j]:+.3f}" for j in np.argsort(-gain)[:6]]
    print("  trees gain most on:", "; ".join(best))
    print("  their features, by number:", np.argsort(-importance)[:10].tolist(), flush=True)


if __name__ == "__main__":
    for dataset in sys.argv[1:] or ("emotify", "birds"):
        compare(dataset)
