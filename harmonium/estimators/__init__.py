"""scikit-learn estimators over the RBM core, and the classifiers they are compared with."""

from harmonium.estimators.discriminative import DiscriminativeRBM
from harmonium.estimators.feedforward import LogisticTagger, MLPTagger
from harmonium.estimators.generative import GenerativeRBM

__all__ = ["DiscriminativeRBM", "GenerativeRBM", "LogisticTagger", "MLPTagger"]
