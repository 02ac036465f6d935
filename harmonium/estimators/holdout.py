"""Which clips each member of a model learns from, and which it is judged by."""

from dataclasses import dataclass

import numpy as np

from harmonium.arrays import Floats, Ids, Rng
from harmonium.estimators.tables import ClipTable, LabelledClips
from harmonium.estimators.targets import is_soft
from harmonium.estimators.validation import is_rankable
from harmonium.evaluation.folds import grouped_folds

MIN_HELD_OUT = 20  # the fewest clips to stop early on by default: fewer are ranked well by chance
MAX_HELD_OUT = 50_000  # the most clips to stop early on and to set thresholds with, by default


@dataclass(frozen=True, kw_only=True)
class Split:
    """What each member learns from, and what it stops early on."""

    rows: list[Ids]  # the clips of each member
    held_out: list[LabelledClips] | None  # of each member; None: nothing stops training early

    def for_members(self, n: int) -> "Split":
        """The same for n members; what is for one is then for each of them."""
        if len(self.rows) == n or len(self.rows) > 1:
            return self
        held_out = None if self.held_out is None else self.held_out * n
        return Split(rows=self.rows * n, held_out=held_out)


def all_clips(n_clips: int, held_out: LabelledClips | None = None) -> Split:
    """One member learns from all clips; others may be given to stop early on."""
    if held_out is None or not is_rankable(held_out.Y):
        return Split(rows=[np.arange(n_clips)], held_out=None)
    return Split(rows=[np.arange(n_clips)], held_out=[held_out])


def split_by_folds(judged: ClipTable, folds: Ids) -> Split:
    """A member for each fold, which learns from the others and stops early on its own."""
    rows = []
    held_out = []
    for fold in range(int(folds.max()) + 1):
        own = np.flatnonzero(folds == fold)[:MAX_HELD_OUT]
        held_out.append(judged.take(own).read(MAX_HELD_OUT))
        rows.append(np.flatnonzero(folds != fold))
    return Split(rows=rows, held_out=held_out)


def split_at_random(
    rng: Rng, judged: ClipTable, fraction: float, groups: Ids | None, *, in_order: bool
) -> Split:
    """One member, which stops early on a random fraction of the clips, or of whole groups.

    It learns from all clips if the held-out ones would be too few, or could not tell tags apart.
    With ``in_order``, clips are learnt from in the order of the table, which is on disk.
    """
    n_clips = len(judged)
    order = rng.permutation(n_clips)
    n_held_out = min(int(fraction * n_clips), MAX_HELD_OUT)
    if groups is not None and n_held_out:
        order, n_held_out = _whole_groups(rng, order, n_held_out, groups)
    held_out = judged.take(order[:n_held_out]).read(n_held_out)
    if n_held_out < MIN_HELD_OUT or not is_rankable(held_out.Y):
        return all_clips(n_clips)
    rows = order[n_held_out:]
    if in_order:
        rows = np.sort(rows)
    return Split(rows=[rows], held_out=[held_out])


def _whole_groups(rng: Rng, order: Ids, n_held_out: int, groups: Ids) -> tuple[Ids, int]:
    """The clips, group by group, and how many to hold out; at most half of them."""
    turn = rng.permutation(max(groups) + 1)[groups]
    order = order[np.argsort(turn[order], kind="stable")]
    first_half = turn[order][: len(order) // 2 + 1]
    ends = np.flatnonzero(np.diff(first_half)) + 1
    large_enough = ends[ends >= n_held_out]
    return order, int(large_enough[0]) if len(large_enough) else 0


def choose_folds(labels: Floats, groups: Ids | None, *, n_folds: int, seed: int) -> Ids | None:
    """The fold of each clip, (N,); None if there cannot be two.

    There are fewer than ``n_folds`` if one's clips could not tell tags apart.
    """
    if groups is None:
        groups = np.arange(len(labels))
    if is_soft(labels):
        labels = np.round(labels)
    for n in range(min(n_folds, len(np.unique(groups))), 1, -1):
        folds = grouped_folds(groups, labels, n_folds=n, seed=seed)
        if all(is_rankable(labels[folds == fold]) for fold in range(n)):
            return folds
    return None
