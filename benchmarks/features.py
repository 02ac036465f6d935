"""How well tags follow from the 389 features, on the generated collection.

    python benchmarks/features.py [--tracks 100] [--clips 1] [--seed 0]

Logistic regression on the features, normalised as fitted on the training tracks, is tested on
tracks it has not seen: AUC of the true tags that hold for 10 to 90 % of the clips.
benchmarks/audio.py has the times.
"""

import argparse

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from harmonium import ClipNormaliser
from harmonium.audio import FeatureParameters, clip_features
from harmonium.evaluation import auc_per_tag, grouped_folds
from harmonium.synthetic import make_collection

PARAMETERS = FeatureParameters()
SHOWN = ("drums", "vocals", "distorted", "calm", "fast", "piano")


def unseen_scores(X: np.ndarray, Y: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Scores of every clip by models that were trained on the other folds' tracks."""
    scores = np.zeros(Y.shape)
    for fold in range(folds.max() + 1):
        test = folds == fold
        for tag in range(Y.shape[1]):
            if np.ptp(Y[~test, tag]) == 0:  # always or never there: no model, a constant score
                continue
            model = make_pipeline(ClipNormaliser(), LogisticRegression(C=10, max_iter=1000))
            model.fit(X[~test], Y[~test, tag])
            scores[test, tag] = model.decision_function(X[test])
    return scores


def mean_auc(X: np.ndarray, Y: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """AUC of each tag within the test clips of a fold, mean over folds: (n_tags,)."""
    scores = unseen_scores(X, Y, folds)
    values = [auc_per_tag(Y[folds == k], scores[folds == k]).values for k in range(5)]
    return np.nanmean(values, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tracks", type=int, default=100)
    parser.add_argument("--clips", type=int, default=1, help="clips of each track")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    collection = make_collection(options.tracks, options.clips, seed=options.seed)
    clips = [collection.samples(index) for index in range(len(collection))]

    X = np.stack([clip_features(samples, collection.rate) for samples in clips])
    share = collection.truth.mean(axis=0)
    kept = np.flatnonzero((share >= 0.1) & (share <= 0.9))
    Y = collection.truth[:, kept].astype(float)
    tags = collection.tags.gather(kept).to_list()
    folds = grouped_folds(collection.clips["track"].to_numpy(), Y)
    timbre = PARAMETERS.n_timbre
    print(f"{len(clips)} clips of {options.tracks} tracks, {len(tags)} tags, 5 folds by track")
    for name, part in (("timbre", X[:, :timbre]), ("rhythm", X[:, timbre:]), ("both", X)):
        aucs = mean_auc(part, Y, folds)
        shown = ", ".join(f"{t} {aucs[tags.index(t)]:.2f}" for t in SHOWN if t in tags)
        print(f"{name:7} mean AUC {aucs.mean():.3f}; {shown}")


if __name__ == "__main__":
    main()
