"""The review: questions about what the model is unsure of, and people's answers.

The doubt about a track's tag is how near its log-odds are to those of the tag's threshold, where an
answer decides. Questions about tags that were learnt here come before those about built-in ones.
Each chosen question puts off others about its tag and its artist, so that questions vary.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.arrays import Floats, Ids, Places, places_of_largest
from harmonium.errors import LibraryError, counted
from harmonium.library.model.odds import log_odds
from harmonium.library.model.tag_table import Tag, unknown_tag
from harmonium.library.model.tagger import no_model
from harmonium.library.snapshot import Snapshot
from harmonium.library.store.database import LibraryPart
from harmonium.library.store.predictions import Steps, unpacked
from harmonium.library.store.schema import opinion
from harmonium.library.store.tracks import Track
from harmonium.library.teaching.improvement import Improvement, improvement
from harmonium.library.teaching.say import ME, keep_said
from harmonium.library.verdicts import REVIEW

if TYPE_CHECKING:
    from harmonium.library.library import TrackName

N_CANDIDATES = 20  # the most doubtful questions among which each one is chosen
OWN_FIRST = 2.0  # the lead of questions about tags learnt here over built-in ones
PENALTY = 0.25  # what further questions about the same tag or artist lose, in log-odds


@dataclass(frozen=True)
class Doubt:
    """A track's tag about which the model is uncertain."""

    track: Track
    tag: str
    shown: str  # the tag as this library spells it
    probability: float  # what the model says
    threshold: float  # the tag's
    guess: bool  # whether the probability reaches it


class Review(LibraryPart):
    """What the model in use asks people, and what they answer."""

    def doubts(
        self, tag: str | None = None, limit: int = 20, skip: Collection[tuple[int, str]] = ()
    ) -> list[Doubt]:
        """The questions that the model is least certain about, except (track, tag) in ``skip``.

        Only questions that nobody has answered; each track is asked about once.
        """
        snapshot = self._library.snapshot()
        tags = _tags_to_ask_about(snapshot, tag)
        n_candidates = N_CANDIDATES * limit
        candidates = _Candidates.joined(
            [
                _most_doubtful(snapshot, asked, place, n_candidates, skip)
                for place, asked in enumerate(tags)
            ]
        )
        candidates = candidates.at(np.argsort(-candidates.doubt, kind="stable")[:n_candidates])
        tracks = self._library.tracks.many(candidates.ids)
        artists = np.array([track.artist or f"#{track.id}" for track in tracks])
        doubts = []
        for row in _varied(candidates, artists, limit):
            asked = tags[candidates.tags[row]]
            probability = float(unpacked(candidates.steps[[row]])[0])
            doubt = Doubt(
                track=tracks[row],
                tag=asked.name,
                shown=asked.spelling,
                probability=probability,
                threshold=asked.threshold or 0.0,
                guess=asked.holds(None, probability),
            )
            doubts.append(doubt)
        return doubts

    def answer(
        self,
        track: TrackName,
        tag: str,
        fits: bool,
        *,
        person: str = ME,
        change: int | None = None,
    ) -> int:
        """Save the answer to a question, and learn from it; the number of its change.

        Answers with the same ``change`` are undone together. A `LibraryError` if the change is not
        a review, or is being undone.
        """
        library = self._library
        track_id = library.track(track).id
        accepted, rejected = ([tag], []) if fits else ([], [tag])
        with library.learner.watching(), library.begin() as connection:
            if change is None:
                number = library.changes.begin(REVIEW, "")
            elif library.changes.get(change).command == REVIEW:
                number = change
            else:
                raise LibraryError(f"Change {change} is not a review.")
            keep_said(library, track_id, accepted, rejected, person=person, change=number)
            answers = sa.select(sa.func.count()).where(
                opinion.c.begun_by == number, opinion.c.ended_by.is_(None)
            )
            n_answers = int(connection.scalar(answers) or 0)
            library.changes.describe(number, counted(n_answers, "answer"))
        return number

    def improvement(self, change: int | None = None) -> Improvement | None:
        """How well the model predicted the last answers, or a change's, beforehand."""
        return improvement(self._library, change)


def _tags_to_ask_about(snapshot: Snapshot, tag: str | None) -> Sequence[Tag]:
    """The tags that the model predicts, or the one that is asked for."""
    if not snapshot.model.id:
        raise no_model()
    predicted = snapshot.tags.predicted
    if tag is None:
        if not predicted:
            raise LibraryError("The model has not learnt any tag to ask about.")
        return predicted
    wanted = snapshot.tags[snapshot.tags.name(tag)]
    if not wanted.predicted:
        names = [known.name for known in predicted]
        raise unknown_tag(wanted.name, names, f"The model has not learnt {wanted.name!r}.")
    return [wanted]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Candidates:
    """Tags of tracks that may be asked about; arrays (n,)."""

    ids: Ids  # the tracks
    tags: Ids  # places in the list of tags to ask about
    steps: Steps  # the probabilities
    doubt: Floats  # at most 0 for a built-in tag; the higher, the more doubtful

    @classmethod
    def joined(cls, parts: Sequence[_Candidates]) -> _Candidates:
        """All parts, one after another."""
        return cls(
            ids=np.concatenate([part.ids for part in parts]),
            tags=np.concatenate([part.tags for part in parts]),
            steps=np.concatenate([part.steps for part in parts]),
            doubt=np.concatenate([part.doubt for part in parts]),
        )

    def at(self, rows: Places) -> _Candidates:
        """Some of the candidates."""
        return _Candidates(
            ids=self.ids[rows],
            tags=self.tags[rows],
            steps=self.steps[rows],
            doubt=self.doubt[rows],
        )


def _most_doubtful(
    snapshot: Snapshot, tag: Tag, place: int, most: int, skip: Collection[tuple[int, str]]
) -> _Candidates:
    """The tracks where a tag is least certain; ``place`` is the tag's in the list."""
    predictions = snapshot.predictions
    steps = predictions.steps[tag.place]
    threshold = log_odds(np.array([tag.threshold], np.float32))[0]
    doubt = -np.abs(_LOG_ODDS[steps] - threshold)
    agreed = snapshot.verdicts.agreement(tag.name)
    skipped = np.array([track for track, other in skip if other == tag.name], np.int64)
    settled = np.concatenate([agreed.yes, agreed.no, skipped])
    doubt[np.isin(predictions.ids, settled)] = -np.inf
    doubt[snapshot.absent] = -np.inf
    if tag.owner == "own":
        doubt += OWN_FIRST
    rows = places_of_largest(doubt, most)
    rows = rows[np.isfinite(doubt[rows])]
    return _Candidates(
        ids=predictions.ids[rows],
        tags=np.full(len(rows), place),
        steps=steps[rows],
        doubt=doubt[rows],
    )


_LOG_ODDS = log_odds(unpacked(np.arange(65535, dtype=np.uint16)))
_LOG_ODDS = np.append(_LOG_ODDS, np.float32(-np.inf))  # for a track without a probability


def _varied(candidates: _Candidates, artists: NDArray[np.str_], n: int) -> list[int]:
    """The rows of up to n questions: greedily, the most doubtful one after the penalties."""
    ids = candidates.ids
    tags = candidates.tags
    score = candidates.doubt.astype(np.float64)
    chosen: list[int] = []
    while len(chosen) < n and len(score):
        best = int(np.argmax(score))
        if not np.isfinite(score[best]):
            break
        chosen.append(best)
        score -= PENALTY * (tags == tags[best])
        score -= PENALTY * (artists == artists[best])
        score[ids == ids[best]] = -np.inf
    return chosen
