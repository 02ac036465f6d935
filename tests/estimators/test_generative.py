"""The generative RBM and the hybrid as estimators, and the networks they are compared with."""

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from tagging_data import quick

from harmonium import GenerativeRBM, LogisticTagger
from harmonium.errors import DataError

QUICK: dict[str, Any] = {"max_epochs": 40, "patience": 40, "random_state": 0}


def test_the_hybrid_is_saved_with_its_input_means(train, tmp_path):
    model = quick(generative_weight=0.1).fit(*train)
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(train[0]), model.predict_proba(train[0]))
    model.set_params(generative_weight=0.0, warm_start=True)
    with pytest.raises(DataError, match="settings ask for"):
        model.fit(*train)


def test_tags_are_completed_from_one_another_and_as_likely_as_they_occur():
    """Two tags that agree nine times in ten, and a third on its own; the features say nothing."""
    rng = np.random.default_rng(0)
    first, third = rng.random(600) < 0.5, rng.random(600) < 0.2
    second = first ^ (rng.random(600) < 0.1)
    X, Y = rng.normal(size=(600, 3)), np.stack([first, second, third], axis=1).astype(float)
    options = {"max_epochs": 60, "validation_fraction": 0, "inference": "exact", "random_state": 0}
    model = GenerativeRBM(6, learning_rate=0.03, training_steps=10, **options).fit(X, Y)
    known = np.array([[1.0, np.nan, np.nan], [0.0, np.nan, np.nan]])
    p = np.stack([model.complete(X, np.tile(one, (600, 1))).mean(axis=0) for one in known])
    np.testing.assert_allclose(p[:, 1], [0.9, 0.1], atol=0.08)
    np.testing.assert_allclose(p[:, 2], 0.2, atol=0.08)
    np.testing.assert_allclose(model.predict_proba(X).mean(axis=0), [0.5, 0.5, 0.2], atol=0.1)


def test_the_hidden_representation_is_a_transformer_output(train):
    pipeline = make_pipeline(GenerativeRBM(8, **QUICK), LogisticTagger(**QUICK))
    hidden = pipeline[:1].fit_transform(*train)
    assert hidden.shape == (len(train[0]), 8)
    assert list(pipeline[0].get_feature_names_out())[:2] == ["generativerbm0", "generativerbm1"]
    assert pipeline.fit(*train).score(*train) > 0.6
