"""The shipped model against its rivals on held-out artists, and its words learnt alone or together.

    HARMONIUM_DATA=FOLDER python benchmarks/shipped.py

Every clip is predicted by a model that has not learnt from its artist (4Q), its part of the split
(GTZAN) or itself (Emotify). Mean AUC over the tags that people gave. "alone" learns from one
collection; "union" from all three; "heads" adds what musicnn's own taggers say where a collection
was not asked. The penalties of logistic regression and of the MLP are the best of three by these
very scores, which flatters them; those of the RBM were chosen on other folds of the same clips.

Completion: each clip of 4Q is told one mood that it has, and its genres are asked; and the other
way round. The gain is in mean AUC over the same clips without anything told.
"""

import argparse
import warnings

import numpy as np

from harmonium import DiscriminativeRBM, ExactLogisticTagger, MLPTagger
from harmonium.evaluation import auc_per_tag
from harmonium.shipped.corpus import Corpus, listening_corpus
from harmonium.shipped.making import SETTINGS, held_out, held_out_splits
from harmonium.shipped.vocabulary import shared_vocabulary

QUESTIONS = (("4q", "mood"), ("4q", "genre"), ("gtzan", "genre"), ("emotify", "mood"))
CD = SETTINGS | {"training": "cd", "training_steps": 1, "inference": "lbp", "inference_steps": 20}


def by(kind, heads=True, **settings):
    """A predictor that learns with a class of estimators."""

    def predict(corpus: Corpus, X):
        Y = corpus.targets(heads)
        asked = ~np.isnan(Y).all(axis=0)
        P = np.full((len(X), Y.shape[1]), np.nan, np.float32)
        P[:, asked] = kind(**settings).fit(corpus.X, Y[:, asked]).predict_proba(X)
        return P

    return predict


def score(corpus, P):
    """(collection, group) -> mean AUC."""
    groups = shared_vocabulary().groups
    found = {}
    for collection, group in QUESTIONS:
        rows = corpus.collection == collection
        of_group = np.array([(groups[tag] == "genre") == (group == "genre") for tag in corpus.tags])
        asked = of_group & ~np.isnan(corpus.Y[rows]).all(axis=0) if rows.any() else of_group & False
        if asked.any():
            found[collection, group] = np.nanmean(
                auc_per_tag(corpus.Y[rows][:, asked], P[rows][:, asked]).values
            )
    return found


def line(name, found):
    cells = [f"{found[q]:.3f}" if q in found else "" for q in QUESTIONS]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def best(corpus, name, kind, key, values, **settings):
    """The line of the best of several penalties, by collection and group."""
    trials = []
    for value in values:
        trials.append(score(corpus, held_out(corpus, by(kind, **settings, **{key: value}))))
    line(name, {q: max(one[q] for one in trials) for q in trials[0]})


def completion(corpus):
    """Mean AUC of genres told one mood, and of moods told one genre, and told nothing."""
    groups = shared_vocabulary().groups
    genre = np.array([groups[tag] == "genre" for tag in corpus.tags])
    rng = np.random.default_rng(0)
    told, before, after = {}, {}, {}
    for rows in held_out_splits(corpus):
        rows = rows[corpus.collection[rows] == "4q"]
        if not len(rows):
            continue
        others = np.setdiff1d(np.arange(len(corpus.X)), rows)
        rest = corpus.rows(others)
        model = DiscriminativeRBM(**SETTINGS).fit(rest.X, rest.targets())
        for name, given in (("moods → genres", ~genre), ("genres → moods", genre)):
            known = np.full((len(rows), len(genre)), np.nan, np.float32)
            for i, row in enumerate(rows):
                has = np.flatnonzero((corpus.Y[row] == 1) & given)
                if len(has):
                    known[i, rng.choice(has)] = 1
            X = corpus.X[rows]
            before.setdefault(name, []).append(model.predict_proba(X)[:, ~given])
            after.setdefault(name, []).append(model.complete(X, known)[:, ~given])
            told.setdefault(name, []).append(corpus.Y[rows][:, ~given])
    for name, labels in told.items():
        Y = np.concatenate(labels)
        asked = ~np.isnan(Y).all(axis=0)
        a, b = (
            np.nanmean(auc_per_tag(Y[:, asked], np.concatenate(P[name])[:, asked]).values)
            for P in (before, after)
        )
        print(f"| {name} | {a:.3f} | {b:.3f} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--collections", default="4q,gtzan,emotify")
    names = parser.parse_args().collections.split(",")
    warnings.simplefilter("ignore")
    parts = {name: listening_corpus([name]) for name in names}
    union = listening_corpus(names)
    print("| model | " + " | ".join(f"{c}: {g}s" for c, g in QUESTIONS) + " |")
    print("|---" * (len(QUESTIONS) + 1) + "|")
    rbm = by(DiscriminativeRBM, **SETTINGS)
    line("RBM, multi-prediction: union and heads (shipped)", score(union, held_out(union, rbm)))
    plain = by(DiscriminativeRBM, heads=False, **SETTINGS)
    line("RBM, multi-prediction: union", score(union, held_out(union, plain)))
    alone, with_heads = {}, {}
    for part in parts.values():
        alone |= score(part, held_out(part, plain))
        with_heads |= score(part, held_out(part, rbm))
    line("RBM, multi-prediction: alone", alone)
    line("RBM, multi-prediction: alone and heads", with_heads)
    l2 = {"key": "l2", "values": (3e-5, 1e-4, 3e-4)}
    best(union, "logistic regression", ExactLogisticTagger, **l2, heads=False)
    l2["values"] = (0.1, 0.3, 1.0)
    some = {"n_hidden": 200, "max_epochs": 80, "validation_fraction": 0.0, "random_state": 0}
    best(union, "MLP: union and heads", MLPTagger, **l2, batch_size=50, **some)
    line("RBM, CD-1: union and heads", score(union, held_out(union, by(DiscriminativeRBM, **CD))))
    print("\n| told one of its | nothing told | told |\n|---|---|---|")
    completion(union)


if __name__ == "__main__":
    main()
