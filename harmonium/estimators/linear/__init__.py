"""Classifiers with one linear function of the features for each tag."""
