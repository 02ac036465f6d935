"""Every classifier trained on smoothed instead of raw tags, and judged on raw tags: mean AUC.

    HARMONIUM_DATA=... python benchmarks/smoothed_training.py        both datasets, two processes
    python benchmarks/smoothed_training.py --datasets generated --models "SVM;LOG, decay"

hetrec-msd: tracks carry their artist's tags; five folds, no artist in two of them; the 100 most
used tags. generated: five generated collections of the default size, 185 tracks of 5 clips with
three listeners for each, folds by track, the 50 most used tags; there the truth is known as well. A
fold is for testing, the next one for validation, three are for training; each fold of hetrec-msd
is tested once, and one of each generated collection.

Labels to judge by, in testing and validation: a tag is there from two users on, not there without
any, and unknown with one. What is learnt from is one of

    two users    the same labels: unknown where one user gave the tag
    one user     there from one user on
    smoothed     p, the probability of `TagSmoother` with its default settings that a new user gives
                 the tag; the smoother sees the triples of the training folds alone: neither test
                 nor validation items are known to it
    of n + 1     1 - (1 - p)^(n + 1), the probability that at least one of n + 1 users gives it,
                 where n users have tagged the item
    truth        what is so, of the generated clips: no smoothing can do better

For the SVM, the counts (or the probabilities) also rank the clips to choose from. "LOG, no decay"
is logistic regression as in the paper, by gradient descent that is stopped early, "LOG, decay" its
penalised minimum. The RBMs have 100 hidden units and predict by mean field. Each model tries the
same settings with all targets, and the validation fold chooses. Gains are in points (hundredths) of
mean AUC, with the standard error of the paired difference over the five divisions. Features and
smoothed tags are kept in a temporary folder: a second run is faster.
"""

import argparse
import hashlib
import itertools
import os
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

N_TAGS = {"hetrec-msd": 100, "generated": 50}
DIVISIONS = range(5)
RAW = ("two users", "one user")
SMOOTHED = ("smoothed", "of n + 1")
CACHE = Path(tempfile.gettempdir()) / "harmonium-smoothed-training"


def grid(**values: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]


SETTINGS = {
    "SVM": grid(nu=(0.5, 0.7), max_examples=(100, 200, 400)),
    "LOG, no decay": grid(learning_rate=(0.3, 1.0, 3.0, 10.0)),
    "LOG, decay": grid(l2=(3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)),
    "MLP": grid(l2=(0.03, 0.1, 0.3, 1.0)),
    "DRBM": grid(l2=(0.01, 0.03, 0.1, 0.3)),
    "RBM": grid(l2=(0.0, 0.03, 0.1, 0.3)),
}


def build(model: str, settings: dict[str, Any], seed: int) -> Any:
    from harmonium import estimators as ours

    if model == "LOG, decay":
        return ours.LogisticTagger(solver="newton", **settings)
    if model == "LOG, no decay":
        descent = {"optimizer": "sgd", "momentum": 0.0, "averaging": 0.0, "l2": 0.0}
        return ours.LogisticTagger(random_state=seed, **descent, **settings)
    if model in ("DRBM", "RBM"):
        kind = ours.DiscriminativeRBM if model == "DRBM" else ours.GenerativeRBM
        return kind(100, inference="mean_field", random_state=seed, **settings)
    kind = ours.SVMTagger if model == "SVM" else ours.MLPTagger
    return kind(random_state=seed, **settings)


# The data. -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Rows with features, each of an item that users tagged."""

    X: np.ndarray  # (N, D)
    item: np.ndarray  # (N,), of each row
    triples: Any  # of the kept tags
    seen: Any  # of all tags: who saw what
    tracks: list[str] | None  # of each item
    groups: np.ndarray  # (N,), what no two folds share
    truth: np.ndarray | None  # (N, C)

    def counts(self) -> Any:
        return self.triples.counts()

    def division(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which rows are for training, validation and testing."""
        from harmonium.evaluation import grouped_folds

        labels = self.counts().labels(min_count=2)[self.item]
        folds = grouped_folds(self.groups, labels, n_folds=5, seed=0)
        test, valid = folds == number, folds == (number + 1) % 5
        return ~(test | valid), valid, test


def read(dataset: str, number: int) -> Problem:
    return hetrec_msd() if dataset == "hetrec-msd" else generated(number)


def hetrec_msd() -> Problem:
    """The items are artists, the rows their tracks."""
    import polars as pl

    from harmonium.data import Triples
    from harmonium.data.datasets import load

    data = load("hetrec-msd")
    rows, names = data.triples.frame(), data.artists.to_list()
    artist = rows["item"].replace_strict(data.items, data.artists)
    seen = Triples.from_columns(rows["user"], artist, rows["tag"], normalise=False)
    code = {name: i for i, name in enumerate(seen.items)}
    item = pl.Series([code[name] for name in names]).to_numpy()
    triples = seen.top_tags(N_TAGS["hetrec-msd"])
    return Problem(data.features, item, triples, seen, None, item, None)


def generated(seed: int) -> Problem:
    """The items are the clips themselves."""
    from harmonium.synthetic import make_collection

    collection = make_collection(seed=seed)
    triples = collection.triples.top_tags(N_TAGS["generated"])
    columns = [collection.tags.index_of(tag) for tag in triples.tags]
    tracks = [str(track) for track in collection.clips["track"]]
    return Problem(
        features_of(collection),
        np.arange(collection.n_clips),
        triples,
        collection.triples,
        tracks,
        collection.clips["track"].to_numpy(),
        collection.truth[:, columns].astype(np.float32),
    )


def features_of(collection: Any) -> np.ndarray:
    from harmonium.audio import clip_features

    def rows() -> dict[str, np.ndarray]:
        clips = (collection.samples(i) for i in range(collection.n_clips))
        return {"X": np.stack([clip_features(clip, collection.rate) for clip in clips])}

    return kept("features", repr(collection), rows)["X"]


def smoothed(problem: Problem, items: np.ndarray) -> np.ndarray:
    """The probabilities for a new user of these items, from the triples of these items alone."""
    from harmonium import TagSmoother

    names = problem.triples.items.gather(items)
    tracks = None
    if problem.tracks is not None:
        tracks = dict(zip(names, (problem.tracks[i] for i in items), strict=True))
    smoother = TagSmoother(random_state=0).fit(
        problem.triples.select_items(names), pairs=problem.seen.select_items(names), tracks=tracks
    )
    result = smoother.smooth(names)
    assert result.tags.to_list() == problem.triples.tags.to_list()
    return result.values


def kept(kind: str, name: str, make: Any) -> dict[str, np.ndarray]:
    """Arrays from the temporary folder, or made and put there."""
    path = CACHE / f"{kind}-{hashlib.sha256(name.encode()).hexdigest()[:16]}.npz"
    if not path.exists():
        arrays = make()
        path.parent.mkdir(exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.npz")
        np.savez(partial, **arrays)
        partial.replace(path)
    return dict(np.load(path))


def users_of(problem: Problem) -> np.ndarray:
    """How many users have tagged each item, (n_items,)."""
    pairs = np.unique(np.stack([problem.seen.item, problem.seen.user]), axis=1)
    return np.bincount(pairs[0], minlength=len(problem.seen.items))


def prepare(dataset: str, number: int) -> dict[str, np.ndarray]:
    """Features, labels, counts and targets of one division, with NaN for what is not smoothed."""
    from harmonium import TagSmoother

    def make() -> dict[str, np.ndarray]:
        problem = read(dataset, number)
        train, valid, test = problem.division(number if dataset == "hetrec-msd" else 0)
        counts, items = problem.counts(), np.unique(problem.item[train])
        P = np.full(counts.matrix.shape, np.nan, np.float32)
        P[items] = smoothed(problem, items)
        n_users = users_of(problem)[:, None]
        count = counts.matrix.toarray()
        by_item = {
            "counts": count,
            "two users": counts.labels(min_count=2),
            "one user": count > 0,
            "smoothed": P,
            "of n + 1": 1 - (1 - P) ** (n_users + 1),
        }
        targets = {kind: array[problem.item] for kind, array in by_item.items()}
        if problem.truth is not None:
            targets["truth"] = problem.truth
        targets = {kind: array.astype(np.float32) for kind, array in targets.items()}
        return {"X": problem.X, "part": np.select([train, valid, test], [0, 1, 2]), **targets}

    settings = repr(sorted(TagSmoother().get_params().items()))
    return kept("targets", f"{dataset} {number} {N_TAGS[dataset]} {settings}", make)


# Training and judging. -----------------------------------------------------------------------


def fit(
    model: Any, kind: str, data: dict[str, np.ndarray], rows: np.ndarray, valid: np.ndarray
) -> Any:
    """Learn from these rows; stop early, where that is done, on raw tags of the others."""
    more = {}
    if type(model).__name__ == "SVMTagger" and kind not in SMOOTHED:
        more = {"counts": data["counts"][rows]}
    raw = (data["X"][valid], data["two users"][valid])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rare tags without a positive have no hyperplane
        return model.fit(data["X"][rows], data[kind][rows], eval_set=raw, **more)


def run(dataset: str, number: int, model: str) -> dict[str, Any]:
    """One division and model: for each kind of target, the test AUC of the chosen settings."""
    data = prepare(dataset, number)
    train, valid, test = (data["part"] == part for part in range(3))
    result: dict[str, Any] = {"dataset": dataset, "number": number, "model": model}
    for kind in kinds_of(dataset):
        fitted = [
            (fit(build(model, settings, number), kind, data, train, valid), settings)
            for settings in SETTINGS[model]
        ]
        scores = [each.score(data["X"][valid], data["two users"][valid]) for each, _ in fitted]
        best, settings = fitted[int(np.argmax(scores))]
        result[kind, "settings"] = settings
        for judge, labels in judges_of(dataset).items():
            result[kind, judge] = best.score(data["X"][test], data[labels][test])
    return result


def kinds_of(dataset: str) -> tuple[str, ...]:
    return (*RAW, *SMOOTHED, "truth") if dataset == "generated" else (*RAW, *SMOOTHED)


def judges_of(dataset: str) -> dict[str, str]:
    """What to judge by -> the labels."""
    raw = {"raw tags": "two users"}
    return {**raw, "the truth": "truth"} if dataset == "generated" else raw


# The tables. ---------------------------------------------------------------------------------


def tables(results: list[dict[str, Any]]) -> str:
    """Mean AUC by kind of target, and what each kind of smoothed tags gains over the raw ones."""
    parts = []
    for dataset in dict.fromkeys(r["dataset"] for r in results):
        kinds = kinds_of(dataset)
        gains = [(new, raw) for new in SMOOTHED for raw in RAW]
        heads = ["judged by", "model", *kinds, *(f"{new} - {raw}" for new, raw in gains)]
        lines = [f"**{dataset}**", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for judge, model in itertools.product(judges_of(dataset), SETTINGS):
            rows = [r for r in results if (r["dataset"], r["model"]) == (dataset, model)]
            if rows:
                auc = {kind: np.array([r[kind, judge] for r in rows]) for kind in kinds}
                cells = [f"{auc[kind].mean():.4f}" for kind in kinds]
                cells += [gain(auc[new] - auc[raw]) for new, raw in gains]
                lines.append(f"| {' | '.join([judge, model, *cells])} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def gain(difference: np.ndarray) -> str:
    error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else np.nan
    return f"{100 * difference.mean():+.2f} ± {100 * error:.2f}"


def report(r: dict[str, Any]) -> str:
    aucs = (
        f"{kind} {r[kind, 'raw tags']:.4f} with {r[kind, 'settings']}"
        for kind in kinds_of(r["dataset"])
    )
    return f"{r['dataset']} {r['number']}, {r['model']}: {', '.join(aucs)}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default=",".join(N_TAGS))
    parser.add_argument("--models", default="", help="all by default, separated by ;")
    parser.add_argument("--divisions", type=int, default=len(DIVISIONS))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    models = options.models.split(";") if options.models else list(SETTINGS)
    divisions = list(itertools.product(options.datasets.split(","), DIVISIONS[: options.divisions]))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one process for each core is enough
    began, results = time.perf_counter(), []
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(prepare, *each) for each in divisions]):
            future.result()
        print(f"Targets after {time.perf_counter() - began:.0f} s.", flush=True)
        tasks = [(*division, model) for division in divisions for model in models]
        for future in as_completed([pool.submit(run, *task) for task in tasks]):
            results.append(future.result())
            print(f"{len(results)}/{len(tasks)} {report(results[-1])}", flush=True)
    results.sort(key=lambda r: (r["dataset"] != "hetrec-msd", r["number"]))
    print("\n" + tables(results))
    print(f"\n{time.perf_counter() - began:.0f} s in all, {options.jobs} processes.")


if __name__ == "__main__":
    main()
