"""Learning from answers beside the server."""

import threading
from types import SimpleNamespace

from harmonium.web import service as module


def test_a_failure_does_not_end_the_learning(monkeypatch):
    calls, learnt, failed = [], threading.Event(), threading.Event()

    def learn():
        calls.append("learn")
        if len(calls) == 1:
            raise OSError("the disk is full")
        return SimpleNamespace(refreshed=["rock"], n_tracks=1)

    monkeypatch.setattr(module.log, "exception", lambda text: failed.set())
    library = SimpleNamespace(learn=learn, improvement=lambda: None)
    service = SimpleNamespace(
        closing=threading.Event(),
        library=lambda: library,
        events=SimpleNamespace(tell=lambda event, what: learnt.set()),
    )
    learner = module.Learner(service)
    learner.learn()
    assert failed.wait(10)
    learner.learn()
    assert learnt.wait(10)
    service.closing.set()
    learner.close()
    assert len(calls) == 2
