"""Labels that may be missing: SMiLE of scikit-multilearn-ng, on the folds of the second Table 2.

    pip install scikit-multilearn-ng
    HARMONIUM_DATA=... python benchmarks/smile.py hetrec-msd majorminer-104

SMiLE (Tan, Yu, Yu, Wang 2017) takes labels of 0 and 1 and treats every 0 as one that may be
missing: it fills it in from the tags that go together, and fits a linear model with a penalty on
differences between clips of one cluster. It cannot be told that a label is known to be 0. Its
``predict`` gives 0 and 1, and fails with NumPy 2.4; here clips are ranked by the scores behind it.
"""

import sys
import time
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from harmonium.experiments import recipe as recipes
from harmonium.experiments.plan import fold_states, missing
from harmonium.experiments.recipe import parse_recipe
from harmonium.experiments.run import _train_and_test

RECIPE = """
title = "SMiLE"
form = "comparison"
cross_fit = true
datasets = ["{}"]

[[model]]
name = "SMILE"
estimator = "SmileTagger"
search = [{{ alpha = [0.0, 0.1, 0.35, 1.0] }}, {{ s = [0.1, 0.5, 2.0], k = [5, 20] }}]
refit = true
"""


class SmileTagger:
    """SMiLE on standardised features, without the directions in which they do not vary."""

    def __init__(self, s: float = 0.5, alpha: float = 0.35, k: int = 5) -> None:
        self.settings = {"s": s, "alpha": alpha, "k": k}

    def fit(self, X: Any, Y: Any, eval_set: object = None) -> "SmileTagger":
        """Learn; unknown labels are 0, as all that may be missing."""
        from skmultilearn.missing import SMiLE

        n_parts = min(X.shape[1], len(X) // 2)  # else the matrix that SMiLE inverts is singular
        self.pipeline = make_pipeline(StandardScaler(), PCA(n_parts)).fit(X)
        rotated = self.pipeline.transform(X)
        self.kept = rotated.std(axis=0) > 1e-3
        np.random.seed(0)  # noqa: NPY002 - its clusters take no other seed
        self.model = SMiLE(**self.settings).fit(rotated[:, self.kept], np.nan_to_num(Y))
        return self

    def decision_function(self, X: Any) -> Any:
        """(n_clips, n_tags) scores."""
        return self.pipeline.transform(X)[:, self.kept] @ self.model.P + self.model.b.T


def main(datasets: list[str]) -> None:
    """Search the settings of every test fold, and print the mean AUC over tags and folds."""
    recipes.MODELS["SmileTagger"] = "__main__"
    for name in datasets:
        recipe, results, began = parse_recipe(RECIPE.format(name)), {}, time.perf_counter()
        while runs := missing(recipe, results):
            for run in runs:
                results[run.key] = _train_and_test((run,))[0][0]
        aucs = []
        for _, state in fold_states(recipe, results):
            (final,) = state.final
            aucs.append(np.nanmean(np.array(results[final.key]["tests"][0]["auc"], float)))
            print(f"  test fold {final.test_fold}: {aucs[-1]:.4f}, {state.settings}", flush=True)
        error, seconds = np.std(aucs, ddof=1) / np.sqrt(len(aucs)), time.perf_counter() - began
        print(f"{name}: {np.mean(aucs):.4f} ± {error:.4f}, {len(results)} runs, {seconds:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
