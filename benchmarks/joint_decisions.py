"""Sets of tags: thresholds, halves and the most probable set, on emotions, scene and yeast.

    HARMONIUM_DATA=FOLDER python benchmarks/joint_decisions.py --json FILE
    python benchmarks/joint_decisions.py --show FILE        # the tables of docs/evaluation.md

Five test folds; on each, a model with the defaults of its class (five members) learns from the
other four. Decisions: "thresholds" is `predict`; "half" gives a tag from a probability of 0.5;
"joint" is `predict_joint`. Measures: the share of clips with exactly the right set of tags (subset
accuracy); the share of right decisions (1 - Hamming loss); and the F1 of a clip's tags, mean over
the clips.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from harmonium import DiscriminativeRBM, MLPTagger
from harmonium.evaluation import grouped_folds
from harmonium.experiments.datasets import CATALOGUE, load_dataset

DATASETS = ("emotions", "scene", "yeast")
LIKELIHOOD: dict[str, Any] = {"learning_rate": 0.03, "l2": 0.1, "init_scale": 1.0}
MODELS: dict[str, Any] = {
    "DRBM-MP": lambda: DiscriminativeRBM(random_state=0),
    "DRBM, CD-10": lambda: DiscriminativeRBM(
        training="cd", training_steps=10, random_state=0, **LIKELIHOOD
    ),
    "DRBM, PL": lambda: DiscriminativeRBM(training="pl", random_state=0, **LIKELIHOOD),
    "MLP": lambda: MLPTagger(random_state=0),
}
MEASURES = ("subset", "tags", "F1")
N_FOLDS = 5


def decisions(model: Any, X: np.ndarray) -> dict[str, np.ndarray]:
    """Tags by each of the rules; the MLP's tags are independent, so that "half" is its joint."""
    rules = {"thresholds": model.predict(X), "half": (model.predict_proba(X) >= 0.5).astype(int)}
    if hasattr(model, "predict_joint"):
        rules["joint"] = model.predict_joint(X)
    return rules


def measures(Y: np.ndarray, tags: np.ndarray) -> list[float]:
    """Subset accuracy, share of right decisions, and F1 by clip; both empty counts as 1."""
    both, either = np.sum((Y == 1) & (tags == 1), axis=1), np.sum(Y + tags, axis=1)
    f1 = np.where(either > 0, 2 * both / np.maximum(either, 1), 1.0)
    right = tags == Y
    return [float(right.all(axis=1).mean()), float(right.mean()), float(f1.mean())]


def measured(names: list[str]) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        data = load_dataset(CATALOGUE[name])
        folds = grouped_folds(data.groups, data.Y, n_folds=N_FOLDS, seed=0)
        for kind, make in MODELS.items():
            by_rule: dict[str, list[list[float]]] = {}
            began = time.perf_counter()
            for fold in range(N_FOLDS):
                train, test = folds != fold, folds == fold
                model = make().fit(data.X[train], data.Y[train], groups=data.groups[train])
                for rule, tags in decisions(model, data.X[test]).items():
                    by_rule.setdefault(rule, []).append(measures(data.Y[test], tags))
            for rule, values in by_rule.items():
                scores = dict(zip(MEASURES, zip(*values, strict=True), strict=True))
                rows.append({"dataset": name, "model": kind, "rule": rule, **scores})
            print(f"{name}, {kind}: {time.perf_counter() - began:.0f} s", flush=True)
    return rows


def tables(rows: list[dict[str, Any]]) -> str:
    """A table for each measure, in percent, and what joint decisions add to the better rule."""
    lines = []
    for measure in MEASURES:
        lines += [
            f"\n{measure}\n",
            "| dataset | model | thresholds | half | joint | joint less the better of the two |",
            "|---|---|---|---|---|---|",
        ]
        pairs = dict.fromkeys((row["dataset"], row["model"]) for row in rows)
        for name, kind in pairs:
            found = {
                row["rule"]: 100 * np.array(row[measure])
                for row in rows
                if (row["dataset"], row["model"]) == (name, kind)
            }
            cells = [f"{found[rule].mean():.1f}" for rule in ("thresholds", "half")]
            cells += ["–", "–"]
            if "joint" in found:
                other = max(found["thresholds"], found["half"], key=np.mean)
                gain = found["joint"] - other
                error = gain.std(ddof=1) / np.sqrt(len(gain))
                cells[2:] = [f"{found['joint'].mean():.1f}", f"{gain.mean():+.1f} ± {error:.1f}"]
            lines.append(f"| {name} | {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=DATASETS)
    parser.add_argument("--json", type=Path, help="where to keep the numbers")
    parser.add_argument("--show", type=Path, help="numbers to show, without measuring")
    options = parser.parse_args()
    if options.show:
        found = json.loads(options.show.read_text())
    else:
        found = measured(options.datasets)
        if options.json:
            options.json.write_text(json.dumps(found, indent=1) + "\n")
    print(tables(found))
