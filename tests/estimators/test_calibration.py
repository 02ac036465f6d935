"""The correction of probabilities, learnt from what a model says about held-out clips."""

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
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


@pytest.fixture(scope="module")
def asked():
    """Two questions, with unknown labels and labels that are probabilities."""
    first = question(40, 3, offset=1.0, slope=0.5)
    second = question(40, 3, offset=0.0, slope=1.0, observed=0.3)
    first.Y[5:20, 1] = np.nan
    second.Y[::3] = 0.3
    return [first, second]


def penalised_cross_entropy(theta, asked):
    """By the definition; theta is a_j, b_j, (mean of a_j, α, α') and (mean of b_j, β, β')."""
    own, slope, shared, slopes = theta[:3], theta[3:6], theta[6:9], theta[9:]
    total = 2 * np.sum(own**2) + 8 * np.sum(slope**2) + 0.5 * np.sum(shared**2)
    total += 8 * ((slopes[0] - 1) ** 2 + slopes[1] ** 2 + slopes[2] ** 2)
    for P, Y, observed, *_ in asked:
        z = np.column_stack([np.ones(40), observed > 0, observed])
        s = own + (z @ shared)[:, None] + (slope + (z @ slopes)[:, None]) * logit(P)
        total += np.nansum(np.logaddexp(0, s) - Y * s) / 2
    return total


def test_it_is_the_minimum_of_the_penalised_cross_entropy(asked):
    assert (calibration.TAG_OFFSET_SPREAD, calibration.TAG_SLOPE_SPREAD) == (0.5, 0.25)
    assert (calibration.OFFSET_SPREAD, calibration.SLOPE_SPREAD) == (1.0, 0.25)
    start = np.r_[np.zeros(9), 1, 0, 0]
    best = minimize(penalised_cross_entropy, start, args=(asked,), tol=1e-12).x
    found = calibration.fit_recalibration(asked)
    np.testing.assert_allclose(found.offsets, best[:3] + best[6], atol=1e-4)
    np.testing.assert_allclose(found.slopes, best[3:6] + best[9], atol=1e-4)
    np.testing.assert_allclose(found.observed_offsets, best[7:9], atol=1e-4)
    np.testing.assert_allclose(found.observed_slopes, best[10:], atol=1e-4)


def test_corrected_certainties_are_probabilities(asked):
    correction = calibration.fit_recalibration(asked)
    corrected = correction(np.array([[0.0, 1.0, 0.5]], np.float32))
    assert ((corrected >= 0) & (corrected <= 1)).all()


def test_memory_grows_with_the_tags_only():
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


def test_corrected_probabilities_fit_better(both, paired_test):
    corrected, plain = (model.predict_proba(paired_test.X) for model in both)
    errors = [calibration_error_per_tag(paired_test.Y, P).mean for P in (corrected, plain)]
    assert errors[0] < 0.9 * errors[1]
    np.testing.assert_allclose(corrected.mean(axis=0), paired_test.Y.mean(axis=0), atol=0.03)


def test_corrected_probabilities_rank_alike(both, paired_test):
    aucs = [auc_per_tag(paired_test.Y, model.predict_proba(paired_test.X)).values for model in both]
    np.testing.assert_allclose(*aucs, atol=1e-6)


def test_observed_tags_have_a_correction_of_their_own(both, paired_test):
    observed = np.where(np.arange(4) % 2, paired_test.Y, np.nan)
    asked = np.where(np.isnan(observed), paired_test.Y, np.nan)
    corrected, plain = (model.complete(paired_test.X, observed) for model in both)
    losses = [log_loss_per_tag(asked, P).mean for P in (corrected, plain)]
    assert losses[0] < losses[1]


def test_known_tags_are_not_corrected(both, paired_test):
    observed = np.where(np.arange(4) % 2, paired_test.Y, np.nan)
    completed = both[0].complete(paired_test.X, observed)
    known = ~np.isnan(observed)
    np.testing.assert_array_equal(completed[known], observed[known])


def test_completion_without_known_tags_is_prediction(both, paired_test):
    completed = both[0].complete(paired_test.X, np.full(paired_test.Y.shape, np.nan))
    np.testing.assert_allclose(completed, both[0].predict_proba(paired_test.X), atol=1e-6)


def test_inference_is_not_corrected(both, paired_test):
    corrected, plain = both
    np.testing.assert_array_equal(corrected.infer(paired_test.X).y, plain.infer(paired_test.X).y)


def test_a_model_may_do_without_it(both, paired_test):
    plain = both[1]
    assert plain.recalibration_ is None
    np.testing.assert_array_equal(plain.predict_proba(paired_test.X), plain.infer(paired_test.X).y)


def test_a_file_keeps_it(both, paired_test, tmp_path):
    both[0].save(tmp_path / "model.safetensors")
    again = DiscriminativeRBM.load(tmp_path / "model.safetensors")
    expected = both[0].predict_proba(paired_test.X)
    np.testing.assert_array_equal(again.predict_proba(paired_test.X), expected)


def test_a_file_from_before_there_was_a_correction_loads(both, paired_test):
    arrays, about = both[0]._described()
    del about["parameters"]["calibrate"]
    old = {name: array for name, array in arrays.items() if "recalibration" not in name}
    loaded = DiscriminativeRBM._from_parts(old, about, name="old")
    assert loaded.recalibration_ is None
    expected = both[1].predict_proba(paired_test.X)
    np.testing.assert_array_equal(loaded.predict_proba(paired_test.X), expected)


def test_a_clip_counts_as_often_as_it_weighs():
    """Half of the clips weigh something, and are there twice in the second question."""
    P, Y, observed, *_ = question(60, 3, offset=0.5, slope=1.5)
    weight = np.where(np.arange(60) < 30, 14.0, 0.0)
    weighted = calibration.fit_recalibration([calibration.Question(P, Y, observed, weight)])
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
