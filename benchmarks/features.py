"""The 389 features: milliseconds per clip, and how well tags follow from them.

    python benchmarks/features.py [--tracks 100] [--clips 1] [--seed 0]

Renders a generated collection. Times `clip_features` and, turn by turn, librosa's mel spectrum and
MFCCs followed by the same statistics (where librosa is installed), each on one thread: processor
time, which other programs disturb less. Then logistic regression on the features, standardised and
of unit norm as fitted on the training tracks, is tested on tracks it has not seen: AUC of the true
tags that hold for 10 to 90 % of the clips.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from threadpoolctl import threadpool_limits

from harmonium.audio import FeatureParameters, clip_features
from harmonium.audio.rhythm import rhythm_features
from harmonium.data.synthetic import make_collection
from harmonium.evaluation import auc_per_tag, grouped_folds

PARAMETERS = FeatureParameters()
SHOWN = ("drums", "vocals", "distorted", "calm", "fast", "piano")


def librosa_features(samples: np.ndarray) -> np.ndarray:
    """librosa's mel spectrum and MFCCs, then the statistics of `clip_features`."""
    import librosa

    mel = librosa.feature.melspectrogram(
        y=samples,
        sr=PARAMETERS.rate,
        n_fft=PARAMETERS.frame_length,
        hop_length=PARAMETERS.hop_length,
        n_mels=PARAMETERS.n_mels,
        fmin=PARAMETERS.lowest_hz,
        center=False,
    )
    mfcc = librosa.feature.mfcc(S=librosa.power_to_db(mel), n_mfcc=PARAMETERS.n_mfcc)
    covariance = np.cov(mfcc)[np.triu_indices(len(mfcc))]
    return np.concatenate([mfcc.mean(axis=1), covariance, rhythm_features(mel.T, PARAMETERS)])


def print_times(clips: list[np.ndarray], rounds: int = 5) -> None:
    chains: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "harmonium": lambda samples: clip_features(samples, PARAMETERS.rate)
    }
    try:
        librosa_features(clips[0])  # imports and compiles
        chains["librosa"] = librosa_features
    except ImportError:
        print("librosa is not installed: no comparison")
    times: dict[str, list[float]] = {name: [] for name in chains}
    with threadpool_limits(1):
        for samples in clips * rounds:
            for name, chain in chains.items():
                start = time.process_time()
                chain(samples)
                times[name].append(1000 * (time.process_time() - start))
    for name, values in times.items():
        low, median = np.percentile(values, (5, 50))
        print(f"{name:9} {median:5.2f} ms per clip (median of {len(values)}; 5 % {low:.2f})")


def unseen_scores(X: np.ndarray, Y: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Scores of every clip by models that were trained on the other folds' tracks."""
    scores = np.zeros(Y.shape)
    for fold in range(folds.max() + 1):
        test = folds == fold
        for tag in range(Y.shape[1]):
            if np.ptp(Y[~test, tag]) == 0:  # always or never there: no model, a constant score
                continue
            model = make_pipeline(
                StandardScaler(), Normalizer(), LogisticRegression(C=10, max_iter=1000)
            )
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
    print_times(clips[:40])

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
