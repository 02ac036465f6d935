"""Results that no model gave: a folder as an experiment leaves it, from a function of the run."""

import hashlib
import json
from dataclasses import asdict

import numpy as np

from harmonium.experiments.plan import missing
from harmonium.experiments.report.reading import ways_of_testing

VERSIONS = {"harmonium": "1.2.3", "python": "3.11.0"}


def fabricate(folder, recipe_text, recipe, aucs, *, valid=lambda run: 0.5, wanted=lambda run: True):
    """Do every run of a recipe that is wanted, without training; return the folder.

    aucs(run, inference, known) gives the AUC of each tag, None where undefined; valid(run) the mean
    AUC on the validation fold.
    """
    results = {}
    while todo := [run for run in missing(recipe, results) if wanted(run)]:
        for run in todo:
            results[run.key] = {
                "key": run.key,
                "run": asdict(run),
                "valid_auc": valid(run),
                "best_epoch": 3,
                "tests": [
                    {"inference": way, "known": known, "auc": aucs(run, way, known)}
                    for way, known in ways_of_testing(run.inference, run.known)
                ],
            }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.toml").write_text(recipe_text, encoding="utf-8")
    write_lines(folder / "results.jsonl", results.values())
    write_lines(
        folder / "measurements.jsonl", [measured(line["run"], key) for key, line in results.items()]
    )
    return folder


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def measured(run, key):
    return {
        "key": key,
        "seconds": 2.0,
        "test_seconds": 0.5,
        "smoothing_seconds": 1.0 if run["smoothing"] else 0.0,
        "seconds_to_best": None if run["estimator"] == "SVMTagger" else 1.5,
        "peak_memory_mb": 300.0,
        "clips": run["clips"] or 1415,
        "versions": VERSIONS,
        "when": "2026-01-01T00:00:00+00:00",
    }


def noise(*parts):
    """A generator of random numbers that depends on these parts alone, in every process."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))
