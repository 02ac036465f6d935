"""What a GPU does with Harmonium: stacks of models, belief propagation, a million clips from disk.

    python benchmarks/gpu.py                       all of it; on a CPU too, with --size small
    python benchmarks/gpu.py --only lbp,agreement

Data is generated, at the size of MajorMiner's: 2,578 clips, 389 features, 104 tags. Needs no other
package. A program is timed when it runs for the second time, and what compiling it takes beside it.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np

from harmonium.estimators import DiscriminativeRBM
from harmonium.estimators.stacked import fit_stacked
from harmonium.rbm.descent import Optimiser, Penalty
from harmonium.rbm.gradients import Batch, ContrastiveDivergence
from harmonium.rbm.inference import InferenceOptions, infer
from harmonium.rbm.model import Params
from harmonium.rbm.stacks import stacked
from harmonium.rbm.training import Schedule, Stack, train_stack

SIZES: dict[str, dict[str, int]] = {
    "large": {
        **{"clips": 2578, "settings": 12, "epochs": 80},
        **{"models": 1000, "asked": 200_000, "table": 1_000_000},
    },
    "small": {
        **{"clips": 200, "settings": 1, "epochs": 2},
        **{"models": 10, "asked": 1000, "table": 10_000},
    },
}
FEATURES, TAGS, HIDDEN = 389, 104, 100


def clips(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features, and tags that depend on them and on one another."""
    truth, rng = np.random.default_rng(0), np.random.default_rng(seed)
    A = truth.normal(size=(FEATURES, 12)) / np.sqrt(FEATURES)
    B = truth.normal(size=(12, TAGS))
    X = rng.normal(size=(n, FEATURES)).astype(np.float32)
    chance = 1 / (1 + np.exp(3 - np.tanh(X @ A) @ B))
    return X, (rng.random((n, TAGS)) < chance).astype(np.float32)


def random_params(seed: int = 0) -> Params:
    rng = np.random.default_rng(seed)
    shapes = {"U": (HIDDEN, TAGS), "W": (HIDDEN, FEATURES), "V": (0, TAGS), "c": HIDDEN, "d": TAGS}
    arrays = {name: rng.normal(0, 0.1, shape) for name, shape in shapes.items()}
    return Params(**{name: array.astype(np.float32) for name, array in arrays.items()})


class Clock:
    """The seconds that a block takes."""

    def __enter__(self) -> Callable[[], float]:
        self.began = time.perf_counter()
        self.seconds = 0.0
        return lambda: self.seconds

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self.began


def sixty_models(size: dict[str, int]) -> dict[str, Any]:
    """12 settings × 5 folds, judged by belief propagation after every epoch."""
    X, Y = clips(size["clips"])
    folds = np.arange(len(X)) % 5
    result = {}
    ways: dict[str, dict[str, Any]] = {
        "CD-10": {"training": "cd", "training_steps": 10},
        "multi-prediction": {"training": "multi_prediction"},
    }
    for name, way in ways.items():
        taken = []
        for seed in (0, 1):
            models = [
                DiscriminativeRBM(
                    HIDDEN,
                    **way,
                    inference="lbp",
                    l2=l2,
                    learning_rate=rate,
                    max_epochs=size["epochs"],
                    patience=size["epochs"],
                    random_state=seed,
                )
                for l2, rate in list(product((0.03, 0.1, 0.3, 1.0), (0.003, 0.01, 0.03)))[
                    : size["settings"]
                ]
                for _ in range(5)
            ]
            train = [np.flatnonzero(folds != i % 5) for i in range(len(models))]
            valid = [np.flatnonzero(folds == i % 5) for i in range(len(models))]
            with Clock() as seconds:
                fit_stacked(models, X, Y, train, valid)
            epochs = [model.history_["seconds"] for model in models]
            taken.append((seconds(), float(np.sum(epochs))))
        (first, _), (second, in_epochs) = taken
        result[name] = {
            "seconds": second,
            "seconds of epochs": in_epochs,
            "seconds at first": first,
            "AUC": float(np.mean([max(model.history_["auc"]) for model in models])),
        }
    return result


def one_epoch(size: dict[str, int]) -> dict[str, float]:
    """Milliseconds of one CD-1 epoch for each model of a stack."""
    X, Y = clips(size["clips"])
    n, params = len(X), random_params()
    none = Params(*(np.float32(0) for _ in params))
    data = Batch(X, np.zeros((n, 0), np.int32), Y, np.ones(n, np.float32))
    result = {}
    for models in sorted({1, size["models"] // 10, size["models"]}):
        stack = Stack(
            stacked([params] * models),
            [np.arange(n)] * models,
            [Schedule("constant", 0.01)] * models,
            [Penalty(none, none)] * models,
            list(range(models)),
        )
        results = train_stack(
            stack,
            data,
            gradient=ContrastiveDivergence(1),
            optimiser=Optimiser("sgd", 0.0),
            batch_size=20,
            max_epochs=4,
            patience=4,
        )
        result[f"{models} models"] = 1e3 * min(results[0].history.seconds)
    return result


def belief_propagation(size: dict[str, int]) -> dict[str, float]:
    """G message updates per second, 20 iterations without stopping early."""
    X, _ = clips(size["asked"], seed=1)
    params, steps = random_params(), 20
    options = InferenceOptions("lbp", steps, 0.5, tolerance=0.0, retry=False)
    inputs = (X, np.zeros((len(X), 0), np.int32), np.full((len(X), TAGS), np.nan, np.float32))
    infer(params, *inputs, options)
    with Clock() as seconds:
        infer(params, *inputs, options)
    updates = 2 * len(X) * HIDDEN * TAGS * steps
    return {"seconds": seconds(), "G updates/s": updates / seconds() / 1e9}


def from_disk(size: dict[str, int]) -> dict[str, Any]:
    """One model on a table that is mapped from a file and read by blocks."""
    from harmonium.estimators import tables

    n, block = size["table"], 50_000
    with tempfile.TemporaryDirectory() as folder:
        tables = []
        for name, width in (("X", FEATURES), ("Y", TAGS)):
            path = Path(folder) / f"{name}.npy"
            tables.append(
                np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, width))
            )
        X, Y = tables
        for i, first in enumerate(range(0, n, block)):
            part = slice(first, min(first + block, n))
            X[part], Y[part] = clips(part.stop - first, seed=2 + i)
        tables.LARGE = min(tables.LARGE, X.nbytes - 1)
        model = DiscriminativeRBM(HIDDEN, batch_size=100, max_epochs=3, random_state=0)
        with Clock() as seconds:
            model.fit(X, Y)
        return {
            "GiB": (X.nbytes + Y.nbytes) / 2**30,
            "seconds in all": seconds(),
            "seconds of an epoch": float(np.median(model.history_["seconds"][1:])),
            "AUC": model.score(*clips(5000, seed=1)),
            "peak memory, MiB": peak_memory(),
        }


def peak_memory() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def agreement(size: dict[str, int]) -> dict[str, float]:
    """Largest differences between this device and the CPU: probabilities, and trained models."""
    X, Y = clips(1000)
    index, unknown = np.zeros((len(X), 0), np.int32), np.full(Y.shape, np.nan, np.float32)
    differences = {}
    for method, steps in (("lbp", 50), ("mean_field", 50)):
        answers = []
        for device in (jax.devices()[0], jax.devices("cpu")[0]):
            with jax.default_device(device):
                options = InferenceOptions(method, steps, tolerance=1e-6)
                answers.append(infer(random_params(), X, index, unknown, options).y)
        differences[method] = float(np.abs(answers[0] - answers[1]).max())
    for training in ("multi_prediction", "cd", "pl"):
        answers, scores = [], []
        for device in (jax.devices()[0], jax.devices("cpu")[0]):
            with jax.default_device(device):
                model = DiscriminativeRBM(20, training=training, max_epochs=5, random_state=0)
                model.fit(X[:800], Y[:800])
                answers.append(model.predict_proba(X[800:]))
                scores.append(model.score(X[800:], Y[800:]))
        differences[f"{training}, probabilities"] = float(np.abs(answers[0] - answers[1]).max())
        differences[f"{training}, AUC"] = abs(scores[0] - scores[1])
    return differences


PARTS: dict[str, Callable[[dict[str, int]], dict[str, Any]]] = {
    "stack": sixty_models,
    "epoch": one_epoch,
    "lbp": belief_propagation,
    "disk": from_disk,
    "agreement": agreement,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="large")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between them")
    options = parser.parse_args(arguments)
    print(json.dumps({"device": jax.devices()[0].device_kind, "jax": jax.__version__}), flush=True)
    for name in options.only.split(","):
        print(json.dumps({name: PARTS[name](SIZES[options.size])}), flush=True)


if __name__ == "__main__":
    main()
