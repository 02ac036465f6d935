"""Silence for C libraries that write to the terminal on their own.

libmpg123 inside libsndfile notes every damaged byte on ``stderr``, and cannot be asked not to.
"""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_inside = 0  # threads that are silent at the moment
_saved: int | None = None  # C's own stream meanwhile


def _streams() -> tuple[ctypes.c_void_p, int] | None:
    """C's variable ``stderr``, and a stream that goes nowhere; None where there is none."""
    try:
        libc = ctypes.CDLL(None)
        variable = ctypes.c_void_p.in_dll(libc, "stderr")
        libc.fopen.restype = ctypes.c_void_p
        nowhere = libc.fopen(os.fsencode(os.devnull), b"w")
    except (OSError, TypeError, ValueError, AttributeError):
        return None
    return (variable, nowhere) if nowhere else None


_STREAMS = _streams()


@contextmanager
def quiet_c_libraries() -> Iterator[None]:
    """Let C code that prints to ``stderr`` print to nowhere.

    Only the pointer in C's library changes: what Python, or a process started meanwhile, writes to
    descriptor 2 arrives as ever.
    """
    if _STREAMS is None:
        yield
        return
    _enter(*_STREAMS)
    try:
        yield
    finally:
        _leave(_STREAMS[0])


def _enter(variable: ctypes.c_void_p, nowhere: int) -> None:
    global _inside, _saved
    with _lock:
        if _inside == 0:
            _saved, variable.value = variable.value, nowhere
        _inside += 1


def _leave(variable: ctypes.c_void_p) -> None:
    global _inside
    with _lock:
        _inside -= 1
        if _inside == 0:
            variable.value = _saved
