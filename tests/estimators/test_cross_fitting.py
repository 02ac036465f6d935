"""Members that each have not seen a fold: who learns from what, and what the model says."""

from copy import copy

import numpy as np
import pytest
from tagging_data import draw, easy_model

import harmonium
from harmonium import DiscriminativeRBM, LogisticTagger, MLPTagger
from harmonium.errors import DataError
from harmonium.estimators.model_files import from_bytes
from harmonium.evaluation import auc_per_tag
from harmonium.logistic import log_odds, sigmoid

QUICK = {"n_hidden": 8, "n_models": 3, "max_epochs": 15, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    X, Y = draw(easy_model(), 150, 0)
    Y[::11, 0] = np.nan
    return X, Y, np.arange(150) // 3


@pytest.fixture(scope="module")
def model(data):
    X, Y, artists = data
    return DiscriminativeRBM(**QUICK, calibrate=False).fit(X, Y, groups=artists)


def answers_of_members(model, X, observed=None):
    """What each member says about clips, (K, N, C)."""
    architecture, scaled = model._architecture(), model._features(X)
    members = model._member_params()
    return [architecture.probabilities(params, scaled, observed) for params in members]


def test_an_artist_is_held_out_as_a_whole(data, model):
    _, _, artists = data
    assert sorted(set(model.folds_)) == [0, 1, 2]
    assert all(len(set(model.folds_[artists == artist])) == 1 for artist in set(artists))


def test_held_out_probabilities_are_those_of_the_member_that_has_not_seen_the_clip(data, model):
    X, _, _ = data
    answers = answers_of_members(model, X)
    for fold in range(3):
        own = model.folds_ == fold
        np.testing.assert_allclose(model.held_out_[own], answers[fold][own], atol=1e-6)
        agree = [np.allclose(answers[fold][own], other[own]) for other in answers]
        assert sum(agree) == 1


def test_probabilities_are_the_mean_of_the_members_log_odds(data, model):
    X, _, _ = data
    mean = np.mean([log_odds(P, 1e-7) for P in answers_of_members(model, X)], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), sigmoid(mean), atol=1e-5)


def test_completed_tags_are_the_mean_of_the_members_log_odds(data, model):
    X, Y, _ = data
    known = np.where(np.arange(Y.shape[1]) == 1, Y, np.nan).astype(np.float32)
    mean = np.mean([log_odds(P, 1e-7) for P in answers_of_members(model, X, known)], axis=0)
    completed = model.complete(X, known)
    unknown = np.isnan(known)
    np.testing.assert_allclose(completed[unknown], sigmoid(mean)[unknown], atol=1e-5)
    np.testing.assert_array_equal(completed[:, 1], Y[:, 1])


def test_diagnostics_are_those_of_the_member_furthest_from_convergence(data, model):
    X, _, _ = data
    rough = copy(model).set_params(inference="lbp", inference_steps=2, tolerance=0.01)
    diagnostics = rough.infer(X).diagnostics
    assert len(set(diagnostics.method)) > 1
    each = [member.infer(X).diagnostics for member in rough._members()]
    worst = np.argmax([of_member.residual for of_member in each], axis=0)
    for clip, member in enumerate(worst):
        for found, expected in zip(diagnostics, each[member], strict=True):
            assert found[clip] == expected[clip]


def test_hidden_units_are_those_of_all_members(data, model):
    X, _, _ = data
    expected = [member.infer(X).h for member in model._members()]
    np.testing.assert_array_equal(model.infer(X).h, np.hstack(expected))


def test_parameters_have_an_axis_for_the_members(data, model):
    assert model.params_.U.shape == (3, 8, data[1].shape[1])
    for number, member in enumerate(model._members()):
        np.testing.assert_allclose(model.params_.W[number], member.params_.W)


@pytest.fixture(scope="module", params=[DiscriminativeRBM, MLPTagger])
def calibrated(request, data):
    X, Y, artists = data
    return request.param(**QUICK).fit(X, Y, groups=artists)


def test_held_out_clips_calibrate(calibrated):
    assert calibrated.recalibration_ is not None


def test_as_many_held_out_clips_reach_the_thresholds_as_have_the_tag(data, calibrated):
    _, Y, _ = data
    reached = (calibrated.held_out_ >= calibrated.thresholds_) & ~np.isnan(Y)
    np.testing.assert_allclose(reached.sum(axis=0), np.nansum(Y, axis=0), atol=1)


def test_held_out_clips_are_predicted_worse_than_clips_learnt_from(data, calibrated):
    X, Y, _ = data
    held_out = auc_per_tag(Y, calibrated.held_out_).mean
    assert 0.5 < held_out < auc_per_tag(Y, calibrated.predict_proba(X)).mean


def test_a_file_keeps_the_members(data, calibrated, tmp_path):
    X, _, _ = data
    calibrated.save(tmp_path / "model.safetensors")
    again = harmonium.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), calibrated.predict_proba(X))
    assert again.best_epoch_ == calibrated.best_epoch_


class TestWarmStart:
    @pytest.fixture
    def trained(self, data):
        X, Y, artists = data
        return DiscriminativeRBM(**QUICK, warm_start=True).fit(X, Y, groups=artists)

    def test_all_members_are_trained_on(self, data, trained):
        X, Y, artists = data
        before, params = trained.n_iter_, trained._params.W
        assert trained.fit(X, Y, groups=artists).n_iter_ > before
        assert trained._params.W.shape == params.shape
        assert all((now != old).any() for now, old in zip(trained._params.W, params, strict=True))

    def test_an_eval_set_judges_all_members(self, data, trained):
        X, Y, _ = data
        trained.fit(X, Y, eval_set=(X[:40], Y[:40]))
        assert trained._params.d.shape == (3, Y.shape[1])
        assert np.isfinite(trained.history_["auc"]).all()

    def test_another_number_of_members_is_refused(self, data, trained):
        X, Y, artists = data
        trained.set_params(n_models=4)
        with pytest.raises(DataError, match="has 3 members, but the data has folds for 4"):
            trained.fit(X, Y, groups=artists)


def test_there_is_one_model_where_an_eval_set_is_given(data):
    X, Y, _ = data
    model = DiscriminativeRBM(**QUICK).fit(X, Y, eval_set=(X[:40], Y[:40]))
    assert model.params_.U.ndim == 2


def test_there_are_fewer_members_where_tags_are_rare(data):
    X, _, _ = data
    rare = np.zeros((12, 1), np.float32)
    rare[[0, 5]] = 1
    model = DiscriminativeRBM(**{**QUICK, "n_models": 5}).fit(X[:12], rare)
    assert model.params_.U.shape[0] == 2


def test_a_group_for_every_clip_is_needed(data):
    X, Y, artists = data
    with pytest.raises(DataError, match="a group for every clip"):
        LogisticTagger(max_epochs=1).fit(X, Y, groups=[None, *artists[1:]])


def test_labels_to_judge_by_must_be_of_all_clips(data):
    X, Y, _ = data
    with pytest.raises(ValueError, match=r"\[150, 90\]"):
        DiscriminativeRBM(**QUICK).fit(X, Y, eval_y=Y[:90])


def test_weights_take_half_the_space_on_disk_unless_that_would_be_noticed(data, monkeypatch):
    X, Y, _ = data
    model = DiscriminativeRBM(**QUICK).fit(X, Y)
    arrays, _ = from_bytes(model.to_bytes())
    assert arrays["params.W"].dtype == np.float16
    monkeypatch.setattr("harmonium.estimators.gradient_tagger.MAX_ROUNDING", 0.0)
    exact = DiscriminativeRBM(**QUICK).fit(X, Y)
    assert from_bytes(exact.to_bytes())[0]["params.W"].dtype == np.float32
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("n_models", [1, 5])
def test_no_model_of_few_clips_ends_untrained(n_models):
    for seed in range(20):
        X, Y = draw(easy_model(), 300, seed)
        n = 40 + 20 * (seed % 3)
        model = DiscriminativeRBM(n_models=n_models, random_state=seed).fit(X[:n], Y[:n])
        assert model.predict_proba(X[n:]).max() > 0.7
        assert model.score(X[n:], Y[n:]) > 0.8
