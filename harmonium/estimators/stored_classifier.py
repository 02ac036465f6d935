"""scikit-learn's classifiers as arrays: what a model file can hold of a classifier below an RBM.

Forests and logistic regressions become arrays when they are fitted, and predict in NumPy from then
on, so a loaded file runs no code. A test compares them with scikit-learn's own predictions. Other
classifiers stay as they are, and cannot be saved.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.arrays import Arrays, Doubles, Floats, Numbers, Places
from harmonium.estimators.model_files import finite_array
from harmonium.logistic import log_odds

AT_ONCE = 2**22  # clips times trees that walk together


class TagScorer(ABC):
    """What a fitted classifier says about some tags."""

    kind: ClassVar[str]

    @abstractmethod
    def log_odds(self, X: Numbers) -> Doubles:
        """Of each tag, (N, C); they may be infinite."""

    def arrays(self) -> Arrays:
        """What a model file holds of it."""
        raise NotImplementedError

    @classmethod
    def restored(cls, arrays: Arrays, n_features: int, n_tags: int) -> "TagScorer":
        """The scorer of such arrays; LookupError, TypeError or ValueError if they are damaged."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Regressions(TagScorer):
    """Logistic regressions, one for each tag: log-odds d + Wx."""

    W: Doubles  # (C, D)
    d: Doubles  # (C,)

    kind = "regressions"

    def log_odds(self, X: Numbers) -> Doubles:
        """d + Wx."""
        return np.asarray(X, np.float64) @ self.W.T + self.d

    def arrays(self) -> Arrays:
        """W and d."""
        return {"W": self.W, "d": self.d}

    @classmethod
    def restored(cls, arrays: Arrays, n_features: int, n_tags: int) -> "Regressions":
        """Checked for their shapes."""
        W = finite_array(arrays, "W")
        d = finite_array(arrays, "d")
        if W.shape != (n_tags, n_features) or d.shape != (n_tags,):
            raise ValueError(f"regressions have the shapes {W.shape} and {d.shape}")
        return cls(W=W, d=d)


@dataclass(frozen=True, eq=False)
class Forest(TagScorer):
    """Trees, and which clips are in their leaves.

    A clip reaches a leaf in each tree. Tag j is as probable as it is frequent among the clips of
    these leaves, where each tree counts as much as the others:

        p_j = Σ_i w_i y_ij / Σ_i w_i,    w_i = Σ_t [clip i is in the leaf of tree t] / its clips

    over the clips i with tag j known; clips with weights count by them. If all tags are known, this
    is the forest's own probability.
    """

    roots: Places  # (T + 1,) the first node of each tree, and the number of nodes, M
    feature: NDArray[np.integer]  # (M,) that decides at a node; -1: a leaf
    threshold: Floats  # (M,) go to the left if the feature is at most this
    left: NDArray[np.integer]  # (M,) nodes, counted from the root of their tree
    right: NDArray[np.integer]  # (M,)
    starts: NDArray[np.integer]  # (L + 1,) where the clips of each leaf start
    clips: NDArray[np.integer]  # numbers of clips, by leaf; twice if a tree has a clip twice
    labels: Floats  # (N, C) of the clips: 0, 1, a probability, or NaN
    weights: Doubles  # (N,) of the clips

    kind = "forest"

    def log_odds(self, X: Numbers) -> Doubles:
        """log p / (1 - p)."""
        return log_odds(self.probabilities(X))

    def probabilities(self, X: Numbers) -> Doubles:
        """p_j of each clip, (N, C); 0 if the tag is unknown for all clips in the leaves."""
        size = max(1, AT_ONCE // (len(self.roots) - 1))
        known = ~np.isnan(self.labels)
        present = np.where(known, self.labels, 0.0).astype(np.float64)
        everywhere = bool(known.all())
        parts = []
        for first in range(0, len(X), size):
            weights = self._weights(self.leaves(X[first : first + size]))
            total = 1.0 if everywhere else weights @ known.astype(np.float64)
            parts.append((weights @ present) / np.maximum(total, np.finfo(np.float64).tiny))
        return np.clip(np.concatenate(parts), 0.0, 1.0)

    def leaves(self, X: Numbers) -> Places:
        """The number of the leaf that each clip reaches in each tree, (N, T)."""
        X = np.asarray(X, np.float32)
        first = self.roots[:-1]
        is_leaf = self.feature < 0
        rows = np.arange(len(X))[:, None]
        nodes = np.tile(first, (len(X), 1))
        while True:
            deciding = self.feature[nodes]
            walking = deciding >= 0
            if not walking.any():
                break
            is_left = X[rows, deciding * walking] <= self.threshold[nodes]
            following = first + np.where(is_left, self.left[nodes], self.right[nodes])
            nodes = np.where(walking, following, nodes)
        number = np.cumsum(is_leaf) - 1
        return number[nodes]

    def _weights(self, leaves: Places) -> sp.csr_array:
        """w of each clip (N) for the forest's own clips, (N, clips)."""
        n, n_trees = leaves.shape
        n_leaves = len(self.starts) - 1
        reached = sp.csr_array(
            (
                np.full(leaves.size, 1 / n_trees),
                leaves.ravel(),
                np.arange(0, leaves.size + 1, n_trees),
            ),
            shape=(n, n_leaves),
        )
        of_clips = self.weights[self.clips]
        leaf = np.repeat(np.arange(n_leaves), np.diff(self.starts))
        share = of_clips / np.bincount(leaf, of_clips, minlength=n_leaves)[leaf]
        inside = sp.csr_array((share, self.clips, self.starts), shape=(n_leaves, len(self.labels)))
        return reached @ inside

    def arrays(self) -> Arrays:
        """All of them, in the smallest types that hold them."""
        small = {
            name: _small(getattr(self, name))
            for name in ("roots", "feature", "left", "right", "starts", "clips")
        }
        return {
            **small,
            "threshold": self.threshold,
            "labels": self.labels,
            "weights": self.weights,
        }

    @classmethod
    def restored(cls, arrays: Arrays, n_features: int, n_tags: int) -> "Forest":
        """Checked, so that a walk ends, and stays inside the arrays."""
        numbers = {}
        for name in ("roots", "feature", "left", "right", "starts", "clips"):
            if arrays[name].dtype.kind not in "iu" or arrays[name].ndim != 1:
                raise TypeError(f"{name} must be a list of whole numbers")
            numbers[name] = arrays[name].astype(np.int64)
        threshold = finite_array(arrays, "threshold", np.float32)
        labels = arrays["labels"]
        if labels.dtype != np.float32 or labels.ndim != 2 or labels.shape[1] != n_tags:
            raise ValueError(f"labels have the shape {labels.shape}")
        if ((labels < 0) | (labels > 1)).any():
            raise ValueError("labels must be from 0 to 1")
        weights = finite_array(arrays, "weights")
        if weights.shape != labels.shape[:1] or (weights <= 0).any():
            raise ValueError("weights must be above 0, one for each clip with labels")
        forest = cls(threshold=threshold, labels=labels, weights=weights, **numbers)
        forest._check(n_features)
        return forest

    def _check(self, n_features: int) -> None:
        n_nodes = len(self.feature)
        sizes = np.diff(self.roots)
        if len(self.roots) < 2 or self.roots[0] != 0 or self.roots[-1] != n_nodes:
            raise ValueError("roots must be the first nodes of at least one tree")
        if (sizes < 1).any() or any(len(a) != n_nodes for a in (self.left, self.right)):
            raise ValueError("each tree must have nodes with two children")
        if len(self.threshold) != n_nodes:
            raise ValueError("each node must have a threshold")
        if (self.feature < -1).any() or (self.feature >= n_features).any():
            raise ValueError(f"nodes must decide by one of {n_features} features")
        place = np.arange(n_nodes) - np.repeat(self.roots[:-1], sizes)
        inner = self.feature >= 0
        for children in (self.left[inner], self.right[inner]):
            # later than their parents: no walk goes round in circles
            if (children <= place[inner]).any() or (
                children >= np.repeat(sizes, sizes)[inner]
            ).any():
                raise ValueError("children must come after their parents, in the same tree")
        n_leaves = int((~inner).sum())
        if len(self.starts) != n_leaves + 1 or self.starts[0] != 0:
            raise ValueError("starts must be one number for each leaf, and the end")
        if (np.diff(self.starts) < 0).any() or self.starts[-1] != len(self.clips):
            raise ValueError("starts must rise to the number of clips in all leaves")
        if (self.clips < 0).any() or (self.clips >= len(self.labels)).any():
            raise ValueError("leaves must hold clips that have labels")


def forest_of(
    trees: list[Any],
    leaf_of_clip: Places,
    counts: Places,
    labels: Floats,
    weights: Doubles | None = None,
) -> Forest:
    """A forest of scikit-learn's ``Tree`` objects.

    ``leaf_of_clip`` (N, T) is the node that each clip reaches, ``counts`` (N, T) how often the tree
    has it, ``labels`` (N, C) what is known of it, and ``weights`` (N,) how much it counts.
    """
    sizes = [tree.node_count for tree in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)])
    left = np.concatenate([tree.children_left for tree in trees])
    feature = np.concatenate([tree.feature for tree in trees])
    threshold = np.concatenate([tree.threshold for tree in trees])
    is_leaf = left < 0
    feature = np.where(is_leaf, -1, feature)
    right = np.concatenate([tree.children_right for tree in trees])
    number = np.cumsum(is_leaf) - 1
    leaf = number[leaf_of_clip + roots[:-1]]  # (N, T)
    clip = np.repeat(np.arange(len(labels)), len(trees))
    leaf, clip = np.repeat(leaf.ravel(), counts.ravel()), np.repeat(clip, counts.ravel())
    order = np.argsort(leaf, kind="stable")
    starts = np.searchsorted(leaf[order], np.arange(int(is_leaf.sum()) + 1))
    return Forest(
        roots=roots,
        feature=feature,
        threshold=_rounded_down(np.where(is_leaf, 0.0, threshold)),
        left=np.where(is_leaf, 0, left),
        right=np.where(is_leaf, 0, right),
        starts=starts,
        clips=clip[order],
        labels=labels,
        weights=np.ones(len(labels)) if weights is None else weights.astype(np.float64),
    )


def _rounded_down(threshold: Doubles) -> Floats:
    """In single precision, as features are: x ≤ threshold stays as true or false as it was."""
    single = threshold.astype(np.float32)
    below = np.nextafter(single, np.float32(-np.inf))
    return np.where(single > threshold, below, single)


def _small(array: NDArray[np.integer]) -> NDArray[np.integer]:
    """The array in the smallest type of integers that holds it."""
    least = int(array.min(initial=0))
    largest = np.min_scalar_type(int(array.max(initial=0)))
    return array.astype(np.promote_types(np.min_scalar_type(least), largest) if least else largest)


SCORERS: Mapping[str, type[TagScorer]] = {"forest": Forest, "regressions": Regressions}
"""What a model file may hold, by the name that it gives."""
