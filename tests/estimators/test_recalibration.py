"""The correction of probabilities: what it finds, what it leaves alone, and where it is used."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from tagging_data import quick

from harmonium import DiscriminativeRBM
from harmonium.estimators import MLPTagger, calibration
from harmonium.estimators.calibration import Question, ask, fit_recalibration
from harmonium.evaluation import auc_per_tag, calibration_error_per_tag, log_loss_per_tag


def question(n, n_tags, *, offset, slope, observed=0.0, seed=0):
    """Predictions whose true log-odds are offset + slope · log-odds."""
    rng = np.random.default_rng(seed)
    L = rng.normal(-1.5, 1.5, (n, n_tags))
    Y = (rng.random(L.shape) < expit(offset + slope * L)).astype(np.float32)
    return Question(expit(L).astype(np.float32), Y, np.full(n, observed), np.ones(n))


def test_it_finds_offset_and_slope_of_every_kind_of_question():
    offset = np.linspace(-0.5, 1.0, 5)
    found = fit_recalibration(
        [
            question(20_000, 5, offset=offset, slope=0.8),
            question(20_000, 5, offset=offset - 0.4, slope=0.9, observed=1e-9, seed=1),
            question(20_000, 5, offset=offset + 0.2, slope=1.1, observed=0.5, seed=2),
        ]
    )
    np.testing.assert_allclose(found.offsets, offset, atol=0.07)
    np.testing.assert_allclose(found.slopes, 0.8, atol=0.07)
    np.testing.assert_allclose(found.observed_offsets, [-0.4, 1.2], atol=0.12)
    np.testing.assert_allclose(found.observed_slopes, [0.1, 0.4], atol=0.12)


def test_it_is_the_minimum_of_the_penalised_cross_entropy():
    asked = [
        question(40, 3, offset=1.0, slope=0.5),
        question(40, 3, offset=0, slope=1, observed=0.3),
    ]
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
    found = fit_recalibration(asked)
    np.testing.assert_allclose(found.offsets, best[:3] + best[6], atol=1e-4)
    np.testing.assert_allclose(found.slopes, best[3:6] + best[9], atol=1e-4)
    np.testing.assert_allclose(found.observed_offsets, best[7:9], atol=1e-4)
    np.testing.assert_allclose(found.observed_slopes, best[10:], atol=1e-4)


def test_a_tag_without_known_clips_is_corrected_like_the_others():
    asked = question(2000, 4, offset=1.0, slope=1.0)
    asked.Y[:, 3] = np.nan
    found = fit_recalibration([asked])
    assert found.offsets[3] == pytest.approx(found.offsets[:3].mean(), abs=0.1)


def test_three_surprises_correct_little():
    P = np.array([[0.2], [0.8], [0.2]], np.float32)
    Y = np.array([[1], [0], [1]], np.float32)
    found = fit_recalibration([Question(P, Y, np.zeros(3), np.ones(3))])
    assert (found.slopes > 0.5).all()
    assert 0 < found.offsets[0] < 0.75


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_certainty_stays_a_probability(p):
    found = fit_recalibration([question(50, 1, offset=3.0, slope=0.2)])
    assert 0 <= found(np.array([[p]], np.float32))[0, 0] <= 1


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


def test_observed_tags_have_a_correction_of_their_own(both, paired_test):
    observed = np.where(np.arange(4) % 2, paired_test.Y, np.nan)
    asked = np.where(np.isnan(observed), paired_test.Y, np.nan)
    corrected, plain = (model.complete(paired_test.X, observed) for model in both)
    known = ~np.isnan(observed)
    np.testing.assert_array_equal(corrected[known], observed[known])
    losses = [log_loss_per_tag(asked, P).mean for P in (corrected, plain)]
    assert losses[0] < losses[1]


def test_nothing_observed_is_prediction_and_the_model_s_own_marginals_remain(both, paired_test):
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
    np.testing.assert_array_equal(
        again.predict_proba(paired_test.X), both[0].predict_proba(paired_test.X)
    )
    arrays, about = both[0]._described()
    del about["parameters"]["calibrate"]  # as files were before there was a correction
    old = {name: array for name, array in arrays.items() if "recalibration" not in name}
    loaded = DiscriminativeRBM._from_parts(old, about, name="old")
    assert loaded.recalibration_ is None
    np.testing.assert_array_equal(
        loaded.predict_proba(paired_test.X), both[1].predict_proba(paired_test.X)
    )


def test_without_validation_clips_nothing_is_corrected(train):
    assert quick(validation_fraction=0.0).fit(*train).recalibration_ is None


def test_networks_have_it_too(train, held_out):
    model = MLPTagger(8, max_epochs=3, random_state=0).fit(*train, eval_set=held_out)
    assert model.recalibration_ is not None
    np.testing.assert_allclose(
        model.predict_proba(held_out.X).mean(axis=0), held_out.Y.mean(axis=0), atol=0.05
    )


def test_a_clip_that_weighs_twice_counts_as_two_and_one_that_weighs_nothing_not_at_all():
    P, Y, observed, _ = question(60, 3, offset=0.5, slope=1.5)
    half = np.arange(60) < 30
    weighted = fit_recalibration([Question(P, Y, observed, np.where(half, 14.0, 0.0))])
    twice = np.r_[:30, :30]
    listed = fit_recalibration([Question(P[twice], Y[twice], observed, np.ones(60))])
    np.testing.assert_allclose(weighted.slopes, listed.slopes, atol=1e-6)
    np.testing.assert_allclose(weighted.offsets, listed.offsets, atol=1e-6)


def test_with_one_tag_observed_a_clip_counts_as_often_as_it_has_true_tags():
    Y = np.array([[1, 1, 1], [1, 0, 0], [0, 0, 0]], np.float32)
    _, one, _ = ask(lambda observed: np.full(observed.shape, 0.5, np.float32), Y)
    np.testing.assert_array_equal(one.weight, [3, 1, 0])
    assert [np.isnan(row).sum() for row in one.Y] == [1, 1, 3]
