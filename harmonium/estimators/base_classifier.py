"""A classifier below an RBM: its log-odds condition the tags, out of fold for training clips.

There is a classifier for each fold, fitted on the clips of all other folds. A training clip has the
log-odds of the classifier that has not seen it; a new clip has the mean over all of them.

A classifier that can take all tags at once and knows all labels is fitted once, any other once per
tag, on the clips with a known label. Forests take all tags at once in any case: unknown labels
count as absent when the trees grow, and not at all in what their leaves say. A classifier takes no
probabilities as labels, except for forests' leaves and Harmonium's own: above ½ means present.

A tag that is present, or absent, in all clips of a classifier has the log-odds of (positives + 1) /
(known + 2). With n clips to learn from, no log-odds are further from 0 than log(2n + 1), those of
half a clip among n + 1: trees say 0 and 1 far too easily.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from harmonium import stopping
from harmonium.arrays import Arrays, Doubles, Floats, Ids, Numbers, Places
from harmonium.errors import DataError, TrainingWarning
from harmonium.estimators.model_files import finite_array
from harmonium.estimators.stored_classifier import (
    SCORERS,
    Regressions,
    TagScorer,
    forest_of,
)
from harmonium.estimators.targets import base_log_odds
from harmonium.logistic import log_odds
from harmonium.scikit_learn import HasMethods

TREES = "trees"
N_TREES = 400
MIN_IN_LEAF = 3
INNER_FOLDS = 5  # if the model has a single member, and so no folds of its own


class Classifier(Protocol):
    """scikit-learn's, with probabilities."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from features and labels."""

    def predict_proba(self, X: Any) -> Any:
        """The probabilities of classes."""


ClassifierBelow: TypeAlias = (
    Literal["trees"] | Annotated[Classifier, HasMethods(["fit", "predict_proba"])] | None
)


@dataclass(frozen=True, eq=False)
class FoldClassifier:
    """What was learnt without one fold."""

    scorer: TagScorer | None  # of the tags that are `learnt`; None if there are none
    learnt: Places  # tags with both labels
    base: Doubles  # (C,) log-odds of the others
    limit: Doubles  # (C,) the largest absolute log-odds

    def log_odds(self, X: Numbers) -> Floats:
        """a_j(x), (N, C)."""
        result = np.tile(self.base, (len(X), 1))
        if self.scorer is not None and len(X):
            result[:, self.learnt] = self.scorer.log_odds(X)
        return np.clip(result, -self.limit, self.limit).astype(np.float32)


@dataclass(frozen=True, eq=False)
class ClassifiersBelow:
    """The classifiers of all folds."""

    folds: list[FoldClassifier]

    def log_odds(self, X: Numbers) -> Floats:
        """a_j(x) of clips that no classifier has seen, the mean over the folds', (N, C)."""
        total = np.zeros((len(X), len(self.folds[0].base)))
        for fold in self.folds:
            total += fold.log_odds(X)
        return (total / len(self.folds)).astype(np.float32)

    def why_not_saved(self) -> str | None:
        """The class that a model file cannot hold, if there is one."""
        for fold in self.folds:
            if isinstance(fold.scorer, Unstored):
                return fold.scorer.name
        return None

    def stored(self) -> tuple[Arrays, list[Any]]:
        """Arrays and a description for a model file."""
        arrays: Arrays = {}
        about: list[Any] = []
        for number, fold in enumerate(self.folds):
            of_fold: Arrays = {"base": fold.base, "limit": fold.limit, "learnt": fold.learnt}
            kind = None
            if fold.scorer is not None:
                kind = fold.scorer.kind
                of_fold |= fold.scorer.arrays()
            about.append(kind)
            arrays |= {f"below.{number}.{name}": array for name, array in of_fold.items()}
        return arrays, about


def restored_classifiers(
    arrays: Arrays, about: list[Any], n_features: int, n_tags: int
) -> ClassifiersBelow:
    """The classifiers of a model file; LookupError, TypeError or ValueError if damaged."""
    folds = []
    for number, kind in enumerate(about):
        prefix = f"below.{number}."
        of_fold = {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }
        learnt = of_fold["learnt"]
        base = finite_array(of_fold, "base")
        limit = finite_array(of_fold, "limit")
        if learnt.dtype != np.int64 or not np.isin(learnt, np.arange(n_tags)).all():
            raise ValueError("learnt must hold numbers of tags")
        if base.shape != (n_tags,) or limit.shape != (n_tags,):
            raise ValueError(f"base and limit have the shapes {base.shape} and {limit.shape}")
        scorer = None
        if kind is not None:
            scorer = SCORERS[kind].restored(of_fold, n_features, len(learnt))
        folds.append(FoldClassifier(scorer=scorer, learnt=learnt, base=base, limit=limit))
    if not folds:
        raise ValueError("there are no classifiers below the RBM")
    return ClassifiersBelow(folds)


# Fitting


def fit_classifiers(
    classifier: Any,
    X: Numbers,
    Y: Floats,
    folds: Ids,
    *,
    seed: int,
    sample_weight: Doubles | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> tuple[ClassifiersBelow, Floats]:
    """Classifiers for all folds, and the log-odds of each clip out of its fold, (N, C).

    ``classifier`` is untrained, or a name. ``Y`` is (N, C): 0, 1, NaN, or a probability between;
    ``sample_weight`` (N,).
    """
    make = classifier_maker(classifier, seed=seed, n_jobs=n_jobs)
    fitted = []
    out_of_fold = np.empty(Y.shape, np.float32)
    numbers = np.unique(folds)
    with _progress(_name_of(classifier), len(numbers), verbose) as advance:
        for fold in numbers:
            stopping.check()
            own = folds == fold
            others = ~own
            weights = None
            if sample_weight is not None:
                others &= sample_weight > 0
                weights = sample_weight[others]
            of_fold = fit_fold(make, X[others], Y[others], weights, n_jobs=n_jobs)
            out_of_fold[own] = of_fold.log_odds(X[own])
            fitted.append(of_fold)
            advance()
    below = ClassifiersBelow(fitted)
    unsaved = below.why_not_saved()
    if unsaved is not None:
        warnings.warn(
            f"A model over {unsaved} predicts, but cannot be saved: only forests, logistic "
            "regressions and those after a StandardScaler can be stored without pickle. To save "
            "it, use one of these, or estimator='trees'.",
            TrainingWarning,
            stacklevel=5,
        )
    return below, out_of_fold


def classifier_maker(classifier: Any, *, seed: int, n_jobs: int | None) -> Callable[[], Any]:
    """What makes untrained copies, with seeds and cores where the classifier leaves them open."""
    if classifier == TREES:
        from sklearn.ensemble import ExtraTreesClassifier

        classifier = ExtraTreesClassifier(N_TREES, min_samples_leaf=MIN_IN_LEAF)
    open_settings: dict[str, Any] = {}
    for name, value in classifier.get_params(deep=True).items():
        if value is None and name.split("__")[-1] == "random_state":
            open_settings[name] = seed
        elif value is None and name == "n_jobs":
            open_settings[name] = n_jobs

    def make() -> Any:
        return clone(classifier).set_params(**open_settings)

    return make


def fit_fold(
    make: Callable[[], Any],
    X: Numbers,
    Y: Floats,
    weights: Doubles | None = None,
    *,
    n_jobs: int | None = None,
) -> FoldClassifier:
    """A classifier for these clips, which may be none; ``weights`` (N,) are above 0."""
    known = ~np.isnan(Y)
    present = Y > 0.5
    absent = known & ~present
    learnt = np.flatnonzero(present.any(axis=0) & absent.any(axis=0))
    scorer = None
    if len(learnt):
        scorer = fit_scorer(make, X, Y[:, learnt], weights, n_jobs=n_jobs)
    counts = np.ones((len(Y), 1)) if weights is None else weights[:, None]
    return FoldClassifier(
        scorer=scorer,
        learnt=learnt,
        base=base_log_odds(Y, counts.astype(np.float32)),
        limit=np.log(2.0 * np.sum(counts * known, axis=0) + 1.0),
    )


def fit_scorer(
    make: Callable[[], Any],
    X: Numbers,
    Y: Floats,
    weights: Doubles | None = None,
    *,
    n_jobs: int | None = None,
) -> TagScorer:
    """A classifier for tags of which each has both labels."""
    known = ~np.isnan(Y)
    labels = (Y > 0.5).astype(np.int64)
    if _is_forest(make(), weights):
        forest = _fitted(make(), X, labels, weights)
        return _as_forest(forest, X, Y, weights)
    if get_tags(make()).classifier_tags.multi_label and known.all():
        return AllAtOnce(_fitted(make(), X, labels, weights))
    jobs = []
    for of_tag, known_of_tag in zip(labels.T, known.T, strict=True):
        of_clips = None if weights is None else weights[known_of_tag]
        jobs.append(delayed(_fitted)(make(), X[known_of_tag], of_tag[known_of_tag], of_clips))
    by_tag = []
    size = effective_n_jobs(n_jobs)
    with Parallel(n_jobs=size, prefer="threads") as run:
        for first in range(0, len(jobs), size):
            stopping.check()
            by_tag += run(jobs[first : first + size])
    return _as_regressions(by_tag) or TagByTag(by_tag)


def _fitted(classifier: Any, X: Numbers, y: Any, weights: Doubles | None) -> Any:
    """The classifier, trained; labels of one tag as one column."""
    labels = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if weights is None:
        return classifier.fit(X, labels)
    learner = classifier
    name = "sample_weight"
    if isinstance(classifier, Pipeline):
        step, learner = classifier.steps[-1]
        name = f"{step}__{name}"
    if not has_fit_parameter(learner, "sample_weight"):
        raise DataError(
            f"sample_weight cannot be used over {_name_of(learner)}, whose fit takes no weights. "
            "Use another estimator, such as 'trees', or leave sample_weight out."
        )
    return classifier.fit(X, labels, **{name: weights})


@dataclass(frozen=True, eq=False)
class Unstored(TagScorer):
    """A fitted classifier as it is; a model file cannot hold it."""

    kind: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """Of its class."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class AllAtOnce(Unstored):
    """One that has learnt all tags."""

    classifier: Any

    @property
    def name(self) -> str:
        """Of its class."""
        return _name_of(self.classifier)

    def log_odds(self, X: Numbers) -> Doubles:
        """From probabilities in any of the forms that scikit-learn has."""
        P = self.classifier.predict_proba(X)
        if isinstance(P, list):  # (N, 2) for each tag
            P = np.stack([table[:, 1] for table in P], axis=1)
        elif len(np.atleast_2d(self.classifier.classes_)) == 1 and len(P.T) == 2:
            P = P[:, 1:]  # of one tag's two classes
        return log_odds(np.asarray(P, np.float64))


@dataclass(frozen=True, eq=False)
class TagByTag(Unstored):
    """One for each tag."""

    by_tag: list[Any]

    @property
    def name(self) -> str:
        """Of the class."""
        return _name_of(self.by_tag[0])

    def log_odds(self, X: Numbers) -> Doubles:
        """From the probability of the second class."""
        tables = [classifier.predict_proba(X)[:, 1] for classifier in self.by_tag]
        return log_odds(np.stack(tables, axis=1).astype(np.float64))


def _name_of(classifier: Any) -> str:
    return classifier if isinstance(classifier, str) else type(classifier).__name__


# What can be stored


def _is_forest(classifier: Any, weights: Doubles | None) -> bool:
    """Whether its leaves say how frequent a tag is among their clips.

    Releases of scikit-learn differ in what weights do to a tree that learns from drawn clips.
    """
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

    is_forest = type(classifier) in (ExtraTreesClassifier, RandomForestClassifier)
    if not is_forest or classifier.class_weight is not None:
        return False
    return weights is None or not classifier.bootstrap


def _as_forest(classifier: Any, X: Numbers, Y: Floats, weights: Doubles | None) -> TagScorer:
    leaves = np.asarray(classifier.apply(X))
    counts = np.ones_like(leaves)
    if classifier.bootstrap:
        drawn = classifier.estimators_samples_
        counts = np.stack([np.bincount(clips, minlength=len(X)) for clips in drawn], axis=1)
    trees = [tree.tree_ for tree in classifier.estimators_]
    return forest_of(trees, leaves, counts, Y, weights)


def _as_regressions(by_tag: Sequence[Any]) -> Regressions | None:
    """W and d, if the classifiers are logistic regressions, perhaps after a StandardScaler."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rows = []
    offsets = []
    for classifier in by_tag:
        scalers = []
        regression = classifier
        if isinstance(classifier, Pipeline):
            *scalers, regression = [step for _, step in classifier.steps]
        if type(regression) is not LogisticRegression:
            return None
        if not all(type(scaler) is StandardScaler for scaler in scalers):
            return None
        W = regression.coef_[0]
        d = regression.intercept_[0]
        for scaler in reversed(scalers):
            if scaler.with_std:
                W = W / scaler.scale_
            if scaler.with_mean:
                d = d - W @ scaler.mean_
        rows.append(W)
        offsets.append(d)
    return Regressions(W=np.array(rows, np.float64), d=np.array(offsets, np.float64))


# An untrained classifier in the description of a model file


def _described_classes() -> dict[str, Any]:
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    classes = (ExtraTreesClassifier, RandomForestClassifier, LogisticRegression, StandardScaler)
    return {kind.__name__: kind for kind in classes}


def described_classifier(classifier: Any) -> Any:
    """A classifier of a class that can be stored, as JSON: its class and its settings."""
    if classifier is None or isinstance(classifier, str):
        return classifier
    if isinstance(classifier, Pipeline):
        return {"steps": [[name, described_classifier(step)] for name, step in classifier.steps]}
    name = type(classifier).__name__
    if _described_classes().get(name) is not type(classifier):
        raise DataError(
            f"A model over {name} cannot be saved: only forests, logistic regressions and those "
            "after a StandardScaler can be stored without pickle. Use estimator='trees'."
        )
    settings = {
        key: value if isinstance(value, bool | int | float | str) else None
        for key, value in classifier.get_params(deep=False).items()
    }
    return {"class": name, "settings": settings}


def made_classifier(description: Any) -> Any:
    """The untrained classifier that was described."""
    if not isinstance(description, dict):
        return description
    if "steps" in description:
        return Pipeline([(name, made_classifier(step)) for name, step in description["steps"]])
    return _described_classes()[description["class"]](**description["settings"])


@contextmanager
def _progress(title: str, total: int, verbose: int) -> Iterator[Callable[[], None]]:
    """A progress bar over folds; nothing unless ``verbose``."""
    if not verbose:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("fold {task.completed}/{task.total}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr)) as progress:
        task = progress.add_task(title, total=total)
        yield lambda: progress.advance(task)


def any_folds(n_clips: int, groups: Ids | None, *, seed: int) -> Ids:
    """Folds of whole groups at random, if no better ones can be chosen; one if it must be."""
    of_clip = np.arange(n_clips) if groups is None else groups
    names, place = np.unique(of_clip, return_inverse=True)
    turn = np.random.default_rng(seed).permutation(len(names))
    return turn[place] % min(INNER_FOLDS, len(names))
