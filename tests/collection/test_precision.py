"""Precision from held-out tracks: the curve, its bounds, and the threshold that keeps a promise."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import binom

from harmonium.collection.precision import (
    DOUBT,
    NEVER,
    curves_to_arrays,
    lower_bound,
    make_curve,
    precision_curve,
    precision_curves,
    threshold_for,
    thresholds_for,
)
from harmonium.collection.store.models import StoredModel
from harmonium.errors import DataError
from harmonium.estimators.model_files import to_bytes


def draw(n, rng, sharpness=4.0, rate=-1.0):
    """Probabilities that are right: y is 1 with just that probability."""
    p = 1 / (1 + np.exp(-(rate + sharpness * rng.normal(size=n))))
    return (rng.random(n) < p).astype(np.float32), p.astype(np.float32)


def stored(curves):
    return StoredModel(
        name="DiscriminativeRBM",
        vocabulary=["rock", "jazz"],
        thresholds=np.array([0.3, NEVER], np.float32),
        extractor="made up",
        bytes=to_bytes(curves_to_arrays(curves) if curves else {"x": np.zeros(1)}, {}),
        report={},
    )


def test_a_curve_counts_what_reaches_each_threshold():
    rng = np.random.default_rng(0)
    y, p = draw(500, rng)
    y[:30] = np.nan
    p = np.round(p, 2)
    curve = make_curve(y, p)
    for threshold, chosen, right in zip(curve.thresholds, curve.chosen, curve.right, strict=True):
        reached = (p >= np.float32(threshold)) & ~np.isnan(y)
        assert (chosen, right) == (reached.sum(), (y[reached] == 1).sum())
    assert curve.chosen[-1] == 470
    assert curve.recall[-1] == 1
    assert (np.diff(curve.thresholds) < 0).all()


def test_the_bound_is_that_of_clopper_and_pearson():
    for right, chosen in ((1, 1), (7, 9), (20, 20), (40, 60)):
        q = lower_bound(np.array([right]), np.array([chosen]))[0]
        assert binom.sf(right - 1, chosen, q) == pytest.approx(DOUBT)
    assert lower_bound(np.array([0]), np.array([5]))[0] == 0


def test_few_tracks_promise_nothing():
    """Seven right of seven do not prove 80 %; eight do, but not one with a mistake."""
    y = np.array([1] * 7 + [0] * 20, np.float32)
    p = np.linspace(0.9, 0.1, 27, dtype=np.float32)
    assert threshold_for(make_curve(y, p), 0.8) == NEVER
    y[7] = 1
    assert threshold_for(make_curve(y, p), 0.8) == pytest.approx(p[7])
    y[3] = 0
    assert threshold_for(make_curve(y, p), 0.8) == NEVER


def test_the_promise_is_kept_beyond_the_doubt():
    """The true precision above a chosen threshold is below the promise in few cases."""
    rng = np.random.default_rng(1)
    many, truth = draw(200_000, rng, 2.0)[::-1]
    kept, broken = 0, 0
    for _ in range(300):
        threshold = threshold_for(make_curve(*draw(400, rng, 2.0)), 0.8)
        if threshold < NEVER:
            kept += truth[many >= threshold].mean() >= 0.8
            broken += truth[many >= threshold].mean() < 0.8
    assert kept > 150
    assert broken / 300 < DOUBT + 0.05


def test_a_tag_that_says_nothing_seldom_passes():
    rng = np.random.default_rng(2)
    passed = 0
    for _ in range(300):
        y = (rng.random(300) < 0.79).astype(np.float32)  # just not often enough
        passed += threshold_for(make_curve(y, rng.random(300).astype(np.float32)), 0.8) < NEVER
    assert passed / 300 < DOUBT + 0.07


def test_a_stored_model_gives_the_curve_of_a_tag():
    rng = np.random.default_rng(3)
    curves = [make_curve(*draw(n, rng)) for n in (200, 90)]
    model = stored(curves)
    found = precision_curve(model, "jazz")
    np.testing.assert_array_equal(found.chosen, curves[1].chosen)
    np.testing.assert_array_equal(found.right, curves[1].right)
    np.testing.assert_allclose(found.thresholds, curves[1].thresholds, atol=1e-7)
    assert found.positives == curves[1].positives
    assert precision_curve(model, "polka") is None
    thresholds = thresholds_for(model, 0.8)
    assert thresholds[0] == np.float32(threshold_for(precision_curves(model)[0], 0.8))
    assert thresholds[1] == NEVER  # not learnt, however it looks
    low, high = found.bounds
    assert (low <= found.precision).all()
    assert (found.precision <= high).all()


def test_an_older_model_has_no_curves_and_keeps_its_thresholds():
    model = stored([])
    assert precision_curve(model, "rock") is None
    np.testing.assert_array_equal(thresholds_for(model, 0.8), model.thresholds)


def test_tags_that_came_along_go_by_how_often_they_were_right_when_checked():
    checked = {"examples": 50, "reached": 40}
    model = dataclasses.replace(
        stored([]),
        thresholds=np.array([0.3, 0.2], np.float32),
        report={
            "own": 0,
            "tags": [
                {"tag": "rock", **checked, "precision": 0.95},
                {"tag": "jazz", **checked, "precision": 0.8},
            ],
        },
    )
    np.testing.assert_allclose(thresholds_for(model, 0.8), [0.3, NEVER])
    unchecked = dataclasses.replace(
        model,
        report={
            "own": 0,
            "tags": [{"tag": "rock", "examples": 0, "reached": 40, "precision": 1.0}],
        },
    )
    assert (thresholds_for(unchecked, 0.8) == NEVER).all()


def test_a_precision_is_a_share():
    with pytest.raises(DataError, match=r"'precision' must be at least 0 and below 1\. Got 1\.5"):
        threshold_for(make_curve(np.ones(3, np.float32), np.ones(3, np.float32)), 1.5)
