"""scikit-learn estimators over the RBM core, and the classifiers they are compared with."""

from harmonium.estimators.discriminative import DiscriminativeRBM
from harmonium.estimators.generative import GenerativeRBM
from harmonium.estimators.linear.chains import ChainTagger
from harmonium.estimators.linear.exact_logistic import ExactLogisticTagger
from harmonium.estimators.linear.svm import SVMTagger
from harmonium.estimators.networks import LogisticTagger, MLPTagger
from harmonium.estimators.smoother.smoother import TagSmoother

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
