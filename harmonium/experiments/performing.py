"""One run: train on some folds, stop early on another, test on the last."""

import platform
import sys
import time
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium import __version__
from harmonium.data import Triples
from harmonium.errors import DataError
from harmonium.evaluation import auc_per_tag, grouped_folds
from harmonium.experiments.materials import Listening, Material, material
from harmonium.experiments.models import build
from harmonium.experiments.plan import Run
from harmonium.experiments.specs import DatasetSpec

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

Rows = NDArray[np.intp]
Matrix = NDArray[np.float32]


Given = tuple[dict[str, Any], dict[str, Any]]
"""The result of a run, which depends on nothing else, and what was measured on the way."""


class Split(NamedTuple):
    """The rows of a run."""

    train: Rows
    valid: Rows
    test: Rows


def perform(run: Run) -> Given:
    """Do a run."""
    data = material(run.dataset)
    rows = split(run, data)
    X = data.features(run.features)
    began = time.perf_counter()
    which = (run.n_folds, run.test_fold, run.valid_fold, run.seed)
    targets = smoothed(run.dataset, *which) if run.smoothing else None
    smoothing = time.perf_counter() - began
    began = time.perf_counter()
    model = _fitted(run, data, X, rows, targets)
    seconds = time.perf_counter() - began
    return judged(run, model, X, data, rows, seconds=seconds, smoothing=smoothing)


def judged(
    run: Run,
    model: Any,
    X: Matrix,
    data: Material,
    rows: Split,
    *,
    seconds: float,
    smoothing: float,
) -> Given:
    """What a trained model is worth, and what it took."""
    began, Y = time.perf_counter(), data.Y
    result = {
        "tags": list(data.tags),
        "valid_auc": float(auc_per_tag(Y[rows.valid], scores(model, X[rows.valid])).mean),
        "tests": _tests(run, model, X[rows.test], Y[rows.test]),
        "best_epoch": int(getattr(model, "best_epoch_", 0)),
    }
    measured = {
        "seconds": seconds,
        "test_seconds": time.perf_counter() - began,
        "smoothing_seconds": smoothing,
        "seconds_to_best": _seconds_to_best(model),
        "clips": len(rows.train),
        "peak_memory_mb": peak_memory_mb(),
        "versions": versions(),
    }
    return result, measured


def split(run: Run, data: Material) -> Split:
    """The clips that a run trains on, stops early on and tests on."""
    folds = grouped_folds(data.groups, data.Y, n_folds=run.n_folds, seed=run.seed)
    return Split(
        train=_training_rows(run, folds),
        valid=np.flatnonzero(folds == run.valid_fold),
        test=np.flatnonzero(folds == run.test_fold),
    )


def scores(model: Any, X: Matrix) -> Matrix:
    """Scores for ranking clips by tag, (n_clips, n_tags)."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    return model.decision_function(X)


@lru_cache(maxsize=32)
def smoothed(
    dataset: DatasetSpec, n_folds: int, test_fold: int, valid_fold: int, seed: int
) -> Matrix:
    """Smoothed tags of the training clips, (n_clips, n_tags); NaN for all other clips.

    The smoother sees the triples of the training folds alone.
    """
    from harmonium.estimators import TagSmoother

    data = material(dataset)
    if data.listening is None:
        raise DataError(
            f"'{dataset.label}' says how many people gave a tag but not who: there is nothing to "
            "smooth. Use a dataset with triples, or leave smoothing out."
        )
    folds = grouped_folds(data.groups, data.Y, n_folds=n_folds, seed=seed)
    train = np.flatnonzero((folds != test_fold) & (folds != valid_fold))
    triples, pairs, tracks = _of_rows(data.listening, train)
    smoother = TagSmoother(random_state=_seed(seed, test_fold, valid_fold))
    smoother.fit(triples, pairs=pairs, tracks=tracks)
    targets = np.full(data.Y.shape, np.nan, np.float32)
    items = data.listening.items.gather(train)
    distinct = items.unique(maintain_order=True)
    values = smoother.smooth(distinct).values
    targets[train] = values[items.replace_strict(distinct, np.arange(len(distinct))).to_numpy()]
    return targets


def _of_rows(listening: Listening, rows: Rows) -> tuple[Triples, tuple[Any, Any], dict[str, str]]:
    """What was said of some items, and by whom."""
    of_rows = listening.items.gather(rows)
    tracks = dict(zip(of_rows, listening.tracks.gather(rows), strict=True))
    items = of_rows.unique(maintain_order=True)
    users, seen = listening.pairs
    among = seen.is_in(items.implode())
    return (
        listening.triples.select_items(items),
        (users.filter(among), seen.filter(among)),
        tracks,
    )


def _training_rows(run: Run, folds: NDArray[np.int64]) -> Rows:
    """The clips of all other folds, or so many of them; a smaller number takes a part of these."""
    rows = np.flatnonzero((folds != run.test_fold) & (folds != run.valid_fold))
    if not run.clips:
        return rows
    if run.clips > len(rows):
        raise DataError(
            f"clips = {run.clips} is more than the {len(rows)} training clips that "
            f"'{run.dataset.label}' has. Ask for fewer."
        )
    order = np.random.default_rng((run.seed, run.test_fold, run.valid_fold)).permutation(rows)
    return np.sort(order[: run.clips])


def _fitted(run: Run, data: Material, X: Matrix, rows: Split, targets: Matrix | None) -> Any:
    """The model trained on raw or smoothed tags; early stopping is always on raw ones."""
    train, valid, _ = rows
    model = build(run.estimator, run.settings, seed=run_seed(run))
    eval_set = (X[valid], data.Y[valid])
    if run.estimator == "SVMTagger":
        if targets is None:
            return model.fit(X[train], data.Y[train], eval_set, counts=data.counts[train])
        return model.fit(X[train], None, eval_set, counts=targets[train])
    return model.fit(X[train], (data.Y if targets is None else targets)[train], eval_set)


def run_seed(run: Run) -> int:
    """The seed of a run's model: the same for all settings, so that they are compared alike."""
    return _seed(run.seed, run.test_fold, run.valid_fold)


def _seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1)[0] % 2**31)


def _tests(run: Run, model: Any, X: Matrix, Y: Matrix) -> list[dict[str, Any]]:
    """AUC by tag for each way of testing; None where it is not defined."""
    found = []
    for inference in run.inference or (None,):
        if inference is not None:
            model.set_params(inference=inference)
        for known in run.known:
            auc = _completion_auc(run, model, X, Y, known)
            values = [None if np.isnan(value) else float(value) for value in auc]
            found.append({"inference": inference, "known": known, "auc": values})
    return found


def _completion_auc(
    run: Run, model: Any, X: Matrix, Y: Matrix, known: float
) -> NDArray[np.float64]:
    """AUC of the tags not told, when a random share of a clip's tags is told."""
    if not known:
        return auc_per_tag(Y, scores(model, X)).values
    told = np.random.default_rng((run.seed, run.test_fold)).random(Y.shape) < known
    given, asked = np.where(told, Y, np.nan), np.where(told, np.nan, Y)
    predicted = model.complete(X, given) if hasattr(model, "complete") else scores(model, X)
    return auc_per_tag(asked, predicted).values


def _seconds_to_best(model: Any) -> float | None:
    epochs = getattr(model, "best_epoch_", 0)
    return float(sum(model.history_["seconds"][:epochs])) if epochs else None


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """What the results were computed with."""
    from importlib.metadata import version

    packages = ("jax", "numpy", "scipy", "scikit-learn")
    return {
        "harmonium": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def peak_memory_mb() -> float | None:
    """The largest memory of this process so far; None on Windows, which does not say."""
    if resource is None:
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
