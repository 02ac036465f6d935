"""scikit-learn estimators over the RBM core, and the classifiers they are compared with.

Each is loaded when first used, so that reading a model's description loads neither JAX nor
scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harmonium.estimators.linear import ChainTagger as ChainTagger
    from harmonium.estimators.linear import CooccurrenceTagger as CooccurrenceTagger
    from harmonium.estimators.linear import LogisticTagger as LogisticTagger
    from harmonium.estimators.linear import NaiveBayesTagger as NaiveBayesTagger
    from harmonium.estimators.networks import DiscriminativeRBM as DiscriminativeRBM
    from harmonium.estimators.networks import GenerativeRBM as GenerativeRBM
    from harmonium.estimators.networks import MLPTagger as MLPTagger
    from harmonium.estimators.smoother import TagSmoother as TagSmoother
    from harmonium.estimators.svm import SVMTagger as SVMTagger

_LINEAR = ("ChainTagger", "CooccurrenceTagger", "LogisticTagger", "NaiveBayesTagger")
_MODULES = {
    **dict.fromkeys(_LINEAR, "linear"),
    **dict.fromkeys(("DiscriminativeRBM", "GenerativeRBM", "MLPTagger"), "networks"),
    **{"SVMTagger": "svm", "TagSmoother": "smoother"},
}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
