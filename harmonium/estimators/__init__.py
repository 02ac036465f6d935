"""scikit-learn estimators over the RBM core."""
