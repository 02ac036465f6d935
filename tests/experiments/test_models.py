"""The models of experiments that are not Harmonium's own."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from harmonium.experiments.models import build_model


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [("ExtraTreesClassifier", {"n_estimators": 3}), ("HistGradientBoostingClassifier", {})],
)
def test_scikit_learns_classifiers_learn_a_tag_where_it_is_known(estimator, settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    Y = (X[:, :3] > 0).astype(np.float32)
    Y[:30, 0], Y[:, 2] = np.nan, 0
    model = build_model(f"sklearn.{estimator}", settings, seed=0)
    P = model.fit(X, Y).predict_proba(X)
    alone = clone(model.classifier).fit(StandardScaler().fit_transform(X[30:]), Y[30:, 0])
    expected = alone.predict_proba((X - X[30:].mean(axis=0)) / X[30:].std(axis=0))[:, 1]
    np.testing.assert_allclose(P[:, 0], expected)
    assert (P[:, 2] == 0).all()  # a tag that no clip has
