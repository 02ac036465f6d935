"""Which tracks to ask a person about: those that the model is unsure of.

The doubt about a tag of a track is how near the log-odds of its probability are to those of the
tag's threshold: there an answer decides. Each chosen question makes others about its tag and artist
wait, so that questions vary.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.data.tag_names import normalise_tag
from harmonium.errors import LibraryError, counted
from harmonium.library.answers import ME, keep_said
from harmonium.library.library import Library
from harmonium.library.search import unknown_tag
from harmonium.library.snapshot import Snapshot
from harmonium.library.store.models import Steps, StoredModel, unpacked
from harmonium.library.store.opinions import REVIEW
from harmonium.library.store.schema import opinion
from harmonium.library.store.tracks import Track
from harmonium.library.tagger import log_odds, no_model

N_CANDIDATES = 20
"""The most doubtful questions among which each one is chosen."""
PENALTY = 0.25
"""What further questions of the same tag or artist lose, in log-odds."""


@dataclass(frozen=True)
class Doubt:
    """A tag of a track about which the model is in doubt."""

    track: Track
    tag: str
    shown: str
    """The tag as this library spells it."""
    probability: float
    """What the model says."""
    guess: bool
    """Whether that reaches the tag's threshold."""


def doubtful(
    library: Library,
    tag: str | None = None,
    *,
    n: int = 20,
    skip: Collection[tuple[int, str]] = (),
) -> list[Doubt]:
    """The n questions that the model is least sure of, see `Library.doubts`.

    People have not answered them yet; a track is asked about once.
    """
    snapshot = library.snapshot()
    model = snapshot.model
    if model is None or model.id is None:
        raise no_model()
    names = list(snapshot.places)
    if tag is None and not names:
        raise LibraryError("The model has not learnt any tag that could be in doubt.")
    if tag is not None:
        name = normalise_tag(tag)
        if name not in names:
            raise unknown_tag(name, names, f"The model has not learnt {name!r}.")
        names = [name]
    asked = [_most_doubtful(snapshot, model, name, N_CANDIDATES * n, skip) for name in names]
    ids, steps, doubt = (np.concatenate(parts) for parts in zip(*asked, strict=True))
    columns = np.repeat(np.arange(len(names)), [len(one[0]) for one in asked])
    order = np.argsort(-doubt, kind="stable")[: N_CANDIDATES * n]
    tracks = library.tracks.many(ids[order])
    artists = [track.artist or f"#{track.id}" for track in tracks]
    chosen = _spread(doubt[order], ids[order], columns[order].tolist(), artists, n)
    found = []
    for k in chosen:
        name, p = names[columns[order[k]]], float(unpacked(steps[order[k : k + 1]])[0])
        guess = p >= model.thresholds[snapshot.places[name]]
        found.append(Doubt(tracks[k], name, snapshot.shown(name), p, bool(guess)))
    return found


def _most_doubtful(
    snapshot: Snapshot, model: StoredModel, name: str, most: int, skip: Collection[tuple[int, str]]
) -> tuple[NDArray[np.int64], Steps, NDArray[np.float32]]:
    """Tracks where a tag is most in doubt, what the model says about them, and the doubt."""
    place, found = snapshot.places[name], snapshot.predictions
    steps = found.steps[place]
    level = log_odds(model.thresholds[[place]])[0]
    doubt = -np.abs(_LOG_ODDS[steps] - level)
    agreed = snapshot.verdicts.agreement(name)
    skipped = np.array([number for number, other in skip if other == name], np.int64)
    known = np.concatenate([agreed.yes, agreed.no, skipped])
    doubt[np.isin(found.ids, known, assume_unique=False)] = -np.inf
    doubt[snapshot.absent] = -np.inf
    rows = np.arange(len(doubt))
    if len(rows) > most:
        rows = np.sort(np.argpartition(-doubt, most)[:most])
    rows = rows[np.isfinite(doubt[rows])]
    return found.ids[rows], steps[rows], doubt[rows]


_LOG_ODDS = log_odds(unpacked(np.arange(65535, dtype=np.uint16)))
_LOG_ODDS = np.append(_LOG_ODDS, np.float32(-np.inf))  # of a track that has no probability


def answer_doubt(
    library: Library,
    track_id: int,
    tag: str,
    fits: bool,
    *,
    person: str = ME,
    change: int | None = None,
) -> int:
    """Save a person's answer about one tag of a track, see `Library.answer`; the change.

    A `LibraryError` where ``change`` is no such change, or was undone.
    """
    library.tracks.get(track_id)
    with library.begin() as connection:
        if change is None:
            number = library.changes.begin(REVIEW, "")
        else:
            earlier = library.changes.get(change)
            if earlier.command != REVIEW or earlier.undone_by is not None:
                raise LibraryError(f"Change {change} is not a review, or was undone.")
            number = change
        tags = {"yes" if fits else "no": [tag]}
        keep_said(library, track_id, **tags, person=person, change=number)
        query = sa.select(sa.func.count()).where(
            opinion.c.begun_by == number, opinion.c.ended_by.is_(None)
        )
        n_answers = int(connection.scalar(query) or 0)
        library.changes.describe(number, counted(n_answers, "answer"))
    return number


def _spread(
    doubt: NDArray[np.float64],
    ids: NDArray[np.int64],
    tags: list[int],
    artists: list[str],
    n: int,
) -> list[int]:
    """Places of the questions to ask, greedily the most doubtful after waiting."""
    score, tag_of, artist_of = doubt.astype(np.float64), np.array(tags), np.array(artists)
    chosen: list[int] = []
    while len(chosen) < n and len(score) and np.isfinite(score).any():
        best = int(np.argmax(score))
        chosen.append(best)
        score -= PENALTY * (tag_of == tag_of[best]) + PENALTY * (artist_of == artist_of[best])
        score[ids == ids[best]] = -np.inf
    return chosen
