"""A map of the tags: which go together, by the weights that the model has learnt.

How much two tags i and j pull each other, where nothing else is known, is what their log-odds gain
when both hold: with the hidden units summed out,

    J_ij = Σ_h f(U_hi + U_hj) - f(U_hi) - f(U_hj) + f(0)   with f(u) = log (1 + e^{c_h + u})

Tags that pull others alike are near each other: t-SNE of the rows of J.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonium.library.answering.stored_tagger import StoredTagger
from harmonium.library.answering.track_tags import needed_tagger
from harmonium.library.snapshot import Snapshot

LINKS_EACH = 2
"""Links of a tag: those to the tags that it pulls most,"""
MOST_AGAINST = 30
"""and in all so many to tags that it pushes away."""
FEWEST_SPREAD = 8
"""From so many tags on they are spread by t-SNE."""

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class MappedTag:
    """A tag on the map."""

    tag: str
    shown: str
    """The tag as this library spells it."""
    group: str
    x: float
    y: float
    """Both from 0 to 1."""
    size: float
    """From 0 to 1: by how many tracks have it."""


@dataclass(frozen=True)
class TagLink:
    """Two tags that go together, or against each other where the weight is negative."""

    a: str
    b: str
    weight: float
    """What the log-odds of each gain from the other."""


@dataclass(frozen=True)
class TagMap:
    """How the tags of a model relate."""

    tags: list[MappedTag]
    links: list[TagLink]


def tag_map(view: Snapshot) -> TagMap:
    """The map of the tags that the model in use has learnt; the same for the same model."""
    tagger = needed_tagger(view)
    names = [tag for tag in view.places if tag in tagger.tags]
    if not names:
        return TagMap([], [])
    places = [tagger.tags.index(tag) for tag in names]
    J = _pulls(tagger)[np.ix_(places, places)]
    at = _positions(J)
    shares = dict(zip(view.places, view.reached.mean(axis=1), strict=True))
    most = max(max(shares.values(), default=0.0), 1e-9)
    tags = [
        MappedTag(
            tag,
            view.shown(tag),
            view.group(tag),
            float(x),
            float(y),
            float(np.sqrt(shares[tag] / most)),
        )
        for tag, (x, y) in zip(names, at, strict=True)
    ]
    return TagMap(tags, _links(names, J))


def _pulls(tagger: StoredTagger) -> Doubles:
    """J, (n_tags, n_tags); of two models side by side, 0 between what only one of them knows."""
    total = np.zeros((len(tagger.tags),) * 2)
    count = np.zeros_like(total)
    for places, U, c in tagger.weights():
        here = np.ix_(places, places)
        total[here] += pairwise_pull(U, c)
        count[here] += 1
    return total / np.maximum(count, 1)


def pairwise_pull(U: Doubles, c: Doubles) -> Doubles:
    """J of weights U (n_hidden, n_tags) and biases c (n_hidden,), (n_tags, n_tags)."""
    alone = np.logaddexp(0, c[:, None] + U)
    J = np.empty((U.shape[1],) * 2)
    for j in range(U.shape[1]):  # all at once would take a gigabyte for 300 tags
        both = np.logaddexp(0, c[:, None] + U + U[:, [j]])
        J[j] = (both - alone - alone[:, [j]] + np.logaddexp(0, c)[:, None]).sum(axis=0)
    np.fill_diagonal(J, 0)
    return J


def _positions(J: Doubles) -> Doubles:
    """(n, 2) from 0 to 1."""
    n = len(J)
    profile = J / np.maximum(np.linalg.norm(J, axis=1, keepdims=True), 1e-9)
    if n < FEWEST_SPREAD:
        angles = 2 * np.pi * np.arange(n) / n
        at = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    else:
        from sklearn.manifold import TSNE

        perplexity = min(15.0, (n - 1) / 3)
        at = TSNE(init="pca", perplexity=perplexity, random_state=0).fit_transform(profile)
    low, high = at.min(axis=0), at.max(axis=0)
    return (at - low) / np.maximum(high - low, 1e-9)


def _links(names: list[str], J: Doubles) -> list[TagLink]:
    chosen = {}
    for i in range(len(names)):
        for j in np.argsort(-J[i], kind="stable")[:LINKS_EACH].tolist():
            if J[i, j] > 0:
                chosen[min(i, j), max(i, j)] = float(J[i, j])
    rows, columns = np.triu_indices(len(names), 1)
    order = np.argsort(J[rows, columns], kind="stable")[:MOST_AGAINST]
    for i, j in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if J[i, j] < 0:
            chosen[i, j] = float(J[i, j])
    pairs = sorted(chosen.items(), key=lambda pair: -abs(pair[1]))
    return [TagLink(names[i], names[j], weight) for (i, j), weight in pairs]
