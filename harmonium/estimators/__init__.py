"""scikit-learn estimators over the RBM core, and the classifiers they are compared with.

Each is loaded when first used, so that reading a model's description loads neither JAX nor
scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harmonium.estimators.linear import (
        ChainTagger,
        CooccurrenceTagger,
        LogisticTagger,
        NaiveBayesTagger,
    )
    from harmonium.estimators.networks import DiscriminativeRBM, GenerativeRBM, MLPTagger
    from harmonium.estimators.smoother import TagSmoother
    from harmonium.estimators.svm import SVMTagger

__all__ = [
    "ChainTagger",
    "CooccurrenceTagger",
    "DiscriminativeRBM",
    "GenerativeRBM",
    "LogisticTagger",
    "MLPTagger",
    "NaiveBayesTagger",
    "SVMTagger",
    "TagSmoother",
]

_MODULES = {
    **dict.fromkeys(("DiscriminativeRBM", "GenerativeRBM", "MLPTagger"), "networks"),
    "SVMTagger": "svm",
    "TagSmoother": "smoother",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'linear')}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
