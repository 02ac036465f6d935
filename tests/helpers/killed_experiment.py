"""Runs an experiment again and again, each time in a process that is killed on the way.

    python killed_experiment.py RECIPE FOLDER SIZE [SIZE ...]

Each process is killed as soon as the results have that many bytes. All of them are forked from
this one, which has loaded every module and run nothing.
"""

import os
import signal
import sys
import time
from pathlib import Path

from harmonium.experiments.recipe import read_recipe
from harmonium.experiments.results import open_results
from harmonium.experiments.run import run_experiment


def run(recipe: Path, folder: Path) -> None:
    with open_results(folder, recipe.read_text()) as store:
        run_experiment(read_recipe(recipe), store, engine="serial")


def killed_at(size: int, recipe: Path, folder: Path) -> bool:
    """Whether a process that runs the experiment was still at it when it was killed."""
    child = os.fork()
    if not child:
        code = 1
        try:
            run(recipe, folder)
            code = 0
        finally:
            os._exit(code)
    path = folder / "results.jsonl"
    while not (path.exists() and path.stat().st_size >= size):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0
            return False
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    read_recipe(Path(sys.argv[1]))  # loads the modules of its models
    for size in map(int, sys.argv[3:]):
        print(killed_at(size, Path(sys.argv[1]), Path(sys.argv[2])), flush=True)
