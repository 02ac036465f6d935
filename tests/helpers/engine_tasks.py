"""Functions that worker processes can import by name."""

import ctypes
import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

from harmonium.engine import Runner


def double(x):
    return 2 * x


def completed(function, tasks, **options):
    """The outcomes of tasks, in the order in which they end; tasks are taken as they are needed."""
    with Runner(function, **options) as runner:
        for task in tasks:
            while runner.full:
                yield runner.next()
            runner.submit(task)
        while runner.pending:
            yield runner.next()


def taken_ahead(n, **options):
    """How many tasks were taken that had not ended, at the end of each of ``n`` tasks."""
    taken = 0

    def tasks():
        nonlocal taken
        for x in range(n):
            taken += 1
            yield x

    return [taken - k for k, _ in enumerate(completed(double, tasks(), **options))]


def fail(x):
    raise ValueError(f"{x} is not wanted")


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def fail_oddly(x):
    raise Unpicklable(x, x)


def give_a_function(x):
    return lambda: x


def die_at_negatives(x):
    """As a decoder does that crashes on a file."""
    if x < 0:
        os.kill(os.getpid(), signal.SIGSEGV)
    return 2 * x


def die_while_answering(x):
    """As a process does that is ended in the middle of sending its result."""
    if x < 0:

        def send_half(pipe, data, write=None):
            os.write(pipe.fileno(), bytes(data)[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)

        Connection._send = send_half
        return "x" * 10_000
    return 2 * x


class OnlyThere:
    """Can be sent to another process, but not read in it."""

    def __reduce__(self):
        return _fail_elsewhere, (type(self), os.getpid())


def _fail_elsewhere(kind, pid):
    if os.getpid() != pid:
        raise ImportError("no module named 'only_here'")
    return kind()


def give_what_cannot_be_read(x):
    return OnlyThere() if x < 0 else 2 * x


def die_once(marker):
    """As a process does that was the wrong one to be ended when memory ran out."""
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def hang_at_negatives(x):
    if x < 0:
        # A library that keeps Python's lock: no Python thread runs in this process any more.
        ctypes.PyDLL(None).sleep(1000)
    return 2 * x


def threads_of_worker(x):
    import numpy as np
    from threadpoolctl import threadpool_info

    np.ones((64, 64)) @ np.ones((64, 64))
    return [pool["num_threads"] for pool in threadpool_info()], os.environ["XLA_FLAGS"]


def say_and_sleep(folder):
    """Leaves its process id in the folder, then takes very long."""
    pid = os.getpid()
    part = Path(folder) / f".{pid}"
    part.touch()
    part.rename(Path(folder) / str(pid))
    time.sleep(1000)


def double_behind_the_gate(task):
    """Says in the folder that it began, and by which process; from 4 on it waits for the gate."""
    x, folder = task
    (Path(folder) / f"{x}.{os.getpid()}").touch()
    while x >= 4 and not (Path(folder) / "gate").exists():
        time.sleep(0.01)
    return 2 * x


def fill_memory(megabytes):
    filled = bytearray(os.urandom(1)) * (megabytes * 2**20)
    time.sleep(1000 if megabytes > 500 else 0)
    return len(filled)


def faults_of_large_arrays(n):
    """How often the system had to find memory for n arrays of 16 MiB, one after the other."""
    import resource

    import numpy as np

    np.ones(2**21)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(n):
        np.ones(2**21)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
