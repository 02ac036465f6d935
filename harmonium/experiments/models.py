"""The models that a recipe may name, made from their settings."""

import inspect
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.errors import DataError, did_you_mean

Matrix = NDArray[np.float32]


_SKLEARN = "sklearn."
MODELS = {
    "DiscriminativeRBM": "harmonium.estimators",
    "GenerativeRBM": "harmonium.estimators",
    "MLPTagger": "harmonium.estimators",
    "LogisticTagger": "harmonium.estimators",
    "SVMTagger": "harmonium.estimators",
    "ChainTagger": "harmonium.estimators",
    "CooccurrenceTagger": "harmonium.estimators",
    "NaiveBayesTagger": "harmonium.estimators",
    f"{_SKLEARN}MLPClassifier": "sklearn.neural_network",
    f"{_SKLEARN}LogisticRegression": "sklearn.linear_model",
}
"""Name -> the module of its class. Estimators of Harmonium take unknown and soft labels."""


def _model_class(estimator: str) -> Callable[..., Any]:
    """The estimator class, imported only now: JAX takes a second."""
    return getattr(import_module(MODELS[estimator]), estimator.removeprefix(_SKLEARN))


def check_settings(estimator: str, settings: Iterable[str], *, where: str) -> None:
    """Refuse a setting that the estimator does not have."""
    if not settings:
        return
    known = sorted(inspect.signature(_model_class(estimator)).parameters)
    for key in settings:
        if key not in known:
            raise DataError(
                f"{where}: {estimator} has no setting '{key}'.{did_you_mean(key, known)} "
                f"It has {', '.join(known)}."
            )


def build_model(estimator: str, settings: dict[str, Any], *, seed: int) -> Any:
    """An untrained model."""
    cls = _model_class(estimator)
    seeded = "random_state" in inspect.signature(cls).parameters
    model = cls(**{**({"random_state": seed} if seeded else {}), **settings})
    return ScikitLearnTagger(model) if estimator.startswith(_SKLEARN) else model


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
