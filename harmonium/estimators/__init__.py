"""scikit-learn estimators over the RBM core."""

from harmonium.estimators.discriminative import DiscriminativeRBM

__all__ = ["DiscriminativeRBM"]
