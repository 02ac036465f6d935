"""Sets of tags: the most probable one, and how probable one is."""

import numpy as np
import pytest
from tagging_data import quick, tag_distribution

from harmonium.errors import DataError
from harmonium.rbm import annealing


@pytest.fixture(scope="module")
def paired(paired_train, paired_test):
    """A model of tags that go in pairs."""
    return quick(training="exact", max_epochs=30).fit(*paired_train, eval_set=paired_test)


@pytest.fixture(scope="module")
def two_members(paired_train):
    return quick(training="exact", max_epochs=15, n_models=2).fit(*paired_train)


def agreeing(states, known):
    """Which of all sets agree with the known tags of each clip, (N, 2^C)."""
    same = (states[None] == known[:, None]) | np.isnan(known)[:, None]
    return same.all(axis=2)


def test_the_joint_decision_is_the_most_probable_set_given_the_known_tags(paired, paired_test):
    X, known = paired_test.X, paired_test.Y.copy()
    states, p = tag_distribution(paired.params_, X)
    np.testing.assert_array_equal(paired.predict_joint(X), states[p.argmax(axis=1)])
    known[:, 1:] = np.nan
    best = states[(p * agreeing(states, known)).argmax(axis=1)]
    np.testing.assert_array_equal(paired.predict_joint(X, known), best)
    np.testing.assert_array_equal(paired.predict_joint(X, paired_test.Y), paired_test.Y)


def test_members_decide_by_the_mean_of_their_free_energies(two_members, paired_test):
    X = paired_test.X
    log_p = []
    for member in range(2):
        params = type(two_members.params_)(*(array[member] for array in two_members.params_))
        states, p = tag_distribution(params, X)
        log_p.append(np.log(p))
    best = states[np.mean(log_p, axis=0).argmax(axis=1)]
    np.testing.assert_array_equal(two_members.predict_joint(X), best)
    place = (states[None] == paired_test.Y[:, None]).all(axis=2).argmax(axis=1)
    found = two_members.log_likelihood(X, paired_test.Y)
    expected = np.mean(log_p, axis=0)[np.arange(len(X)), place]
    np.testing.assert_allclose(found.value, expected, atol=1e-4)


def test_a_joint_decision_is_at_least_as_probable_as_thresholding(paired, paired_test):
    X = paired_test.X
    together, alone = (
        paired.log_likelihood(X, decide(X)).value
        for decide in (paired.predict_joint, paired.predict)
    )
    assert (together >= alone - 1e-6).all()
    assert together.mean() > alone.mean() + 0.1


def test_a_joint_decision_about_one_column_has_its_classes(train):
    y = np.where(train.Y[:, 0] == 1, "live", "studio")
    model = quick(max_epochs=3).fit(train.X, y)
    expected = model.classes_[(model.infer(train.X).y[:, 0] > 0.5).astype(int)]
    np.testing.assert_array_equal(model.predict_joint(train.X), expected)


def test_log_likelihood_sums_unknown_tags_out_exactly(paired, paired_test):
    X, known = paired_test.X, paired_test.Y.copy()
    known[::2, 0] = np.nan
    states, p = tag_distribution(paired.params_, X)
    found = paired.log_likelihood(X, known)
    expected = np.log((p * agreeing(states, known)).sum(axis=1))
    np.testing.assert_allclose(found.value, expected, atol=1e-4)
    assert (found.error == 0).all()


def test_log_likelihood_of_larger_models_is_estimated(
    paired, two_members, paired_test, monkeypatch
):
    exact = [model.log_likelihood(*paired_test).value for model in (paired, two_members)]
    monkeypatch.setattr(annealing, "MAX_UNITS", 2)
    for model, truth in zip((paired, two_members), exact, strict=True):
        found = model.log_likelihood(*paired_test, steps=50, random_state=1)
        off = np.abs(found.value - truth)
        assert (off <= 6 * found.error + 1e-4).all()
        assert (off <= 2 * found.error + 1e-4).mean() > 0.9
        assert off.max() > 1e-3
        again = model.log_likelihood(*paired_test, steps=50, random_state=1)
        np.testing.assert_array_equal(found.value, again.value)


def test_a_search_without_candidates_is_refused(paired, paired_test):
    with pytest.raises(DataError, match=r"beams must be at least 1\. Got 0"):
        paired.predict_joint(paired_test.X, beams=0)
