"""How long the ways to train a discriminative RBM take, side by side, on MajorMiner.

    HARMONIUM_DATA=... python benchmarks/ways_to_train.py

One split of the experiments' folds, 100 hidden units, one thread. The ways take turns, five times;
the first turn compiles and does not count. Of the others: the median seconds of a training, and of
one of its epochs (scoring the validation fold included), each also as a multiple of that of
contrastive divergence with one step in the same turn; with them the epochs trained and the AUC on
the test fold, with nothing told and with half of the tags told.
"""

import os
import statistics
import time
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from harmonium.estimators import DiscriminativeRBM  # noqa: E402  (after the threads are set)
from harmonium.evaluation import auc_per_tag, grouped_folds  # noqa: E402
from harmonium.experiments.datasets import CATALOGUE, load_dataset  # noqa: E402
from harmonium.experiments.judging import answers, questions  # noqa: E402

CD: dict[str, Any] = {"training": "cd", "learning_rate": 0.03, "l2": 0.1, "init_scale": 1.0}
WAYS: dict[str, dict[str, Any]] = {
    "CD-1": {**CD, "training_steps": 1},
    "CD-10": {**CD, "training_steps": 10},
    "multi-prediction": {},
    "multi-prediction + CD-5": {"likelihood_weight": 1.0},
}
TURNS = 5


def main() -> None:
    data = load_dataset(CATALOGUE["majorminer-104"])
    folds = grouped_folds(data.groups, data.Y, n_folds=5, seed=0)
    train, valid, test = folds > 1, folds == 1, folds == 0
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    models = {}
    for _ in range(TURNS):
        for way, settings in WAYS.items():
            model = DiscriminativeRBM(n_hidden=100, random_state=0, unit_norm=True, **settings)
            began = time.perf_counter()
            model.fit(data.X[train], data.Y[train], (data.X[valid], data.Y[valid]))
            seconds[way].append(time.perf_counter() - began)
            models[way] = model
    print(
        f"{'':<26}{'s':>8}{'ratio':>8}{'s/epoch':>9}{'ratio':>8}{'epochs':>8}{'AUC':>8}{'half':>8}"
    )
    for way, model in models.items():
        epochs, base = model.n_iter_, models["CD-1"].n_iter_
        pairs = list(zip(seconds[way][1:], seconds["CD-1"][1:], strict=True))
        ratio = statistics.median(own / other for own, other in pairs)
        per_epoch = statistics.median(seconds[way][1:]) / epochs
        aucs = []
        for known in (0.0, 0.5):
            asked = questions(data.Y[test], known, (0,))
            aucs.append(auc_per_tag(asked.asked, answers(model, data.X[test], asked)).mean)
        print(
            f"{way:<26}{statistics.median(seconds[way][1:]):8.2f}{ratio:8.2f}{per_epoch:9.4f}"
            f"{ratio * base / epochs:8.2f}{epochs:8d}" + "".join(f"{auc:8.4f}" for auc in aucs)
        )


if __name__ == "__main__":
    main()
