"""Worker processes of this machine, each at one task at a time.

``concurrent.futures.ProcessPoolExecutor`` gives up all its tasks when one worker dies, does not
tell which task it was, and cannot stop a task that hangs. Here each worker has a pipe of its own,
so that a death or a time limit concerns one task alone.
"""

import pickle
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, NamedTuple, TypeVar

from harmonium.engine.interface import Engine, EngineError, TimedOut, WorkerDied
from harmonium.engine.worker import READY, interrupts_held, serve

T = TypeVar("T")

START_ATTEMPTS = 2
"""How many workers may die in a row before one of them was ready."""


class Call(NamedTuple):
    """A task on its way to a worker."""

    future: Future[Any]
    message: bytes  # the pickled function and its arguments


@dataclass(eq=False)
class Worker:
    """A process, the pipe to it, and what it is doing."""

    process: SpawnProcess
    pipe: Connection
    ready: bool = False
    call: Call | None = None
    deadline: float | None = None

    @property
    def idle(self) -> bool:
        """Whether a task can be sent."""
        return self.ready and self.call is None


class Processes(Engine):
    """An executor of ``jobs`` processes that survives theirs.

    Each worker ignores Ctrl-C, which is the caller's to act on, computes with one thread, and ends
    when the caller's process does. They start when there is work for them. A dispatcher thread
    owns them; nothing else touches them.

    Parameters
    ----------
    jobs : the number of processes
    time_limit : seconds that a task may take before its worker is killed, or None
    """

    def __init__(self, jobs: int, *, time_limit: float | None = None) -> None:
        self.jobs = jobs
        self.time_limit = time_limit
        self._workers: list[Worker] = []
        self._waiting: deque[Call] = deque()
        self._failed_starts = 0
        self._broken: EngineError | None = None
        self._closing = False  # no more tasks; end when the last is done
        self._dropping = False  # those that wait are not to be done
        self._abandoned = False  # end now
        self._wake_receiver, self._wake_sender = get_context("spawn").Pipe(duplex=False)
        self._wake_lock = threading.Lock()  # submit and shutdown may come from several threads
        self._dispatcher: threading.Thread | None = None

    @property
    def capacity(self) -> int:
        """A task under way and one waiting for each process."""
        return 2 * self.jobs

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have ``fn(*args, **kwargs)`` done by a worker.

        Raises EngineError where the function or an argument cannot be sent to another process.
        """
        call = Call(Future(), _pickled(fn, args, kwargs))
        with self._wake_lock:
            if self._closing:
                raise RuntimeError("cannot submit to an executor that was shut down")
            if self._broken:
                raise self._broken
            self._waiting.append(call)
            if self._dispatcher is None:
                self._start_dispatcher()
            self._wake_sender.send_bytes(b"!")
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers when all tasks are done; or those under way, and cancel the others."""
        with self._wake_lock:
            if not self._closing:
                self._closing, self._dropping = True, cancel_futures
                self._wake_sender.send_bytes(b"!")
        if wait and self._dispatcher is not None:
            self._dispatcher.join()

    def abandon(self) -> None:
        """Kill the workers; tasks that were not done are cancelled."""
        self._abandoned = True
        self.shutdown(wait=True, cancel_futures=True)

    def _start_dispatcher(self) -> None:
        # Before, since it lets interrupts through in the thread that starts it.
        resource_tracker.ensure_running()
        # The dispatcher inherits that interrupts are blocked, and from it the workers do: Ctrl-C
        # does not meet them while they start either.
        with interrupts_held():
            self._dispatcher = threading.Thread(target=self._dispatch, daemon=True)
            self._dispatcher.start()

    def _dispatch(self) -> None:
        """The dispatcher thread: sends tasks, receives results, replaces the dead."""
        try:
            while not self._abandoned:
                self._feed()
                # After feeding, which also drops what was cancelled: nothing else may come.
                if self._closing and self._finished():
                    break
                self._receive()
        except Exception as error:
            self._break(EngineError(f"The worker processes cannot be run: {error!r}."))
        finally:
            self._end()

    def _finished(self) -> bool:
        return not self._waiting and all(worker.call is None for worker in self._workers)

    def _feed(self) -> None:
        """Give tasks to idle workers, and start as many workers as there is work for."""
        if self._dropping:
            _cancel(self._waiting)
        for worker in self._workers:
            while worker.idle and self._waiting:
                call = self._waiting.popleft()
                if call.future.set_running_or_notify_cancel():
                    self._send(worker, call)
        coming = sum(not worker.ready for worker in self._workers)
        wanted = min(len(self._waiting) - coming, self.jobs - len(self._workers))
        for _ in range(wanted):
            self._workers.append(_start_worker())

    def _send(self, worker: Worker, call: Call) -> None:
        worker.call = call
        if self.time_limit is not None:
            worker.deadline = time.monotonic() + self.time_limit
        with suppress(OSError):  # it died while idle; what follows from that is done on receiving
            worker.pipe.send_bytes(call.message)

    def _receive(self) -> None:
        """Wait for something to happen, and act on it."""
        by_handle: dict[Any, Worker] = {}
        for worker in self._workers:
            by_handle[worker.pipe] = by_handle[worker.process.sentinel] = worker
        deadlines = [worker.deadline for worker in self._workers if worker.deadline is not None]
        timeout = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
        handles = wait([self._wake_receiver, *by_handle], timeout)
        while self._wake_receiver.poll():
            self._wake_receiver.recv_bytes()
        for worker in {id(w): w for w in map(by_handle.get, handles) if w}.values():
            self._hear(worker)
        self._stop_late()

    def _hear(self, worker: Worker) -> None:
        """Take what a worker says; its end, if it says no more."""
        try:
            while worker.pipe.poll():
                message = worker.pipe.recv_bytes()
                if message == READY:
                    worker.ready, self._failed_starts = True, 0
                else:
                    self._finish(worker, message)
            if worker.process.is_alive():
                return
        except (EOFError, OSError):
            pass
        self._bury(worker)

    def _finish(self, worker: Worker, message: bytes) -> None:
        call, worker.call, worker.deadline = worker.call, None, None
        assert call is not None
        try:
            result, error = pickle.loads(message)
        except Exception as unreadable:
            result, error = None, unreadable
        if error is None:
            call.future.set_result(result)
        else:
            call.future.set_exception(error)

    def _stop_late(self) -> None:
        now = time.monotonic()
        for worker in list(self._workers):
            if worker.deadline is not None and worker.deadline <= now:
                assert self.time_limit is not None
                self._bury(worker, TimedOut.after(self.time_limit))

    def _bury(self, worker: Worker, reason: TimedOut | None = None) -> None:
        """Take leave of a worker that died or is too late; its task ends with the reason."""
        self._workers.remove(worker)
        exit_code = _kill(worker, at_once=reason is not None)
        if worker.call is not None:
            worker.call.future.set_exception(reason or WorkerDied.with_exit_code(exit_code))
        elif not worker.ready:
            self._failed_starts += 1
            if self._failed_starts >= START_ATTEMPTS:
                self._break(_cannot_start(exit_code))

    def _break(self, reason: EngineError) -> None:
        """No task will be done any more: say so to those that wait, and to those that come."""
        with self._wake_lock:
            self._broken = reason
        while self._waiting:
            call = self._waiting.popleft()
            if call.future.set_running_or_notify_cancel():
                call.future.set_exception(reason)

    def _end(self) -> None:
        """The last thing the dispatcher does: no process and no unanswered future remains."""
        with self._wake_lock:
            self._closing = True
        for worker in self._workers:
            _kill(worker, at_once=True)
            if worker.call is not None:
                reason = self._broken or EngineError("The work was stopped.")
                worker.call.future.set_exception(reason)
        self._workers.clear()
        _cancel(self._waiting)
        self._wake_receiver.close()


def _cannot_start(exit_code: int | None) -> EngineError:
    return EngineError(
        f"The worker processes die before they are ready (exit code {exit_code}); what they wrote "
        "to standard error says why. In a script, the part that starts the work must stand below "
        'if __name__ == "__main__":, since every worker imports the script. '
        "Or work without them: engine='serial'."
    )


def _start_worker() -> Worker:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()  # so that its end is seen on the pipe
    return Worker(process, ours)


def _kill(worker: Worker, *, at_once: bool) -> int | None:
    """Make sure that the process is gone, and return its exit code."""
    if not at_once:
        worker.process.join(timeout=5)  # it is ending by itself, and the exit code says how
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()
    exit_code = worker.process.exitcode
    worker.process.close()
    return exit_code


def _pickled(fn: Callable[..., Any], args: Any, kwargs: Any) -> bytes:
    try:
        return pickle.dumps((fn, args, kwargs), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise EngineError(
            f"{getattr(fn, '__name__', fn)!r} and its arguments must be such that they can be "
            f"sent to another process ({error}). Define functions and classes at the top of a "
            "module, not inside other functions, or work with engine='serial'."
        ) from error


def _cancel(calls: deque[Call]) -> None:
    while calls:
        call = calls.popleft()
        call.future.cancel()
        call.future.set_running_or_notify_cancel()
