"""A real Dask cluster of this machine: a scheduler and workers, each a process of its own."""

import json
from contextlib import contextmanager

import pytest
from distributed import Client
from processes_in_tests import PATIENCE, end, start, wait_until

from harmonium.engine import dask

NO_DASHBOARD = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")


class Cluster:
    """Its processes, and the address of its scheduler."""

    def __init__(self, folder, *, n_workers, nanny, env):
        self.file = folder / "scheduler.json"
        self.processes = []
        self._folder = folder
        self._env = {
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "60s",
            "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False",
            **env,
        }
        self.scheduler = self._start(
            *("scheduler", "--scheduler-file", self.file, "--host", "127.0.0.1", "--port", 0),
            *("--idle-timeout", "10 minutes"),  # should the tests be ended from outside
        )
        self.address = wait_until(self._read_address, "the address of the scheduler")
        self.workers = [
            self._start(
                *("worker", self.address, "--nthreads", 1, "--host", "127.0.0.1"),
                *("--nanny" if nanny else "--no-nanny", "--local-directory", folder),
                *("--memory-limit", 0, "--name", f"worker-{i}"),
            )
            for i in range(n_workers)
        ]

    def _start(self, *arguments):
        log = (self._folder / f"{arguments[0]}-{len(self.processes)}.log").open("w")
        with log:
            process = start(
                *("-m", "distributed.cli.dask_" + arguments[0], *arguments[1:], *NO_DASHBOARD),
                stdout=log,
                stderr=log,
                env=self._env,
            )
        self.processes.append(process)
        return process

    def _read_address(self):
        try:
            return json.loads(self.file.read_text())["address"]
        except (FileNotFoundError, json.JSONDecodeError):  # not there yet, or not yet whole
            return None


@contextmanager
def cluster(folder, *, n_workers=2, nanny=False, env=()):
    """A cluster that is gone at the end of the block; in it, an engine waits for it patiently."""
    running = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask, "CONNECT_SECONDS", PATIENCE)
        patch.setattr(dask, "WORKER_SECONDS", PATIENCE)
        try:
            running = Cluster(folder, n_workers=n_workers, nanny=nanny, env=dict(env))
            if n_workers:
                with Client(running.address, timeout=PATIENCE, set_as_default=False) as client:
                    client.wait_for_workers(n_workers, timeout=PATIENCE)
            yield running
        finally:
            for process in running.processes if running else ():
                end(process)
