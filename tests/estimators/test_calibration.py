"""What held-out clips say of a model: scores, thresholds and the correction of probabilities."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.metrics import log_loss
from tagging_data import quick

from harmonium import DiscriminativeRBM
from harmonium.estimators import calibration
from harmonium.evaluation import auc_per_tag, calibration_error_per_tag, log_loss_per_tag


def question(n, n_tags, *, offset, slope, observed=0.0, seed=0):
    """Predictions whose true log-odds are offset + slope · log-odds."""
    rng = np.random.default_rng(seed)
    L = rng.normal(-1.5, 1.5, (n, n_tags))
    Y = (rng.random(L.shape) < expit(offset + slope * L)).astype(np.float32)
    return calibration.Question(expit(L).astype(np.float32), Y, np.full(n, observed), np.ones(n))


def test_it_is_the_minimum_of_the_penalised_cross_entropy():
    both = (1.0, 0.5, 0.0), (0.0, 1.0, 0.3)
    asked = [question(40, 3, offset=a, slope=b, observed=share) for a, b, share in both]
    asked[0].Y[5:20, 1] = np.nan
    asked[1].Y[::3] = 0.3  # probabilities to learn from

    def loss(theta):
        own, slope, shared, slopes = theta[:3], theta[3:6], theta[6:9], theta[9:]
        total = 2 * np.sum(own**2) + 8 * np.sum(slope**2) + 0.5 * np.sum(shared**2)
        total += 8 * ((slopes[0] - 1) ** 2 + slopes[1] ** 2 + slopes[2] ** 2)
        for P, Y, observed, _ in asked:
            z = np.column_stack([np.ones(40), observed > 0, observed])
            s = own + (z @ shared)[:, None] + (slope + (z @ slopes)[:, None]) * logit(P)
            total += np.nansum(np.logaddexp(0, s) - Y * s) / 2
        return total

    assert (calibration.TAG_OFFSET_SPREAD, calibration.TAG_SLOPE_SPREAD) == (0.5, 0.25)
    assert (calibration.OFFSET_SPREAD, calibration.SLOPE_SPREAD) == (1.0, 0.25)
    best = minimize(loss, np.r_[np.zeros(9), 1, 0, 0], tol=1e-12).x
    found = calibration.fit_recalibration(asked)
    np.testing.assert_allclose(found.offsets, best[:3] + best[6], atol=1e-4)
    np.testing.assert_allclose(found.slopes, best[3:6] + best[9], atol=1e-4)
    np.testing.assert_allclose(found.observed_offsets, best[7:9], atol=1e-4)
    np.testing.assert_allclose(found.observed_slopes, best[10:], atol=1e-4)
    certain = found(np.array([[0.0, 1.0, 0.5]], np.float32))
    assert ((certain >= 0) & (certain <= 1)).all()


def test_memory_grows_with_the_tags_and_not_with_their_square():
    P = np.random.default_rng(0).random((8, 3000)).astype(np.float32)
    asked = [calibration.Question(P, np.round(P), np.zeros(8), np.ones(8))]
    tracemalloc.start()
    calibration.fit_recalibration(asked)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * P.size * 8  # 8 MB; a number for each pair of tags would be 72


@pytest.fixture(scope="module")
def both(paired_train, paired_test):
    corrected = quick(max_epochs=3, calibrate=True).fit(*paired_train, eval_set=paired_test)
    plain = quick(max_epochs=3, calibrate=False).fit(*paired_train, eval_set=paired_test)
    return corrected, plain


def test_probabilities_fit_better_and_rank_alike(both, paired_test):
    corrected, plain = (model.predict_proba(paired_test.X) for model in both)
    errors = [calibration_error_per_tag(paired_test.Y, P).mean for P in (corrected, plain)]
    assert errors[0] < 0.9 * errors[1]
    np.testing.assert_allclose(corrected.mean(axis=0), paired_test.Y.mean(axis=0), atol=0.03)
    aucs = [auc_per_tag(paired_test.Y, P).values for P in (corrected, plain)]
    np.testing.assert_allclose(*aucs, atol=1e-6)


def test_observed_tags_have_a_correction_of_their_own_and_none_observed_is_prediction(
    both, paired_test
):
    observed = np.where(np.arange(4) % 2, paired_test.Y, np.nan)
    asked = np.where(np.isnan(observed), paired_test.Y, np.nan)
    corrected, plain = (model.complete(paired_test.X, observed) for model in both)
    known = ~np.isnan(observed)
    np.testing.assert_array_equal(corrected[known], observed[known])
    losses = [log_loss_per_tag(asked, P).mean for P in (corrected, plain)]
    assert losses[0] < losses[1]
    nothing = np.full(paired_test.Y.shape, np.nan)
    found = both[0].complete(paired_test.X, nothing)
    np.testing.assert_allclose(found, both[0].predict_proba(paired_test.X), atol=1e-6)
    own = [model.infer(paired_test.X).y for model in both]
    np.testing.assert_array_equal(*own)
    assert both[1].recalibration_ is None
    np.testing.assert_array_equal(both[1].predict_proba(paired_test.X), own[1])


def test_a_file_keeps_it_and_one_without_it_still_loads(both, paired_test, tmp_path):
    both[0].save(tmp_path / "model.safetensors")
    again = DiscriminativeRBM.load(tmp_path / "model.safetensors")
    corrected, plain = (model.predict_proba(paired_test.X) for model in both)
    np.testing.assert_array_equal(again.predict_proba(paired_test.X), corrected)
    arrays, about = both[0]._described()
    del about["parameters"]["calibrate"]  # as files were before there was a correction
    old = {name: array for name, array in arrays.items() if "recalibration" not in name}
    loaded = DiscriminativeRBM._from_parts(old, about, name="old")
    assert loaded.recalibration_ is None
    np.testing.assert_array_equal(loaded.predict_proba(paired_test.X), plain)


def test_a_clip_that_weighs_twice_counts_as_two_and_one_that_weighs_nothing_not_at_all():
    P, Y, observed, _ = question(60, 3, offset=0.5, slope=1.5)
    half = np.arange(60) < 30
    asked = calibration.Question(P, Y, observed, np.where(half, 14.0, 0.0))
    weighted = calibration.fit_recalibration([asked])
    twice = np.r_[:30, :30]
    asked = calibration.Question(P[twice], Y[twice], observed, np.ones(60))
    listed = calibration.fit_recalibration([asked])
    np.testing.assert_allclose(weighted.slopes, listed.slopes, atol=1e-6)
    np.testing.assert_allclose(weighted.offsets, listed.offsets, atol=1e-6)


def test_with_one_tag_observed_a_clip_counts_as_often_as_it_has_true_tags():
    Y = np.array([[1, 1, 1], [1, 0, 0], [0, 0, 0]], np.float32)
    _, one, _ = calibration.ask(lambda observed: np.full(observed.shape, 0.5, np.float32), Y)
    np.testing.assert_array_equal(one.weight, [3, 1, 0])
    assert [np.isnan(row).sum() for row in one.Y] == [1, 1, 3]


@given(data=st.data(), n=st.integers(1, 12))
@settings(deadline=None, max_examples=200)
def test_as_many_scores_reach_the_threshold_as_labels_are_positive(data, n):
    y = data.draw(arrays(np.float32, n, elements=st.sampled_from([0.0, 1.0, np.nan])))
    p = data.draw(arrays(np.float32, n, elements=st.floats(0, 1, width=16), unique=True))
    threshold = calibration.matching_thresholds(y[:, None], p[:, None])[0]
    known, positives = ~np.isnan(y), int((y == 1).sum())
    if positives:
        assert (p[known] >= threshold).sum() == positives
    else:
        assert threshold == 0.5


def test_a_threshold_lies_half_way_equal_scores_stay_together_and_shares_count_as_such():
    Y = np.array([[1, 1, 1], [1, 1, 0], [0, 0, 0], [0, 0, 0]], np.float32)
    P = np.array([[0.75, 0.5, 0.5], [0.5] * 3, [0.25, 0.5, 0.5], [0, 0.25, 0.5]], np.float32)
    thresholds = calibration.matching_thresholds(Y, P)
    assert thresholds[0] == 0.375
    assert (thresholds <= P).sum(axis=0).tolist() == [2, 3, 0]  # all or none, what is nearer
    P = np.linspace(0, 1, 10, dtype=np.float32)[:, None]
    for share in (0.3, 0.6):
        Y = np.full((10, 1), share, np.float32)
        assert (calibration.matching_thresholds(Y, P) <= P).sum() == round(10 * share)


HARD, SOFT = [0.0, 1.0, np.nan], [0.0, 0.25, 0.5, 1.0, np.nan]
SCORES = st.sampled_from([0.0, 0.25, 0.5, 0.75])


def matrix(elements):
    shapes = st.tuples(st.integers(1, 8), st.just(2))
    return arrays(np.float32, shapes, elements=elements)


def by_pairs(y, s):
    """Every pair of two clips, one after the other; None where there is none."""
    y = y.astype(float)
    won = total = 0.0
    for i in range(len(y)):
        for k in range(len(y)):
            if i != k and not np.isnan(y[i] + y[k]):
                weight = y[i] * (1 - y[k])
                total += weight
                won += weight * (0.5 if s[i] == s[k] else float(s[i] > s[k]))
    return won / total if total else None


@given(data=st.data(), Y=matrix(st.sampled_from(HARD)) | matrix(st.sampled_from(SOFT)))
@settings(deadline=None, max_examples=60)
def test_the_auc_is_the_share_of_pairs_in_the_right_order(data, Y):
    S = data.draw(arrays(np.float32, Y.shape, elements=SCORES))
    values = [by_pairs(y, s) for y, s in zip(Y.T, S.T, strict=True)]
    defined = [value for value in values if value is not None]
    assert calibration.is_rankable(Y) == bool(defined)
    assume(defined)
    assert calibration.mean_auc(Y, S) == pytest.approx(np.mean(defined), abs=1e-9)


@pytest.mark.parametrize("values", [HARD, SOFT], ids=["labels", "probabilities"])
def test_the_likelihood_is_that_of_scikit_learn_with_shares_as_weights(values):
    rng = np.random.default_rng(1)
    Y = rng.choice(values, (40, 3)).astype(np.float32)
    P = rng.uniform(0.01, 0.99, (40, 3)).astype(np.float32)
    y, p = Y[~np.isnan(Y)], P[~np.isnan(Y)]
    twice = np.repeat([1, 0], len(y))
    expected = -log_loss(twice, np.tile(p, 2), sample_weight=np.concatenate([y, 1 - y]))
    assert calibration.log_likelihood(Y, P) == pytest.approx(expected, rel=1e-5)
    certain = np.array([[1.0, 0.0]], np.float32)
    mistaken = calibration.log_likelihood(certain, 1 - certain)
    assert -1000 < mistaken < -50  # and so finite


def test_predict_says_yes_as_often_as_it_is_true_of_the_validation_clips(fitted, held_out):
    P, decisions = fitted.predict_proba(held_out.X), fitted.predict(held_out.X)
    np.testing.assert_array_equal(decisions, fitted.thresholds_ <= P)
    np.testing.assert_array_equal(decisions.sum(axis=0), held_out.Y.sum(axis=0))
