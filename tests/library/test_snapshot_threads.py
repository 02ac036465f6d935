"""Threads share a view of a library."""

import sys
import threading

import pytest
from small_library import trained

from harmonium.library import Library

PARTS = ("reached", "predictions", "trained", "absent", "verdicts", "ids", "places")


@pytest.fixture
def hasty():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_that_ask_for_parts_in_any_order_do_not_wait_for_each_other(tmp_path, hasty):
    with Library.open(tmp_path / "library.db") as library:
        trained(library, n_tracks=20)
        for turn in range(15):
            library._snapshot = None
            view = library.snapshot()
            names = PARTS[turn % len(PARTS) :] + PARTS[: turn % len(PARTS)]
            begin = threading.Barrier(len(names))

            def ask(name, view=view, begin=begin):
                begin.wait()
                getattr(view, name)

            threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in names]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10)
            assert not any(thread.is_alive() for thread in threads), f"turn {turn}"
