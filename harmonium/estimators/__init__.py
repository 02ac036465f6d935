"""scikit-learn estimators over the RBM core, and the classifiers they are compared with.

Each is loaded when first used, so that reading a model's description loads neither JAX nor
scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harmonium.estimators.counts import CooccurrenceTagger, NaiveBayesTagger
    from harmonium.estimators.discriminative import DiscriminativeRBM
    from harmonium.estimators.generative import GenerativeRBM
    from harmonium.estimators.linear.chains import ChainTagger
    from harmonium.estimators.linear.exact_logistic import ExactLogisticTagger
    from harmonium.estimators.linear.svm import SVMTagger
    from harmonium.estimators.networks import LogisticTagger, MLPTagger
    from harmonium.estimators.smoother.smoother import TagSmoother

__all__ = [
    "ChainTagger",
    "CooccurrenceTagger",
    "DiscriminativeRBM",
    "ExactLogisticTagger",
    "GenerativeRBM",
    "LogisticTagger",
    "MLPTagger",
    "NaiveBayesTagger",
    "SVMTagger",
    "TagSmoother",
]

_MODULES = {
    "ChainTagger": "linear.chains",
    "CooccurrenceTagger": "counts",
    "DiscriminativeRBM": "discriminative",
    "ExactLogisticTagger": "linear.exact_logistic",
    "GenerativeRBM": "generative",
    "LogisticTagger": "networks",
    "MLPTagger": "networks",
    "NaiveBayesTagger": "counts",
    "SVMTagger": "linear.svm",
    "TagSmoother": "smoother.smoother",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
