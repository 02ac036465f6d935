"""Teaching: the questions of which an answer is worth most, and their answers."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from harmonium.library.correcting.review import answer_doubt, doubtful
from harmonium.library.learning.quick import Improvement
from harmonium.web import answers
from harmonium.web.problems import Problem, not_ready
from harmonium.web.routes import shapes
from harmonium.web.service import UsedService

router = APIRouter(prefix="/teach", tags=["teach"])

MOST_QUESTIONS = 200


@router.get("")
def questions(
    service: UsedService,
    tag: Annotated[str | None, Query(max_length=200)] = None,
    n: Annotated[int, Query(ge=1, le=MOST_QUESTIONS)] = 20,
    skip: Annotated[
        str, Query(max_length=8000, description="TRACK:TAG,… not to be asked about.")
    ] = "",
) -> answers.TeachQuestions:
    """The tracks of which the model is most in doubt, for one tag or for all."""
    view = service.view()
    if view.model is None:
        raise not_ready("There is no model to be in doubt yet. Train one first.")
    with service.limited("looking for doubts", 2, wait=10.0):
        found = doubtful(view.library, tag or None, n=n, skip=_skipped(skip))
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
def answer(
    service: UsedService, request: Request, answered: answers.TeachAnswered
) -> answers.TaughtAnswer:
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
    learner = request.app.state.learner
    learner.learn()
    return answers.TaughtAnswer(change=number, progress=_progress(learner.gain(last=True)))


@router.get("/progress")
def progress(service: UsedService, request: Request) -> answers.Progress:
    """What the answers since the last training have improved: each guessed from those before it."""
    service.view()
    with service.limited("judging answers", 1, wait=10.0):
        return _progress(request.app.state.learner.gain())


def _progress(gain: Improvement | None) -> answers.Progress:
    if gain is None:
        text = "No answer yet that shows what was learnt."
        return answers.Progress(
            answers=0,
            right_before=0,
            right_now=0,
            log_loss_before=None,
            log_loss_now=None,
            text=text,
        )
    text = (
        f"Of {gain.n:,} {'answer' if gain.n == 1 else 'answers'}, the model as it was trained "
        f"would have guessed {gain.right_before:,} right; with what it learnt from the answers "
        f"before each, {gain.right_now:,}."
    )
    return answers.Progress(
        answers=gain.n,
        right_before=gain.right_before,
        right_now=gain.right_now,
        log_loss_before=gain.loss_before,
        log_loss_now=gain.loss_now,
        text=text,
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
