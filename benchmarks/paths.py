"""A path between two clips, and a smooth order of a playlist, against simpler ways.

    HARMONIUM_DATA=... python benchmarks/paths.py [--pairs 300] [--stops 20]

On GTZAN and 4Q (musicnn's features, which come with the data) and Emotify (the paper's features of
its clips), as the library stores them. For random pairs of clips of different genres (quadrants in
4Q): the mean and the largest jump (one minus the similarity of neighbours), the share of steps that
come closer to the end, and how many different genres follow each other. Then playlists of random
clips in some order.
"""

import argparse
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from scipy.sparse.csgraph import dijkstra, minimum_spanning_tree
from sklearn.neighbors import kneighbors_graph

from harmonium.audio import features_of_file
from harmonium.library.searching.paths import pool_between, smooth_order, smoothest
from harmonium.library.sound import SoundSpace

DATA = Path(os.environ["HARMONIUM_DATA"])
GENRES = ("classical", "rock", "electronic", "pop")
Stops = list[int]


def unit(X: np.ndarray) -> np.ndarray:
    V = SoundSpace.fitted(X.astype(np.float32)).vectors(X.astype(np.float32)).astype(float)
    return V / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-12)


def harmonium(C: np.ndarray, a: int, b: int, n: int, power: float = 3.0) -> Stops:
    """With another power than 3, the sum of other powers of the jumps is the least."""
    others = np.array([i for i in range(len(C)) if i not in (a, b)])
    pool = others[pool_between(C[a, others], C[b, others], C[a, b])]
    rows = np.array([a, *pool, b])
    jumps = np.maximum(1 - C[np.ix_(rows, rows)], 0) ** (power / 3)
    return rows[smoothest(1 - jumps, n)].tolist()


def straight_line(C: np.ndarray, a: int, b: int, n: int) -> Stops:
    """The nearest unused clip to each of n points between the two."""
    path = [a]
    for t in np.linspace(0, 1, n)[1:-1]:
        score = (1 - t) * C[a] + t * C[b]
        score[[*path, b]] = -np.inf
        path.append(int(score.argmax()))
    return [*path, b]


def greedy(C: np.ndarray, a: int, b: int, n: int) -> Stops:
    """Each time the clip nearest to the last one, among those that are closer to the end."""
    path = [a]
    for _ in range(n - 2):
        score = C[path[-1]].copy()
        score[(C[b] <= C[b, path[-1]])] = -np.inf
        score[[*path, b]] = -np.inf
        if not np.isfinite(score.max()):
            break
        path.append(int(score.argmax()))
    return [*path, b]


def on_graph(G: np.ndarray, a: int, b: int) -> Stops:
    _, before = dijkstra(G, indices=a, return_predecessors=True)
    path = [b]
    while path[-1] != a:
        path.append(int(before[path[-1]]))
    return path[::-1]


def neighbour_graph(C: np.ndarray, power: float) -> Callable[[int, int], Stops]:
    """The shortest path over ten neighbours each; it has as many stops as it happens to have."""
    jumps = np.maximum(1 - C, 1e-9) ** power
    near = kneighbors_graph(np.maximum(1 - C, 0), 10, metric="precomputed", mode="connectivity")
    tree = minimum_spanning_tree(jumps)  # so that all are connected
    G = (near + near.T + tree + tree.T > 0).multiply(jumps).tocsr()
    return lambda a, b: on_graph(G, a, b)


def judged(C: np.ndarray, genres: np.ndarray, paths: list[Stops]) -> list[str]:
    rows = []
    for path in paths:
        p = np.array(path)
        jumps, to_end = 1 - C[p[:-1], p[1:]], C[p[-1], p] - C[p[0], p]
        forwards = np.diff(to_end) > 0
        rows.append(
            [
                len(p),
                jumps.mean(),
                jumps.max(),
                forwards.mean(),
                (genres[p[1:]] != genres[p[:-1]]).sum(),
            ]
        )
    n, mean, largest, forwards, changes = np.mean(rows, axis=0)
    return [
        f"{n:.1f}",
        f"{mean:.3f}",
        f"{largest:.3f}",
        f"{100 * forwards:.0f} %",
        f"{changes:.1f}",
    ]


def listening(name: str) -> tuple[np.ndarray, np.ndarray]:
    stored = np.load(DATA / f"listening/{name}.npz")
    file, column = (f"{name}_tags.tsv", "tag") if name == "gtzan" else ("4q_quadrants.tsv", None)
    rows = pl.read_csv(DATA / f"listening/{file}", separator="\t")
    names = dict(zip(rows[rows.columns[0]], rows[column or rows.columns[-1]], strict=True))
    items = stored["item"].astype(str)
    return unit(stored["embedding"]), np.array([str(names.get(item, "")) for item in items])


def emotify() -> tuple[np.ndarray, np.ndarray]:
    paths = [DATA / f"emotify/clips/{genre}_{n}.ogg" for genre in GENRES for n in range(1, 101)]
    return unit(np.array([features_of_file(path) for path in paths])), np.repeat(GENRES, 100)


def by_nearest(jumps: np.ndarray) -> np.ndarray:
    order = [0]
    while len(order) < len(jumps):
        left = [i for i in range(len(jumps)) if i not in order]
        order.append(left[int(jumps[order[-1], left].argmin())])
    return np.array(order)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--stops", type=int, default=20)
    options = parser.parse_args()
    head = "| | stops | mean jump | largest jump | steps forwards | changes of genre |"
    for name, (V, genres) in {
        "GTZAN": listening("gtzan"),
        "4Q": listening("4q"),
        "Emotify": emotify(),
    }.items():
        rng, C = np.random.default_rng(0), V @ V.T
        pairs = []
        while len(pairs) < options.pairs:
            a, b = rng.choice(len(V), 2, replace=False).tolist()
            if genres[a] != genres[b]:
                pairs.append((a, b))
        n = options.stops
        ways: dict[str, Callable[..., Stops]] = {
            "**Harmonium**": partial(harmonium, C, n=n),
            "the same, least sum of jumps": partial(harmonium, C, n=n, power=1.0),
            "the same, least sum of squares": partial(harmonium, C, n=n, power=2.0),
            "the same, least largest jump": partial(harmonium, C, n=n, power=12.0),
            "straight line": partial(straight_line, C, n=n),
            "nearest that is closer to the end": partial(greedy, C, n=n),
            "graph of neighbours, squared jumps": neighbour_graph(C, 2.0),
            "graph of neighbours, least largest jump": neighbour_graph(C, 8.0),
        }
        print(f"\n{name}: {len(V)} clips, {options.pairs} pairs\n\n{head}\n|{'---|' * 6}")
        for way, find in ways.items():
            cells = judged(C, genres, [find(a, b) for a, b in pairs])
            print(f"| {way} | {' | '.join(cells)} |", flush=True)
        lists = [rng.choice(len(V), 50, replace=False) for _ in range(100)]
        orders: dict[str, Callable[[np.ndarray], np.ndarray]] = {
            "**Harmonium**": lambda jumps: smooth_order(1 - jumps),
            "each time the nearest left": by_nearest,
            "any order": lambda jumps: np.arange(len(jumps)),
        }
        print(
            "\n| 50 clips | stops | mean jump | largest jump | | changes of genre |\n|" + "---|" * 6
        )
        for way, order in orders.items():
            cells = judged(
                C, genres, [some[order(1 - C[np.ix_(some, some)])].tolist() for some in lists]
            )
            print(f"| {way} | {' | '.join([*cells[:3], '', cells[4]])} |", flush=True)


if __name__ == "__main__":
    main()
