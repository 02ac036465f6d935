"""Results that no model gave: a folder as an experiment leaves it, from a function of the run."""

import hashlib
import json
from dataclasses import asdict

import numpy as np

from harmonium.experiments.plan import missing, ways_to_test
from harmonium.experiments.recipe import parse_recipe


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
        **{"key": key, "seconds": 2.0, "test_seconds": 0.5, "peak_memory_mb": 300.0},
        "smoothing_seconds": 0.0 if run["smoothing"] is None else 1.0,
        "seconds_to_best": None if run["estimator"] == "SVMTagger" else 1.5,
        "clips": run["clips"] or 1415,
        "versions": {"harmonium": "1.2.3", "python": "3.11.0"},
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
    return np.clip(base + tag + chance - 0.01 * (run.smoothing is not None), 0.0, 1.0).tolist()


def plausible_valid(run):
    return 0.7 + float(noise("valid", run.key).uniform(0, 0.1))


def _recipe(form, datasets, *models, **tables):
    """A small recipe in TOML; models are (name, estimator, more lines)."""
    lines = [f'title = "{form.capitalize()}"', f'form = "{form}"', f"datasets = {datasets}"]
    lines += ["n_folds = 3", *tables.pop("top", ())]
    for table, line in tables.items():
        lines += [f"[{table}]", line]
    for name, estimator, *more in models or MODELS:
        lines += ["[[model]]", f'name = "{name}"', f'estimator = "{estimator}"', *more]
    return "\n".join(lines) + "\n"


DRBM, MLP, SVM = ("DRBM", "DiscriminativeRBM"), ("MLP", "MLPTagger"), ("SVM", "SVMTagger")
MODELS = (DRBM, MLP, SVM)
SEARCHED = (
    "search = [",
    "    { learning_rate = [0.01, 0.1], n_hidden = [50, 100] },",
    '    { training = ["cd", "pl"], training_steps = [1] },',
    "]",
)
LOG = ("LOG", "LogisticTagger", "search = { learning_rate = [0.1, 2.0] }")

RECIPES = {
    "comparison": _recipe(
        *("comparison", ["emotify", "majorminer-1022", "mturk"]),
        top=['note = "A note."'],
        vary="smoothing = [false, true]",
    ),
    "damping": _recipe(
        *("damping", ["majorminer-104"], (*DRBM, 'settings = { training = "lbp" }')),
        vary="damping = [0.0, 0.5, 0.9]",
    ),
    "approximations": _recipe(
        *("approximations", ["majorminer-104", "mturk"], DRBM),
        vary='training = ["cd", "pl", "mean_field", "lbp"]',
        tests='inference = ["lbp", "mean_field"]',
    ),
    "search": _recipe(
        *("search", ["mturk", "cal500"]),
        *((*DRBM, *SEARCHED), LOG, (*SVM, "settings = { nu = 0.5 }")),
        top=["search_folds = 2"],
    ),
    "completion": _recipe(
        *("completion", ["majorminer-104", "emotify", "cal500"]), tests="known = [0.0, 0.25, 0.5]"
    ),
    "learning-curve": _recipe(
        "learning-curve", ["majorminer-104", "msd-50"], vary="clips = [50, 200, 0]"
    ),
    "feature-groups": _recipe(
        "feature-groups", ["emotify"], vary='features = ["timbre", "rhythm", "all"]'
    ),
}
"""Form -> a small recipe of it."""
