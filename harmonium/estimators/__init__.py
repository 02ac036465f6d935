"""scikit-learn estimators over the RBM core, and the classifiers they are compared with."""

from harmonium.estimators.discriminative import DiscriminativeRBM
from harmonium.estimators.feedforward import LogisticTagger, MLPTagger

__all__ = ["DiscriminativeRBM", "LogisticTagger", "MLPTagger"]
