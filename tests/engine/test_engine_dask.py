"""The Dask engine on a real cluster, and what is said where there is none."""

import builtins
import os
import signal
import socket

import engine_tasks
import pytest
from dask_cluster import cluster
from processes_in_tests import wait_until

from harmonium.engine import EngineError, WorkerDied, completed, dask, make_executor


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A cluster that restarts workers, and holds the first death against a task."""
    env = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with cluster(tmp_path_factory.mktemp("dask"), nanny=True, env=env) as running:
        yield running.address


class TestCluster:
    def test_every_task_has_its_result(self, address):
        found = {
            o.task: o.result for o in completed(engine_tasks.double, range(100), engine=address)
        }
        assert found == {x: 2 * x for x in range(100)}

    def test_tasks_are_taken_only_as_they_can_be_worked_on(self, address):
        taken, ahead = 0, []

        def tasks():
            nonlocal taken
            for x in range(200):
                taken += 1
                yield x

        for n, _ in enumerate(completed(engine_tasks.double, tasks(), engine=address)):
            ahead.append(taken - n)
        assert len(ahead) == 200
        assert max(ahead) <= 32 + 1

    def test_an_exception_is_an_outcome(self, address):
        (outcome,) = completed(engine_tasks.fail, [3], engine=address)
        assert isinstance(outcome.error, ValueError)
        assert str(outcome.error) == "3 is not wanted"

    def test_a_crash_takes_only_its_task(self, address):
        found = {
            o.task: o for o in completed(engine_tasks.die_at_negatives, [1, -1, 2], engine=address)
        }
        assert (found[1].result, found[2].result) == (2, 4)
        assert isinstance(found[-1].error, WorkerDied)

    def test_a_task_that_hangs_is_stopped(self, address):
        tasks = completed(engine_tasks.hang_at_negatives, [1, -1, 2], engine=address, time_limit=3)
        found = {o.task: o for o in tasks}
        assert (found[1].result, found[2].result) == (2, 4)
        assert isinstance(found[-1].error, WorkerDied)
        assert "it took too long" in str(found[-1].error)


def test_a_scheduler_that_goes_away(tmp_path):
    with cluster(tmp_path, n_workers=1) as running:
        folder = tmp_path / "pids"
        folder.mkdir()

        def tasks():
            yield from [str(folder)] * 3
            wait_until(lambda: any(p.name.isdigit() for p in folder.iterdir()), "a task")
            os.killpg(running.scheduler.pid, signal.SIGKILL)

        with pytest.raises(EngineError, match="has dropped the work, or no longer answers"):
            list(completed(engine_tasks.say_and_sleep, tasks(), engine=running.address))


def test_a_scheduler_without_workers(tmp_path, monkeypatch):
    with cluster(tmp_path, n_workers=0) as running:
        monkeypatch.setattr(dask, "WORKER_SECONDS", 0.1)
        with pytest.raises(EngineError, match=f"at {running.address} has no worker. Start one"):
            make_executor(running.address)


def test_no_scheduler(monkeypatch):
    monkeypatch.setattr(dask, "CONNECT_SECONDS", 1)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(EngineError, match=f"No Dask scheduler answers at {address} within 1 s"):
            make_executor(address)


def test_without_the_extra(monkeypatch):
    real = builtins.__import__

    def without_distributed(name, *arguments):
        if name.startswith("distributed"):
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_distributed)
    with pytest.raises(EngineError, match=r"pip install 'harmonium\[dask\]'"):
        make_executor("tcp://127.0.0.1:8786")
