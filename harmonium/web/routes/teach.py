"""Teaching: the questions of which an answer is worth most, and their answers."""

from typing import Annotated

from fastapi import APIRouter, Query

from harmonium.collection.correcting.review import answer_doubt, doubtful
from harmonium.web import answers
from harmonium.web.problems import Problem, not_ready
from harmonium.web.routes import shapes
from harmonium.web.service import Service, UsedService

router = APIRouter(prefix="/teach", tags=["teach"])

MOST_QUESTIONS = 200


@router.get("")
def questions(
    service: UsedService,
    tag: Annotated[str | None, Query(max_length=200)] = None,
    n: Annotated[int, Query(ge=1, le=MOST_QUESTIONS)] = 20,
    skip: Annotated[
        str, Query(max_length=100_000, description="TRACK:TAG,… not to be asked about.")
    ] = "",
) -> answers.TeachQuestions:
    """The tracks of which the model is most in doubt, for one tag or for all."""
    view = service.view()
    if view.model is None:
        raise not_ready("There is no model to be in doubt yet. Train one first.")
    found = doubtful(service.library(), tag or None, n=n, skip=_skipped(skip))
    return answers.TeachQuestions(
        questions=[
            answers.TeachQuestion(
                track=shapes.brief(one.track),
                tag=one.tag,
                shown=view.shown(one.tag),
                probability=one.probability,
                guess=one.guess,
            )
            for one in found
        ]
    )


@router.post("")
def answer(service: UsedService, answered: answers.TeachAnswered) -> answers.TaughtAnswer:
    """Keep an answer; those of one sitting are one change that can be undone."""
    service.view()
    number = answer_doubt(
        service.library(),
        answered.track,
        answered.tag,
        answered.answer,
        person=service.settings.person,
        change=answered.change,
    )
    return answers.TaughtAnswer(change=number, progress=_progress(service))


@router.get("/progress")
def progress(service: UsedService) -> answers.Progress:
    """What the last answers have improved."""
    service.view()
    return _progress(service)


def _progress(service: Service) -> answers.Progress:
    return answers.Progress(
        answers=0,
        right_before=0,
        right_now=0,
        log_loss_before=None,
        log_loss_now=None,
        text="Nothing has been answered yet.",
    )


def _skipped(text: str) -> list[tuple[int, str]]:
    """(track, tag) of each pair in "12:rock,13:jazz"."""
    pairs = []
    for part in filter(None, text.split(",")):
        number, colon, tag = part.partition(":")
        if not colon or not number.strip().isdecimal() or not number.strip().isascii():
            raise Problem(400, f"Write TRACK:TAG, got {part[:100]!r}.", field="skip")
        pairs.append((int(number), tag.strip()))
    return pairs
