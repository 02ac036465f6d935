"""Scores from held-out tracks: the AUC of a tag, its error, and the threshold."""

import numpy as np
import pytest

from harmonium.evaluation import auc_per_tag
from harmonium.library.learning import examples as examples_module
from harmonium.library.learning.scores import auc_error, choose_thresholds, mean_auc, score_tags


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
    n = np.array([[positives]]), np.array([[negatives]])
    assert auc_error(0.5, *n)[0] == pytest.approx(np.std(aucs[0.0]), rel=0.1)
    assert auc_error(np.array([np.mean(aucs[1.2])]), *n)[0] == pytest.approx(
        np.std(aucs[1.2]), rel=0.15
    )
    error = auc_error(np.array([1.0, 1.0]), np.array([[3, 100]]), np.array([[5, 300]]))
    assert error[0] > 0.05 > 0.01 > error[1] > 0


def test_only_tracks_of_one_fold_are_compared():
    rng, folds = np.random.default_rng(0), np.repeat(np.arange(5), 10)
    Y = (rng.random((50, 3)) < 0.4).astype(np.float32)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    P = np.round(rng.random((50, 3)), 1).astype(np.float32)  # with ties
    scores = score_tags(Y, P, folds)
    for j, (y, p) in enumerate(zip(Y.T, P.T, strict=True)):
        order = [
            np.sign(p[a] - p[b]) / 2 + 0.5
            for a in np.flatnonzero(y == 1)
            for b in np.flatnonzero(y == 0)
            if folds[a] == folds[b]
        ]
        assert scores.auc[j] == pytest.approx(np.mean(order))
    shifted = P + 0.1 * folds[:, None].astype(np.float32)  # members that expect more or less of it
    np.testing.assert_allclose(score_tags(Y, shifted, folds).auc, scores.auc)
    alone = score_tags(Y[:10], P[:10])
    np.testing.assert_array_equal(alone.auc, auc_per_tag(Y[:10], P[:10]).values)
    apart = score_tags(np.eye(2, dtype=np.float32)[:, :1], P[:2, :1], np.arange(2))
    assert np.isnan(apart.auc[0])
    assert not apart.learnt[0]


def test_few_tags_of_pure_noise_count_as_learnt():
    rng, n_tags = np.random.default_rng(0), 4000
    folds = np.repeat(np.arange(5), [12, 12, 12, 11, 13])
    Y = (rng.random((60, n_tags)) < 0.25).astype(np.float32)
    offsets = rng.normal(size=(5, n_tags))[folds]
    P = (1 / (1 + np.exp(-rng.normal(size=Y.shape) - offsets))).astype(np.float32)
    scores = score_tags(Y, P, folds)
    counts = [[(Y[folds == f] == v).sum(axis=0) for f in range(5)] for v in (1, 0)]
    z = (scores.auc - 0.5) / auc_error(0.5, *np.array(counts))
    assert np.std(z) == pytest.approx(1, abs=0.05)
    assert np.std(scores.auc) == pytest.approx(np.sqrt(np.mean(scores.error**2)), rel=0.1)
    assert 0.005 < scores.learnt.mean() < 0.035
    few = [score_tags(Y[:, j : j + 2], P[:, j : j + 2], folds) for j in range(0, 1000, 2)]
    assert np.mean([one.learnt for one in few]) < 0.01  # leaves room for the choice of settings


@pytest.fixture
def with_chance():
    """Answers and probabilities of a tag that is predicted well, then of one left to chance."""
    rng = np.random.default_rng(1)
    told = rng.random(200) < 0.3
    Y = np.stack([told, rng.random(200) < 0.3], axis=1).astype(np.float32)
    Y[:3, 0] = np.nan
    P = np.stack([0.2 + 0.6 * told + 0.05 * rng.random(200), np.full(200, 0.3)], axis=1)
    return Y, P.astype(np.float32)


def test_chance_is_not_learnt(with_chance):
    scores = score_tags(*with_chance)
    assert scores.learnt.tolist() == [True, False]
    assert scores.positives[0] + scores.negatives[0] == 197


def test_chance_gets_no_threshold(with_chance):
    Y, P = with_chance
    thresholds = choose_thresholds(Y, P, score_tags(Y, P))
    assert 0.25 < thresholds[0] < 0.8
    assert np.isnan(thresholds[1])


def test_what_takes_all_tracks_is_the_same_tag_by_tag(monkeypatch):
    rng = np.random.default_rng(0)
    Y = np.where(rng.random((200, 7)) < 0.1, np.nan, rng.random((200, 7)) < 0.3)
    Y, P = Y.astype(np.float32), rng.random((200, 7)).astype(np.float32)
    folds, results = np.arange(200) % 5, []
    for most in (10**6, 400):
        monkeypatch.setattr(examples_module, "MAX_NUMBERS", most)
        tags = score_tags(Y, P, folds)
        thresholds = choose_thresholds(Y, P, tags)
        results.append([mean_auc(Y, P, folds), *vars(tags).values(), thresholds])
    for at_once, in_parts in zip(*results, strict=True):
        np.testing.assert_array_equal(at_once, in_parts)
