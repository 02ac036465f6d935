"""How many examples does a new word need? Mean AUC with 5, 10, 20 and 50 tracks that have it.

    HARMONIUM_DATA=FOLDER python benchmarks/few_shot.py

A word is learnt from so many clips that have it and twice as many that have not, by logistic
regression (of three penalties the one with the best mean), and judged by all clips of the other
half of the collection; mean over the words and over draws. Emotify's words,
heard by

- the paper's 389 features;
- musicnn's 400;
- these and the log-odds of the tags of the built-in model, made without Emotify;
- the mean of the log-odds of that and of the built-in model's own tag of that name ("prior"), with
  the weight n / (n + 5) for n examples. Only for words that it knows (calm, nostalgic, sad, tense).

MajorMiner's sound is not there: its words with its own 1,022 descriptors.

    HARMONIUM_DATA=FOLDER python benchmarks/few_shot.py --train

learns all of Emotify's words together from so many examples each, as `harmonium train` does it:
alone, and beside the built-in model, whose tags are tried as further inputs and as a prior. Beside
them is what `harmonium say` and `review` learn from the same examples within a second.
"""

import argparse

import numpy as np
from builtin_model.corpus import listening_corpus
from builtin_model.making import ONE_MODEL, fit
from builtin_model.vocabulary import shared_vocabulary
from quick_learning import learn, learn_new

from harmonium import LogisticTagger
from harmonium.audio import extract_files
from harmonium.data import datasets
from harmonium.evaluation import auc_per_tag
from harmonium.files import user_cache_folder
from harmonium.library.learning.examples import TrainingSet
from harmonium.library.learning.fitting import fit as fit_library
from harmonium.library.learning.prior import with_prior
from harmonium.library.model.odds import log_odds, mix
from harmonium.library.sound import FULL, SoundSpace

SIZES = (5, 10, 20, 50)
PENALTIES = (0.01, 0.1, 1.0)
PRIOR_STRENGTH = 5
"""So many examples weigh as much as the built-in model."""


def draw(y, half, n, rng):
    """Labels with n positives and 2 n negatives of one half known; None where there are too few."""
    known = np.full_like(y, np.nan)
    for value, wanted in ((1, n), (0, 2 * n)):
        rows = np.flatnonzero((y == value) & half)
        if len(rows) < wanted:
            return None
        known[rng.permutation(rows)[:wanted]] = value
    return known


def curve(variants, Y, groups, draws, words=None):
    """Variant -> size -> mean AUC over words and draws; a prior is (features, probabilities)."""
    found = {name: {n: {l2: [] for l2 in PENALTIES} for n in SIZES} for name in variants}
    for number in range(draws):
        rng = np.random.default_rng(number)
        half = rng.random(groups.max() + 1)[groups] < 0.5
        for n in SIZES:
            for j in range(Y.shape[1]) if words is None else words:
                known = draw(Y[:, j], half, n, np.random.default_rng((number, n, j)))
                if known is None:
                    continue
                rows = ~np.isnan(known)
                for name, (X, prior) in variants.items():
                    for l2 in PENALTIES:
                        model = LogisticTagger(solver="newton", l2=l2).fit(
                            X[rows], known[rows, None]
                        )
                        p = model.predict_proba(X[~half])
                        if prior is not None:
                            weight = np.float32(n / (n + PRIOR_STRENGTH))
                            p = mix(p, prior[~half, j : j + 1], weight)
                        auc = auc_per_tag(Y[~half, j : j + 1], p).values[0]
                        found[name][n][l2].append(auc)
    return {
        name: {
            n: max(map(np.mean, by_l2.values())) for n, by_l2 in by.items() if by_l2[PENALTIES[0]]
        }
        for name, by in found.items()
    }


def by_training(X, Y, P, known, tags, draws):
    """Variant -> size -> mean AUC, for all words and for those that the built-in model knows.

    known : word → its place among the tags of the built-in model, whose probabilities are P
    """
    space = SoundSpace.fitted(X)
    V, words = space.vectors(X) / FULL, tuple(map(str, range(Y.shape[1])))
    vocabulary = [f"shipped {tag}" for tag in tags]
    for j, place in known.items():
        vocabulary[place] = words[j]
    found = {}
    for number in range(draws):
        rng = np.random.default_rng(number)
        half = rng.random(len(Y)) < 0.5
        for n in SIZES[:3]:
            labels = np.stack(
                [draw(y, half, n, np.random.default_rng((number, n, j))) for j, y in enumerate(Y.T)]
            ).T
            rows = np.flatnonzero(~np.isnan(labels).all(axis=1))
            quick = np.stack(
                [
                    learn(V, told, y[told], log_odds(P[:, known[j]]).astype(float))
                    if j in known
                    else learn_new(V, told[y[told] == 1], others, told[y[told] == 0])
                    for j, y in enumerate(labels.T)
                    for told in [np.flatnonzero(~np.isnan(y))]
                    for others in [rng.permutation(np.flatnonzero(half & np.isnan(y)))]
                ]
            ).T
            results = {"learnt at once": quick[~half]}
            for name, more in (("trained alone", None), ("trained beside it", P)):
                inputs = X if more is None else np.concatenate([X, log_odds(more)], axis=1)
                n_more = 0 if more is None else more.shape[1]
                groups = np.arange(len(rows))
                examples = TrainingSet(inputs[rows], labels[rows], groups, words, n_more)
                fitted = fit_library(examples)
                n_inputs = fitted.estimator.n_features_in_
                found_p = fitted.estimator.predict_proba(inputs[~half, :n_inputs])
                if more is not None:
                    mixed = with_prior(examples, fitted.held_out, vocabulary)
                    for j, place in known.items():
                        weight = np.float32(mixed.own_weight[j])
                        found_p[:, j] = mix(found_p[:, j], P[~half, place], weight)
                results[name] = found_p
            for name, scores in results.items():
                aucs = auc_per_tag(Y[~half], scores.astype(np.float32)).values
                for which, columns in (("all words", slice(None)), ("known", list(known))):
                    found.setdefault(f"{name}: {which}", {}).setdefault(n, []).extend(aucs[columns])
    return {name: {n: np.mean(all_) for n, all_ in by.items()} for name, by in found.items()}


def show(title, curves):
    print(f"\n{title}\n\n| features | " + " | ".join(map(str, SIZES)) + " |")
    print("|---" * (len(SIZES) + 1) + "|")
    for name, by in curves.items():
        print(f"| {name} | " + " | ".join(f"{by[n]:.3f}" if n in by else "" for n in SIZES) + " |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--train", action="store_true", help="as `harmonium train` does it")
    options = parser.parse_args()
    draws = options.draws
    data = datasets.load("emotify")
    Y = data.labels().values
    musicnn = extract_files(data.audio, extractor="musicnn", cache=user_cache_folder()).features
    shipped = fit(listening_corpus(("4q", "gtzan")), **ONE_MODEL)
    P = shipped.predict_proba(musicnn)
    vocabulary, tags = shared_vocabulary(), shipped.tags_.tolist()
    places = {j: vocabulary.tag(word) for j, word in enumerate(data.tags)}
    known = {j: tags.index(tag) for j, tag in places.items() if tag in tags}
    if options.train:
        show("Emotify, trained", by_training(musicnn, Y, P, known, tags, draws))
        return
    paper = extract_files(data.audio, extractor="paper", cache=user_cache_folder()).features
    both = np.concatenate([musicnn, log_odds(P)], axis=1)
    variants = {
        "paper, 389": (paper, None),
        "musicnn, 400": (musicnn, None),
        "shipped tags": (log_odds(P), None),
        "musicnn and shipped tags": (both, None),
    }
    clips = np.arange(len(Y))
    show("Emotify, all words", curve(variants, Y, clips, draws))
    prior = np.full(Y.shape, 0.5, np.float32)
    prior[:, list(known)] = P[:, list(known.values())]
    variants["musicnn, with the shipped tag as a prior"] = (musicnn, prior)
    variants["both, with the shipped tag as a prior"] = (both, prior)
    named = ", ".join(data.tags[j] for j in known)
    show(
        f"Emotify, words that the built-in model knows: {named}",
        curve(variants, Y, clips, draws, known),
    )
    alone = auc_per_tag(Y[:, list(known)], prior[:, list(known)]).values.mean()
    print(f"\nThe shipped model alone, without an example: {alone:.3f}")
    major = datasets.load("majorminer", features="all")
    variants = {"its 1,022 descriptors": (major.features, None)}
    show("MajorMiner", curve(variants, major.labels().values, major.groups("artist"), draws))


if __name__ == "__main__":
    main()
