"""Folds for cross-validation of tags: clips that belong together stay together.

Clips of one track sound alike, and so do tracks of one artist. A model that has seen one of them
has half seen the others, so none may be in training while another is in testing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator

from harmonium.errors import DataError
from harmonium.evaluation.metrics import Integers, Ternary, at_least, ternary
from harmonium.evaluation.stratify import assign


def grouped_folds(groups: ArrayLike, Y: ArrayLike, *, n_folds: int = 5, seed: int = 0) -> Integers:
    """The fold of each clip: groups whole, every tag in every fold if possible, sizes near equal.

    A tag is in a fold if the fold has a positive and a negative for it, so that its AUC is defined
    there. That needs as many groups with a positive (and with a negative) as there are folds; where
    it cannot be had, ``fold_report`` says so. The same arguments give the same folds.

    Parameters
    ----------
    groups : (n_clips,) what a clip belongs to: its track, or its artist. Text or integers.
    Y : (n_clips, n_tags) labels: 0, 1, or NaN for unknown.
    n_folds : number of folds, at least 2.
    seed : decides between groups that are alike.

    Returns
    -------
    (n_clips,) integers from 0 to n_folds - 1.
    """
    labels = ternary(Y)
    group_of = _group_index(groups, len(labels.positive))
    n_folds = at_least("n_folds", n_folds, 2)
    n_groups = int(group_of.max(initial=-1)) + 1
    if n_groups < n_folds:
        raise DataError(
            f"groups must have at least n_folds={n_folds} different values, for no group is split. "
            f"Got {n_groups}; use fewer folds, or smaller groups (tracks instead of artists)."
        )
    sizes = np.bincount(group_of)
    counts = np.hstack(_positives_and_negatives(labels, group_of, n_groups))
    rng = np.random.default_rng(seed)
    return assign(sizes, counts, n_folds=n_folds, rng=rng)[group_of]


@dataclass(frozen=True, eq=False)
class FoldReport:
    """What is in each of k folds."""

    sizes: Integers
    """(k,) clips."""
    n_groups: Integers
    """(k,) groups."""
    positives: Integers
    """(k, n_tags) positive labels."""
    negatives: Integers
    """(k, n_tags) negative labels."""
    incomplete: dict[int, str]
    """Tag → what is missing, for each tag that is not in every fold."""


def fold_report(folds: ArrayLike, groups: ArrayLike, Y: ArrayLike) -> FoldReport:
    """Sizes and labels of the folds, and the tags that are not in every one of them.

    Parameters
    ----------
    folds : (n_clips,) fold of each clip, from ``grouped_folds``.
    groups, Y : as given to ``grouped_folds``.
    """
    labels = ternary(Y)
    n_clips = len(labels.positive)
    fold_of, n_folds = _fold_index(folds, least=2)
    if len(fold_of) != n_clips:
        raise DataError(f"folds must have one entry per clip of Y, {n_clips}. Got {len(fold_of)}.")
    group_of = _group_index(groups, n_clips)
    n_groups = int(group_of.max(initial=-1)) + 1
    in_folds = _positives_and_negatives(labels, fold_of, n_folds)
    in_groups = _positives_and_negatives(labels, group_of, n_groups)
    incomplete: dict[int, list[str]] = {}
    for kind, by_fold, by_group in zip(("positive", "negative"), in_folds, in_groups, strict=True):
        for tag in np.flatnonzero((by_fold == 0).any(axis=0)).tolist():
            having, able = np.count_nonzero(by_fold[:, tag]), np.count_nonzero(by_group[:, tag])
            incomplete.setdefault(tag, []).append(
                f"{kind} in {having} of {n_folds} folds ({able} groups have one)"
            )
    pairs = np.unique(np.column_stack([fold_of, group_of]), axis=0)
    return FoldReport(
        sizes=np.bincount(fold_of),
        n_groups=np.bincount(pairs[:, 0]),
        positives=in_folds[0],
        negatives=in_folds[1],
        incomplete={tag: "; ".join(parts) for tag, parts in sorted(incomplete.items())},
    )


class Split(NamedTuple):
    """One run of the nested protocol: which clips to train on, validate on and test on."""

    test_fold: int
    valid_fold: int
    train: Integers
    """Indices of the clips of all other folds."""
    valid: Integers
    """Indices of the clips of the validation fold."""
    test: Integers
    """Indices of the clips of the test fold."""


def nested_folds(folds: ArrayLike) -> Iterator[Split]:
    """The paper's protocol: for each test fold, each other fold validates once; the rest train.

    Five folds give 5 × 4 runs, each with three folds of training clips. The score of a test fold is
    the mean over its four runs.

    Parameters
    ----------
    folds : (n_clips,) fold of each clip, from ``grouped_folds``; at least 3 folds.
    """
    fold_of, n_folds = _fold_index(folds, least=3)
    clips = [np.flatnonzero(fold_of == fold) for fold in range(n_folds)]
    return (
        Split(
            test_fold=test,
            valid_fold=valid,
            train=np.flatnonzero((fold_of != test) & (fold_of != valid)),
            valid=clips[valid],
            test=clips[test],
        )
        for test in range(n_folds)
        for valid in range(n_folds)
        if valid != test
    )


class GroupedTagKFold(BaseCrossValidator):
    """``grouped_folds`` as a scikit-learn splitter, say for ``GridSearchCV(cv=...)``.

    Parameters
    ----------
    n_splits : number of folds, at least 2.
    random_state : seed of ``grouped_folds``.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.zeros((6, 1)), np.array([[0], [1], [0], [1], [0], [1]])
    >>> groups = ["a", "a", "b", "b", "c", "c"]
    >>> splitter = GroupedTagKFold(n_splits=3)
    >>> sorted(test.tolist() for train, test in splitter.split(X, Y, groups))
    [[0, 1], [2, 3], [4, 5]]
    """

    # Where scikit-learn's metadata routing is on, ``split`` is given ``groups`` without a request.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(self, n_splits: int = 5, *, random_state: int = 0) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds; the arguments are there for scikit-learn and not used."""
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[Integers, Integers]]:
        """(train, test) indices for each fold.

        Parameters
        ----------
        X : not used.
        y : (n_clips, n_tags) labels, 0, 1 or NaN; (n_clips,) for a single tag.
        groups : (n_clips,) the track or artist of each clip.
        """
        if y is None or groups is None:
            missing = "y" if y is None else "groups"
            raise DataError(
                f"GroupedTagKFold needs {missing}. Got None; pass it on to fit or cross_validate, "
                "as in GridSearchCV(...).fit(X, Y, groups=artists)."
            )
        labels = np.asarray(y)
        labels = labels[:, None] if labels.ndim == 1 else labels
        fold_of = grouped_folds(groups, labels, n_folds=self.n_splits, seed=self.random_state)
        for fold in range(self.n_splits):
            yield np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)


def _positives_and_negatives(labels: Ternary, index: Integers, n: int) -> tuple[Integers, Integers]:
    """(n, n_tags) twice: positive and negative labels of the clips with each index."""
    positive = labels.positive
    negative = ~positive if labels.known is None else labels.known & ~positive
    order = np.argsort(index, kind="stable")
    starts = np.searchsorted(index[order], np.arange(n))

    def total(mask: NDArray[np.bool_]) -> Integers:
        return np.add.reduceat(mask[order], starts, axis=0, dtype=np.int64)

    return total(positive), total(negative)


def _group_index(groups: ArrayLike, n_clips: int) -> Integers:
    """(n_clips,) the groups as integers from 0."""
    names = np.asarray(groups)
    if names.shape != (n_clips,):
        raise DataError(
            f"groups must have one entry per clip of Y, shape ({n_clips},). Got {names.shape}."
        )
    try:
        nameless = np.flatnonzero([name is None or bool(name != name) for name in names.tolist()])
        if len(nameless):
            raise DataError(
                f"groups must name a group for every clip. Got {len(nameless)} without one, the "
                f"first at clip {nameless[0]}; give each such clip a group of its own."
            )
        return np.unique(names, return_inverse=True)[1]
    except TypeError as error:
        raise DataError(
            f"groups must be all text or all integers. Got values that do not compare: {error}."
        ) from None


def _fold_index(folds: ArrayLike, *, least: int) -> tuple[Integers, int]:
    """The folds as an array of integers, and their number."""
    fold_of = np.asarray(folds)
    if fold_of.ndim != 1 or not np.issubdtype(fold_of.dtype, np.integer):
        raise DataError(
            "folds must be one integer per clip, as grouped_folds gives them. Got shape "
            f"{fold_of.shape} of {fold_of.dtype}."
        )
    found = np.unique(fold_of)
    if len(found) < least or not np.array_equal(found, np.arange(len(found))):
        raise DataError(
            f"folds must be numbered from 0 without a gap, and at least {least}. Got {found}."
        )
    return fold_of, len(found)
