"""The moments of a database at which a process may end: before and after each statement."""

import sqlalchemy as sa

EVENTS = ("before_cursor_execute", "after_cursor_execute", "commit")


class Killed(BaseException):
    """The process ends here."""


def watch_moments(engine, end_at=None, events=EVENTS):
    """A function that gives the number of moments so far; at ``end_at`` the process is killed."""
    seen = 0

    def count(*_):
        nonlocal seen
        seen += 1
        if seen == end_at:
            raise Killed

    for event in events:
        sa.event.listen(engine, event, count)
    return lambda: seen
