"""How well `suggest` says how often tags go together.

    HARMONIUM_DATA=... python benchmarks/suggest.py

For pairs of tags that occur together at least 30 times: the suggested probability of the second
where the first is known, against the observed share. The model alone is what `suggest` said
before people's tags were counted. **the same**: learnt from all, and compared with the shares in
all; **others**: learnt from half of the artists, and compared with the shares among the others.

MajorMiner: clips and what holds for them; the model is a DiscriminativeRBM, asked about a clip of
average sound, as for a library of one person. HetRec Last.fm: the tags that each user gave each
artist, 100 most used tags; the model is a TagSmoother.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.stats import spearmanr

from harmonium import DiscriminativeRBM, TagSmoother
from harmonium.data import Conditioning
from harmonium.data.datasets import load
from harmonium.estimators.pairs import with_counts
from harmonium.experiments.datasets import CATALOGUE, load_dataset

LEAST = 30
EPOCHS = 10


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


def main() -> None:
    """Both datasets."""
    rng = np.random.default_rng(0)
    print(f"{'':34s} {'':14s} {'mean |Δ|':>8s} {'rank':>8s} {'pairs':>8s}")
    majorminer(lambda n: rng.random(n) < 0.5)
    for training in ("pl", "multi_prediction"):
        hetrec(lambda n: rng.random(n) < 0.5, training)


if __name__ == "__main__":
    main()
