"""Classifier chains: tags that follow tags, known ones in their places."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain

from harmonium.errors import DataError, ModelFileError
from harmonium.estimators import ChainTagger, LogisticTagger, linear
from harmonium.estimators.model_files import read_model, write_model


def copies(n_clips, *, seed=0, agree=0.95):
    """Tag 1 is tag 0 with some errors; tag 0 follows the feature a little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_clips, 2))
    first = rng.random(n_clips) < expit(X[:, 0])
    second = np.where(rng.random(n_clips) < agree, first, ~first)
    return X, np.column_stack([first, second]).astype(float)


def test_one_chain_is_scikit_learns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    Y = (X @ rng.normal(size=(4, 3)) + rng.logistic(size=(300, 3)) > 0).astype(float)
    ours = ChainTagger(1, l2=1e-2, scale_features=False, random_state=0).fit(X, Y)
    logistic = LogisticRegression(C=1 / (300 * 1e-2), tol=1e-10, max_iter=10_000)
    theirs = ClassifierChain(logistic, order=ours.orders_[0], chain_method="predict_proba").fit(
        X, Y
    )
    for place, link in enumerate(theirs.estimators_):
        tag, before = ours.orders_[0, place], ours.orders_[0, :place]
        coef = np.append(ours.params_.W[0, tag], ours.params_.V[0, tag, before])
        np.testing.assert_allclose(coef, link.coef_[0], atol=1e-3)
        np.testing.assert_allclose(ours.params_.d[0, tag], link.intercept_[0], atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)


def test_a_tag_that_follows_a_tag_only():
    model = ChainTagger(1, l2=1e-4, random_state=0)
    X, Y = copies(3000)
    model.fit(X, Y)
    first, second = model.orders_[0]
    W, V, _ = model.params_
    assert V[0, first, second] == 0
    assert V[0, second, first] == pytest.approx(2 * np.log(0.95 / 0.05), rel=0.1)
    if first == 0:
        np.testing.assert_allclose(W[0, 1], 0, atol=0.2)


def test_completion_uses_the_known_tags():
    X, Y = copies(3000)
    X_new, Y_new = copies(1000, seed=1)
    model = ChainTagger(10, l2=1e-4, random_state=0).fit(X, Y)
    blind = model.score(X_new, Y_new)
    for known, wanted in ((0, 1), (1, 0)):
        partial = Y_new.copy()
        partial[:, wanted] = np.nan
        P = model.complete(X_new, partial)
        np.testing.assert_array_equal(P[:, known], Y_new[:, known])
        informed = (P[:, wanted] > 0.5) == (Y_new[:, wanted] == 1)
        assert informed.mean() > 0.9 > blind
    nothing = model.complete(X_new, np.full_like(Y_new, np.nan))
    np.testing.assert_array_equal(nothing, model.predict_proba(X_new))


def test_the_probabilities_are_the_mean_over_the_chains_by_the_definition():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)), (rng.random((60, 4)) < 0.4).astype(float)
    partial = np.where(rng.random(Y.shape) < 0.5, Y, np.nan)
    model = ChainTagger(5, random_state=0).fit(X, Y)
    W, V, d = model.params_
    means = np.zeros_like(Y)
    for chain, order in enumerate(model.orders_):
        for clip in range(60):
            fed = np.zeros(4)
            for tag in order:
                p = expit(d[chain, tag] + W[chain, tag] @ X[clip] + V[chain, tag] @ fed)
                fed[tag] = p if np.isnan(partial[clip, tag]) else partial[clip, tag]
                means[clip, tag] += p / 5
    wanted = np.where(np.isnan(partial), means, partial)
    np.testing.assert_allclose(model.complete(X, partial), wanted, atol=1e-6)


def test_a_tag_has_no_weight_of_itself_and_of_those_after_it():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, 2)), (rng.random((80, 5)) < 0.5).astype(float)
    model = ChainTagger(4, random_state=0).fit(X, Y)
    for order, V in zip(model.orders_, model.params_.V, strict=True):
        assert (np.triu(V[order][:, order]) == 0).all()
        assert (V[order][:, order][np.tril_indices(5, -1)] != 0).all()


def test_unknown_tags_before_a_tag_are_filled_with_their_probabilities():
    X, Y = copies(400)
    Y[::3, 0] = np.nan
    model = ChainTagger(1, l2=1e-2, random_state=0)
    model.set_params(random_state=next(s for s in range(99) if _first(model, s) == 0)).fit(X, Y)
    filled = LogisticTagger(solver="newton", l2=1e-2).fit(X, Y).predict_proba(X)
    before = np.where(np.isnan(Y[:, 0]), filled[:, 0], Y[:, 0])
    scaled = (X - X.mean(axis=0)) / (X.std(axis=0) * np.sqrt(2))
    link = LogisticRegression(C=1 / (400 * 1e-2), tol=1e-10).fit(
        np.column_stack([scaled, before]), Y[:, 1]
    )
    assert model.params_.V[0, 1, 0] == pytest.approx(link.coef_[0, 2], abs=1e-3)


def _first(model, seed):
    """The tag that a chain of this seed starts with."""
    X, Y = copies(20)
    return model.set_params(random_state=seed).fit(X, Y).orders_[0, 0]


def test_clips_whose_own_tag_is_unknown_do_not_train_its_link():
    X, Y = copies(600)
    half = Y.copy()
    half[300:] = np.nan
    # the penalty is relative to all clips, known or not
    whole = ChainTagger(3, l2=1e-2, scale_features=False, random_state=0).fit(X[:300], Y[:300])
    partly = ChainTagger(3, l2=5e-3, scale_features=False, random_state=0).fit(X, half)
    for a, b in zip(whole.params_, partly.params_, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)


def test_a_tag_with_one_kind_of_label_has_one_probability():
    X, Y = copies(50)
    Y = np.column_stack([Y, np.zeros(50)])
    P = ChainTagger(3, random_state=0).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(P[:, 2], 1 / 52, rtol=1e-6)
    assert np.ptp(P[:, 0]) > 0.1


def test_blocks_of_clips_do_not_change_the_probabilities(monkeypatch):
    X, Y = copies(50)
    model = ChainTagger(3, random_state=0).fit(X, Y)
    whole = model.predict_proba(X)
    monkeypatch.setattr(linear, "BLOCK", 7 * model.orders_.size)
    np.testing.assert_allclose(model.predict_proba(X), whole, rtol=1e-6)


def test_orders_differ_and_follow_the_seed():
    X, Y = np.zeros((20, 1)), np.random.default_rng(0).integers(0, 2, (20, 30)).astype(float)
    Y[0], Y[1] = 0, 1
    a, b, c = (ChainTagger(4, random_state=seed).fit(X, Y).orders_ for seed in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()
    assert len({tuple(order) for order in a}) == 4


def test_a_file_with_impossible_orders_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    ChainTagger(2).fit(*copies(50)).save(path)
    arrays, about = read_model(path)
    write_model(path, {**arrays, "orders": np.zeros((2, 2), np.int64)}, about)
    with pytest.raises(ModelFileError, match="orders must hold each tag once"):
        ChainTagger.load(path)


def test_chains_too_large_for_any_machine_are_refused():
    """Ten chains of 10,000 tags have 10⁹ weights between tags."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 2)), (rng.random((20, 10_000)) < 0.5).astype(np.float32)
    Y[0], Y[1] = 0, 1
    with pytest.raises(DataError, match=r"10 chains of 10,000 tags .* at most .*Use fewer"):
        ChainTagger(random_state=0).fit(X, Y)
