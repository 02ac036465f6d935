"""Training by belief propagation: ratios of messages damped, or their logarithms, on MajorMiner.

    HARMONIUM_DATA=FOLDER python benchmarks/damping.py [--features 104|1022] [--folds 3]

A row for each β and way: AUC of each test fold, and seconds per epoch. Ten iterations, as in the
recipe of Figure 2; one model per fold, stopped early on another fold.
"""

import argparse

import numpy as np

from harmonium import DiscriminativeRBM
from harmonium.evaluation import grouped_folds
from harmonium.experiments.datasets import CATALOGUE, load_dataset
from harmonium.rbm import BeliefPropagation

SETTINGS = {"learning_rate": 0.03, "l2": 0.1, "l2_tags": None, "init_scale": 1.0}


class Damped(DiscriminativeRBM):
    """Trained by belief propagation that damps ratios or logarithms."""

    damp_logs = False

    def _likelihood_gradient(self, shape: tuple[int, int]) -> BeliefPropagation:
        return BeliefPropagation(10, self.damping, damp_logs=self.damp_logs)


class DampedInLogs(Damped):
    """The paper's way."""

    damp_logs = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", default="104", choices=["104", "1022"])
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--beta", type=float, nargs="*", default=[0.5, 0.9])
    options = parser.parse_args()
    data = load_dataset(CATALOGUE[f"majorminer-{options.features}"])
    folds = grouped_folds(data.groups, data.Y, n_folds=5, seed=0)
    print("| β | damped | AUC of the folds | mean | s / epoch |\n|---|---|---|---|---|")
    for beta in options.beta:
        for kind, name in ((Damped, "ratios"), (DampedInLogs, "logarithms")):
            aucs, seconds = [], []
            for fold in range(options.folds):
                test, valid = folds == fold, folds == (fold + 1) % 5
                train = ~(test | valid)
                model = kind(training="lbp", damping=beta, random_state=fold, **SETTINGS)
                model.fit(data.X[train], data.Y[train], (data.X[valid], data.Y[valid]))
                aucs.append(100 * model.score(data.X[test], data.Y[test]))
                seconds.append(np.median(model.history_["seconds"]))
            each = ", ".join(f"{auc:.1f}" for auc in aucs)
            cells = f"{each} | {np.mean(aucs):.2f} | {np.median(seconds):.2f}"
            print(f"| {beta:g} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
