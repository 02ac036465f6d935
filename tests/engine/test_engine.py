"""The engines of this machine: results, bounds, deaths, time limits, Ctrl-C."""

import multiprocessing
import os
import re
import signal
import threading

import engine_tasks
import pytest
from engine_tasks import completed
from processes_in_tests import PATIENCE, end, is_running, start, wait_until

from harmonium import engine

ENGINES = ["processes", "serial"]


def outcomes(function, tasks, **options):
    """Outcomes by task."""
    return {o.task: o for o in completed(function, tasks, **{"jobs": 2, **options})}


@pytest.fixture
def new_processes():
    """Those that were started since; other tests may have left some that are not ours."""
    before = set(multiprocessing.active_children())
    return lambda: set(multiprocessing.active_children()) - before


class TestResults:
    @pytest.mark.parametrize("engine", ENGINES)
    def test_every_task_has_its_result_or_its_exception(self, engine, new_processes):
        found = outcomes(engine_tasks.double, range(50), engine=engine)
        assert {task: o.result for task, o in found.items()} == {x: 2 * x for x in range(50)}
        assert all(o.error is None for o in found.values())
        assert outcomes(engine_tasks.double, [], engine=engine) == {}
        task = b"x" * 3_000_000
        assert outcomes(engine_tasks.double, [task], engine=engine)[task].result == task + task
        error = outcomes(engine_tasks.fail, [3], engine=engine)[3].error
        assert isinstance(error, ValueError)
        assert str(error) == "3 is not wanted"
        if engine == "processes":  # the traceback of the worker comes along
            assert "engine_tasks.py" in error.__notes__[0]
        assert not new_processes()

    @pytest.mark.parametrize(
        ("function", "kind"),
        [
            (engine_tasks.give_what_cannot_be_read, ImportError),
            (engine_tasks.die_while_answering, engine.WorkerDied),
        ],
    )
    def test_an_answer_that_cannot_be_read_takes_only_its_task(self, function, kind):
        found = outcomes(function, [1, -1, 2, 3, 4])
        assert isinstance(found.pop(-1).error, kind)
        assert {task: o.result for task, o in found.items()} == {1: 2, 2: 4, 3: 6, 4: 8}

    def test_what_cannot_be_sent(self):
        with pytest.raises(engine.EngineError, match="at the top"):
            outcomes(lambda x: x, [1])

    def test_what_cannot_be_sent_back(self):
        assert "pickle" in str(outcomes(engine_tasks.give_a_function, [1])[1].error).lower()
        assert str(outcomes(engine_tasks.fail_oddly, [1])[1].error) == "Unpicklable: 1 and 1"

    def test_workers_compute_with_one_thread(self):
        threads, flags = outcomes(engine_tasks.threads_of_worker, [0])[0].result
        assert threads
        assert set(threads) == {1}
        assert "--xla_cpu_multi_thread_eigen=false" in flags
        assert outcomes(os.getenv, ["NPROC"])["NPROC"].result == "1"


class TestBounds:
    @pytest.mark.parametrize(("engine", "most"), [("processes", 4), ("serial", 1)])
    def test_tasks_are_taken_only_as_they_can_be_worked_on(self, engine, most):
        ahead = engine_tasks.taken_ahead(300, engine=engine, jobs=2)
        assert len(ahead) == 300
        assert max(ahead) <= most + 1  # what is under way, and the one that waits its turn

    def test_no_more_workers_than_jobs(self, new_processes):
        with engine.make_executor(jobs=2) as executor:
            pids = {executor.submit(os.getpid).result(PATIENCE) for _ in range(20)}
            assert 1 <= len(pids) <= 2
            assert len(new_processes()) <= 2
        with engine.make_executor() as executor:
            assert executor.jobs == engine.available_cores() >= 1

    def test_a_runner_says_when_it_is_full(self):
        with engine.Runner(engine_tasks.double, jobs=1) as runner:
            assert not runner.full
            runner.submit(1)
            assert not runner.full
            runner.submit(2)
            assert runner.full
            assert runner.pending == 2
            assert {runner.next().result, runner.next().result} == {2, 4}
            assert not runner.pending
            with pytest.raises(engine.EngineError, match="There is no task under way"):
                runner.next()


class TestDeaths:
    def test_a_crash_takes_only_its_task(self, new_processes):
        tasks = [0, 1, -1, 2, 3, 4, -2, 5, 6, 7]
        found = outcomes(engine_tasks.die_at_negatives, tasks)
        assert found.keys() == set(tasks)
        for task, outcome in found.items():
            if task < 0:
                assert isinstance(outcome.error, engine.WorkerDied)
                assert outcome.error.exit_code == -signal.SIGSEGV
                assert "SIGSEGV" in str(outcome.error)
            else:
                assert outcome.result == 2 * task
        assert not new_processes()

    def test_the_victim_of_a_stray_kill_is_tried_again(self, tmp_path):
        marker = str(tmp_path / "died")
        outcome = outcomes(engine_tasks.die_once, [marker])[marker]
        assert outcome.result == "done"
        assert (tmp_path / "died").exists()

    def test_a_worker_that_dies_while_idle_is_replaced(self):
        with engine.make_executor(jobs=1) as executor:
            pid = executor.submit(os.getpid).result(PATIENCE)
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not is_running(pid), "the end of the worker")
            with engine.Runner(engine_tasks.double, engine=executor) as runner:
                runner.submit(4)
                assert runner.next().result == 8

    def test_an_engine_outlives_a_runner_that_was_left(self):
        with engine.make_executor(jobs=1) as executor:
            with engine.Runner(engine_tasks.double, engine=executor) as runner:
                for task in range(5):  # some of which may be cancelled
                    runner.submit(task)
            assert executor.submit(engine_tasks.double, 3).result(PATIENCE) == 6

    def test_a_task_that_hangs_is_stopped(self, new_processes):
        with engine.make_executor(jobs=1, time_limit=1) as executor:
            runner = engine.Runner(engine_tasks.hang_at_negatives, engine=executor)
            runner.submit(-1)
            error = runner.next().error
            assert isinstance(error, engine.TimedOut)
            assert str(error) == "it took longer than 1 s and was stopped"
            executor.time_limit = PATIENCE  # a busy machine may need it
            runner.submit(3)
            assert runner.next().result == 6
        assert not new_processes()

    def test_workers_that_cannot_start(self, tmp_path):
        script = tmp_path / "script.py"
        script.write_text("from engine_tasks import completed\nlist(completed(abs, [1], jobs=1))\n")
        process = start(script)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        *_, message = errors.splitlines()
        assert 'under if __name__ == "__main__": in your script' in message
        assert errors.count("Traceback") == 1  # not one for each worker
        script.write_text("import engine_tasks, multiprocessing as m\n")
        with script.open("a") as file:  # a worker dies otherwise
            file.write("if m.current_process().name != 'MainProcess': raise SystemExit(3)\n")
            file.write("list(engine_tasks.completed(abs, [1], jobs=1))\n")
        process = start(script)
        _, errors = process.communicate(timeout=PATIENCE)
        assert "die before they are ready (exit code 3)" in errors


class TestStopping:
    def test_an_exception_of_the_caller_ends_the_workers(self, tmp_path, new_processes):
        def fail():
            with engine.Runner(engine_tasks.say_and_sleep, jobs=2) as runner:
                for _ in range(5):
                    runner.submit(str(tmp_path))
                wait_until(lambda: _pids(tmp_path), "a task")
                raise KeyError

        with pytest.raises(KeyError):
            fail()
        tasks = completed(engine_tasks.double, range(1000), jobs=2)
        next(tasks)
        tasks.close()  # left early, without an exception
        assert not new_processes()
        assert not [t for t in threading.enumerate() if t.name == engine.processes.THREAD_NAME]

    @pytest.mark.parametrize("started", [True, False])
    def test_an_interrupt_while_a_worker_starts_leaves_nothing(
        self, new_processes, monkeypatch, started
    ):
        """It is held until the thread of the worker should have started, and is raised then."""
        start = threading.Thread.start

        def interrupt(thread):
            if started:
                start(thread)
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)

        executor = engine.make_executor(jobs=1)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", interrupt)
            with pytest.raises(KeyboardInterrupt):
                executor.submit(engine_tasks.double, 1)
        executor.abandon()
        assert not new_processes()
        assert not [t for t in threading.enumerate() if t.name == engine.processes.THREAD_NAME]

    @pytest.mark.parametrize("moment", ["while the workers start", "in the middle of a task"])
    def test_ctrl_c_ends_everything_quietly(self, tmp_path, moment):
        process = _start_sleepers(tmp_path)
        try:
            assert process.stdout.readline() == "started\n"
            if moment == "in the middle of a task":
                wait_until(lambda: _pids(tmp_path), "a task")
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
            output, errors = process.communicate(timeout=PATIENCE)
            assert (process.returncode, output, errors) == (130, "stopped\n", "")
            assert not _running(tmp_path)
        finally:
            end(process)

    def test_a_program_that_ends_in_the_middle_does_not_wait(self, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(
            "import sys\n"
            "from pathlib import Path\n"
            "from engine_tasks import say_and_sleep\n"
            "from harmonium.engine import make_executor\n"
            "from processes_in_tests import wait_until\n"
            'if __name__ == "__main__":\n'
            "    executor = make_executor(jobs=1)\n"
            "    futures = [executor.submit(say_and_sleep, sys.argv[1]) for _ in range(3)]\n"
            "    wait_until(lambda: list(Path(sys.argv[1]).glob('[1-9]*')), 'a task')\n"
            "    sys.exit(3)\n"
        )
        process = start(script, tmp_path)
        output, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, output, errors) == (3, "", "")
        assert not _running(tmp_path)

    def test_workers_do_not_outlive_a_killed_caller(self, tmp_path):
        process = _start_sleepers(tmp_path)
        try:
            wait_until(lambda: len(_pids(tmp_path)) == 2, "two tasks")
            process.kill()
            process.wait(PATIENCE)
            wait_until(lambda: not _running(tmp_path), "the end of the workers")
        finally:
            end(process)

    def test_after_the_shutdown(self):
        executor = engine.make_executor(jobs=1)
        future = executor.submit(engine_tasks.double, 1)
        executor.shutdown()
        executor.shutdown()
        assert future.result(0) == 2
        with pytest.raises(RuntimeError, match="shut down"):
            executor.submit(engine_tasks.double, 1)

    def test_tasks_that_wait_can_be_cancelled(self, tmp_path):
        executor = engine.make_executor(jobs=1)
        futures = [executor.submit(engine_tasks.say_and_sleep, str(tmp_path)) for _ in range(3)]
        wait_until(lambda: _pids(tmp_path), "a task")
        assert futures[2].cancel()
        executor.abandon()
        assert futures[1].cancelled()
        assert isinstance(futures[0].exception(0), engine.EngineError)

    @pytest.mark.parametrize("n_done", [0, 1, 5])
    def test_a_shutdown_may_drop_what_waits(self, n_done):
        executor = engine.make_executor(jobs=1)
        futures = [executor.submit(engine_tasks.double, x) for x in range(200)]
        for future in futures[:n_done]:
            future.result(PATIENCE)
        executor.shutdown(cancel_futures=True)
        done = [future for future in futures if not future.cancelled()]
        assert [future.result(0) for future in done] == [2 * x for x in range(len(done))]
        assert all(future.done() for future in futures)


class TestChoice:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"engine": "process"}, "Did you mean 'processes'?"),
            ({"engine": "localhost:8786"}, "such as tcp://host:8786"),
            ({"jobs": 0}, "'jobs'"),
            ({"jobs": 1.5}, "'jobs'"),
            ({"time_limit": 0}, "'time_limit'"),
        ],
    )
    def test_what_is_refused(self, options, message):
        with pytest.raises(engine.EngineError, match=re.escape(message)):
            engine.make_executor(**options)


def _start_sleepers(folder):
    """A script whose two workers sleep."""
    script = folder / "script.py"
    script.write_text(
        "import sys\n"
        "from engine_tasks import completed, say_and_sleep\n"
        'if __name__ == "__main__":\n'
        "    try:\n"
        '        print("started", flush=True)\n'
        "        list(completed(say_and_sleep, [sys.argv[1]] * 5, jobs=2))\n"
        "    except KeyboardInterrupt:\n"
        '        print("stopped")\n'
        "        sys.exit(130)\n"
    )
    return start(script, folder)


def _pids(folder):
    return [int(path.name) for path in folder.iterdir() if path.name.isdigit()]


def _running(folder):
    return [pid for pid in _pids(folder) if is_running(pid)]
