"""A small dataset in Mulan's form, made by the tests."""

from pathlib import Path

import numpy as np


def write_toy(folder: Path, *, n: int = 60, n_features: int = 4, n_tags: int = 3) -> None:
    """mulan:toy, whose tags follow from its features but for some noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    Y = (X[:, :n_tags] + rng.normal(0, 0.7, size=(n, n_tags)) > 0).astype(int)
    names = [f"f{i}" for i in range(n_features)]
    tags = [f"tag{i}" for i in range(n_tags)]
    lines = ["@relation toy"]
    lines += [f"@attribute {name} numeric" for name in names]
    lines += [f"@attribute {tag} {{0,1}}" for tag in tags]
    lines += ["@data"]
    for x, y in zip(X, Y, strict=True):
        lines.append(",".join([*(f"{value:.6f}" for value in x), *map(str, y)]))
    place = folder / "mulan" / "toy"
    place.mkdir(parents=True)
    (place / "toy.arff").write_text("\n".join(lines) + "\n")
    labels = "\n".join(f'<label name="{tag}"></label>' for tag in tags)
    (place / "toy.xml").write_text(
        f'<labels xmlns="http://mulan.sourceforge.net/labels">\n{labels}\n</labels>\n'
    )


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
