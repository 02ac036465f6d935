"""Worker processes on this machine, each with one task at a time.

``concurrent.futures.ProcessPoolExecutor`` gives up all its tasks when one worker dies, does not say
which task it was, and cannot stop a task that hangs. Here each worker has its own pipe, and a
thread that waits for its answer, so that a death or a time limit affects only one task.
"""

import atexit
import ctypes
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing import current_process, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from harmonium.engine import Engine, EngineError, TimedOut, WorkerDied, pickled

T = TypeVar("T")

MAX_STARTS = 2  # how many workers may die in a row before one of them was ready
THREAD_NAME = "waits for a worker"
READY = b""  # the first message of a worker
WORKER = "harmonium worker"  # its name
UNGUARDED = 64  # its exit code if the script it imports also starts workers

# Matrix products here are too small to share between cores, and all cores are busy.
ONE_THREAD = dict.fromkeys(
    (
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
        *("NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"),
        "NPROC",  # XLA's, which shares its larger products anyway
    ),
    "1",
)
XLA_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"

M_TRIM_THRESHOLD = -1  # both from glibc's malloc.h
M_MMAP_THRESHOLD = -3


class Worker:
    """A process, and the pipe to it."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve_tasks, args=(theirs,), name=WORKER, daemon=True
        )
        self.process.start()
        theirs.close()  # so that its end is seen on the pipe

    def end(self, *, at_once: bool = True) -> int | None:
        """Make sure that the process is gone, and return its exit code."""
        if not at_once:
            self.process.join(timeout=5)  # it is exiting by itself, and the exit code says how
        self.process.kill()
        self.process.join()
        self.pipe.close()
        exit_code = self.process.exitcode
        self.process.close()
        return exit_code


class Processes(Engine):
    """An executor with ``jobs`` processes that survives the death of any of them.

    Each worker ignores Ctrl-C, which the caller handles, computes with one thread, and ends when
    the caller's process does. Workers start when there is work for them. A worker that takes longer
    than ``time_limit`` seconds for a task is killed.
    """

    def __init__(self, jobs: int, *, time_limit: float | None = None) -> None:
        here = current_process()
        if here.name == WORKER and getattr(here, "_inheriting", False):  # it imports the script
            sys.exit(UNGUARDED)  # without a traceback for each worker
        self.jobs = jobs
        self.time_limit = time_limit
        # Futures with their pickled function and arguments; None tells a thread to end.
        self._waiting: SimpleQueue[tuple[Future[Any], bytes] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle: list[Worker] = []
        self._broken: EngineError | None = None
        self._closing = False
        self._lock = threading.Lock()  # submit and shutdown may come from several threads
        # Checking one child may reap others, so one thread does it at a time.
        self._process_lock = threading.Lock()
        # Closing one end wakes every thread that waits at the other.
        self._stop_receiver, self._stop_sender = get_context("spawn").Pipe(duplex=False)

    @property
    def capacity(self) -> int:
        """One running and one waiting task for each process."""
        return 2 * self.jobs

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Let a worker run ``fn(*args, **kwargs)``; EngineError if it cannot be pickled."""
        future: Future[T] = Future()
        what = f"{getattr(fn, '__name__', fn)!r} or its arguments"
        message = pickled((fn, args, kwargs), what)
        with self._lock:
            if self._closing:
                raise RuntimeError("cannot submit to an executor that was shut down")
            if self._broken:
                raise self._broken
            self._waiting.put((future, message))
            if not self._threads:
                atexit.register(self.abandon)  # a program that exits does not wait for its tasks
            if len(self._threads) < self.jobs:
                self._start_thread()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers when all tasks are done; or those under way, and cancel the others."""
        with self._lock:
            self._closing = True
            with suppress(Empty):
                while cancel_futures:
                    if call := self._waiting.get_nowait():
                        call[0].cancel()
                        call[0].set_running_or_notify_cancel()
            for _ in self._threads:
                self._waiting.put(None)
        if wait:
            for thread in self._threads:
                if thread.ident is not None:  # otherwise an interrupt came before it started
                    thread.join()
            atexit.unregister(self.abandon)

    def abandon(self) -> None:
        """Kill the workers; tasks that were not begun are cancelled."""
        self.shutdown(wait=False, cancel_futures=True)
        self._stop_sender.close()
        self.shutdown()

    def _start_thread(self) -> None:
        # Before, since it lets interrupts through in the thread that starts it.
        resource_tracker.ensure_running()
        # The thread inherits the blocked interrupts, and the workers inherit them from it: Ctrl-C
        # does not reach them while they start either. It may come at the end of the block, and
        # `shutdown` must know the thread by then.
        with _interrupts_held():
            thread = threading.Thread(target=self._serve, name=THREAD_NAME, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self) -> None:
        """In a thread, run tasks until there are no more; then end an idle worker."""
        while call := self._waiting.get():
            future, message = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._do(message))
            except BaseException as error:
                future.set_exception(error)
        with self._process_lock:
            if self._idle:
                self._idle.pop().end()

    def _do(self, message: bytes) -> Any:
        """The result of a task; its exception is raised."""
        worker = self._ready_worker()
        with suppress(OSError):  # it died while idle; receiving handles that
            worker.pipe.send_bytes(message)
        answer = self._receive(worker, self.time_limit)
        self._idle.append(worker)
        result, error = pickle.loads(answer)
        if error is not None:
            raise error
        return result

    def _ready_worker(self) -> Worker:
        """An idle worker or a new one; an EngineError, now and later, if none starts."""
        with self._process_lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.process.is_alive():
                    return worker
                worker.end()
        if self._broken:
            raise self._broken
        for _ in range(MAX_STARTS):
            try:
                with self._process_lock:
                    worker = Worker()
            except Exception as error:
                self._broken = EngineError(f"The worker processes cannot be run: {error!r}.")
                raise self._broken from error
            try:
                self._receive(worker, None)  # that it is ready
                return worker
            except WorkerDied as death:
                exit_code = death.exit_code
        why = f"The worker processes die before they are ready (exit code {exit_code})."
        if exit_code == UNGUARDED:
            why = (
                'Put the call that uses several processes under if __name__ == "__main__": in your '
                "script. Every worker process imports the script, and would make the call again."
            )
        self._broken = EngineError(f"{why} Or do without processes: engine='serial'.")
        raise self._broken

    def _receive(self, worker: Worker, seconds: float | None) -> bytes:
        """The worker's next message; raises an exception if none comes; the worker is then gone."""
        ready = wait([worker.pipe, worker.process.sentinel, self._stop_receiver], seconds)
        reason: Exception | None = None
        if self._stop_receiver in ready:
            reason = EngineError("The work was stopped.")
        elif not ready:
            reason = TimedOut(f"it took longer than {seconds:g} s and was stopped")
        else:
            with suppress(EOFError, OSError):
                if worker.pipe.poll():
                    return worker.pipe.recv_bytes()
        with self._process_lock:
            exit_code = worker.end(at_once=reason is not None)
        raise reason or _death(exit_code)


def _death(exit_code: int | None) -> WorkerDied:
    """The error for a process that ended with an exit code."""
    names = {-one.value: one.name for one in signal.Signals}
    how = names.get(exit_code or 0, f"exit code {exit_code}")
    how += "; out of memory?" if how == "SIGKILL" else ""
    error = WorkerDied(f"the process that worked on it died ({how})")
    error.exit_code = exit_code
    return error


def _serve_tasks(pipe: Connection) -> None:
    """Run the tasks that come through the pipe, one after another, until it closes."""
    _set_up_worker()
    try:
        pipe.send_bytes(READY)
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes()))
    except (EOFError, OSError):
        return  # the caller is gone, or has closed the pipe


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold off Ctrl-C until the end of the block, and permanently in processes started in it."""
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
    """Reuse the memory of large arrays; Dask's nannies make workers return it, which is slow."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(M_TRIM_THRESHOLD, 2**27)
        libc.mallopt(M_MMAP_THRESHOLD, 2**25)


def _set_up_worker() -> None:
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
    """End this process, even in the middle of a task, when the caller's process has ended."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)  # no other way ends a process in the middle of a C function


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
        except Exception:  # it cannot be pickled and read again: only its text is sent
            return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
        return answer
