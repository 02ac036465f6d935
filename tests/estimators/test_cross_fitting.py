"""Members that each have not seen a fold: who learns from what, and what the model says."""

from copy import copy

import numpy as np
import pytest
from tagging_data import draw, easy_model

import harmonium
from harmonium import DiscriminativeRBM, LogisticTagger, MLPTagger
from harmonium.errors import DataError
from harmonium.estimators.model_files import from_bytes, log_odds, sigmoid
from harmonium.evaluation import auc_per_tag

QUICK = {"n_hidden": 8, "n_models": 3, "max_epochs": 15, "random_state": 0}
KINDS = pytest.mark.parametrize("kind", [DiscriminativeRBM, MLPTagger])


@pytest.fixture(scope="module")
def data():
    X, Y = draw(easy_model(), 150, 0)
    Y[::11, 0] = np.nan
    return X, Y, np.arange(150) // 3


@pytest.fixture(scope="module")
def model(data):
    X, Y, artists = data
    return DiscriminativeRBM(**QUICK, calibrate=False).fit(X, Y, groups=artists)


def test_each_clip_is_predicted_by_the_member_that_has_not_seen_its_artist(data, model):
    X, _, artists = data
    assert sorted(set(model.folds_)) == [0, 1, 2]
    assert all(len(set(model.folds_[artists == one])) == 1 for one in set(artists))
    scaled = model._features(X)
    for fold, member in enumerate(model._members()):
        own = model.folds_ == fold
        P = member._probabilities(scaled[own])
        np.testing.assert_allclose(model.held_out_[own], P, atol=1e-6)
        others = [one._probabilities(scaled[own]) for one in model._members()]
        assert sum(np.allclose(P, other) for other in others) == 1


def test_the_model_is_the_mean_of_its_members_log_odds(data, model):
    X, Y, _ = data
    members, scaled = model._members(), model._features(X)
    mean = sigmoid(np.mean([log_odds(m._probabilities(scaled), 1e-7) for m in members], axis=0))
    np.testing.assert_allclose(model.predict_proba(X), mean, atol=1e-5)
    known = np.where(np.arange(Y.shape[1]) == 1, Y, np.nan).astype(np.float32)
    answers = [m._infer(m._params, scaled, known).y for m in members]
    mean = sigmoid(np.mean([log_odds(one, 1e-7) for one in answers], axis=0))
    found = model.complete(X, known)
    np.testing.assert_allclose(np.where(np.isnan(known), found, mean), mean, atol=1e-5)
    np.testing.assert_array_equal(found[:, 1], Y[:, 1])
    rough = copy(model).set_params(inference="lbp", inference_steps=2, tolerance=0.01)
    found, each = rough.infer(X), [m._infer(m._params, scaled) for m in rough._members()]
    assert found.h.shape == (150, 3 * 8)
    assert len(set(found.diagnostics.method)) > 1
    worst = np.argmax([one.diagnostics.residual for one in each], axis=0)
    for clip, member in enumerate(worst):
        assert all(a[clip] == b[clip] for a, b in zip(found[2], each[member][2], strict=True))
    assert model.params_.U.shape == (3, 8, Y.shape[1])
    for place, member in enumerate(members):
        np.testing.assert_allclose(model.params_.W[place], member.params_.W)


@KINDS
def test_held_out_clips_correct_and_set_thresholds_and_files_keep_the_members(data, kind, tmp_path):
    X, Y, artists = data
    model = kind(**QUICK).fit(X, Y, groups=artists)
    assert model.recalibration_ is not None
    known = ~np.isnan(Y)
    reached = model.held_out_ >= model.thresholds_
    np.testing.assert_allclose((reached & known).sum(axis=0), np.nansum(Y, axis=0), atol=1)
    held_out, of_model = (auc_per_tag(Y, P).mean for P in (model.held_out_, model.predict_proba(X)))
    assert 0.5 < held_out < of_model
    model.save(tmp_path / "model.safetensors")
    again = harmonium.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.best_epoch_ == model.best_epoch_
    longer = kind(**QUICK, warm_start=True).fit(X, Y, groups=artists)
    before = longer.n_iter_
    assert longer.fit(X, Y, groups=artists).n_iter_ > before
    assert longer._params.d.shape == (3, Y.shape[1])


def test_one_model_where_an_eval_set_is_given_and_fewer_folds_where_tags_are_rare(data):
    X, Y, _ = data
    one = DiscriminativeRBM(**QUICK).fit(X, Y, eval_set=(X[:40], Y[:40]))
    assert one.params_.U.ndim == 2
    rare = np.zeros((12, 1), np.float32)
    rare[[0, 5]] = 1
    two = DiscriminativeRBM(**{**QUICK, "n_models": 5}).fit(X[:12], rare)
    assert two.params_.U.shape[0] == 2


def test_one_model_holds_out_whole_artists_judged_by_labels_of_their_own(data, monkeypatch):
    X, Y, artists = data
    parts = []
    monkeypatch.setattr(LogisticTagger, "_calibrate", lambda _, *clips: parts.extend(clips))
    model = LogisticTagger(max_epochs=1, validation_fraction=0.2, scale_features="none")
    numbered = np.hstack([np.arange(150)[:, None], X])
    model.fit(numbered, Y, groups=artists, eval_y=1 - Y)
    learnt, held_out = (part.X[:, 0].astype(int) for part in parts)
    assert sorted([*learnt, *held_out]) == list(range(150))
    assert len(held_out) == 30
    assert not set(artists[learnt]) & set(artists[held_out])
    np.testing.assert_array_equal(parts[0].Y, Y[learnt])
    np.testing.assert_array_equal(parts[1].Y, 1 - Y[held_out])
    model.fit(X, Y, groups=np.zeros(150))
    assert parts[-1] is None
    with pytest.raises(DataError, match="a group for every clip"):
        model.fit(X, Y, groups=[None, *artists[1:]])
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
