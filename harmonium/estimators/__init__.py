"""scikit-learn estimators over the RBM core, and the classifiers they are compared with.

Each is loaded when first used, so that reading a model's description loads neither JAX nor
scikit-learn.
"""

from typing import TYPE_CHECKING

from harmonium.lazy import lazy_names

if TYPE_CHECKING:
    from harmonium.estimators.completers import ChainTagger as ChainTagger
    from harmonium.estimators.completers import CooccurrenceTagger as CooccurrenceTagger
    from harmonium.estimators.completers import NaiveBayesTagger as NaiveBayesTagger
    from harmonium.estimators.linear import LogisticTagger as LogisticTagger
    from harmonium.estimators.networks import DiscriminativeRBM as DiscriminativeRBM
    from harmonium.estimators.networks import GenerativeRBM as GenerativeRBM
    from harmonium.estimators.networks import MLPTagger as MLPTagger
    from harmonium.estimators.paper import paper_options as paper_options
    from harmonium.estimators.smoother import TagSmoother as TagSmoother
    from harmonium.estimators.svm import SVMTagger as SVMTagger
    from harmonium.estimators.tag_rbm import TagRBM as TagRBM

_NAMES = {
    "completers": ["ChainTagger", "CooccurrenceTagger", "NaiveBayesTagger"],
    "linear": ["LogisticTagger"],
    "networks": ["DiscriminativeRBM", "GenerativeRBM", "MLPTagger"],
    "paper": ["paper_options"],
    "smoother": ["TagSmoother"],
    "svm": ["SVMTagger"],
    "tag_rbm": ["TagRBM"],
}
__all__ = sorted(name for names in _NAMES.values() for name in names)

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, _NAMES)
