"""Runs an experiment: does the missing runs until none is left.

One run trains a model on some folds, stops early on another, and tests it on the last. Or it trains
a member of a model for each fold except the test fold, and tests the mean of their log-odds.
"""

import inspect
import os
import platform
import sys
import time
import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from harmonium import __version__
from harmonium.arrays import Floats, Places
from harmonium.engine import Runner, TaskOutcome
from harmonium.errors import DataError, HarmoniumError
from harmonium.estimators.model_files import mean_probabilities, observed_fraction
from harmonium.evaluation import (
    MetricResult,
    auc_per_clip,
    auc_per_tag,
    grouped_folds,
    precision_at_k_per_clip,
    reliability,
)
from harmonium.evaluation.metrics import are_probabilities
from harmonium.experiments.datasets import DatasetSpec, PreparedDataset, load_dataset
from harmonium.experiments.plan import CLIP_MEASURES, Run, missing, ways_to_test
from harmonium.experiments.recipe import ONE, SKLEARN, Known, Recipe, model_class
from harmonium.experiments.results import ResultStore

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

STACKED = "stacked"  # the engine that trains many models as one program, on the GPU that JAX finds

MAX_STACK = 256  # the models in one stack; bounds the memory

Runs = tuple[Run, ...]  # runs to do together


RunOutput = tuple[dict[str, Any], dict[str, Any]]
"""A run's result, which depends only on the run; and its cost: seconds, memory, versions."""


class RunError(HarmoniumError):
    """A run that failed; the message says which, and why."""


def run_experiment(
    recipe: Recipe,
    store: ResultStore,
    *,
    engine: str = "processes",
    jobs: int | None = None,
    watch: Callable[[Run, dict[str, Any]], None] | None = None,
) -> None:
    """Do every run that the store does not have yet, and keep each as it ends.

    An interrupt or a failed run ends the experiment; finished runs are kept, and the next call
    continues from there.

    Parameters
    ----------
    recipe : what to run
    store : where the results are, from `harmonium.experiments.results.open_results`
    engine, jobs : as in `harmonium.engine.make_executor`; or "stacked", which trains all models
        that are alike as one program, and is for a GPU; it is one process unless ``jobs`` says more
    watch : called with each run that ended, and with what was measured
    """
    with closing(_outputs(recipe, store, engine, jobs)) as outputs:  # an interrupt ends the workers
        for run, (result, measured) in outputs:
            store.add(run, result, measured)
            if watch:
                watch(run, measured)
    store.finish()


def _outputs(
    recipe: Recipe, store: ResultStore, engine: str, jobs: int | None
) -> Generator[tuple[Run, RunOutput], None, None]:
    """Every missing run with its output, as it ends; store it before asking for the next."""
    stacked = engine == STACKED
    if stacked:
        engine = "serial" if jobs in (None, 1) else "processes"
        # several processes share the GPU: none may take all its memory
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    waiting: deque[Runs] = deque()
    under_way: set[str] = set()
    with Runner[Runs, list[RunOutput]](_train_and_test, engine=engine, jobs=jobs) as runner:
        while True:
            if not waiting:  # search results may have made more runs possible
                left = [r for r in missing(recipe, store.results) if r.key not in under_way]
                waiting.extend(_stacks(left) if stacked else ((run,) for run in left))
            while waiting and not runner.full:
                runs = waiting.popleft()
                under_way.update(run.key for run in runs)
                runner.submit(runs)
            if not runner.pending:
                return
            outcome = runner.next()
            yield from zip(outcome.task, _checked(outcome), strict=True)
            under_way.difference_update(run.key for run in outcome.task)


def _checked(outcome: TaskOutcome[Runs, list[RunOutput]]) -> list[RunOutput]:
    if outcome.error is None:
        assert outcome.result is not None
        return outcome.result
    run, *others = outcome.task
    settings = ", ".join(f"{name} {value}" for name, value in run.settings.items())
    where = f"{run.dataset.label}, {run.model} ({settings}), test fold {run.test_fold}"
    where += f" and {len(others)} more" if others else ""
    if isinstance(outcome.error, HarmoniumError):
        raise RunError(f"{where}: {outcome.error}") from outcome.error
    raise outcome.error


def _stacks(runs: Iterable[Run]) -> list[Runs]:
    """Runs that can be trained as one program, the longest work first: RBMs, then by clips."""
    from harmonium.estimators.gradient_tagger import signature

    stacks: dict[Any, list[Run]] = defaultdict(list)
    for run in runs:
        alike: Any = run.key
        shared = signature(_model(run))
        if shared is not None and not run.smoothing:
            alike = (run.dataset, run.features, run.clips, shared)
        stacks[alike].append(run)
    parts = []
    for runs in stacks.values():
        size = MAX_STACK // (1 if runs[0].valid_fold is not None else runs[0].n_folds - 1)
        parts += [tuple(runs[first : first + size]) for first in range(0, len(runs), size)]

    def order(runs: Runs) -> tuple[bool, int]:
        return "RBM" not in runs[0].estimator, -len(runs) * (runs[0].dataset.n_clips or 1)

    return sorted(parts, key=order)


def _train_and_test(runs: Runs) -> list[RunOutput]:
    """Do one run, or several similar ones as one program, which then share the time equally.

    Early stopping is always on raw tags. The SVM learns from the clips to which a tag was given
    most and least often, so tags that too few people gave do not matter.
    """
    run, data = runs[0], load_dataset(runs[0].dataset)
    X = data.features(run.features)
    folds = None if run.valid_fold is not None else _folds(data, run.n_folds, run.seed)
    splits = [_split(each, data) for each in runs]
    models = [_model(each) for each in runs]
    train, valid, _ = zip(*splits, strict=True)
    began = time.perf_counter()
    which = (run.dataset, run.n_folds, *run.place, run.seed)
    targets = _smoothed_tags(*which) if run.smoothing else data.Y
    smoothed = time.perf_counter()
    if len(runs) > 1:
        from harmonium.estimators.gradient_tagger import fit_stacked  # imports JAX

        fit_stacked(models, X, data.Y, train, valid, targets=targets, folds=folds)
    else:
        rows, labels = train[0], targets[train[0]]
        more: dict[str, Any] = {"eval_set": (X[valid[0]], data.Y[valid[0]])}
        if folds is not None:
            more = {"groups": folds[rows], "eval_y": data.Y[rows]}
        if run.estimator == "SVMTagger" and not run.smoothing:
            more["counts"] = data.counts[rows]
        models[0].fit(X[rows], labels, **more)
    seconds = (time.perf_counter() - smoothed) / len(runs)
    return [
        _test(*of_run, X, data, seconds=seconds, smoothing=smoothed - began)
        for of_run in zip(runs, models, splits, strict=True)
    ]


def _split(run: Run, data: PreparedDataset) -> tuple[Places, Places, Places]:
    """The clips that a run trains on, stops early on and tests on.

    A run on fewer clips trains on a subset of a larger run's clips. Members of a
    model stop early on folds of the training clips.
    """
    folds = _folds(data, run.n_folds, run.seed)
    train = np.flatnonzero((folds != run.test_fold) & (folds != run.valid_fold))
    if run.clips > len(train):
        raise DataError(
            f"clips = {run.clips} is more than the {len(train)} training clips that "
            f"'{run.dataset.label}' has. Ask for fewer."
        )
    if run.clips:
        rng = np.random.default_rng((run.seed, *run.place))
        train = np.sort(rng.permutation(train)[: run.clips])
    return train, np.flatnonzero(folds == run.valid_fold), np.flatnonzero(folds == run.test_fold)


@lru_cache(maxsize=2)
def _folds(data: PreparedDataset, n_folds: int, seed: int) -> Places:
    return grouped_folds(data.groups, data.Y, n_folds=n_folds, seed=seed)


def _seed(*parts: int) -> int:
    """A model's seed: the same for all settings, so that the comparison is fair."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0] % 2**31)


@lru_cache(maxsize=32)
def _smoothed_tags(
    dataset: DatasetSpec, n_folds: int, test_fold: int, valid_fold: int, seed: int
) -> Floats:
    data = load_dataset(dataset)
    train = ~np.isin(_folds(data, n_folds, seed), (test_fold, valid_fold))
    return data.smoothed(np.flatnonzero(train), seed=_seed(seed, test_fold, valid_fold))


def _test(
    run: Run,
    model: Any,
    split: tuple[Places, Places, Places],
    X: Floats,
    data: PreparedDataset,
    *,
    seconds: float,
    smoothing: float,
) -> RunOutput:
    """How well a trained model answers, and what it took."""
    began = time.perf_counter()
    train, valid, test = split
    seed = (run.seed, run.test_fold)
    if run.valid_fold is None:
        held_out = [model.folds_ == fold for fold in np.unique(model.folds_)]
        labels, scores = data.Y[train], model.held_out_
        valid_auc = float(np.mean([auc_per_tag(labels[own], scores[own]).mean for own in held_out]))
    else:
        asked = (X[valid], data.Y[valid], run.search_known, (*seed, run.valid_fold))
        valid_auc = validation_score(model, *asked)
    tests = []
    for way in ways_to_test(run.inference, run.known):
        if way.inference is not None:
            model.set_params(inference=way.inference)
        measures = judge(model, X[test], data.Y[test], way.known, seed)
        tests.append({**way._asdict(), **measures})
    epochs = int(getattr(model, "best_epoch_", 0))
    measured = {
        "seconds": seconds,
        "test_seconds": time.perf_counter() - began,
        "smoothing_seconds": smoothing,
        "seconds_to_best": float(sum(model.history_["seconds"][:epochs])) if epochs else None,
        "clips": len(train),
        "peak_memory_mb": peak_memory_mb(),
        "versions": _versions(),
    }
    tags = list(data.tags)
    result = {"tags": tags, "valid_auc": valid_auc, "tests": tests, "best_epoch": epochs}
    return result, measured


def peak_memory_mb() -> float | None:
    """This process's peak memory so far; None on Windows, which does not tell."""
    if resource is None:
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    """What the results were computed with."""
    packages = ("jax", "numpy", "scipy", "scikit-learn")
    return {
        "harmonium": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def build_model(estimator: str, settings: dict[str, Any], *, seed: int) -> Any:
    """An untrained model."""
    cls = model_class(estimator)
    seeded = "random_state" in inspect.signature(cls).parameters
    model = cls(**{**({"random_state": seed} if seeded else {}), **settings})
    return ScikitLearnTagger(model) if estimator.startswith(SKLEARN) else model


def _model(run: Run) -> Any:
    """The untrained model of a run."""
    make = partial(build_model, run.estimator, seed=_seed(run.seed, *run.place))
    has = inspect.signature(model_class(run.estimator)).parameters
    if run.valid_fold is not None:  # as in the paper, features are standardised
        usual = {"scale_features": "standard"} if "scale_features" in has else {}
        return make(usual | run.settings)
    if "n_models" in has:
        return make(run.settings | {"n_models": run.n_folds - 1})
    return CrossFitted(partial(make, run.settings), refit=run.refit)


class CrossFitted:
    """A model for each fold, trained on the other folds, for classes without cross-fitting."""

    def __init__(self, make: Callable[[], Any], *, refit: bool) -> None:
        self.make, self.refit = make, refit

    def fit(self, X: Floats, y: Floats, *, groups: Places, eval_y: Floats, **more: Any) -> Any:
        """Learn; ``groups`` is the fold of each clip, and ``more`` has a row for each clip, too."""
        self.folds_, self.held_out_ = groups, np.empty(eval_y.shape, np.float32)
        self.members = []
        for fold in np.unique(groups):
            own, rest = groups == fold, groups != fold
            of_rest = {name: rows[rest] for name, rows in more.items()}
            held_out = (X[own], eval_y[own])
            self.members.append(self.make().fit(X[rest], y[rest], held_out, **of_rest))
            about = questions(eval_y[own], 0.0, ())
            self.held_out_[own] = answers(self.members[-1], X[own], about)
        if self.refit:
            self.members = [self.make().fit(X, y, **more)]
        return self


class ScikitLearnTagger:
    """scikit-learn's own classifier on standardised features.

    There is one for all tags if it supports that and all labels are known; else one per tag,
    trained on the clips whose label is known.
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Floats, Y: Floats, eval_set: object = None) -> "ScikitLearnTagger":
        """Learn; there is no early stopping on ``eval_set``."""
        from sklearn.base import clone
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.utils import get_tags

        known, classifier = ~np.isnan(Y), self.classifier
        self._at_once = get_tags(classifier).classifier_tags.multi_label and known.all()
        tasks: Any = [(Y, ...)] if self._at_once else zip(Y.T, known.T, strict=True)
        if not self._at_once:
            classifier = OneVsRestClassifier(classifier)  # also accepts a tag that all clips have
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a network that max_iter stops warns each time
            self._pipelines = [
                make_pipeline(StandardScaler(), clone(classifier)).fit(X[rows], y[rows])
                for y, rows in tasks
            ]
        return self

    def predict_proba(self, X: Floats) -> Floats:
        """p(y_j = 1 | x), (n_clips, n_tags)."""
        found = [pipeline.predict_proba(X) for pipeline in self._pipelines]
        found = found[0] if self._at_once else found
        if not isinstance(found, list):  # a network gives (n_clips, n_tags)
            return found
        return np.stack([P[:, -1] * (P.shape[1] > 1) for P in found], axis=1)


# What a trained model is asked, and how well it answers
#
# A model predicts the tags of clips from their sound alone, or observes some tags first: a random
# share of a clip's known tags, present or absent; or "one" true tag, as a person would begin. Then
# every clip with at least two of them is asked about once for each, so that chance plays no part.
# The answers are judged on the other tags.


class Questions(NamedTuple):
    """Clips whose tags to predict, each once or several times."""

    clips: Places  # (n_questions,) the clip of each question
    given: Floats  # (n_questions, n_tags) the tags that the model is given; NaN for the others
    asked: Floats  # (n_questions, n_tags) the true labels of the others; NaN where given or unknown


def questions(Y: Floats, known: Known, seed: Sequence[int]) -> Questions:
    """The questions about clips with labels Y (n_clips, n_tags), some of which are given."""
    if known == ONE:
        clips, tags = np.nonzero((Y == 1) & (np.sum(Y == 1, axis=1, keepdims=True) >= 2))
        is_given = np.zeros((len(clips), Y.shape[1]), bool)
        is_given[np.arange(len(clips)), tags] = True
    else:
        clips = np.arange(len(Y))
        is_given = np.random.default_rng(seed).random(Y.shape) < float(known)
    nan, labels = np.float32(np.nan), Y[clips]
    return Questions(clips, np.where(is_given, labels, nan), np.where(is_given, nan, labels))


def answers(model: Any, X: Floats, about: Questions) -> Floats:
    """Scores of all tags, (n_questions, n_tags); a model that takes no tags goes by sound."""
    if isinstance(model, CrossFitted):
        found = [answers(member, X, about) for member in model.members]
        return mean_probabilities(found) if are_probabilities(found) else np.mean(found, axis=0)
    if hasattr(model, "complete") and not np.isnan(about.given).all():
        return model.complete(X[about.clips], about.given)
    predict = model.predict_proba if hasattr(model, "predict_proba") else model.decision_function
    return predict(X)[about.clips]


def plain_and_corrected(model: Any, X: Floats, about: Questions) -> tuple[Floats, Floats]:
    """The answers before and after the model's own correction; the same if it has none."""
    correction = getattr(model, "recalibration_", None)
    if correction is None:
        plain = answers(model, X, about)
        return plain, plain
    model.recalibration_ = None  # slow inference is done once
    try:
        plain = answers(model, X, about)
    finally:
        model.recalibration_ = correction
    share = observed_fraction(about.given) if hasattr(model, "complete") else None
    return plain, correction(plain, share)


def judge(model: Any, X: Floats, Y: Floats, known: Known, seed: Sequence[int]) -> dict[str, Any]:
    """The measures of a model on some clips, by name; None if one is not defined.

    "auc" is a list by tag, the others are means over clips. A clip that is asked about several
    times counts as one, with the mean of its questions. "reliability" exists for probabilities:
    numbers, sums of probabilities and positives by bin, before and after the model's correction.
    """
    about = questions(Y, known, seed)
    labels = about.asked
    plain, scores = plain_and_corrected(model, X, about)
    aucs = auc_per_tag(labels, scores).values.tolist()
    found: dict[str, Any] = {"auc": [None if np.isnan(auc) else auc for auc in aucs]}
    of_clips = (auc_per_clip(labels, scores), precision_at_k_per_clip(labels, scores, k=3))
    for name, result in zip(CLIP_MEASURES, of_clips, strict=True):
        found[name] = _mean_over_clips(about.clips, result)
    if are_probabilities(plain):
        parts = {"plain": reliability(labels, plain), "corrected": reliability(labels, scores)}
        found["reliability"] = {
            name: [part.n.tolist(), part.scores.tolist(), part.positives.tolist()]
            for name, part in parts.items()
        }
    return found


def validation_score(
    model: Any, X: Floats, Y: Floats, known: Sequence[Known], seed: Sequence[int]
) -> float:
    """The score that chooses settings: the mean AUC over the ways of asking.

    With one tag given it is the AUC within a clip, else the mean AUC over tags.
    """
    found = []
    for share in known:
        judged = judge(model, X, Y, share, seed)
        aucs = [judged["clip_auc"]] if share == ONE else judged["auc"]
        defined = [auc for auc in aucs if auc is not None]
        found += [np.mean(defined)] if defined else []
    return float(np.mean(found)) if found else float("nan")


def _mean_over_clips(clips: Places, result: MetricResult) -> float | None:
    """The mean over clips of the mean over each clip's questions, if defined."""
    values = result.values
    defined = ~np.isnan(values)
    if not defined.any():
        return None
    number = np.bincount(clips[defined])
    total = np.bincount(clips[defined], weights=values[defined])
    return float(np.mean(total[number > 0] / number[number > 0]))
