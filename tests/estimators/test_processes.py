"""Models in several processes: what works, and what is refused rather than left to hang."""

import multiprocessing
import os
import subprocess
import sys

import joblib
import numpy as np
import pytest
from tagging_data import quick

from harmonium import MLPTagger
from harmonium.errors import HarmoniumError

SPAWN = """
import multiprocessing
import numpy as np
from harmonium import MLPTagger

if __name__ == "__main__":
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = MLPTagger(max_epochs=1, random_state=0).fit(X, (X > 0).astype(float))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(model.predict_proba, (X,)).shape)
"""

MESSAGE = "process forked from one that has used JAX"


def outcome(work, queue) -> None:
    try:
        work()
        queue.put("done")
    except HarmoniumError as error:
        queue.put(str(error))


def in_a_fork(work) -> str:
    """What becomes of the work in a forked process; "hangs" after a while."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=outcome, args=(work, queue))
    child.start()
    try:
        return queue.get(timeout=30)
    except Exception:
        return "hangs"
    finally:
        child.kill()
        child.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:os.fork")
@pytest.mark.parametrize("method", ["predict_proba", "fit", "partial_fit"])
def test_a_fork_is_refused(train, fitted, method):
    network = MLPTagger(max_epochs=1, random_state=0).fit(*train)
    for model in (fitted, network):
        use = getattr(quick() if method == "fit" else model, method)
        said = in_a_fork(lambda use=use: use(train.X) if method == "predict_proba" else use(*train))
        assert MESSAGE in said
        assert "loky" in said


@pytest.mark.long
def test_joblibs_processes_predict(train, fitted):
    halves = np.array_split(train.X, 2)
    predict = joblib.delayed(type(fitted).predict_proba)
    parts = joblib.Parallel(n_jobs=2)(predict(fitted, half) for half in halves)
    np.testing.assert_allclose(np.vstack(parts), fitted.predict_proba(train.X), atol=1e-6)


@pytest.mark.long
def test_spawned_processes_predict(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SPAWN)
    run = [sys.executable, str(script)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("(40, 2)\n", 0), done.stderr
