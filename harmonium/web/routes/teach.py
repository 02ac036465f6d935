"""Routes of teaching: questions where an answer helps, and what the answers improved."""

from typing import Annotated, Self

from fastapi import APIRouter, Query
from pydantic import BaseModel

from harmonium.library.teaching.improvement import Improvement
from harmonium.library.teaching.review import Doubt
from harmonium.web.problems import Problem, not_ready
from harmonium.web.requests import MAX_TAG, TeachRequest
from harmonium.web.responses import TrackLine
from harmonium.web.service import UsedService

router = APIRouter(tags=["teach"])
MAX_QUESTIONS = 200


class Question(BaseModel):
    """Whether a track has a tag."""

    track: TrackLine
    tag: str
    shown: str
    probability: float
    threshold: float
    guess: bool

    @classmethod
    def of(cls, doubt: Doubt) -> Self:
        """A doubt of the model."""
        return cls(
            track=TrackLine.of(doubt.track),
            tag=doubt.tag,
            shown=doubt.shown,
            probability=doubt.probability,
            threshold=doubt.threshold,
            guess=doubt.guess,
        )


class Questions(BaseModel):
    """The questions where an answer helps most."""

    questions: list[Question]


class Progress(BaseModel):
    """How much the answers since the last training have improved the model."""

    answers: int
    right_before: int
    right_now: int
    text: str

    @classmethod
    def of(cls, improvement: Improvement) -> Self:
        """An improvement of the model."""
        return cls(
            answers=improvement.n,
            right_before=improvement.right_before,
            right_now=improvement.right_now,
            text=improvement.text,
        )


class Taught(BaseModel):
    """The change that holds an answer, and the progress as it was last judged."""

    change: int
    progress: Progress


@router.get("/teach")
def questions(
    service: UsedService,
    tag: Annotated[str | None, Query(max_length=MAX_TAG)] = None,
    n: Annotated[int, Query(ge=1, le=MAX_QUESTIONS)] = 20,
    skip: Annotated[
        str, Query(max_length=8000, description="Questions to leave out, as TRACK:TAG,…")
    ] = "",
) -> Questions:
    """The questions that the model is least certain about, for one tag or for all."""
    library = service.library()
    if not library.snapshot().model.id:
        raise not_ready("No model yet; train one first.")
    with service.limited("looking for questions", 2, wait=10.0):
        doubts = library.review.doubts(tag or None, n, _skipped(skip))
    return Questions(questions=[Question.of(doubt) for doubt in doubts])


@router.post("/teach")
def answer(service: UsedService, body: TeachRequest) -> Taught:
    """Save an answer; answers with the same change are undone together."""
    change = service.library().review.answer(
        body.track, body.tag, body.answer, person=service.settings.person, change=body.change
    )
    return Taught(change=change, progress=Progress.of(service.learner.improvement(last=True)))


@router.get("/teach/progress")
def progress(service: UsedService) -> Progress:
    """How much the answers since the last training have improved the model."""
    with service.limited("judging answers", 1, wait=10.0):
        return Progress.of(service.learner.improvement())


def _skipped(text: str) -> list[tuple[int, str]]:
    """(track, tag) of each pair in "12:rock,13:jazz"."""
    pairs = []
    for part in filter(None, text.split(",")):
        number, colon, tag = part.partition(":")
        if not colon or not number.strip().isdecimal() or not number.strip().isascii():
            raise Problem(422, f"Write TRACK:TAG, got {part[:100]!r}.", field="skip")
        pairs.append((int(number), tag.strip()))
    return pairs
