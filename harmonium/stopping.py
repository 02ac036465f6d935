"""Stopping long work between two of its steps.

Long work calls `check` between its steps: a file, a block of tracks, an epoch, a fold. If somebody
has asked it to stop, `check` raises `Cancelled`. So no step is cut in two, and no transaction stays
open. Whoever starts the work says who may ask:

- `stops_on_interrupt`: the person at the terminal, by Ctrl-C;
- `cancellable`: whoever holds the `Cancellation`, from any thread.

Work in other processes does not check: its executor ends it.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Cancelled(BaseException):
    """Somebody asked the work to stop, and it stopped between two steps."""


class Cancellation:
    """A request to stop, made by any thread or by a signal handler."""

    requested = False

    def cancel(self) -> None:
        """Ask the work to stop at its next step."""
        self.requested = True


_current: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def check() -> None:
    """Raise `Cancelled` if the work around this call was asked to stop."""
    cancellation = _current.get()
    if cancellation is not None and cancellation.requested:
        raise Cancelled


@contextmanager
def cancellable(cancellation: Cancellation) -> Iterator[None]:
    """Let the work in the block stop when this is cancelled."""
    outer = _current.set(cancellation)
    try:
        yield
    finally:
        _current.reset(outer)


@contextmanager
def shielded() -> Iterator[None]:
    """Let the block, which stores what was done, come to its end after a request to stop."""
    outer = _current.set(None)
    try:
        yield
    finally:
        _current.reset(outer)


@contextmanager
def stops_on_interrupt() -> Iterator[None]:
    """Let Ctrl-C stop the work in the block at its next step, with a KeyboardInterrupt.

    A second Ctrl-C raises it at once. If Ctrl-C comes after the last step, it is raised at the end
    of the block. Nothing changes inside another such block or `cancellable`, outside the main
    thread, and in programs that handle Ctrl-C themselves.
    """
    if _current.get() is not None or not _raises_on_interrupt():
        yield
        return
    cancellation = Cancellation()

    def ask_to_stop(*_: object) -> None:
        if cancellation.requested:
            raise KeyboardInterrupt
        cancellation.cancel()

    signal.signal(signal.SIGINT, ask_to_stop)
    try:
        with cancellable(cancellation):
            yield
    except Cancelled:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if cancellation.requested:
        raise KeyboardInterrupt


def _raises_on_interrupt() -> bool:
    """Whether Ctrl-C would raise a KeyboardInterrupt in this thread."""
    if threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def stoppable(function: Callable[P, T]) -> Callable[P, T]:
    """A function that Ctrl-C stops at its next step, see `stops_on_interrupt`."""

    @wraps(function)
    def stopped_by_interrupt(*args: P.args, **kwargs: P.kwargs) -> T:
        with stops_on_interrupt():
            return function(*args, **kwargs)

    return stopped_by_interrupt
