"""The generative RBM and the hybrid as estimators, and the networks they are compared with."""

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from tagging_data import N_TAGS, quick

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


def test_tags_are_completed_from_one_another_and_sampled_as_they_occur():
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
    _, y = model.sample(2000, steps=200, random_state=0)
    np.testing.assert_allclose((y[:, 0] == y[:, 1]).mean(), 0.9, atol=0.08)
    np.testing.assert_allclose(y.mean(0), [0.5, 0.5, 0.2], atol=0.1)
    with pytest.raises(DataError, match="n_samples"):
        model.sample(0)


def test_samples_of_features_have_their_scale(train):
    X, Y = train
    shifted = 100 + 5 * X
    model = GenerativeRBM(8, **QUICK).fit(shifted, Y)
    samples, tags = model.sample(500, steps=200, random_state=0)
    assert samples.shape == (500, X.shape[1])
    assert tags.shape == (500, N_TAGS)
    np.testing.assert_allclose(samples.mean(0), shifted.mean(0), atol=0.5 * shifted.std(0).max())
    np.testing.assert_allclose(samples.std(0), shifted.std(0), rtol=0.5)


def test_the_hidden_representation_is_a_transformer_output(train):
    pipeline = make_pipeline(GenerativeRBM(8, **QUICK), LogisticTagger(**QUICK))
    hidden = pipeline[:1].fit_transform(*train)
    assert hidden.shape == (len(train[0]), 8)
    assert list(pipeline[0].get_feature_names_out())[:2] == ["generativerbm0", "generativerbm1"]
    assert pipeline.fit(*train).score(*train) > 0.6
