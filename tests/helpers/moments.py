"""The moments of a database at which a process may end: before and after each statement."""

import sqlalchemy as sa

EVENTS = ("before_cursor_execute", "after_cursor_execute", "commit")


class Killed(BaseException):
    """The process ends here."""


def die():
    raise Killed


def watch_moments(engine, end_at=None, *, events=EVENTS, then=die):
    """A function that gives the number of moments so far; at ``end_at`` something happens."""
    seen = 0

    def count(*_):
        nonlocal seen
        seen += 1
        if seen == end_at:
            then()

    for event in events:
        sa.event.listen(engine, event, count)
    return lambda: seen
