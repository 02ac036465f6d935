"""Long work stops between two steps."""

import signal
import threading

import pytest

from harmonium import stopping
from harmonium.stopping import Cancellation, Cancelled, cancellable, stops_on_interrupt


def interrupt():
    """What Ctrl-C does."""
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def _ctrl_c_is_as_before():
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before
    stopping.check()


def test_work_stops_at_its_next_step():
    cancellation = Cancellation()
    with cancellable(cancellation):
        stopping.check()
        cancellation.cancel()
        with pytest.raises(Cancelled):
            stopping.check()


def test_no_other_work_stops():
    cancellation = Cancellation()
    with cancellable(cancellation):
        cancellation.cancel()
        with stopping.shielded():
            stopping.check()
        with cancellable(Cancellation()):
            stopping.check()
        with pytest.raises(Cancelled):
            stopping.check()


def test_another_thread_may_ask():
    cancellation = Cancellation()
    thread = threading.Thread(target=cancellation.cancel)
    with pytest.raises(Cancelled), cancellable(cancellation):  # noqa: PT012
        thread.start()
        thread.join()
        stopping.check()


def test_ctrl_c_lets_a_step_come_to_its_end():
    done = []
    with pytest.raises(KeyboardInterrupt), stops_on_interrupt():  # noqa: PT012
        for step in range(5):
            stopping.check()
            if step == 2:
                interrupt()
            done.append(step)
    assert done == [0, 1, 2]


def test_a_second_ctrl_c_ends_the_step_at_once():
    done = []
    with pytest.raises(KeyboardInterrupt), stops_on_interrupt():  # noqa: PT012
        interrupt()
        done.append("first")
        interrupt()
        done.append("second")
    assert done == ["first"]


def test_ctrl_c_after_the_last_step_is_raised_at_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt), stops_on_interrupt():  # noqa: PT012
        interrupt()
        done.append("all")
    assert done == ["all"]


def test_an_error_of_the_step_comes_before_ctrl_c():
    with pytest.raises(ZeroDivisionError), stops_on_interrupt():  # noqa: PT012
        interrupt()
        1 / 0  # noqa: B018


def test_inner_work_leaves_it_to_the_outer_work():
    done = []
    with pytest.raises(KeyboardInterrupt), stops_on_interrupt():  # noqa: PT012
        with stops_on_interrupt():
            interrupt()
        done.append("after the inner one")
        stopping.check()
        done.append("after the check")
    assert done == ["after the inner one"]


def test_a_job_is_stopped_by_its_server_alone():
    cancellation = Cancellation()
    with cancellable(cancellation):
        with stops_on_interrupt():
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        cancellation.cancel()
        with pytest.raises(Cancelled), stops_on_interrupt():
            stopping.check()


def test_a_program_that_handles_ctrl_c_itself_goes_on_doing_so():
    caught = []
    before = signal.signal(signal.SIGINT, lambda *_: caught.append("theirs"))
    try:
        with stops_on_interrupt():
            interrupt()
            stopping.check()
    finally:
        signal.signal(signal.SIGINT, before)
    assert caught == ["theirs"]


def test_other_threads_leave_ctrl_c_alone():
    handlers = []

    def work():
        with stops_on_interrupt():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]


@stopping.stoppable
def add(a, b):
    stopping.check()
    return a + b


def test_a_stoppable_function_returns_what_it_returns():
    assert add(1, b=2) == 3


def test_a_stoppable_function_stops():
    with pytest.raises(KeyboardInterrupt), stops_on_interrupt():  # noqa: PT012
        interrupt()
        add(1, 2)
