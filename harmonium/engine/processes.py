"""Worker processes of this machine, each at one task at a time.

``concurrent.futures.ProcessPoolExecutor`` gives up all its tasks when one worker dies, does not say
which task it was, and cannot stop a task that hangs. Here each worker has a pipe of its own, and a
thread that waits for its answer, so that a death or a time limit concerns one task alone.
"""

import atexit
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import wait
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from harmonium.engine.interface import Engine, EngineError, TimedOut, WorkerDied
from harmonium.engine.worker import interrupts_held, serve

T = TypeVar("T")

START_ATTEMPTS = 2
"""How many workers may die in a row before one of them was ready."""
THREAD_NAME = "waits for a worker"


class Call(NamedTuple):
    """A task on its way to a worker."""

    future: Future[Any]
    message: bytes  # the pickled function and its arguments


class Worker:
    """A process, and the pipe to it."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()  # so that its end is seen on the pipe

    def end(self, *, at_once: bool = True) -> int | None:
        """Make sure that the process is gone, and return its exit code."""
        if not at_once:
            self.process.join(timeout=5)  # it is ending by itself, and the exit code says how
        self.process.kill()
        self.process.join()
        self.pipe.close()
        exit_code = self.process.exitcode
        self.process.close()
        return exit_code


class Processes(Engine):
    """An executor of ``jobs`` processes that survives the death of any of them.

    Each worker ignores Ctrl-C, which is the caller's to act on, computes with one thread, and ends
    when the caller's process does. They start when there is work for them.

    Parameters
    ----------
    jobs : the number of processes
    time_limit : seconds that a task may take before its worker is killed, or None
    """

    def __init__(self, jobs: int, *, time_limit: float | None = None) -> None:
        self.jobs = jobs
        self.time_limit = time_limit
        self._waiting: SimpleQueue[Call | None] = SimpleQueue()  # None: a thread is to end
        self._threads: list[threading.Thread] = []
        self._idle: list[Worker] = []
        self._broken: EngineError | None = None
        self._closing = False
        self._lock = threading.Lock()  # submit and shutdown may come from several threads
        # A process that looks after its children may reap any of them: one thread at a time.
        self._process_lock = threading.Lock()
        # Closing the one end wakes every thread that waits at the other.
        self._stop_receiver, self._stop_sender = get_context("spawn").Pipe(duplex=False)

    @property
    def capacity(self) -> int:
        """A task under way and one waiting for each process."""
        return 2 * self.jobs

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have ``fn(*args, **kwargs)`` done by a worker.

        Raises EngineError where the function or an argument cannot be sent to another process.
        """
        call = Call(Future(), _pickled(fn, args, kwargs))
        with self._lock:
            if self._closing:
                raise RuntimeError("cannot submit to an executor that was shut down")
            if self._broken:
                raise self._broken
            self._waiting.put(call)
            if not self._threads:
                atexit.register(self.abandon)  # a program that ends does not wait for its tasks
            if len(self._threads) < self.jobs:
                self._start_thread()
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers when all tasks are done; or those under way, and cancel the others."""
        with self._lock:
            self._closing = True
            if cancel_futures:
                self._cancel_waiting()
            for _ in self._threads:
                self._waiting.put(None)
        if wait:
            for thread in self._threads:
                if thread.ident is not None:  # or else an interrupt came before it started
                    thread.join()
            atexit.unregister(self.abandon)

    def abandon(self) -> None:
        """Kill the workers; tasks that were not begun are cancelled."""
        self.shutdown(wait=False, cancel_futures=True)
        self._stop_sender.close()
        self.shutdown()

    def _cancel_waiting(self) -> None:
        with suppress(Empty):
            while True:
                if call := self._waiting.get_nowait():
                    call.future.cancel()
                    call.future.set_running_or_notify_cancel()

    def _start_thread(self) -> None:
        # Before, since it lets interrupts through in the thread that starts it.
        resource_tracker.ensure_running()
        # The thread inherits that interrupts are blocked, and from it the workers do: Ctrl-C does
        # not meet them while they start either. It may come at the end of the block, and `shutdown`
        # must know the thread by then.
        with interrupts_held():
            thread = threading.Thread(target=self._serve, name=THREAD_NAME, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self) -> None:
        """Do tasks, in a thread, until there are no more; then end a worker that is idle."""
        while call := self._waiting.get():
            if not call.future.set_running_or_notify_cancel():
                continue
            try:
                result = self._do(call.message)
            except BaseException as error:
                call.future.set_exception(error)
            else:
                call.future.set_result(result)
        with self._process_lock:
            if self._idle:
                self._idle.pop().end()

    def _do(self, message: bytes) -> Any:
        """The result of a task; its exception is raised."""
        worker = self._ready_worker()
        with suppress(OSError):  # it died while idle; what follows from that is done on receiving
            worker.pipe.send_bytes(message)
        answer = self._receive(worker, self.time_limit)
        self._idle.append(worker)
        result, error = pickle.loads(answer)
        if error is not None:
            raise error
        return result

    def _ready_worker(self) -> Worker:
        """One that is idle, or a new one."""
        with self._process_lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.process.is_alive():
                    return worker
                worker.end()
        return self._new_worker()

    def _new_worker(self) -> Worker:
        """One that has started; an EngineError, now and from now on, where none does."""
        if self._broken:
            raise self._broken
        for _ in range(START_ATTEMPTS):
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
        self._broken = _cannot_start(exit_code)
        raise self._broken

    def _receive(self, worker: Worker, seconds: float | None) -> bytes:
        """The worker's next message; an exception where none comes, and the worker is then gone."""
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
        raise reason or WorkerDied.with_exit_code(exit_code)


def _cannot_start(exit_code: int | None) -> EngineError:
    return EngineError(
        f"The worker processes die before they are ready (exit code {exit_code}); what they wrote "
        "to standard error says why. In a script, the part that starts the work must stand below "
        'if __name__ == "__main__":, since every worker imports the script. '
        "Or work without them: engine='serial'."
    )


def _pickled(fn: Callable[..., Any], args: Any, kwargs: Any) -> bytes:
    try:
        return pickle.dumps((fn, args, kwargs), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise EngineError(
            f"{getattr(fn, '__name__', fn)!r} and its arguments must be such that they can be "
            f"sent to another process ({error}). Define functions and classes at the top of a "
            "module, not inside other functions, or work with engine='serial'."
        ) from error
