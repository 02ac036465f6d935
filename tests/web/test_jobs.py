"""Jobs in processes of their own: how they stop."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe

import pytest
from processes_in_tests import wait_until

from harmonium import stopping
from harmonium.library import Library
from harmonium.stopping import Cancellation, Cancelled, cancellable
from harmonium.web import work as work_module
from harmonium.web.work import work


def reports_of(pipe):
    while pipe.poll(0):
        yield pipe.recv()


@pytest.mark.parametrize("how", ["asked", "the server is gone"])
def test_a_request_to_stop_reaches_the_work(how):
    ours, theirs = Pipe()
    code = (
        "import sys; from multiprocessing.connection import Connection\n"
        "from harmonium import stopping; from harmonium.web.work import listen_for_stop\n"
        "cancellation = listen_for_stop(Connection(int(sys.argv[1])))\n"
        "print('ready', flush=True)\n"
        "with stopping.cancellable(cancellation):\n"
        "    while True: stopping.check()\n"
    )
    number = theirs.fileno()
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(number)],
        pass_fds=[number],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        theirs.close()
        assert process.stdout.readline() == "ready\n"
        if how == "asked":
            ours.send("stop")
        else:
            ours.close()
        _, errors = process.communicate(timeout=60)
    assert "Cancelled" in errors


def test_a_job_that_is_stopped_before_it_begins_does_nothing(tmp_path, monkeypatch):
    cancellation = Cancellation()
    cancellation.cancel()
    monkeypatch.setattr(work_module, "listen_for_stop", lambda pipe: cancellation)
    Library.open(tmp_path / "library.db").close()
    ours, theirs = Pipe()
    work("index", str(tmp_path / "library.db"), {"folder": str(tmp_path)}, theirs)
    assert list(reports_of(ours)) == [("stopped", None)]


def test_a_job_stops_at_its_next_report(tmp_path, monkeypatch):
    cancellation = Cancellation()
    steps = []

    def count(library, request, report):
        for step in range(5):
            report("Working", step, 5)
            steps.append(step)
            if step == 2:
                cancellation.cancel()

    monkeypatch.setattr(work_module, "listen_for_stop", lambda pipe: cancellation)
    monkeypatch.setitem(work_module.KINDS, "index", count)
    ours, theirs = Pipe()
    work("index", str(tmp_path / "library.db"), {}, theirs)
    assert steps == [0, 1, 2]
    assert list(reports_of(ours))[-1] == ("stopped", None)


@pytest.mark.parametrize("waits_for", ["another thread", "another program"])
def test_a_job_that_waits_for_the_library_is_stopped(tmp_path, waits_for):
    place = tmp_path / "library.db"
    cancellation = Cancellation()
    with Library.open(place, wait=60) as library, Library.open(place) as other:
        writer = library if waits_for == "another thread" else other
        with ThreadPoolExecutor(1) as pool, writer.begin():

            def write():
                with cancellable(cancellation):
                    library.settings.set("x", 1)

            written = pool.submit(write)
            wait_until(written.running, "the other writer")
            cancellation.cancel()
            with pytest.raises(Cancelled):
                written.result(timeout=30)
        assert library.settings.get("x") is None
    stopping.check()
