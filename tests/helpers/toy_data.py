"""A small dataset in Mulan's form, made by the tests."""

from pathlib import Path

import numpy as np
from dataset_samples import as_arff


def write_toy(folder: Path, *, n: int = 60, n_features: int = 4, n_tags: int = 3) -> None:
    """mulan:toy, whose tags follow from its features but for some noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    Y = (X[:, :n_tags] + rng.normal(0, 0.7, size=(n, n_tags)) > 0).astype(int)
    place = folder / "mulan" / "toy"
    place.mkdir(parents=True)
    (place / "toy.arff").write_text(as_arff(X, Y))
    labels = "".join(f'<label name="y{tag}"></label>' for tag in range(n_tags))
    (place / "toy.xml").write_text(f"<labels>{labels}</labels>")


RECIPE = """
title = "Toy"
form = "comparison"
search_folds = 1
n_folds = 3

[[dataset]]
name = "mulan:toy"
label = "toy"
groups = "item"

[[model]]
name = "LOG"
estimator = "sklearn.LogisticRegression"
search = [
    { C = [0.01, 0.1, 1.0, 10.0] },
    { fit_intercept = [true, false] },
]

[[model]]
name = "fixed"
estimator = "sklearn.LogisticRegression"
settings = { C = 0.5 }
"""
