"""Evaluation: metrics, folds, significance."""
