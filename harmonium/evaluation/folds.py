"""Folds for cross-validation of tags: clips that belong together stay together.

Clips of one track sound alike, and so do tracks of one artist. A model that has seen one of them
has half seen the others, so they must not be split between training and testing.

The columns are what a fold should have: for each tag, a positive and a negative. Iterative
stratification (Sechidis, Tsoumakas and Vlahavas, 2011), here over groups instead of clips, deals
out the groups with the rarest column first. Because a group brings many columns at once, this alone
leaves gaps. Moving and swapping groups between folds then closes as many as possible, and finally
evens out the sizes where that opens no gap.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.model_selection import BaseCrossValidator

from harmonium.arrays import Integers, Mask
from harmonium.errors import DataError
from harmonium.evaluation.metrics import at_least, ternary

_LARGE_SHARE = 0.1
"""A group with more than this share of a fold is placed before all others, while there is room. To
close a gap, two folds may come to differ by as much in size."""
_MAX_TRIED = 100  # groups of a fold tried for a swap: fast for any number of groups
_MAX_PARTNERS = 5_000  # groups of the other fold tried for each of them
_TAGS_AT_ONCE = 100  # whose negatives are counted in a dense block
_MANY_LABELS = 5_000_000
"""With more (group, tag) pairs, negatives that at least half of the groups have are not counted:
every fold gets them anyway, and they would be most of the work."""
_MIN_ROUNDS = 10  # the least and most times that all gaps are tried; more groups get fewer tries
_MAX_ROUNDS = 50
_ROUNDS_TIMES_GROUPS = 50_000


def grouped_folds(
    groups: ArrayLike, Y: ArrayLike | sparse.sparray, *, n_folds: int = 5, seed: int = 0
) -> Integers:
    """The fold of each clip: groups stay whole, tags are in every fold if possible, sizes close.

    A tag is in a fold if the fold has a positive and a negative for it, so that its AUC is defined
    there. That needs as many groups with a positive (and with a negative) as there are folds; if
    that is impossible, ``fold_report`` says so. The same arguments give the same folds.

    Parameters
    ----------
    groups : (n_clips,) what a clip belongs to: its track, or its artist. Text or integers.
    Y : (n_clips, n_tags) labels: 0, 1, or NaN for unknown. In a sparse matrix, what is not stored
        is 0.
    n_folds : number of folds, at least 2.
    seed : decides between groups that are alike.

    Returns
    -------
    (n_clips,) integers from 0 to n_folds - 1.
    """
    labels = _labels(Y)
    group_of = group_index(groups, labels.positive.shape[0])
    n_folds = at_least("n_folds", n_folds, 2)
    n_groups = int(group_of.max(initial=-1)) + 1
    if n_groups < n_folds:
        raise DataError(
            f"groups must have at least n_folds={n_folds} different values, as no group is split. "
            f"Got {n_groups}; use fewer folds, or smaller groups (tracks instead of artists)."
        )
    sizes = np.bincount(group_of)
    counts = _count_labels(labels, group_of, n_groups).columns()
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_groups)  # decides between groups that are alike
    folds = Folds(sizes[order], counts[order], n_folds)
    folds.place_large()
    folds.place_by_rarest_column()
    folds.close_gaps(rng)
    folds.even_out()
    return folds.fold[np.argsort(order)][group_of]


@dataclass(frozen=True, eq=False)
class FoldReport:
    """What is in each of k folds."""

    sizes: Integers  # (k,) clips
    n_groups: Integers  # (k,) groups
    positives: Integers  # (k, n_tags) positive labels
    negatives: Integers  # (k, n_tags) negative labels
    incomplete: dict[int, str]  # tag → what is missing, for each tag that is not in every fold


def fold_report(folds: ArrayLike, groups: ArrayLike, Y: ArrayLike | sparse.sparray) -> FoldReport:
    """Sizes and labels of the folds, and the tags that are missing from some of them.

    Parameters
    ----------
    folds : (n_clips,) fold of each clip, from ``grouped_folds``.
    groups, Y : as given to ``grouped_folds``.
    """
    labels = _labels(Y)
    n_clips, n_tags = labels.positive.shape
    fold_of, n_folds = _fold_index(folds, least=2)
    if len(fold_of) != n_clips:
        raise DataError(f"folds must have one entry per clip of Y, {n_clips}. Got {len(fold_of)}.")
    group_of = group_index(groups, n_clips)
    n_groups = int(group_of.max(initial=-1)) + 1
    in_folds = _count_labels(labels, fold_of, n_folds)
    in_groups = _count_labels(labels, group_of, n_groups)
    positives = in_folds.positives.toarray()
    negatives = in_folds.n_clips[:, None] - in_folds.not_negative.toarray()
    able_positive = np.bincount(in_groups.positives.indices, minlength=n_tags)
    able_negative = in_groups.n_with_negative()
    incomplete: dict[int, list[str]] = defaultdict(list)
    for kind, by_fold, n_able in (
        ("positive", positives, able_positive),
        ("negative", negatives, able_negative),
    ):
        for tag in np.flatnonzero((by_fold == 0).any(axis=0)).tolist():
            n_with = np.count_nonzero(by_fold[:, tag])
            incomplete[tag].append(
                f"{kind} in {n_with} of {n_folds} folds ({n_able[tag]} groups have one)"
            )
    pairs = np.unique(np.column_stack([fold_of, group_of]), axis=0)
    return FoldReport(
        sizes=np.bincount(fold_of),
        n_groups=np.bincount(pairs[:, 0]),
        positives=positives,
        negatives=negatives,
        incomplete={tag: "; ".join(parts) for tag, parts in sorted(incomplete.items())},
    )


class Split(NamedTuple):
    """One run of the nested protocol: which clips to train on, validate on and test on."""

    test_fold: int
    valid_fold: int
    train: Integers  # indices of the clips of all other folds
    valid: Integers  # indices of the clips of the validation fold
    test: Integers  # indices of the clips of the test fold


def nested_folds(folds: ArrayLike) -> Iterator[Split]:
    """The paper's protocol: for each test fold, each other fold validates once; the rest train.

    Five folds give 5 × 4 runs, each with three folds of training clips. The score of a test fold is
    the mean over its four runs.

    Parameters
    ----------
    folds : (n_clips,) fold of each clip, from ``grouped_folds``; at least 3 folds.
    """
    fold_of, n_folds = _fold_index(folds, least=3)
    return _splits(fold_of, n_folds)


def _splits(fold_of: Integers, n_folds: int) -> Iterator[Split]:
    clips = [np.flatnonzero(fold_of == fold) for fold in range(n_folds)]
    for test, valid in permutations(range(n_folds), 2):
        yield Split(
            test_fold=test,
            valid_fold=valid,
            train=np.flatnonzero((fold_of != test) & (fold_of != valid)),
            valid=clips[valid],
            test=clips[test],
        )


class GroupedTagKFold(BaseCrossValidator):
    """``grouped_folds`` as a scikit-learn splitter, for example for ``GridSearchCV(cv=...)``.

    ``split(X, y, groups)`` takes labels of one tag, (n_clips,), or of several, (n_clips, n_tags).

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

    # With scikit-learn's metadata routing, ``split`` gets ``groups`` without a request.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(self, n_splits: int = 5, *, random_state: int = 0) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds; the arguments are for scikit-learn and not used."""
        return self.n_splits

    def _iter_test_masks(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Mask]:
        if y is None or groups is None:
            missing = "y" if y is None else "groups"
            raise DataError(
                f"GroupedTagKFold needs {missing}. Got None; pass it on to fit or cross_validate, "
                "as in GridSearchCV(...).fit(X, Y, groups=artists)."
            )
        labels = np.asarray(y)
        if labels.ndim == 1:
            labels = labels[:, None]
        fold_of = grouped_folds(groups, labels, n_folds=self.n_splits, seed=self.random_state)
        for fold in range(self.n_splits):
            yield fold_of == fold


class _GroupsByColumn(NamedTuple):
    """For each column, the groups that have it."""

    groups: Integers  # of the first column, then of the second, …
    clips: Integers  # how many clips of the group have the column
    start: Integers  # (n_columns + 1,) where each column begins

    @property
    def n_groups(self) -> Integers:
        """(n_columns,) how many groups have each column."""
        return np.diff(self.start)

    def of(self, column: int) -> tuple[Integers, Integers]:
        """The groups that have the column, and the clips of each that have it."""
        start, end = self.start[column : column + 2]
        return self.groups[start:end], self.clips[start:end]


def _rows_by_column(counts: sparse.csr_array) -> _GroupsByColumn:
    by_column = counts.tocsc()
    return _GroupsByColumn(
        groups=by_column.indices,
        clips=by_column.data,
        start=by_column.indptr,
    )


class _Labels(NamedTuple):
    """Which labels are 1 and which are unknown; all others are 0."""

    positive: sparse.csr_array  # (n_clips, n_tags) ones
    unknown: sparse.csr_array  # (n_clips, n_tags) ones


def _labels(Y: ArrayLike | sparse.sparray) -> _Labels:
    if not sparse.issparse(Y):
        dense = ternary(Y)
        return _Labels(
            positive=sparse.csr_array(dense.positive, dtype=np.int64),
            unknown=sparse.csr_array(~dense.known, dtype=np.int64),
        )
    labels = sparse.csr_array(Y)
    ternary(labels.data[:, None])  # refuses other values
    return _Labels(
        positive=_where(labels, labels.data == 1), unknown=_where(labels, np.isnan(labels.data))
    )


def _where(labels: sparse.csr_array, chosen: Mask) -> sparse.csr_array:
    """Ones at the chosen entries."""
    entries = labels.tocoo()
    rows, columns = entries.row[chosen], entries.col[chosen]
    ones = np.ones(len(rows), dtype=np.int64)
    return sparse.csr_array((ones, (rows, columns)), shape=labels.shape)


class _LabelCounts(NamedTuple):
    """Labels of the clips of each of n groups."""

    n_clips: Integers  # (n,)
    positives: sparse.csr_array  # (n, n_tags)
    not_negative: sparse.csr_array  # (n, n_tags) clips with a positive or an unknown label

    def negatives(self, tags: Integers) -> sparse.csr_array:
        """(n, len(tags)) clips with a negative label."""
        blocks = [
            sparse.csr_array(self.n_clips[:, None] - self.not_negative[:, some].toarray())
            for some in np.array_split(tags, -(-len(tags) // _TAGS_AT_ONCE) or 1)
        ]
        return sparse.hstack(blocks, format="csr")

    def n_with_negative(self) -> Integers:
        """(n_tags,) how many groups have a negative."""
        n_groups, n_tags = self.positives.shape
        group = np.repeat(np.arange(n_groups), np.diff(self.not_negative.indptr))
        none_left = self.not_negative.data == self.n_clips[group]
        return n_groups - np.bincount(self.not_negative.indices[none_left], minlength=n_tags)

    def columns(self) -> sparse.csr_array:
        """(n, n_columns) what every fold should have: positives, and negatives that are scarce."""
        n_groups, n_tags = self.positives.shape
        tags = np.arange(n_tags)
        if n_groups * n_tags > _MANY_LABELS:
            tags = tags[self.n_with_negative() < n_groups / 2]
        return sparse.hstack([self.positives, self.negatives(tags)], format="csr")


def _count_labels(labels: _Labels, index: Integers, n: int) -> _LabelCounts:
    """The labels of the clips with each index."""
    n_clips = len(index)
    members = sparse.csr_array(
        (np.ones(n_clips, dtype=np.int64), (index, np.arange(n_clips))), shape=(n, n_clips)
    )
    positives = members @ labels.positive
    return _LabelCounts(
        n_clips=np.bincount(index, minlength=n),
        positives=positives,
        not_negative=positives + members @ labels.unknown,
    )


def group_index(groups: ArrayLike, n_clips: int) -> Integers:
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
                f"first at clip {nameless[0]}; give each such clip its own group."
            )
        _, index = np.unique(names, return_inverse=True)
        return index
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
    numbers = np.unique(fold_of)
    if len(numbers) < least or not np.array_equal(numbers, np.arange(len(numbers))):
        raise DataError(
            f"folds must be numbered from 0 without a gap, and at least {least}. Got {numbers}."
        )
    return fold_of, len(numbers)


def _capacity(sizes: Integers, n_folds: int) -> float:
    """Clips per fold, when each larger group has its own fold."""
    n_clips = float(sizes.sum())
    n_free = n_folds
    for size in np.sort(sizes)[::-1]:
        if n_free == 1 or size <= n_clips / n_free:
            break
        n_clips -= size
        n_free -= 1
    return n_clips / n_free


class _Move(NamedTuple):
    group: int
    fold: int  # the new one


class _Change(NamedTuple):
    """Moves that bring a column to a fold."""

    gain: float  # how many more (fold, column) pairs are filled
    moves: list[_Move]


class Folds:
    """Which group is in which fold, with the resulting counts."""

    def __init__(self, sizes: Integers, counts: sparse.csr_array, n_folds: int) -> None:
        self.sizes = sizes  # (n_groups,) clips of each group
        self.counts = counts  # (n_groups, n_columns) clips that have the column
        self.by_column = _rows_by_column(counts)
        self.n_folds = n_folds
        self.capacity = _capacity(sizes, n_folds)
        n_groups, n_columns = counts.shape
        self.fold = np.full(n_groups, -1)  # (n_groups,) -1: not placed yet
        self.size = np.zeros(n_folds, dtype=np.int64)  # clips of each fold
        self.got = np.zeros((n_folds, n_columns), dtype=np.int64)  # clips with the column
        self.groups_with = np.zeros_like(self.got)
        self.n_left = np.bincount(counts.indices, minlength=n_columns)  # groups to be placed

    @property
    def lacks(self) -> Mask:
        """(n_folds, n_columns) whether no group of the fold has the column."""
        return self.groups_with == 0

    def columns_of(self, group: int) -> Integers:
        """The columns that a group has."""
        start, end = self.counts.indptr[group : group + 2]
        return self.counts.indices[start:end]

    def place(self, group: int, fold: int) -> None:
        """Move a group to a fold."""
        start, end = self.counts.indptr[group : group + 2]
        columns = self.counts.indices[start:end]
        clips = self.counts.data[start:end]
        former = int(self.fold[group])
        if former < 0:
            self.n_left[columns] -= 1
        else:
            self.size[former] -= self.sizes[group]
            self.got[former, columns] -= clips
            self.groups_with[former, columns] -= 1
        self.size[fold] += self.sizes[group]
        self.got[fold, columns] += clips
        self.groups_with[fold, columns] += 1
        self.fold[group] = fold

    def n_lacking(self, group: int) -> list[int]:
        """(n_folds,) how many of the group's columns each fold lacks."""
        lacks = self.groups_with[:, self.columns_of(group)] == 0
        return lacks.sum(axis=1).tolist()

    def gain(self, groups: Integers, source: int, target: int) -> Integers:
        """(len(groups),) how many more (fold, column) pairs are filled if one group moves."""
        fills = self.groups_with[target] == 0
        empties = self.groups_with[source] == 1
        value = fills.astype(np.int64) - empties
        starts = self.counts.indptr[groups]
        lengths = self.counts.indptr[groups + 1] - starts
        ends = np.cumsum(lengths)
        first = np.repeat(starts - (ends - lengths), lengths)
        columns = self.counts.indices[first + np.arange(len(first))]
        total = np.concatenate([[0], np.cumsum(value[columns])])
        return total[ends] - total[ends - lengths]

    def exchange_gain(self, group: int, others: Integers, source: int, target: int) -> Integers:
        """(len(others),) gain of moving the group to the target and one of the others back."""
        first = self.gain(np.array([group]), source, target)
        self.place(group, target)
        back = self.gain(others, target, source)
        self.place(group, source)
        return first + back

    def members(self, fold: int) -> Integers:
        """The groups in a fold."""
        return np.flatnonzero(self.fold == fold)

    def _some(self, groups: Integers) -> Integers:
        """The groups, or evenly spread ones of them if there are very many."""
        step = -(-len(groups) // _MAX_PARTNERS)
        return groups[:: max(step, 1)]

    def keeps_balance(self, clips: Integers, source: int, target: int) -> Mask:
        """Whether moving ``clips`` clips from one fold to the other keeps the sizes balanced."""
        gap = self.size[source] - self.size[target]
        return np.abs(gap - 2 * clips) <= max(abs(gap), _LARGE_SHARE * self.capacity)

    def place_large(self) -> None:
        """Place large groups, the largest first, each where most of its columns are missing."""
        for group in np.argsort(-self.sizes, kind="stable").tolist():
            if self.sizes[group] <= max(1, _LARGE_SHARE * self.capacity):
                return
            need = list(zip(self.n_lacking(group), (-self.size).tolist(), strict=True))
            self.place(group, max(self._with_room(group), key=need.__getitem__))

    def place_by_rarest_column(self) -> None:
        """Iterative stratification of the groups without a fold, by the column with the fewest."""
        share = self.counts.sum(axis=0) / self.n_folds
        while self.n_left.any():
            column = int(np.argmin(np.where(self.n_left > 0, self.n_left, len(self.sizes) + 1)))
            groups, clips = self.by_column.of(column)
            left = self.fold[groups] < 0
            order = np.argsort(-clips[left], kind="stable")
            for group in groups[left][order].tolist():
                # In this order: the fold lacks the column, misses more of its share, lacks more of
                # the group's other columns, is smaller.
                lacks_column = (self.groups_with[:, column] == 0).tolist()
                missing_share = (share[column] - self.got[:, column]).tolist()
                room = (-self.size).tolist()
                need = list(
                    zip(lacks_column, missing_share, self.n_lacking(group), room, strict=True)
                )
                self.place(group, max(self._with_room(group), key=need.__getitem__))
        for group in np.flatnonzero(self.fold < 0).tolist():  # groups without any known label
            self.place(group, int(np.argmin(self.size)))

    def _with_room(self, group: int) -> list[int]:
        """The folds that the group still fits into; the smallest if it fits nowhere."""
        after = (self.size + self.sizes[group]).tolist()
        fits = [fold for fold, size in enumerate(after) if size < self.capacity + 1]
        return fits or [int(np.argmin(self.size))]

    def close_gaps(self, rng: np.random.Generator) -> None:
        """Close one gap after another; a change may open as many as it closes, but never more."""
        # Random changes that gain nothing lead to others that do.
        enough = self.by_column.n_groups >= self.n_folds
        rounds = np.clip(_ROUNDS_TIMES_GROUPS // len(self.sizes), _MIN_ROUNDS, _MAX_ROUNDS)
        for _ in range(rounds):
            gaps = rng.permutation(np.argwhere(self.lacks & enough))
            changed = [self._close(target, column, rng) for target, column in gaps.tolist()]
            if not any(changed):
                return

    def _close(self, target: int, column: int, rng: np.random.Generator) -> bool:
        """Bring the column to the target fold; False if that opens more gaps than it closes."""
        if self.groups_with[target, column]:
            return False
        changes = list(self._changes(target, column))
        gains = np.array([change.gain for change in changes])
        if gains.max(initial=-1.0) < 0:
            return False
        chosen = changes[rng.choice(np.flatnonzero(gains == gains.max()))]
        for move in chosen.moves:
            self.place(move.group, move.fold)
        return True

    def _changes(self, target: int, column: int) -> Iterator[_Change]:
        """Moves to the target fold, and swaps with one of its groups, that bring it the column."""
        others = self._some(self.members(target))
        having, _ = self.by_column.of(column)
        for source in range(self.n_folds):
            groups = having[self.fold[having] == source]
            if source == target or len(groups) == 0:
                continue
            gains = self.gain(groups, source, target)
            for index in np.argsort(-gains, kind="stable")[:_MAX_TRIED].tolist():
                group = int(groups[index])
                size = self.sizes[group]
                there = _Move(group, target)
                if self.keeps_balance(size, source, target):
                    yield _Change(float(gains[index]), [there])
                is_allowed = self.keeps_balance(size - self.sizes[others], source, target)
                if is_allowed.any():
                    swap_gains = self.exchange_gain(group, others, source, target)
                    best = int(np.argmax(np.where(is_allowed, swap_gains, -np.inf)))
                    back = _Move(int(others[best]), source)
                    yield _Change(float(swap_gains[best]), [there, back])

    def even_out(self) -> None:
        """Move or swap groups between larger and smaller folds while that opens no gap."""
        while self._shift_once():
            pass

    def _shift_once(self) -> bool:
        """Bring the sizes of the first two folds closer for which it is possible."""
        by_size = np.argsort(self.size, kind="stable").tolist()
        for source in reversed(by_size):
            for target in by_size:
                gap = self.size[source] - self.size[target]
                if gap > 1 and self._shift(source, target):
                    return True
        return False

    def _shift(self, source: int, target: int) -> bool:
        """Bring two folds' sizes closer; False if no move or swap can without opening a gap."""
        gap = self.size[source] - self.size[target]
        groups = self.members(source)
        groups = groups[(self.sizes[groups] < gap) & (self.gain(groups, source, target) >= 0)]
        if len(groups) > 0:
            closest = np.argmin(np.abs(self.sizes[groups] - gap / 2))
            self.place(int(groups[closest]), target)
            return True
        others = self._some(self.members(target))
        for group in self.members(source)[:_MAX_TRIED].tolist():
            surplus = self.sizes[group] - self.sizes[others]
            gains = self.exchange_gain(group, others, source, target)
            useful = others[(surplus > 0) & (surplus < gap) & (gains >= 0)]
            if len(useful) > 0:
                self.place(group, target)
                self.place(int(useful[0]), source)
                return True
        return False
