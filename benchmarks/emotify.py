"""From music to emotions: mean AUC of every model on Emotify, with timbre, with rhythm, with both.

    HARMONIUM_DATA=... python benchmarks/emotify.py [--groups both] [--models "DRBM;MLP"] [--seed 0]

400 excerpts; tags are the emotions that at least a quarter of an excerpt's listeners marked. Folds
by track; settings are chosen on a validation fold: the procedure is that of benchmarks/models.py.
The first run extracts the features and keeps them in a folder for temporary files.
"""

import argparse
import itertools
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import models
import numpy as np

GROUPS = ("timbre", "rhythm", "both")
MODELS = ("DRBM", "MLP", "LOG", "LOG, exact", "SVM")


def emotify_features(group: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of a group, (400, 189, 200 or 389), labels (400, 9), and tracks."""
    from harmonium import AudioFeatures
    from harmonium.audio import FeatureParameters
    from harmonium.data.datasets import load

    data = load("emotify")
    cache = Path(tempfile.gettempdir()) / "harmonium-emotify"
    X = AudioFeatures(cache=cache).transform(data.audio)
    n_timbre = FeatureParameters().n_timbre
    columns = {"timbre": np.s_[:n_timbre], "rhythm": np.s_[n_timbre:], "both": np.s_[:]}
    return X[:, columns[group]], data.labels(min_share=0.25).values, data.groups("track")


def run(group: str, model: str, fold: int, seed: int) -> dict[str, Any]:
    """One test fold, in a process of its own."""
    models.read = emotify_features
    return models.run(group, model, fold, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--models", default=";".join(MODELS), help="separated by ;")
    parser.add_argument("--seed", type=int, default=0, help="of the folds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    emotify_features("both")  # once, for all processes
    tasks = list(itertools.product(options.groups.split(","), options.models.split(";"), range(5)))
    results = []
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run, *task, options.seed) for task in tasks]
        for done in as_completed(futures):
            results.append(done.result())
            print(f"{len(results)}/{len(tasks)}", end="\r", flush=True)
    order = {task: i for i, task in enumerate(tasks)}
    results.sort(key=lambda r: order[r["dataset"], r["model"], r["fold"]])
    print(models.table(results))


if __name__ == "__main__":
    main()
