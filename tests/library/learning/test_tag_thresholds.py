"""Scores and thresholds from held-out probabilities."""

import numpy as np
import pytest

from harmonium.library.learning.fitting import (
    UNREACHABLE,
    auc_error,
    chance_error,
    choose_thresholds,
    score_tags,
)


def test_the_standard_errors_are_those_of_repeated_draws():
    rng = np.random.default_rng(0)
    positives, negatives = 15, 40
    Y = np.repeat([1.0, 0.0], [positives, negatives]).astype(np.float32)[:, None]
    aucs = {0.0: [], 1.2: []}
    for _ in range(2000):
        noise = rng.normal(size=len(Y))
        for shift, found in aucs.items():
            P = (1 / (1 + np.exp(-noise - shift * Y[:, 0])))[:, None].astype(np.float32)
            found.append(score_tags(Y, P).auc[0])
    n = np.array([positives]), np.array([negatives])
    assert chance_error(*n)[0] == pytest.approx(np.std(aucs[0.0]), rel=0.1)
    assert auc_error(np.array([np.mean(aucs[1.2])]), *n)[0] == pytest.approx(
        np.std(aucs[1.2]), rel=0.15
    )


def test_a_perfect_score_of_few_tracks_is_not_certain():
    error = auc_error(np.array([1.0, 1.0]), np.array([3, 100]), np.array([5, 300]))
    assert error[0] > 0.05 > 0.01 > error[1] > 0


def test_chance_is_not_learnt_and_gets_no_threshold():
    rng = np.random.default_rng(1)
    told = rng.random(200) < 0.3
    Y = np.stack([told, rng.random(200) < 0.3], axis=1).astype(np.float32)
    Y[:3, 0] = np.nan
    P = np.stack([0.2 + 0.6 * told + 0.05 * rng.random(200), np.full(200, 0.3)], axis=1)
    P = P.astype(np.float32)
    scores = score_tags(Y, P)
    assert scores.learnt.tolist() == [True, False]
    assert scores.positives[0] + scores.negatives[0] == 197
    thresholds = choose_thresholds(Y, P, scores)
    assert 0.25 < thresholds[0] < 0.8
    assert thresholds[1] == UNREACHABLE > P.max()


def test_as_many_tracks_reach_a_threshold_as_have_the_tag():
    rng = np.random.default_rng(2)
    Y = (rng.random((300, 1)) < 0.2).astype(np.float32)
    Y[:20] = np.nan
    P = np.clip(0.3 + 0.2 * np.nan_to_num(Y) + 0.1 * rng.normal(size=Y.shape), 0, 1)
    threshold = choose_thresholds(Y, P.astype(np.float32), score_tags(Y, P.astype(np.float32)))
    assert (P[20:] >= threshold).sum() == np.nansum(Y)
