"""What runs inside a worker process."""

import ctypes
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait

READY = b""
"""The first message of a worker."""

# Matrix products here are too small to share between cores, and the cores are all at work.
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
        "POLARS_MAX_THREADS",
        "NPROC",  # XLA's, which shares its larger products all the same
    ),
    "1",
)
XLA_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # from glibc's malloc.h


def serve(pipe: Connection) -> None:
    """Do the tasks that come through the pipe, one after the other, until it closes."""
    _settle()
    try:
        pipe.send_bytes(READY)
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes()))
    except (EOFError, OSError):
        return  # the caller is gone, or has closed the pipe


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold off Ctrl-C until the end of the block, and for good in processes started in it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@cache
def keep_freed_memory() -> None:
    """Use the memory of large arrays again, instead of giving it back and asking for it anew.

    Dask's nannies have glibc give back all that it can, which slows networks like musicnn down.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(M_TRIM_THRESHOLD, 2**27)
        libc.mallopt(M_MMAP_THRESHOLD, 2**25)


def _settle() -> None:
    """Ignore Ctrl-C, compute with one thread, and do not outlive the caller."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_freed_memory()
    os.environ.update(ONE_THREAD)
    flags = os.environ.get("XLA_FLAGS", "")
    if XLA_ONE_THREAD not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {XLA_ONE_THREAD}".strip()
    if "numpy" in sys.modules:  # imported with the caller's script, before the lines above
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        threadpool_limits(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process in the middle of a task too, when the caller's process has ended."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _answer(message: bytes) -> bytes:
    """The pickled pair (result, exception) of a task, one of them None."""
    try:
        function, args, kwargs = pickle.loads(message)
        return pickle.dumps((function(*args, **kwargs), None), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        try:
            answer = pickle.dumps((None, error))
            pickle.loads(answer)
        except Exception:  # one that cannot be pickled and read again: by its text alone
            return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
        return answer
