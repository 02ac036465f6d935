"""A real Dask cluster of this machine: a scheduler and workers, each a process of its own."""

import gc
import json
import warnings
from contextlib import contextmanager

import pytest
from distributed import Client
from processes_in_tests import PATIENCE, end, start, wait_until

from harmonium.engine import dask

NO_DASHBOARD = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")


class Cluster:
    """Its processes, and the address of its scheduler."""

    def __init__(self, folder, *, n_workers, nanny, env, memory=0, local=None):
        self.processes = []
        self._folder, self._nanny, self._memory = folder, nanny, memory
        self._local = folder if local is None else local  # where workers may write
        self._env = {
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "60s",
            **({} if memory else {"DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False"}),
            **env,
        }
        self._start_all(n_workers, port=0)

    def _start_all(self, n_workers, port):
        self.file = self._folder / f"scheduler-{len(self.processes)}.json"
        self.scheduler = self._start(
            *("scheduler", "--scheduler-file", self.file, "--host", "127.0.0.1", "--port", port),
            *("--idle-timeout", "10 minutes"),  # should the tests be ended from outside
        )
        self.address = wait_until(self._read_address, "the address of the scheduler")
        self.workers = []
        for _ in range(n_workers):
            self.add_worker()
        if n_workers:
            with Client(self.address, timeout=PATIENCE, set_as_default=False) as client:
                client.wait_for_workers(n_workers, timeout=PATIENCE)

    def add_worker(self):
        worker = self._start(
            *("worker", self.address, "--nthreads", 1, "--host", "127.0.0.1"),
            *("--nanny" if self._nanny else "--no-nanny", "--local-directory", self._local),
            *("--memory-limit", self._memory, "--name", f"worker-{len(self.processes)}"),
        )
        self.workers.append(worker)
        return worker

    def kill(self):
        """The scheduler and all workers, by SIGKILL."""
        for process in (self.scheduler, *self.workers):
            end(process)

    def restart(self):
        """Kill everything, and start as much again at the same address."""
        n_workers, port = len(self.workers), int(self.address.rpartition(":")[2])
        self.kill()
        self._start_all(n_workers, port)

    def _start(self, *arguments):
        log = (self._folder / f"{arguments[0]}-{len(self.processes)}.log").open("w")
        with log:
            command = ("-m", f"distributed.cli.dask_{arguments[0]}", *arguments[1:], *NO_DASHBOARD)
            process = start(*command, stdout=log, stderr=log, env=self._env)
        self.processes.append(process)
        return process

    def _read_address(self):
        try:
            return json.loads(self.file.read_text())["address"]
        except (FileNotFoundError, json.JSONDecodeError):  # not there yet, or not yet whole
            return None


@contextmanager
def cluster(folder, *, n_workers=2, nanny=False, env=(), memory=0, local=None):
    """A cluster that is gone at the end of the block; in it, an engine waits for it patiently."""
    running = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask, "CONNECT_SECONDS", PATIENCE)
        patch.setattr(dask, "WORKER_SECONDS", PATIENCE)
        try:
            how = {"n_workers": n_workers, "nanny": nanny, "memory": memory, "local": local}
            running = Cluster(folder, env=dict(env), **how)
            yield running
        finally:
            for process in running.processes if running else ():
                end(process)
            with warnings.catch_warnings():  # Dask leaves sockets to a lost scheduler open
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()
