"""Likeness by sound, against other ways to compare the same features.

    HARMONIUM_DATA=... python benchmarks/likeness.py [--musicnn FILE.npz]

For every clip, the five and ten others that are most like it: on Emotify's clips the share that is
of its genre (features: the paper's, one window and the mean of three), on MajorMiner (104 MFCC
features) the mean cosine of the tags that people gave to clips of other artists, on GTZAN and 4Q
(features of musicnn that come with the data) that of genres and moods. With --musicnn, Emotify by
the arrays "item" (rock_1, …) and "embedding" of FILE as well.
Then the blend with tags: Emotify's emotions and MajorMiner's tags, predicted by logistic regression
for clips of other folds (of other artists, where these are known).
"""

import argparse
import os
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from harmonium.audio import features_of_file
from harmonium.library.searching.likeness import N_TAGS_LIKE_SOUND
from harmonium.library.sound import SoundSpace

DATA = Path(os.environ["HARMONIUM_DATA"])
GENRES = ("classical", "rock", "electronic", "pop")
STARTS = (0.0, 2.5, 5.0)


def cosine(V: np.ndarray) -> np.ndarray:
    unit = V / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-12)
    return unit @ unit.T


def scaled(X: np.ndarray) -> np.ndarray:
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, np.inf)


def whitened(X: np.ndarray, n_axes: int, ridge: float) -> np.ndarray:
    Z = scaled(X)
    values, vectors = np.linalg.eigh(Z.T @ Z / len(Z))
    first = np.argsort(-values)[:n_axes]
    first = first[values[first] > 1e-9 * values.max()]
    return Z @ vectors[:, first] / np.sqrt(values[first] + ridge)


def stored(X: np.ndarray) -> np.ndarray:
    return SoundSpace.fitted(X.astype(np.float32)).vectors(X.astype(np.float32)).astype(float)


WAYS = {
    "as they are, less the mean": lambda X: X - X.mean(axis=0),
    "in units of deviation": scaled,
    "whitened, 64 axes": lambda X: whitened(X, 64, 0.0),
    "whitened, 64 axes, shrunk": lambda X: whitened(X, 64, 3.0),
    "Harmonium": stored,
}


def near(C: np.ndarray, relevant: np.ndarray, left_out: np.ndarray | None) -> str:
    """The mean relevance of the five and the ten nearest."""
    C = C.copy()
    np.fill_diagonal(C, -np.inf)
    if left_out is not None:
        C[left_out] = -np.inf
    order = np.argsort(-C, axis=1, kind="stable")[:, :10]
    found = np.take_along_axis(relevant, order, axis=1)
    return f"{found[:, :5].mean():.3f}, {found.mean():.3f}"


def same(names: np.ndarray) -> np.ndarray:
    return names[:, None] == names[None, :]


def emotify() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features of one window and of three, genres, and emotions (from a quarter of listeners)."""
    paths = [DATA / f"emotify/clips/{genre}_{n}.ogg" for genre in GENRES for n in range(1, 101)]
    one = np.array([features_of_file(path) for path in paths], float)
    three = [[features_of_file(path, start=start) for start in STARTS] for path in paths]
    frame = pl.read_csv(DATA / "emotify/data.csv")
    frame = frame.rename({name: name.strip() for name in frame.columns})
    names = frame.columns[2:11]
    marks = frame.group_by("track id").agg(pl.col(names).mean()).sort("track id").select(names)
    emotions = (marks.to_numpy() >= 0.25).astype(float)
    return one, np.mean(three, axis=1, dtype=float), np.repeat(GENRES, 100), emotions


def majorminer() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, artists and tags."""
    stored = np.load(DATA / "majorminer/features.npz")
    columns = ["clip", "title", "artist", "album", "offset", "tag", "count"]
    rows = pl.read_csv(
        DATA / "majorminer/majorminer.tsv",
        separator="\t",
        has_header=False,
        new_columns=columns,
        quote_char=None,
    )
    clips = {clip: i for i, clip in enumerate(stored["clip_id"].astype(str))}
    tags = {tag: j for j, tag in enumerate(sorted(rows["tag"].unique()))}
    artists, Y = np.full(len(clips), "", object), np.zeros((len(clips), len(tags)))
    for clip, _, artist, _, _, tag, _ in rows.iter_rows():
        artists[clips[clip]] = str(artist)
        Y[clips[clip], tags[tag]] = 1
    return stored["X"][:, :104].astype(float), artists.astype(str), Y


def listening(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Embeddings of musicnn, the cosine of tags, and which pairs share an artist."""
    stored = np.load(DATA / f"listening/{name}.npz")
    rows = pl.read_csv(DATA / f"listening/{name}_tags.tsv", separator="\t")
    items = {item: i for i, item in enumerate(stored["item"].astype(str))}
    tags = {tag: j for j, tag in enumerate(sorted(rows["tag"].unique()))}
    Y = np.zeros((len(items), len(tags)))
    for item, _, tag in rows.iter_rows():
        if str(item) in items:
            Y[items[str(item)], tags[tag]] = 1
    artists = same(stored["group"].astype(str)) if name == "4q" else None
    return stored["embedding"].astype(float), cosine(Y), artists


def predicted(X: np.ndarray, Y: np.ndarray, groups: np.ndarray) -> np.ndarray:
    P = np.empty(Y.shape)
    for train, test in GroupKFold(5).split(X, groups=groups):
        scaling = StandardScaler().fit(X[train])
        for j in range(Y.shape[1]):
            model = LogisticRegression(C=0.01, max_iter=100, tol=1e-2)
            model.fit(scaling.transform(X[train]), Y[train, j])
            P[test, j] = model.predict_proba(scaling.transform(X[test]))[:, 1]
    return P


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--musicnn", type=Path)
    options = parser.parse_args()
    one, three, genres, emotions = emotify()
    X, artists, Y = majorminer()
    sets = {
        "Emotify, one window": (one, same(genres), None),
        "Emotify, three": (three, same(genres), None),
    }
    if options.musicnn:
        heard = np.load(options.musicnn)
        kinds = np.array([item.partition("_")[0] for item in heard["item"].astype(str)])
        sets["Emotify, musicnn"] = (heard["embedding"].astype(float), same(kinds), None)
    sets["MajorMiner"] = (X, cosine(Y), same(artists))
    sets["GTZAN, musicnn"] = listening("gtzan")
    sets["4Q, musicnn"] = listening("4q")
    print(f"| | {' | '.join(sets)} |\n|{'---|' * (len(sets) + 1)}")
    for name, way in WAYS.items():
        cells = [near(cosine(way(F)), relevant, left) for F, relevant, left in sets.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    frequent = Y.sum(axis=0) >= 20
    blends = {
        "Emotify": (three, emotions, np.arange(400), same(genres), None),
        "MajorMiner": (X, Y[:, frequent], artists, cosine(Y), same(artists)),
    }
    print("\n| | learnt tags | sound | tags | both |\n|---|---|---|---|---|")
    for name, (F, labels, groups, relevant, left) in blends.items():
        P, sound = predicted(F, labels, groups), cosine(stored(F))
        for n in (4, 9, labels.shape[1]):
            some = np.random.default_rng(0).permutation(labels.shape[1])[:n]
            tags, weight = cosine(scaled(P[:, some])), len(some) / (len(some) + N_TAGS_LIKE_SOUND)
            ways = (sound, tags, (1 - weight) * sound + weight * tags)
            cells = [near(way, relevant, left) for way in ways]
            print(f"| {name} | {len(some)} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
