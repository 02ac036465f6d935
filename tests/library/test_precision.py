"""Precision from held-out tracks: the curve, its bounds, and the threshold that keeps a promise."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from some_tracks import a_model
from written_music import make_songs, predict

from harmonium.errors import DataError
from harmonium.estimators.model_files import to_bytes
from harmonium.evaluation import auc_per_tag
from harmonium.library import Library
from harmonium.library.filetags import Rules
from harmonium.library.learning import fitting
from harmonium.library.store.models import UNREACHABLE
from harmonium.library.tagger import (
    DOUBT,
    precision_curves,
    threshold_for,
    thresholds_for,
)
from harmonium.library.write import plan_writes, wanted_tags


def draw(n, rng, sharpness=4.0, rate=-1.0):
    """Probabilities that are right: y is 1 with just that probability."""
    p = 1 / (1 + np.exp(-(rate + sharpness * rng.normal(size=n))))
    return (rng.random(n) < p).astype(np.float32), p.astype(np.float32)


def stored(curves):
    thresholds = np.array([0.3, UNREACHABLE], np.float32)
    return a_model(2, thresholds=thresholds, bytes=to_bytes(fitting.curves_to_arrays(curves), {}))


def test_a_curve_counts_what_reaches_each_threshold():
    rng = np.random.default_rng(0)
    y, p = draw(500, rng)
    y[:30] = np.nan
    p = np.round(p, 2)
    curve = fitting.make_curve(y, p)
    for threshold, chosen, right in zip(curve.thresholds, curve.chosen, curve.right, strict=True):
        reached = (p >= np.float32(threshold)) & ~np.isnan(y)
        assert (chosen, right) == (reached.sum(), (y[reached] == 1).sum())
    assert curve.chosen[-1] == 470
    assert curve.recall[-1] == 1
    assert (np.diff(curve.thresholds) < 0).all()


def test_tracks_of_one_artist_count_as_far_as_artists_differ():
    y, p = np.ones(12, np.float32), np.linspace(0.95, 0.6, 12, dtype=np.float32)
    alone = fitting.make_curve(y, p)
    np.testing.assert_allclose(alone.effective, alone.chosen)
    np.testing.assert_allclose(alone.expected, [p[:n].mean() for n in alone.chosen], rtol=1e-6)
    names = list("abcabcabcabc")
    together = fitting.make_curve(y, p, names)
    for n, effective in zip(together.chosen, together.effective, strict=True):
        _, sizes = np.unique(names[:n], return_counts=True)
        assert effective == pytest.approx(n**2 / (sizes**2).sum())
    assert threshold_for(alone, 0.8) == pytest.approx(p[-1])
    assert threshold_for(together, 0.8) == 0.8  # three artists prove nothing: the probability does


def test_few_tracks_promise_nothing_and_mistakes_end_it():
    y = np.array([1] * 7 + [0] * 20, np.float32)
    p = np.linspace(0.95, 0.1, 27, dtype=np.float32)
    assert threshold_for(fitting.make_curve(y, p), 0.8) == 0.8
    y[7:9] = 1
    assert threshold_for(fitting.make_curve(y, p), 0.8) == pytest.approx(p[8])
    y[[3, 5]] = 0
    assert threshold_for(fitting.make_curve(y, p), 0.8) == 0.8
    y[:6] = 0
    assert threshold_for(fitting.make_curve(y, p), 0.8) == UNREACHABLE
    sure = np.linspace(0.99, 0.95, 12, dtype=np.float32)
    unsure = np.linspace(0.6, 0.4, 12, dtype=np.float32)
    y = np.ones(12, np.float32)
    assert threshold_for(fitting.make_curve(y, unsure), 0.9) == UNREACHABLE  # as all tags show
    assert threshold_for(fitting.make_curve(y, sure), 0.9) == 0.9
    with pytest.raises(DataError, match=r"'precision' must be at least 0 and below 1\. Got 1\.5"):
        threshold_for(fitting.make_curve(np.ones(3, np.float32), np.ones(3, np.float32)), 1.5)


def test_the_promise_is_kept_beyond_the_doubt():
    """The true precision above a chosen threshold is below the promise in few cases."""
    rng = np.random.default_rng(1)
    many, truth = draw(200_000, rng, 2.0)[::-1]
    kept, broken = 0, 0
    for _ in range(300):
        threshold = threshold_for(fitting.make_curve(*draw(400, rng, 2.0)), 0.8)
        if threshold < UNREACHABLE:
            kept += truth[many >= threshold].mean() >= 0.8
            broken += truth[many >= threshold].mean() < 0.8
    assert kept > 150
    assert broken / 300 < DOUBT + 0.05


def test_a_stored_model_gives_the_curve_of_a_tag_and_without_one_promises_nothing():
    rng = np.random.default_rng(3)
    curves = [fitting.make_curve(*draw(n, rng)) for n in (200, 90)]
    model = stored(curves)
    first, found = precision_curves(model)
    for name in ("chosen", "right", "positives", "thresholds", "effective"):
        expected = getattr(curves[1], name)
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-6, atol=1e-7)
    thresholds = thresholds_for(model, 0.8)
    assert thresholds[0] == np.float32(threshold_for(first, 0.8))
    assert thresholds[1] == UNREACHABLE  # not learnt, however it looks
    low, high, many = found.below(), found.below(1 - DOUBT), found.chosen >= 30
    assert (low < high).all()
    assert ((low <= found.precision) & (found.precision <= high))[many].all()
    _, p = draw(400, rng)
    curves[1] = fitting.make_curve(np.full(400, np.nan, np.float32), p)  # nobody was asked
    model = dataclasses.replace(stored(curves), thresholds=np.array([0.3, 0.2], np.float32))
    assert thresholds_for(model, 0.5)[0] < 1
    assert thresholds_for(model, 0.5)[1] == UNREACHABLE
    assert precision_curves(model)[1].at(0.1) is None
    only_one = dataclasses.replace(model, bytes=stored(curves[:1]).bytes)
    np.testing.assert_array_equal(thresholds_for(only_one, 0.5), thresholds_for(model, 0.5))


def curve_of(right_from):
    """Held-out tracks of 0.99, 0.98, …: all have the tag down to a probability, and none below."""
    p = np.arange(0.99, 0, -0.01, dtype=np.float32)
    return fitting.make_curve((p > right_from).astype(np.float32), p)


@given(
    st.lists(st.tuples(st.integers(1, 99), st.booleans()), min_size=1, max_size=200),
    st.floats(0, 0.99),
    st.floats(0, 0.99),
)
def test_a_lower_precision_never_writes_less(tracks, one, other):
    p, y = (np.array(column, np.float32) for column in zip(*tracks, strict=True))
    curve = fitting.make_curve(y, p / 100)
    low, high = sorted((one, other))
    assert threshold_for(curve, low) <= threshold_for(curve, high)


def test_good_tracks_do_not_make_up_for_bad_ones_near_the_threshold():
    p = np.append(np.linspace(0.99, 0.9, 100), np.linspace(0.35, 0.25, 20)).astype(np.float32)
    y = np.append(np.ones(100), np.zeros(20)).astype(np.float32)
    curve = fitting.make_curve(y, p)
    assert curve.below()[-1] > 0.7
    assert threshold_for(curve, 0.7) > 0.3
    assert threshold_for(curve, 0.7) < 0.91


@pytest.fixture
def library(tmp_path):
    """Predictions: guitar 0.9, mellow 0.4, loud 0.2, hip hop 0.6, by thresholds 0.5, 0.3, 0.5."""
    with Library.open(tmp_path / "library.db") as library:
        make_songs(library, tmp_path, ["mp3"])
        # right from 0.8 on; nearly always; 0.5; and on five tracks, which prove nothing
        predict(library, curves=[curve_of(p) for p in (0.805, 0.105, 0.505, 0.945)])
        yield library


def wanted(library, precision):
    ids = library.tracks.ids().tolist()
    found = wanted_tags(library, ids, people=False, precision=precision)
    return [tag for tags in found.values() for tag in tags]


def test_a_tag_is_wanted_where_it_is_right_often_enough_and_others_are_named(library):
    assert wanted(library, None) == ["guitar", "hip hop", "mellow"]
    assert wanted(library, 0.8) == ["guitar", "mellow"]
    assert wanted(library, 0.95) == ["guitar"]  # a probability of 0.4 cannot be right so often
    assert wanted(library, 0.98) == []
    snapshot = library.snapshot()
    assert [[*snapshot.not_reached(p)] for p in (0.8, 0.5)] == [["hip hop"], []]
    found = [set(wanted(library, precision)) for precision in (None, 0.1, 0.5, 0.8, 0.9)]
    assert all(low >= high for low, high in pairwise(found))


def test_a_plan_says_how_many_tags_will_be_wrong_and_without_curves_thresholds_stay(library):
    ids = library.tracks.ids().tolist()
    plan = plan_writes(library, ids, Rules(), people=False, precision=0.8)
    assert plan.files[0].new_guesses == pytest.approx({"guitar": 0.9, "mellow": 0.4}, abs=1e-3)
    assert plan.n_guessed == 2
    right = [plan.precision[tag] for tag in ("guitar", "mellow")]
    assert min(right) > 0.8  # as was asked for, whatever the probability of one track
    assert plan.expected_wrong == pytest.approx(2 - sum(right))
    predict(library)
    plan = plan_writes(library, ids, Rules(), people=False, precision=0.8)
    assert plan.expected_wrong == pytest.approx(3 - (0.9 + 0.4 + 0.6), abs=1e-3)
    assert wanted(library, 0.8) == ["guitar", "hip hop", "mellow"]
    assert not library.snapshot().not_reached(0.8)


def test_the_standard_errors_are_those_of_repeated_draws():
    rng = np.random.default_rng(0)
    positives, negatives = 15, 40
    Y = np.repeat([1.0, 0.0], [positives, negatives]).astype(np.float32)[:, None]
    aucs = {0.0: [], 1.2: []}
    for _ in range(2000):
        noise = rng.normal(size=len(Y))
        for shift, found in aucs.items():
            P = (1 / (1 + np.exp(-noise - shift * Y[:, 0])))[:, None].astype(np.float32)
            found.append(fitting.score_tags(Y, P).auc[0])
    n = np.array([[positives]]), np.array([[negatives]])
    assert fitting.auc_error(0.5, *n)[0] == pytest.approx(np.std(aucs[0.0]), rel=0.1)
    assert fitting.auc_error(np.array([np.mean(aucs[1.2])]), *n)[0] == pytest.approx(
        np.std(aucs[1.2]), rel=0.15
    )
    error = fitting.auc_error(np.array([1.0, 1.0]), np.array([[3, 100]]), np.array([[5, 300]]))
    assert error[0] > 0.05 > 0.01 > error[1] > 0


def test_only_tracks_of_one_fold_are_compared():
    rng, folds = np.random.default_rng(0), np.repeat(np.arange(5), 10)
    Y = (rng.random((50, 3)) < 0.4).astype(np.float32)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    P = np.round(rng.random((50, 3)), 1).astype(np.float32)  # with ties
    scores = fitting.score_tags(Y, P, folds)
    for j, (y, p) in enumerate(zip(Y.T, P.T, strict=True)):
        order = [
            np.sign(p[a] - p[b]) / 2 + 0.5
            for a in np.flatnonzero(y == 1)
            for b in np.flatnonzero(y == 0)
            if folds[a] == folds[b]
        ]
        assert scores.auc[j] == pytest.approx(np.mean(order))
    shifted = P + 0.1 * folds[:, None].astype(np.float32)  # members that expect more or less of it
    np.testing.assert_allclose(fitting.score_tags(Y, shifted, folds).auc, scores.auc)
    alone = fitting.score_tags(Y[:10], P[:10])
    np.testing.assert_array_equal(alone.auc, auc_per_tag(Y[:10], P[:10]).values)
    apart = fitting.score_tags(np.eye(2, dtype=np.float32)[:, :1], P[:2, :1], np.arange(2))
    assert np.isnan(apart.auc[0])
    assert not apart.learnt[0]


def test_few_tags_of_pure_noise_count_as_learnt_and_their_spread_is_the_error():
    rng, n_tags = np.random.default_rng(0), 4000
    folds = np.repeat(np.arange(5), [12, 12, 12, 11, 13])
    Y = (rng.random((60, n_tags)) < 0.25).astype(np.float32)
    offsets = rng.normal(size=(5, n_tags))[folds]
    P = (1 / (1 + np.exp(-rng.normal(size=Y.shape) - offsets))).astype(np.float32)
    scores = fitting.score_tags(Y, P, folds)
    counts = [[(Y[folds == f] == v).sum(axis=0) for f in range(5)] for v in (1, 0)]
    z = (scores.auc - 0.5) / fitting.auc_error(0.5, *np.array(counts))
    assert np.std(z) == pytest.approx(1, abs=0.05)
    assert np.std(scores.auc) == pytest.approx(np.sqrt(np.mean(scores.error**2)), rel=0.1)
    assert 0.005 < scores.learnt.mean() < 0.035
    few = [fitting.score_tags(Y[:, j : j + 2], P[:, j : j + 2], folds) for j in range(0, 1000, 2)]
    assert np.mean([one.learnt for one in few]) < 0.01  # leaves room for the choice of settings


def test_chance_is_not_learnt_and_gets_no_threshold():
    rng = np.random.default_rng(1)
    told = rng.random(200) < 0.3
    Y = np.stack([told, rng.random(200) < 0.3], axis=1).astype(np.float32)
    Y[:3, 0] = np.nan
    P = np.stack([0.2 + 0.6 * told + 0.05 * rng.random(200), np.full(200, 0.3)], axis=1)
    P = P.astype(np.float32)
    scores = fitting.score_tags(Y, P)
    assert scores.learnt.tolist() == [True, False]
    assert scores.positives[0] + scores.negatives[0] == 197
    thresholds = fitting.choose_thresholds(Y, P, scores)
    assert 0.25 < thresholds[0] < 0.8
    assert thresholds[1] == UNREACHABLE > P.max()


@pytest.mark.parametrize(
    ("share", "least", "most"),
    [(0.72, 0.77, 0.81), (0.55, 0.75, 0.9)],
    ids=["not right enough", "sure and wrong"],
)
def test_a_tag_that_says_nothing_seldom_passes(share, least, most):
    rng = np.random.default_rng(2)
    passed = 0
    for _ in range(300):
        y = (rng.random(300) < share).astype(np.float32)
        p = rng.uniform(least, most, 300).astype(np.float32)
        passed += threshold_for(fitting.make_curve(y, p), 0.8) < UNREACHABLE
    assert passed / 300 < DOUBT + 0.07


def test_tracks_that_go_together_do_not_pass_as_many():
    """Three tracks of one artist are right or wrong together: nine of them are three examples."""
    rng = np.random.default_rng(4)
    artists = np.repeat(np.arange(100), 3)
    passed = np.zeros(2)
    for _ in range(300):
        y = (rng.random(100) < 0.79).astype(np.float32)[artists]
        p = (0.78 + 0.02 * rng.random(100)[artists]).astype(np.float32)
        p += 1e-5 * rng.random(300, np.float32)
        curves = [fitting.make_curve(y, p, groups) for groups in (artists.tolist(), None)]
        passed += [threshold_for(curve, 0.8) < UNREACHABLE for curve in curves]
    assert passed[0] / 300 < DOUBT + 0.07
    assert passed[1] / 300 > 0.4
