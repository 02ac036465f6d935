"""The Dask engine on a real cluster, and what is said where there is none."""

import builtins
import os
import signal
import socket
import sys

import engine_tasks
import pytest
from dask_cluster import cluster
from engine_tasks import completed
from noise_files import LEVEL, write
from processes_in_tests import end, is_running, wait_until
from small_disks import full, mount, read_only, unmount

from harmonium.audio.extraction import extract_files
from harmonium.engine import EngineError, WorkerDied, dask, make_executor


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A cluster that restarts workers, and holds the first death against a task."""
    env = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with cluster(tmp_path_factory.mktemp("dask"), nanny=True, env=env) as running:
        yield running.address


def outcomes(function, tasks, **options):
    """Outcomes by task."""
    return {o.task: o for o in completed(function, tasks, **options)}


def test_every_task_has_its_outcome(address):
    found = outcomes(engine_tasks.double, range(100), engine=address)
    assert {task: o.result for task, o in found.items()} == {x: 2 * x for x in range(100)}


def test_a_task_may_be_large(address):
    (outcome,) = completed(len, [bytes(20_000_000)], engine=address)
    assert outcome.result == 20_000_000


def test_an_error_arrives_as_it_was_raised(address):
    error = outcomes(engine_tasks.fail, [3], engine=address)[3].error
    assert isinstance(error, ValueError)
    assert str(error) == "3 is not wanted"


def test_tasks_are_taken_only_as_they_can_be_worked_on(address):
    ahead = engine_tasks.taken_ahead(200, engine=address)
    assert len(ahead) == 200
    assert max(ahead) <= 32 + 1


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc is told what to keep")
def test_memory_is_used_again(address):
    """Dask's nannies have it given back at once: 4,096 pages for each array."""
    (outcome,) = completed(engine_tasks.faults_of_large_arrays, [20], engine=address)
    assert outcome.result < 4096


@pytest.mark.parametrize(
    ("function", "limit"),
    [(engine_tasks.die_at_negatives, None), (engine_tasks.hang_at_negatives, 3)],
)
def test_a_task_that_crashes_or_hangs_is_the_only_one(address, function, limit):
    found = outcomes(function, [1, -1, 2], engine=address, time_limit=limit)
    assert (found[1].result, found[2].result) == (2, 4)
    assert isinstance(found[-1].error, WorkerDied)
    assert "took too long" in str(found[-1].error)


@pytest.mark.long
def test_a_cluster_that_changes_until_it_is_gone(tmp_path, monkeypatch):
    """Every task has one outcome; what to do is said when the scheduler is gone, or is new."""
    folder = tmp_path / "began"
    folder.mkdir()

    def began():
        """Who is at a task that waits."""
        found = [path.name.split(".") for path in folder.iterdir() if "." in path.name]
        return {int(pid) for x, pid in found if int(x) >= 4 and is_running(int(pid))}

    with cluster(tmp_path, n_workers=2) as running:
        monkeypatch.setattr(dask, "CONNECT_SECONDS", 2)
        tasks = [(x, str(folder)) for x in range(12)]
        done = []
        work = engine_tasks.double_behind_the_gate
        for outcome in completed(work, tasks, engine=running.address):
            done.append((outcome.task[0], outcome.result))
            if len(done) == 3:
                victims = wait_until(lambda: len(began()) == 2 and began(), "two workers at work")
                os.kill(min(victims), signal.SIGKILL)
                at_work = {max(victims), running.add_worker().pid}
                wait_until(lambda now=at_work: began() == now, "the worker that joined")
                (folder / "gate").touch()
        assert sorted(done) == [(x, 2 * x) for x in range(12)]

        (folder / "gate").unlink()
        for lose in (running.restart, running.kill):

            def more(lose=lose):
                yield from tasks[4:]
                lose()

            with pytest.raises(EngineError, match=r"is gone.*run the same command"):
                list(completed(work, more(), engine=running.address))


@pytest.mark.long
def test_a_task_that_needs_more_memory_than_a_worker_has(tmp_path):
    env = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with cluster(tmp_path, n_workers=1, nanny=True, env=env, memory="600MB") as running:
        found = outcomes(engine_tasks.fill_memory, [1, 2000, 2], engine=running.address)
        assert (found[1].result, found[2].result) == (2**20, 2 * 2**20)
        assert isinstance(found[2000].error, WorkerDied)
        assert "ran out of memory" in str(found[2000].error)


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mount(folder, "4m"):
        pytest.skip("a file system of its own can be mounted by the superuser alone")
    yield folder
    unmount(folder)


def check_work(running, folder):
    """Workers compute, read files, and take over from one that is killed."""
    found = outcomes(engine_tasks.double, range(50), engine=running.address)
    assert {task: o.result for task, o in found.items()} == {x: 2 * x for x in range(50)}
    music = [write(folder / "music" / f"{i}.flac", i) for i in range(6)]
    cache = folder / "cache"
    extraction = extract_files(music, extractor=LEVEL, engine=running.address, cache=cache)
    assert len(extraction.paths) == len(music)
    assert not extraction.failures
    end(running.workers[0])
    (outcome,) = completed(engine_tasks.double, [4], engine=running.address)
    assert outcome.result == 8


@pytest.mark.long
def test_workers_whose_disk_is_full_go_on(tmp_path, disk):
    """Nothing that they do for us needs a disk."""
    with cluster(tmp_path, env={"TMPDIR": str(disk)}, local=disk) as running, full(disk):
        check_work(running, tmp_path)


@pytest.mark.long
def test_workers_on_a_read_only_disk_work(tmp_path, disk):
    env = {"TMPDIR": str(disk), "HOME": str(disk), "HARMONIUM_CACHE": str(disk / "cache")}
    with read_only(disk), cluster(tmp_path, env=env) as running:
        check_work(running, tmp_path)


@pytest.mark.long
def test_the_last_worker_of_a_cluster(tmp_path, monkeypatch):
    env = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with cluster(tmp_path, n_workers=1, nanny=True, env=env, memory="600MB") as running:
        monkeypatch.setattr(dask, "GONE_SECONDS", 0.1)
        monkeypatch.setattr(dask, "COUNT_SECONDS", 0.1)

        def more():
            yield str(tmp_path)
            wait_until(lambda: any(p.name.isdigit() for p in tmp_path.iterdir()), "a task")
            end(running.workers[0])

        with pytest.raises(EngineError, match=r"no worker for 0.1 s. Start some: dask worker tcp"):
            list(completed(engine_tasks.say_and_sleep, more(), engine=running.address))


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
