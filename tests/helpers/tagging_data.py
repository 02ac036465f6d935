"""Clips drawn from small DRBMs whose tags can be enumerated, and settings that train quickly.

The tests share these sizes, so that few programs are compiled: 300 clips to train on, 200 to
judge by, 6 features, 4 tags, 8 hidden units.
"""

import hashlib
from copy import deepcopy
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium import DiscriminativeRBM

Array = NDArray[Any]

N_FEATURES, N_TAGS = 6, 4


class Model(NamedTuple):
    """A DRBM to draw tags from; letters and shapes as in ``params_``."""

    U: Array  # (n, C)
    W: Array  # (n, D)
    c: Array  # (n,)
    d: Array  # (C,)


class Clips(NamedTuple):
    """Features, and tags or their probabilities."""

    X: Array  # (N, D)
    Y: Array  # (N, C)


def tag_distribution(model: Any, X: Array) -> tuple[Array, Array]:
    """All tag vectors, (2^C, C), and p(y | x) of each, (N, 2^C), by the definition."""
    states = np.array(list(product([0.0, 1.0], repeat=len(model.d))))
    hidden = (model.c + X @ model.W.T)[:, None, :] + (states @ model.U.T)[None]
    log_p = states @ model.d + np.logaddexp(0, hidden).sum(axis=2)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return states, p / p.sum(axis=1, keepdims=True)


def draw(model: Model, n_clips: int, seed: int) -> Clips:
    """Normal features, and tags by p(y | x)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_clips, model.W.shape[1]))
    states, p = tag_distribution(model, X)
    chosen = (p.cumsum(axis=1) > rng.random((n_clips, 1))).argmax(axis=1)
    return Clips(X, states[chosen])


def easy_model() -> Model:
    """Each tag follows a feature or two, so that the features tell nearly everything."""
    W = 8.0 * np.eye(4, N_FEATURES)
    W[0, 4], W[1, 5] = 6.0, -6.0
    return Model(8.0 * np.eye(4, N_TAGS), W, np.full(4, -4.0), np.full(N_TAGS, -4.0))


def paired_model() -> Model:
    """Tags 0 and 1 nearly always agree, so do 2 and 3; the features tell little of either pair."""
    U, W = np.zeros((2, N_TAGS)), np.zeros((2, N_FEATURES))
    U[0, :2] = U[1, 2:] = 6.0
    W[0, 0] = W[1, 1] = 1.0
    return Model(U, W, np.full(2, -6.0), np.full(N_TAGS, -3.0))


def quick(**changes: Any) -> DiscriminativeRBM:
    """A small model whose training and inference compile and run in about a second."""
    settings: dict[str, Any] = {"training": "mean_field", "inference": "mean_field"}
    settings |= {"n_hidden": 8, "learning_rate": 0.03, "init_scale": 1.0, "max_epochs": 15}
    settings |= {"l2": 0.0, "l2_tags": None, "calibrate": False, "random_state": 0}
    settings |= {"n_models": 1}
    return DiscriminativeRBM(**{**settings, **changes})


def fingerprint(**changes: Any) -> str:
    """Of every bit of a model that samples in training, and of what it predicts."""
    train = draw(easy_model(), 300, seed=0)
    model = quick(training="cd", max_epochs=3, validation_fraction=0, **changes).fit(*train)
    arrays = [*model.params_, model.predict_proba(train.X), model.thresholds_]
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def altered(model: DiscriminativeRBM, **changes: Any) -> DiscriminativeRBM:
    """A copy of a fitted model with other settings, say of its inference."""
    return deepcopy(model).set_params(**changes)
