"""How much learning from answers has helped: each is predicted from those before it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harmonium.arrays import Ids, Mask
from harmonium.errors import counted
from harmonium.library.learning.quick import TagExamples, answers_since, lessons
from harmonium.library.library import Library
from harmonium.library.model.gains import SOUND_DEVIATION
from harmonium.library.model.odds import log_odds
from harmonium.library.sound import SoundVectors, update_sound_vectors

MAX_JUDGED = 50  # the latest answers that are guessed from those before them


class Improvement(NamedTuple):
    """How well the model predicted answers before they were given."""

    n: int  # answers about tags that the model was trained with
    right_before: int  # how many the model guesses right as it was trained
    right_now: int  # how many it guesses right after learning from the answers before each

    @property
    def text(self) -> str:
        """The same in words."""
        if not self.n:
            return "No answers yet that show what was learnt."
        before = f"{self.right_before:,}"
        now = f"{self.right_now:,}"
        return (
            f"Of {counted(self.n, 'answer')}, the model as trained predicts {before} right; "
            f"after learning from the answers before each, {now}."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _JudgedTag:
    """A tag, and which of its answers are guessed."""

    examples: TagExamples
    threshold: float  # log-odds
    numbers: Ids  # (n,) of the answers; larger is later
    is_judged: Mask  # (n,)


def improvement(library: Library, change_id: int | None = None) -> Improvement | None:
    """How much learning from answers has helped: each is predicted from the earlier ones alone.

    For the latest answers to questions, at most `MAX_JUDGED`, of one change or of all; None if
    there are none.
    """
    update_sound_vectors(library)
    with library.reading():
        model = library.models.current(whole=False)
        if model is None:
            return None
        answers = answers_since(library, model)
        learnt = lessons(library, model, SoundVectors.of(library), answers)
    tags = []
    for lesson in learnt:
        is_judged = lesson.answers["asked"].to_numpy()
        if change_id is not None:
            is_judged = lesson.answers["by"].to_numpy() == change_id
        if lesson.examples.has_model and is_judged.any():
            threshold = model.thresholds[[lesson.place]]
            tag = _JudgedTag(
                examples=lesson.examples,
                threshold=float(log_odds(threshold)[0]),
                numbers=lesson.answers["id"].to_numpy(),
                is_judged=is_judged,
            )
            tags.append(tag)
    if not tags:
        return None
    latest = np.sort(np.concatenate([tag.numbers[tag.is_judged] for tag in tags]))[-MAX_JUDGED:]
    guesses = np.concatenate([_guesses(tag, since=int(latest[0])) for tag in tags])
    right_before, right_now = guesses.sum(axis=0).tolist()
    return Improvement(n=len(guesses), right_before=right_before, right_now=right_now)


def _guesses(tag: _JudgedTag, since: int) -> Mask:
    """Whether the model guesses the answers from a number on right, (n, 2).

    As it was trained, and after learning from the answers before each.
    """
    examples = tag.examples
    V = tag.examples.vectors
    chosen = np.flatnonzero(tag.is_judged & (tag.numbers >= since)).tolist()
    is_right = np.empty((len(chosen), 2), bool)
    for row, i in enumerate(chosen):
        gain = examples.fitted(i)
        before = examples.offset[i]
        now = before + gain.weights @ (SOUND_DEVIATION**2 * V[:i] @ V[i]) + gain.bias
        holds = examples.y[i] > 0.5
        is_right[row, 0] = (before >= tag.threshold) == holds
        is_right[row, 1] = (now >= tag.threshold) == holds
    return is_right
