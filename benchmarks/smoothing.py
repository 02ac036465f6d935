"""How well smoothed tags rank what is true, and predict listeners who were left out.

    python benchmarks/smoothing.py truth                          the generated collection
    HARMONIUM_DATA=... python benchmarks/smoothing.py listeners   Emotify and HetRec Last.fm
    python benchmarks/smoothing.py truth --seeds 1                a quick look

**truth**: collections of seeds 0, 1, …; AUC of the smoothed tags of every clip against the truth.
"mean AUC" is the mean over tags of the AUC over clips; "all pairs" ranks clips and tags at once.

**listeners**: pairs of a listener and a clip are left out and their tags predicted from what the
others gave that clip. A fifth of the pairs of HetRec (artists with at least three taggers, 100 most
used tags) is set aside and left out in five parts in turn; Emotify is used with half of its
listeners, three of each excerpt or all of them, of which one in three, or one in five, is left out.
The other half of Emotify's listeners, and the other pairs of HetRec, were used to choose the
smoother's defaults; these were not. The listener is a new one to all methods, but for "smoother,
known user", which has the other clips of the same (pseudo-)user.

Settings of the baselines, and clip_l2 of both smoothers, are chosen by the likelihood of pairs held
out from the training pairs; see smoothing_baselines.py. Standard errors are over seeds or parts.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from smoothing_baselines import chosen, methods

from harmonium import TagSmoother
from harmonium.data import Conditioning, Triples
from harmonium.data.datasets import load
from harmonium.estimators.pairs import without
from harmonium.estimators.smoother import hold_out
from harmonium.estimators.validation import log_likelihood
from harmonium.evaluation import auc_per_tag
from harmonium.synthetic import make_collection

CLIP_L2 = (1.0, 5.0)
SMOOTHERS = {"singly conditional": "none", "smoother": "other_users"}


class Problem(NamedTuple):
    """Training triples and pairs, and pairs left out: names of users and items, and tags."""

    triples: Triples
    seen: Conditioning  # of the training pairs
    user: list[str]
    item: np.ndarray  # codes of seen.items
    y: np.ndarray  # (n, n_tags)


# Left-out listeners. -------------------------------------------------------------------------


def leave_out(triples: Triples, pairs: Any, rows: Callable[[Conditioning], np.ndarray]) -> Problem:
    """The pairs of these rows apart from the others."""
    full = Conditioning.from_triples(triples, pairs=pairs)
    test = rows(full)
    left = without(full, test)
    keep = _is_in(triples, left)
    fewer = replace(
        triples, user=triples.user[keep], item=triples.item[keep], tag=triples.tag[keep]
    )
    users = full.users.gather(full.user[test]).to_list()
    return Problem(fewer, left, users, full.item[test], full.y[test].toarray())


def _is_in(triples: Triples, data: Conditioning) -> np.ndarray:
    """Which triples are of pairs of the data, whose names begin with the triples' names."""
    n = len(data.users)
    keys = data.item.astype(np.int64) * n + data.user
    return np.isin(triples.item.astype(np.int64) * n + triples.user, keys)


def emotify(listeners: int | None, seed: int) -> Problem:
    """Half of the listeners of each excerpt; three of these, or all."""
    data = load("emotify")
    reserved = np.random.default_rng(77).random(len(data.seen)) >= 0.5
    seen = data.seen.filter(pl.Series(reserved))
    rng = np.random.default_rng(seed)
    seen = seen.with_columns(order=pl.Series(rng.random(len(seen)))).sort("item", "order")
    if listeners is not None:
        seen = seen.filter(pl.int_range(pl.len()).over("item") < listeners)
    frame = data.triples.frame().join(seen, on=["user", "item"], how="semi")
    triples = Triples.from_columns(frame["user"], frame["item"], frame["tag"], normalise=False)

    def rows(full: Conditioning) -> np.ndarray:
        order = rng.permutation(np.flatnonzero(full.n_others > 0))
        if listeners is None:
            return np.sort(order[: len(order) // 5])
        _, first = np.unique(full.item[order], return_index=True)
        return np.sort(order[first])

    return leave_out(triples, (seen["user"], seen["item"]), rows)


def hetrec(part: int) -> Problem:
    """Part 0 to 4 of the fifth of the pairs that is set aside."""
    triples = load("hetrec").triples
    top = triples.top_tags(100)
    full = Conditioning.from_triples(top, pairs=triples)
    known = full.n_users >= 3
    pairs = known[full.item]
    frame = top.frame().filter(pl.Series(known[top.item]))
    kept = Triples.from_columns(frame["user"], frame["item"], frame["tag"], normalise=False)
    seen = (full.users.gather(full.user[pairs]), full.items.gather(full.item[pairs]))

    def rows(data: Conditioning) -> np.ndarray:
        aside = np.flatnonzero(np.random.default_rng(77).random(len(data)) < 0.2)
        aside = aside[data.n_others[aside] > 0]
        return aside[part::5]

    return leave_out(kept, seen, rows)


def listeners_problems(parts: int) -> Iterator[tuple[str, list[Callable[[], Problem]]]]:
    yield "Emotify, three listeners", [lambda s=s: emotify(3, s) for s in range(parts)]
    yield "Emotify, all listeners", [lambda s=s: emotify(None, s) for s in range(parts)]
    yield "HetRec Last.fm", [lambda p=p: hetrec(p) for p in range(min(parts, 5))]


def run_listeners(parts: int, names: str) -> None:
    for name, problems in listeners_problems(parts):
        if names not in name.lower():
            continue
        results: dict[str, list[tuple[float, float]]] = {}
        began = time.perf_counter()
        for make in problems:
            problem = make()
            for method, P in predictions(problem).items():
                score = auc_per_tag(problem.y, P).mean, log_likelihood(problem.y, P)
                results.setdefault(method, []).append(score)
                print(f"{name}, {method:<26}{score[0]:.4f}  {score[1]:.5f}", flush=True)
        n = len(problem.y)
        print(f"\n{name}: {len(problems)} parts of about {n:,} pairs left out", flush=True)
        report(results, ("mean AUC", "log-likelihood per label"), began)


def predictions(problem: Problem) -> dict[str, np.ndarray]:
    """Method -> probabilities of the tags of the pairs left out, (n, n_tags)."""
    seen = problem.seen
    held_out = hold_out(np.random.default_rng(0), seen, 0.2, 5000)
    known, y = without(seen, held_out), seen.y[held_out].toarray()
    found = {}
    for name, (method, settings) in methods(with_tracks=False).items():
        setting, calibration = chosen(method, settings, known, seen.item[held_out], y)
        found[name] = calibration(method(seen, **setting)[problem.item])
    pairs = (seen.users.gather(seen.user), seen.items.gather(seen.item))
    items = seen.items.gather(problem.item).to_list()
    for name, conditioning in SMOOTHERS.items():
        model = tuned(conditioning, problem.triples, pairs=pairs)
        found[name] = model.predict_user("a new user", items).values
        if conditioning == "other_users":
            found["smoother, known user"] = model.predict_user(problem.user, items).values
    return found


def tuned(conditioning: str, triples: Triples, **data: Any) -> TagSmoother:
    """The smoother whose clip_l2 explains its own held-out pairs best."""
    models = [
        TagSmoother(conditioning, clip_l2=clip_l2, random_state=0).fit(triples, **data)
        for clip_l2 in CLIP_L2
    ]
    return max(models, key=lambda model: max(model.history_["validation"]))


# The truth. ----------------------------------------------------------------------------------


def run_truth(seeds: int) -> None:
    results: dict[str, list[tuple[float, float]]] = {}
    began = time.perf_counter()
    for seed in range(seeds):
        collection = make_collection(seed=seed)
        truth = collection.truth.astype(np.float32)
        tracks = collection.clips["track"]
        for method, S in smoothed(collection.triples, tracks).items():
            flat = auc_per_tag(truth.reshape(-1, 1), S.reshape(-1, 1)).mean
            results.setdefault(method, []).append((auc_per_tag(truth, S).mean, flat))
            print(f"seed {seed}  {method:<34}{results[method][-1][0]:.4f}  {flat:.4f}", flush=True)
    print(f"\nThe generated collection, seeds 0 to {seeds - 1}", flush=True)
    report(results, ("mean AUC", "all pairs"), began)


def smoothed(triples: Triples, tracks: pl.Series) -> dict[str, np.ndarray]:
    """Method -> scores of every clip and tag, in the triples' order."""
    data = Conditioning.from_triples(triples, tracks=tracks)
    held_out = hold_out(np.random.default_rng(0), data, 0.2, 5000)
    known, y = without(data, held_out), data.y[held_out].toarray()
    found = {"raw counts": data.counts.toarray()}
    for suffix, with_tracks in (("", False), (", with tracks", True)):
        for name, (method, settings) in methods(with_tracks).items():
            if name == "mean of the others" and not with_tracks:
                continue  # ranks a tag's clips as the counts do
            setting, _ = chosen(method, settings, known, data.item[held_out], y)
            found[name + suffix] = method(data, **setting)
    for name, conditioning in SMOOTHERS.items():
        found[name] = tuned(conditioning, triples, tracks=tracks).smooth().values
    return found


def report(
    results: dict[str, list[tuple[float, float]]], columns: tuple[str, str], began: float
) -> None:
    print(f"{'':<34}{columns[0]:>18}{columns[1]:>28}")
    for method, scores in results.items():
        values = np.array(scores)
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else [0, 0]
        cells = [f"{m:.4f} ± {e:.4f}" for m, e in zip(values.mean(axis=0), error, strict=True)]
        print(f"{method:<34}{cells[0]:>18}{cells[1]:>28}", flush=True)
    print(f"{time.perf_counter() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("truth", "listeners"))
    parser.add_argument("--seeds", type=int, default=5, help="seeds, or parts left out")
    parser.add_argument("--dataset", default="", help="a word of the dataset's name, for listeners")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="implicit")
    if options.part == "truth":
        run_truth(options.seeds)
    else:
        run_listeners(options.seeds, options.dataset.lower())


if __name__ == "__main__":
    main()
