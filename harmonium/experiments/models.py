"""The models that a recipe may name, made from their settings."""

import inspect
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.errors import DataError
from harmonium.nearest_names import did_you_mean

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class ModelClass:
    """Where the class of a model is found."""

    module: str
    name: str
    ours: bool = True
    """An estimator of Harmonium: takes unknown and soft labels, and an ``eval_set``."""

    def load(self) -> Callable[..., Any]:
        """The estimator class, imported only now: JAX takes a second."""
        return getattr(import_module(self.module), self.name)


_OURS = "harmonium.estimators"
MODELS = {
    "DiscriminativeRBM": ModelClass(_OURS, "DiscriminativeRBM"),
    "GenerativeRBM": ModelClass(_OURS, "GenerativeRBM"),
    "MLPTagger": ModelClass(_OURS, "MLPTagger"),
    "LogisticTagger": ModelClass(_OURS, "LogisticTagger"),
    "ExactLogisticTagger": ModelClass(_OURS, "ExactLogisticTagger"),
    "SVMTagger": ModelClass(_OURS, "SVMTagger"),
    "ChainTagger": ModelClass(_OURS, "ChainTagger"),
    "sklearn.MLPClassifier": ModelClass("sklearn.neural_network", "MLPClassifier", ours=False),
    "sklearn.LogisticRegression": ModelClass(
        "sklearn.linear_model", "LogisticRegression", ours=False
    ),
}


def check_settings(estimator: str, settings: Iterable[str], *, where: str) -> None:
    """Refuse a setting that the estimator does not have."""
    if not settings:
        return
    known = sorted(inspect.signature(MODELS[estimator].load()).parameters)
    for key in settings:
        if key not in known:
            raise DataError(
                f"{where}: {estimator} has no setting '{key}'.{did_you_mean(key, known)} "
                f"It has {', '.join(known)}."
            )


def build_model(estimator: str, settings: dict[str, Any], *, seed: int) -> Any:
    """An untrained model."""
    entry = MODELS[estimator]
    cls = entry.load()
    parameters = inspect.signature(cls).parameters
    seeded = {"random_state": seed} if "random_state" in parameters else {}
    model = cls(**{**seeded, **settings})
    return model if entry.ours else ScikitLearnTagger(model)


class ScikitLearnTagger:
    """scikit-learn's own classifier on standardised features, one per tag where it has to be.

    An unknown label counts as absent: these classifiers have no other way to take it.
    """

    def __init__(self, classifier: Any) -> None:
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        several = isinstance(classifier, MLPClassifier)
        classifier = classifier if several else OneVsRestClassifier(classifier)
        self._pipeline = make_pipeline(StandardScaler(), classifier)

    def fit(self, X: Matrix, Y: Matrix, eval_set: object = None) -> "ScikitLearnTagger":
        """Learn; there is no early stopping on ``eval_set``."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a network that max_iter stops says so each time
            self._pipeline.fit(X, np.nan_to_num(Y))
        return self

    def predict_proba(self, X: Matrix) -> Matrix:
        """p(y_j = 1 | x), (n_clips, n_tags)."""
        return self._pipeline.predict_proba(X)
