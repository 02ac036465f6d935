"""Answers about the tags of tracks, and what the model says of all tracks after them."""

from harmonium.library.teaching.say import keep_said
from harmonium.library.verdicts import REVIEW


def answer(library, tag, yes=(), no=(), command=REVIEW):
    """Answers about a tag, in one change; its number."""
    number = library.changes.begin(command, "tests")
    for track in yes:
        keep_said(library, track, accepted=[tag], change=number)
    for track in no:
        keep_said(library, track, rejected=[tag], change=number)
    return number


def column(library, tag, refined=True):
    """Track → the probability of a tag."""
    model = library.models.current(whole=False)
    place = [output.name for output in model.outputs].index(tag)
    ids, P = library.predictions.columns(model.id, [place], refined=refined)
    return dict(zip(ids.tolist(), P[:, 0].tolist(), strict=True))
