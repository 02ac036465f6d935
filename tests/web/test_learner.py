"""Learning from answers beside the server."""

import threading
from types import SimpleNamespace

from harmonium.web import learner as module
from harmonium.web.learner import Learner


def test_a_failure_does_not_end_the_learning(monkeypatch):
    calls, learnt = [], threading.Event()

    def learn_answers(library):
        calls.append(library)
        if len(calls) == 1:
            raise OSError("the disk is full")
        return SimpleNamespace(refreshed=["rock"], n_tracks=1)

    monkeypatch.setattr(module, "learn_answers", learn_answers)
    monkeypatch.setattr(module, "improvement", lambda library: None)
    failed = threading.Event()
    monkeypatch.setattr(module.log, "exception", lambda text: failed.set())
    service = SimpleNamespace(closing=threading.Event(), library=lambda: "a library")
    learner = Learner(service, lambda event, what: learnt.set())
    learner.learn()
    assert failed.wait(10)
    learner.learn()
    assert learnt.wait(10)
    service.closing.set()
    learner.close()
    assert calls == ["a library", "a library"]
