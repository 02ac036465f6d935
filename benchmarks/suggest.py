"""How well `suggest` says how often tags go together.

    HARMONIUM_DATA=... python benchmarks/suggest.py             # probabilities of pairs
    HARMONIUM_DATA=... python benchmarks/suggest.py --jamendo   # which tags a track has
    HARMONIUM_DATA=... python benchmarks/suggest.py --4q        # the same of AllMusic's lists

For pairs of tags that occur together at least 30 times: the suggested probability of the second
where the first is known, against the observed share. The model alone is what `suggest` said
before people's tags were counted. **the same**: learnt from all, and compared with the shares in
all; **others**: learnt from half of the artists, and compared with the shares among the others.

MajorMiner: clips and what holds for them; the model is a DiscriminativeRBM, asked about a clip of
average sound, as for a library of one person. HetRec Last.fm: the tags that each user gave each
artist, 100 most used tags; the model is a TagSmoother.

--jamendo: of each track of MTG-Jamendo's test artists, one tag of a kind or three are observed, and
the tags of another kind, or the others of the same, are asked for. "words" is what
`recipes/make_words.py` learns from its training artists and the other collections; "RBM" and
"counts" are its two parts. Every setting of the rivals was tried, and for each column the one that
was best on the validation artists counts; "words" has one setting for all. Logistic regression
learns from one and from three observed tags of each training track. --rows has all pairs of kinds.

--4q: the same for a third of 4Q's artists. "words" learns from the others and all of the other
collections; the rivals from the others alone: the built-in model's arrays without sound (here
without musicnn's soft labels), and co-occurrence.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from scipy.stats import spearmanr

from harmonium import DiscriminativeRBM, TagSmoother
from harmonium.data import Conditioning
from harmonium.data.datasets import load
from harmonium.estimators import CooccurrenceTagger, NaiveBayesTagger
from harmonium.estimators.related_tags import with_counts
from harmonium.evaluation import auc_per_clip, auc_per_tag
from harmonium.experiments.datasets import CATALOGUE, load_dataset
from harmonium.library.model.words import Words

sys.path.insert(0, str(Path(__file__).parents[1] / "recipes"))
import make_words

LEAST = 30
EPOCHS = 10
KINDS = ("genre", "instrument", "mood")
LEFT_OUT = "359034"  # a third of all instruments of the validation tracks are by this artist
SMOOTHING = (3.0, 10.0, 30.0, 100.0, 300.0)


def shares(said: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """p(b | a) as observed, and how often both occur, (C, C) each."""
    both = (said.T @ said).toarray()
    return both / np.maximum(np.diag(both), 1)[:, None], both


def compare(name: str, model: np.ndarray, learnt: sp.csr_array, test: sp.csr_array) -> None:
    """Print the differences of the model alone, of counting alone, and of both."""
    share, both = shares(test)
    often = (both >= LEAST) & ~np.eye(len(both), dtype=bool)
    ways = {
        "model alone": model,
        "counts alone": shares(learnt)[0],
        "suggest": np.array([with_counts(p, learnt, [a]) for a, p in enumerate(model)]),
    }
    for way, P in ways.items():
        off = np.abs(P - share)[often].mean()
        rank = spearmanr(P[often], share[often])[0]
        print(f"{name:34s} {way:14s} {off:8.3f} {rank:8.3f} {often.sum():8d}", flush=True)


def alone(n_tags: int) -> np.ndarray:
    """Every tag told alone, (C, C) with NaN for the others."""
    told = np.full((n_tags, n_tags), np.nan, np.float32)
    np.fill_diagonal(told, 1)
    return told


def majorminer(rows: Callable[[int], np.ndarray]) -> None:
    """Clips."""
    data = load_dataset(CATALOGUE["majorminer-104"])
    half = rows(data.groups.max() + 1)[data.groups]
    said = sp.csr_array(np.nan_to_num(data.Y))
    for name, train, test in (("the same", half | True, half | True), ("others", half, ~half)):
        model = DiscriminativeRBM(random_state=0).fit(data.X[train], data.Y[train])
        average = np.repeat(data.X[train].mean(axis=0, keepdims=True), len(data.tags), axis=0)
        P = model.complete(average, alone(len(data.tags)))
        compare(f"MajorMiner, {name}", P, said[train], said[test])


def hetrec(rows: Callable[[int], np.ndarray], training: str) -> None:
    """Pairs of a user and an artist."""
    triples = load("hetrec").triples
    assert triples is not None
    triples = triples.top_tags(100)
    full = Conditioning.from_triples(triples)
    half = rows(len(full.items))
    parts = {
        "the same": (full.items, np.full(len(full.item), True)),
        "others": (full.items.filter(half), ~half[full.item]),
    }
    for name, (items, test) in parts.items():
        smoother = TagSmoother(training=training, max_epochs=EPOCHS, random_state=0)
        smoother.fit(triples.select_items(items))
        order = [smoother.tags_.tolist().index(tag) for tag in full.tags]
        P = smoother._without_clip(alone(len(order)))[np.ix_(order, order)]
        learnt = smoother._data.y[:, order]
        compare(f"HetRec, {training}, {name}", P, learnt, full.y[test])


# Which tags a track has. --------------------------------------------------------------------------


def questions(lists, n, seed=0):
    """(kind, kind) → what is observed (m, C), and the labels that are asked for; NaN elsewhere."""
    rng, kinds, found = np.random.default_rng(seed), np.array(lists.kinds), {}
    for a in KINDS:
        of_kind = (lists.Y == 1) & (kinds == a)
        rows = np.flatnonzero(of_kind.sum(axis=1) >= n)
        order = np.argsort(np.where(of_kind[rows], rng.random((len(rows), len(kinds))), 2), axis=1)
        observed = np.full((len(rows), len(kinds)), np.nan, np.float32)
        np.put_along_axis(observed, order[:, :n], 1, axis=1)
        for b in KINDS:
            Y = np.where(np.isnan(observed) & (kinds == b), lists.Y[rows], np.nan)
            asked = ~np.isnan(Y).all(axis=1)
            if asked.sum() >= LEAST:
                found[a, b] = observed[asked], Y[asked]
    return found


def judge(answers, asked):
    """(kind, kind) → AUC over tracks, AUC within a track, log loss in hundredths of a nat."""
    scores = {}
    for pair, (observed, Y) in asked.items():
        tags = ~np.isnan(Y).all(axis=0)
        P, Y = answers(observed)[:, tags].astype(np.float64), Y[:, tags]
        p = np.clip(np.where(Y == 1, P, 1 - P), 1e-6, 1)
        aucs = [np.nanmean(metric(Y, P).values) for metric in (auc_per_tag, auc_per_clip)]
        scores[pair] = (*aucs, -100 * np.log(p)[~np.isnan(Y)].mean())
    return scores


def means(scores):
    """(2, 3): across kinds, and within a kind."""
    return np.array(
        [
            np.mean([row for (a, b), row in scores.items() if (a == b) == within], axis=0)
            for within in (False, True)
        ]
    )


def rivals(train):
    """Name → answers of each of its settings."""
    X = np.zeros((len(train.Y), 1), np.float32)

    def completed(model):
        return lambda observed: model.complete(np.zeros((len(observed), 1)), observed)

    found = {"co-occurrence": [], "naive Bayes": [], "logistic regression": []}
    for smoothing in SMOOTHING:
        for combination in ("mean", "noisy_or"):
            model = CooccurrenceTagger(smoothing=smoothing, combination=combination)
            found["co-occurrence"].append(completed(model.fit(X, train.Y)))
        for weight in (0.5, 0.7, 1.0):
            model = NaiveBayesTagger(
                smoothing=smoothing, use_features=False, evidence_weight=weight
            )
            found["naive Bayes"].append(completed(model.fit(X, train.Y)))
    found["logistic regression"] = [logistic(train, C) for C in (0.03, 0.3, 3.0)]
    return found


def logistic(train, C):
    """One regression for each tag, from observed tags."""
    from sklearn.linear_model import LogisticRegression

    parts = [part for n in (1, 3) for part in questions(train, n).values()]
    X = sp.csr_array(np.concatenate([np.nan_to_num(observed) for observed, _ in parts]))
    Y = np.concatenate([Y for _, Y in parts])
    W, d = np.zeros((X.shape[1], Y.shape[1])), np.full(Y.shape[1], -10.0)
    for j in range(Y.shape[1]):
        rows = np.flatnonzero(~np.isnan(Y[:, j]))
        if np.ptp(Y[rows, j]):
            model = LogisticRegression(C=C, solver="liblinear").fit(X[rows], Y[rows, j])
            W[:, j], d[j] = model.coef_[0], model.intercept_[0]
    return lambda observed: expit(np.nan_to_num(observed) @ W + d)


def parts_of(words, tags):
    """Name → answers of the model for these tags: as it is, and each of its parts."""
    at = [words.tags.index(tag) for tag in tags]

    def both(y):
        z = words(y)
        return np.where(np.isnan(z), words.by_members(y), z)

    ways = {
        "words": both,
        "RBM": words.by_members,
        "counts": lambda y: 2 * both(y) - words.by_members(y),  # of which the mean is taken
    }

    def answers(way):
        def answer(observed):
            y = np.full((len(observed), len(words.tags)), np.nan)
            y[:, at] = observed
            return expit(way(y)[:, at])

        return answer

    return {name: answers(way) for name, way in ways.items()}


def jamendo(all_rows: bool) -> None:
    """Test artists of MTG-Jamendo."""
    tracks = make_words.jamendo()
    train, *held = (
        tracks.rows((tracks.split == split) & (tracks.artists != LEFT_OUT))
        for split in ("train", "validation", "test")
    )
    corpus = make_words.join([train, *make_words.others(tracks)])
    words = parts_of(Words.of(make_words.make(corpus)), tracks.tags)
    learnt = {name: [way] for name, way in words.items()} | rivals(train)
    print("| observed | model | AUC over tracks | within a track | log loss |\n" + "|---" * 5 + "|")
    for n in (1, 3):
        asked, test = (questions(lists, n) for lists in held)
        for name, settings in learnt.items():
            valid = [means(judge(way, asked)) for way in settings if len(settings) > 1]
            tested = [judge(way, test) for way in settings]
            for within, kind in enumerate(("another kind", "the same kind")):
                best = [0, 0, 0]
                if valid:
                    each = np.array(valid)[:, within]
                    best = [*each[:, :2].argmax(axis=0), each[:, 2].argmin()]
                found = [means(tested[i])[within, metric] for metric, i in enumerate(best)]
                line(f"{n} → {kind}", name, found)
            if all_rows and len(settings) == 1:
                for pair, row in tested[0].items():
                    line(f"{n}: {pair[0]} → {pair[1]}", name, row)


def fourq() -> None:
    """Artists of 4Q."""
    from builtin_model.making import TOGETHER

    tracks = make_words.jamendo()
    lists, *more = make_words.others(tracks)
    names = np.random.default_rng(0).permutation(np.unique(lists.artists))
    held = np.isin(lists.artists, names[: len(names) // 3])
    train, test = lists.rows(~held), lists.rows(held)
    corpus = make_words.join([tracks.rows(tracks.split != "test"), train, *more])
    X = np.zeros((len(train.Y), 1), np.float32)
    arrays = DiscriminativeRBM(**TOGETHER).fit(X, train.Y)
    counts = CooccurrenceTagger().fit(X, train.Y)
    ways = parts_of(Words.of(make_words.make(corpus)), lists.tags) | {
        "built-in arrays": lambda seen: arrays.complete(np.zeros((len(seen), 1)), seen),
        "co-occurrence": lambda seen: counts.complete(np.zeros((len(seen), 1)), seen),
    }
    print("| observed | model | AUC over clips | within a clip | log loss |\n" + "|---" * 5 + "|")
    for n in (1, 3):
        for name, way in ways.items():
            for pair, row in judge(way, questions(test, n)).items():
                line(f"{n}: {pair[0]} → {pair[1]}", name, row)


def line(question, name, found):
    auc, within, loss = found
    print(f"| {question} | {name} | {auc:.4f} | {within:.4f} | {loss:.3f} |", flush=True)


def pairs() -> None:
    """Both datasets."""
    rng = np.random.default_rng(0)
    print(f"{'':34s} {'':14s} {'mean |Δ|':>8s} {'rank':>8s} {'pairs':>8s}")
    majorminer(lambda n: rng.random(n) < 0.5)
    for training in ("pl", "multi_prediction"):
        hetrec(lambda n: rng.random(n) < 0.5, training)


def main() -> None:
    """What the command asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jamendo", action="store_true", help="test artists of MTG-Jamendo")
    parser.add_argument("--4q", action="store_true", dest="fourq", help="artists of 4Q")
    parser.add_argument("--rows", action="store_true", help="every pair of kinds")
    arguments = parser.parse_args()
    if arguments.jamendo:
        jamendo(arguments.rows)
    elif arguments.fourq:
        fourq()
    else:
        pairs()


if __name__ == "__main__":
    main()
