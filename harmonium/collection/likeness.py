"""Tracks that are alike in their tags.

A track is what sets it apart: the log-odds of each tag that the model has learnt, less their mean
over the library. Two tracks are alike as far as these point the same way: their cosine, brought to
0 … 1.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harmonium.collection.models import StoredModel
from harmonium.errors import LibraryError

if TYPE_CHECKING:
    from harmonium.collection.library import Library

SURE = 0.98
"""What people say of the track counts as so probable."""

Floats = NDArray[np.float32]


def similarities(
    library: "Library", model: StoredModel | None, track_id: int
) -> tuple[NDArray[np.int64], Floats]:
    """The other tracks with predictions, (n,) ascending, and how alike they are, (n,) in [0, 1]."""
    if model is None or model.id is None:
        raise LibraryError(
            "Without a model no track is like another. `harmonium train` makes one, and "
            "`harmonium tag` applies it to all tracks."
        )
    learnt = np.flatnonzero(model.thresholds <= 1)
    if not len(learnt):
        raise LibraryError("The model has not learnt any tag by which tracks could be alike.")
    ids, P = library.predictions.columns(model.id, learnt.tolist())
    row = np.searchsorted(ids, track_id)
    if row == len(ids) or ids[row] != track_id:
        raise LibraryError(
            f"The model has not heard track #{track_id} yet. `harmonium tag` lets it hear all."
        )
    own = _with_said(library, P[row], [model.vocabulary[j] for j in learnt], track_id)
    others = np.arange(len(ids)) != row
    return ids[others], alike(P, own)[others]


def alike(P: Floats, own: Floats) -> Floats:
    """(1 + cos(l_i - m, l - m)) / 2 with l the log-odds, and m the mean of those of P (n, C).

    ``own`` (C,) are the probabilities of the track that the others are compared with.
    """
    L = log_odds(P)
    mean = L.mean(axis=0)
    L -= mean
    centre = log_odds(own) - mean
    norms = np.sqrt(np.einsum("ij,ij->i", L, L)) * np.linalg.norm(centre)
    apart = norms > 1e-6  # less is rounding: such tracks are as all others
    cosine = np.divide(L @ centre, norms, out=np.zeros(len(L), np.float32), where=apart)
    return np.clip((1 + cosine) / 2, 0, 1)


def log_odds(p: Floats) -> Floats:
    """log(p / (1 - p)), with p kept within 0.001 … 0.999: beyond, differences say little."""
    limited = np.clip(p, np.float32(1e-3), np.float32(1 - 1e-3))
    return np.log(limited / (1 - limited))


def _with_said(library: "Library", p: Floats, tags: list[str], track_id: int) -> Floats:
    p, place = p.copy(), {tag: i for i, tag in enumerate(tags)}
    said = library.opinions.of([track_id])
    for tag, value in zip(said["tag"], said["value"], strict=True):
        if tag in place:
            p[place[tag]] = SURE if value > 0 else 1 - SURE
    return p
