"""A Dask cluster, given by its scheduler's address."""

import faulthandler
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import cache
from typing import Any, TextIO, TypeVar

from harmonium.engine import Engine, EngineError, WorkerDied
from harmonium.engine.processes import keep_freed_memory

T = TypeVar("T")

CONNECT_SECONDS = 5  # how long to wait for the scheduler's answer
WORKER_SECONDS = 10  # how long to wait for the first worker of a cluster that may just be starting
COUNT_SECONDS = 5  # how long a count of the cluster's threads is valid: workers come and go
GONE_SECONDS = 60  # how long a scheduler may be without a worker before work ends
GO_ON = "Then run the same command again: it continues from there."


class Cluster(Engine):
    """The workers of a Dask scheduler, through ``distributed.Client(address).get_executor()``.

    When a worker dies, Dask gives its tasks to others. If the scheduler is gone, work ends with an
    EngineError. The workers need the same version of Harmonium. A worker that takes longer than
    ``time_limit`` seconds for a task ends itself.
    """

    def __init__(self, address: str, *, time_limit: float | None = None) -> None:
        self.address = address
        self.time_limit = time_limit
        self._client = _connected(address)
        self._executor = self._client.get_executor(pure=False)
        self._counted = float("-inf")  # when threads were counted
        self._seen = time.monotonic()  # when there were some
        self._threads = 0
        self._recount()
        if not self._threads:
            self._client.close()
            raise EngineError(
                f"The Dask scheduler at {address} has no worker. Start one where Harmonium is "
                f"installed: dask worker {address}"
            )
        self._scheduler = self._client.scheduler_info()["id"]

    @property
    def capacity(self) -> int:
        """One running and some waiting tasks for each thread: Dask is slow between tasks."""
        self._recount()
        return max(32, 4 * self._threads)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Let a worker of the cluster run ``fn(*args, **kwargs)``."""
        try:
            return self._executor.submit(within, self.time_limit, fn, args, kwargs)
        except Exception:
            if self._client.status == "running":
                raise
            raise self._lost() from None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, which keeps running; by default when the tasks are done."""
        try:
            if self._client.status == "running":
                self._executor.shutdown(wait=wait and not cancel_futures)
        finally:
            with suppress(Exception):  # the scheduler may have gone
                self._client.close(timeout=2)

    def explain(self, error: BaseException) -> BaseException:
        """KilledWorker: several workers died at the task. Cancelled: the scheduler is gone."""
        from distributed import KilledWorker

        if isinstance(error, KilledWorker):
            return WorkerDied("several workers died, ran out of memory or took too long on it")
        if isinstance(error, CancelledError) or type(error).__name__ == "FutureCancelledError":
            return self._lost()
        return error

    def check(self) -> None:
        """EngineError without the scheduler, or after some time without workers."""
        self._recount()
        with suppress(OSError):
            # A new scheduler, to which the client reconnects, does not have the tasks.
            if self._client.scheduler_info()["id"] != self._scheduler:
                raise self._lost()
        if self._client.status != "running":
            raise self._lost()
        if self._threads:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > GONE_SECONDS:
            raise EngineError(
                f"The Dask scheduler at {self.address} has had no worker for {GONE_SECONDS:g} s. "
                f"Start some: dask worker {self.address}. {GO_ON}"
            )

    def _lost(self) -> EngineError:
        return EngineError(
            f"The Dask scheduler at {self.address} is gone. Start it and its workers again: "
            f"dask scheduler, dask worker {self.address}. {GO_ON}"
        )

    def _recount(self) -> None:
        """Count the cluster's threads, if that was some time ago."""
        if time.monotonic() - self._counted <= COUNT_SECONDS:
            return
        self._counted = time.monotonic()
        if self._client.status == "running":
            with suppress(OSError):  # it has just gone; the tasks will say so
                self._threads = sum(self._client.nthreads().values())


def within(
    seconds: float | None, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> T:
    """``fn(*args, **kwargs)``, which ends its process if it takes longer than ``seconds``.

    A thread cannot be stopped from outside, least of all inside a decoder. Dask then runs the task
    elsewhere, and gives up when it has killed several workers.
    """
    keep_freed_memory()
    token = object()
    _set_deadline(token, seconds)
    try:
        return fn(*args, **kwargs)
    finally:
        _set_deadline(token, None)


_lock = threading.Lock()
_deadlines: dict[object, float] = {}  # of the tasks of all threads


def _set_deadline(token: object, seconds: float | None) -> None:
    """Add a deadline for a task, or remove it (None); the process ends at the earliest one."""
    with _lock:
        if seconds is None:
            _deadlines.pop(token, None)
        else:
            _deadlines[token] = time.monotonic() + seconds
        if not _deadlines:
            faulthandler.cancel_dump_traceback_later()
            return
        rest = max(0.001, min(_deadlines.values()) - time.monotonic())
        # Its thread does not need the interpreter lock, which a hanging decoder may hold.
        faulthandler.dump_traceback_later(rest, exit=True, file=_nowhere())


@cache
def _nowhere() -> TextIO:
    return open(os.devnull, "w")  # noqa: PTH123


def _connected(address: str) -> Any:
    """A client of the scheduler, which has a worker or gets one soon."""
    try:
        import dask
        from distributed import Client
    except ImportError:
        raise EngineError(
            f"The engine {address!r} needs Dask, which is not installed. "
            "Install it with: pip install 'harmonium[dask]'"
        ) from None
    # What it would log about a missing scheduler, our EngineError says.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    # Large data goes with its task: if sent before, it would be lost with its worker.
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GB"})
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise EngineError(
            f"No Dask scheduler answers at {address} within {CONNECT_SECONDS} s ({error}). "
            "Check the address that 'dask scheduler' printed, and that this machine can reach it."
        ) from error
    with suppress(TimeoutError):  # the caller counts them
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    return client
