"""Results that no model gave: a folder as an experiment leaves it, from a function of the run."""

import hashlib
import json
from dataclasses import asdict

import numpy as np

from harmonium.experiments.plan import missing, ways_to_test
from harmonium.experiments.recipe import parse_recipe

VERSIONS = {"harmonium": "1.2.3", "python": "3.11.0"}


def fabricate(folder, text, aucs, *, valid=lambda run: 0.5, wanted=lambda run: True, tags=None):
    """Do every run of a recipe that is wanted, without training; return the folder.

    aucs(run, inference, known) gives the AUC of each tag, None where undefined; valid(run) the mean
    AUC on the validation fold; tags are the names of the tags, if the results are to have them.
    """
    recipe, results = parse_recipe(text, trusted=True), {}
    while todo := [run for run in missing(recipe, results) if wanted(run)]:
        for run in todo:
            results[run.key] = {
                "key": run.key,
                "run": asdict(run),
                "valid_auc": valid(run),
                "best_epoch": 3,
                "tests": [
                    {"inference": way, "known": known, "auc": aucs(run, way, known)}
                    for way, known in ways_to_test(run.inference, run.known)
                ],
            } | ({"tags": tags} if tags else {})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.toml").write_text(text, encoding="utf-8")
    write_lines(folder / "results.jsonl", results.values())
    measurements = [measured(key, line["run"]) for key, line in results.items()]
    write_lines(folder / "measurements.jsonl", measurements)
    return folder


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def measured(key, run):
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


def plausible(run, way, known):
    """AUCs of eight tags that depend on everything a run does."""
    n = 8
    base = 0.7 + 0.1 * known + noise(run.model, run.settings, run.features, way).uniform(0, 0.06)
    tag = noise("tag", run.dataset.label).normal(0, 0.05, n)
    chance = noise(run.key, way, known).normal(0, 0.01, n)
    return np.clip(base + tag + chance - 0.01 * run.smoothing, 0.0, 1.0).tolist()


def plausible_valid(run):
    return 0.7 + float(noise("valid", run.key).uniform(0, 0.1))


_MODELS = """
[[model]]
name = "DRBM"
estimator = "DiscriminativeRBM"
[[model]]
name = "MLP"
estimator = "MLPTagger"
[[model]]
name = "SVM"
estimator = "SVMTagger"
"""

RECIPES = {
    "comparison": f"""
title = "Comparison"
form = "comparison"
datasets = ["emotify", "majorminer-1022", "mturk"]
n_folds = 3
note = "A note."
[vary]
smoothing = [false, true]
{_MODELS}""",
    "damping": """
title = "Damping"
form = "damping"
datasets = ["majorminer-104"]
n_folds = 3
[vary]
damping = [0.0, 0.5, 0.9]
[[model]]
name = "DRBM"
estimator = "DiscriminativeRBM"
settings = { training = "lbp" }
""",
    "approximations": """
title = "Approximations"
form = "approximations"
datasets = ["majorminer-104", "mturk"]
n_folds = 3
[vary]
training = ["cd", "pl", "mean_field", "lbp"]
[tests]
inference = ["lbp", "mean_field"]
[[model]]
name = "DRBM"
estimator = "DiscriminativeRBM"
""",
    "search": """
title = "Search"
form = "search"
datasets = ["mturk", "cal500"]
n_folds = 3
search_folds = 2
[[model]]
name = "DRBM"
estimator = "DiscriminativeRBM"
search = [
    { learning_rate = [0.01, 0.1], n_hidden = [50, 100] },
    { training = ["cd", "pl"], training_steps = [1] },
]
[[model]]
name = "LOG"
estimator = "LogisticTagger"
search = { learning_rate = [0.1, 2.0] }
[[model]]
name = "SVM"
estimator = "SVMTagger"
settings = { nu = 0.5 }
""",
    "completion": f"""
title = "Completion"
form = "completion"
datasets = ["majorminer-104", "emotify", "cal500"]
n_folds = 3
[tests]
known = [0.0, 0.25, 0.5]
{_MODELS}""",
    "learning-curve": f"""
title = "Learning curves"
form = "learning-curve"
datasets = ["majorminer-104", "msd-50"]
n_folds = 3
[vary]
clips = [50, 200, 0]
{_MODELS}""",
    "feature-groups": f"""
title = "Feature groups"
form = "feature-groups"
datasets = ["emotify"]
n_folds = 3
[vary]
features = ["timbre", "rhythm", "all"]
{_MODELS}""",
}
"""Form -> a small recipe of it."""
