"""scikit-learn estimators over the RBM core, and the classifiers they are compared with."""

from harmonium.estimators.chains import ChainTagger
from harmonium.estimators.discriminative import DiscriminativeRBM
from harmonium.estimators.exact_logistic import ExactLogisticTagger
from harmonium.estimators.feedforward import LogisticTagger, MLPTagger
from harmonium.estimators.generative import GenerativeRBM
from harmonium.estimators.smoother import TagSmoother
from harmonium.estimators.svm import SVMTagger

__all__ = [
    "ChainTagger",
    "DiscriminativeRBM",
    "ExactLogisticTagger",
    "GenerativeRBM",
    "LogisticTagger",
    "MLPTagger",
    "SVMTagger",
    "TagSmoother",
]
