"""ν-SVMs: which clips they learn from, with which ν, and what they find."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import NuSVC

from harmonium.errors import DataError, DataWarning
from harmonium.estimators import SVMTagger
from harmonium.estimators.svm import Examples, choose_examples, fit_hyperplane, labels_by_count


def chosen(labels, counts, max_examples, *, seed=0, balanced=True):
    rng = np.random.default_rng(seed)
    labels, counts = np.array(labels, float), np.array(counts, float)
    examples = choose_examples(labels, counts, max_examples, rng, balanced=balanced)
    return tuple(sorted(rows.tolist()) for rows in examples)


NAN = np.nan

# Clips 0-3 have the tag, 4 may have it, 5-9 do not.
LABELS = [1, 1, 1, 1, np.nan, 0, 0, 0, 0, 0]
COUNTS = [2, 7, 3, 5, 1, 0.3, 0, 0.1, 0.2, 0]


@pytest.mark.parametrize(
    ("max_examples", "balanced", "expected"),
    [
        (2, True, ([1, 3], [6, 9])),
        (3, True, ([1, 2, 3], [6, 7, 9])),
        (200, True, ([0, 1, 2, 3], [6, 7, 8, 9])),  # as many as there are of the fewer
        (200, False, ([0, 1, 2, 3], [5, 6, 7, 8, 9])),
        (3, False, ([1, 2, 3], [6, 7, 9])),
    ],
)
def test_examples_are_the_most_or_the_least_tagged(max_examples, balanced, expected):
    assert chosen(LABELS, COUNTS, max_examples, balanced=balanced) == expected


def chosen_of_ties(seed):
    labels = np.repeat([1.0, 0.0], 50)
    return chosen(labels, labels, 5, seed=seed)


def test_ties_are_broken_by_the_seed():
    assert chosen_of_ties(0) == chosen_of_ties(0)


def test_ties_are_broken_by_chance():
    positives = {clip for seed in range(10) for clip in chosen_of_ties(seed)[0]}
    assert len(positives) > 20  # of 50, ten times 5 drawn
    assert positives <= set(range(50))


def labels_of(counts, max_examples=200):
    column = np.array(counts, float)[:, None]
    return labels_by_count(column, max_examples, np.random.default_rng(0))[:, 0]


@pytest.mark.parametrize(
    ("max_examples", "expected"), [(200, [1, 1, NAN, 0, 0]), (1, [1, NAN, NAN, NAN, 0])]
)
def test_labels_from_counts_alone(max_examples, expected):
    counts = [0.9, 0.8, 0.4, 0.3, 0.1]
    np.testing.assert_array_equal(labels_of(counts, max_examples), expected)


@pytest.mark.parametrize("least", [0.0, 0.1])
def test_one_clip_above_the_others_is_the_only_positive(least):
    labels = labels_of(np.array([0, 0, 0, 3, 0]) + least)
    assert labels[3] == 1
    assert np.nansum(labels) == 1
    assert (labels == 0).sum() == 2


def test_a_clip_that_ties_with_the_positives_is_not_a_negative():
    labels = labels_of([1, 1, 1, 0, 1])
    assert (labels == 1).sum() == 2
    assert np.flatnonzero(labels == 0).tolist() == [3]


def clouds(n_positive, n_negative, *, shift, n_features=10, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_positive + n_negative, n_features))
    X[:n_positive, 0] += shift
    examples = Examples(np.arange(n_positive), np.arange(n_positive, len(X)))
    return X, examples, np.repeat([1, -1], [n_positive, n_negative])


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("nu", [0.1, 0.5, 0.9])
def test_the_hyperplane_is_libsvms(nu, offset):
    X, examples, signs = clouds(40, 40, shift=5.0)
    w, d, nu_used = fit_hyperplane((X + offset).astype(np.float32), examples, nu)
    # the tolerance is relative to the scale of the products, as it is inside
    scale = np.mean((X - X.mean(axis=0)) ** 2) * X.shape[1]
    svm = NuSVC(nu=nu, kernel="linear").fit(X / np.sqrt(scale), signs)
    np.testing.assert_allclose(w, svm.coef_[0] / np.sqrt(scale), atol=2e-3)
    at = np.array([X.mean(axis=0), X[0], X[-1]])
    expected = svm.decision_function(at / np.sqrt(scale))
    np.testing.assert_allclose((at + offset) @ w + d, expected, atol=1e-2)
    assert nu_used == nu


@pytest.mark.parametrize(("n_positive", "n_negative"), [(3, 200), (200, 7), (1, 9)])
def test_an_infeasible_nu_is_lowered_to_the_largest_feasible_one(n_positive, n_negative):
    X, examples, signs = clouds(n_positive, n_negative, shift=6.0)
    w, d, nu_used = fit_hyperplane(X, examples, 0.5)
    largest = 2 * min(n_positive, n_negative) / (n_positive + n_negative)
    assert nu_used == pytest.approx(largest, rel=1e-6)
    assert nu_used <= largest
    with pytest.raises(ValueError, match="infeasible"):
        NuSVC(nu=largest * 1.001, kernel="linear").fit(X, signs)
    assert ((X @ w + d > 0) == (signs > 0)).mean() > 0.95


def test_a_nu_without_a_margin_is_raised_until_there_is_one():
    """Overlapping clouds: at ν = 0.1 libsvm's direction is rounding, here it is not."""
    X, examples, signs = clouds(200, 200, shift=0.7, n_features=2)
    w, d, nu_used = fit_hyperplane(X, examples, 0.1)
    assert nu_used > 0.5  # at least twice the error that no hyperplane can avoid
    assert (np.sign(X @ w + d) == signs).mean() > 0.58
    assert w[0] > abs(w[1])


class TestNu:
    @pytest.fixture
    def labelled(self):
        X, _, signs = clouds(20, 180, shift=6.0)
        return X, np.column_stack([signs > 0, X[:, 1] > 0]).astype(float)

    def test_of_each_tag_is_kept(self, labelled):
        model = SVMTagger(0.3, balanced=False, random_state=0).fit(*labelled)
        np.testing.assert_allclose(model.nu_, [0.2, 0.3], rtol=1e-6)

    def test_of_balanced_examples_is_what_was_asked_for(self, labelled):
        model = SVMTagger(0.3, random_state=0).fit(*labelled)
        np.testing.assert_allclose(model.nu_, [0.3, 0.3])

    @pytest.mark.parametrize("nu", [0.0, 1.5])
    def test_is_a_share(self, labelled, nu):
        with pytest.raises(ValueError, match=r"'nu' parameter of SVMTagger must be a float in"):
            SVMTagger(nu).fit(*labelled)


def test_threads_give_the_same_model():
    X, _, signs = clouds(20, 180, shift=6.0)
    Y = np.column_stack([signs > 0, X[:, 1] > 0]).astype(float)
    one, two = (SVMTagger(0.3, random_state=0, n_jobs=n).fit(X, Y) for n in (None, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_scores_are_no_probabilities():
    X, _, signs = clouds(20, 20, shift=6.0)
    model = SVMTagger(random_state=0).fit(X, signs[:, None] > 0)
    assert not hasattr(model, "predict_proba")


def test_tags_without_both_labels_have_constant_scores():
    X, _, signs = clouds(30, 30, shift=6.0)
    Y = np.column_stack([signs > 0, 0 * signs, 0 * signs + 1]).astype(float)
    with pytest.warns(DataWarning, match="2 of 3 tags have no positive, no negative"):
        model = SVMTagger(random_state=0).fit(X, Y)
    scores = model.decision_function(X)
    assert (scores[:, 1:] == [-1, 1]).all()
    np.testing.assert_array_equal(model.predict(X), Y)
    assert np.isnan(model.nu_).tolist() == [False, True, True]
    assert model.score(X, Y) == 1.0


def test_tags_of_clips_that_are_all_equal_have_constant_scores():
    with pytest.warns(DataWarning, match="1 of 1 tags"):
        model = SVMTagger().fit(np.zeros((6, 2)), [[0], [1], [0], [1], [0], [1]])
    assert (model.coef_ == 0).all()


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_counts_choose_the_examples(form):
    """Clips tagged most follow the first feature, those tagged once the second."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    counts = np.zeros((400, 1))
    counts[:100, 0] = 5
    counts[100:200, 0] = 1
    X[:100, 0] += 6
    X[100:200, 1] += 6
    Y = (counts > 0).astype(float)
    model = SVMTagger(max_examples=100, random_state=0).fit(X, Y, counts=form(counts))
    assert model.coef_[0, 0] > 5 * abs(model.coef_[0, 1])


@pytest.mark.parametrize("shape", [(10, 3), (9, 2)])
def test_counts_must_fit_the_labels(shape):
    X = np.random.default_rng(0).normal(size=(10, 2))
    Y = np.tile([[0.0, 1.0], [1.0, 0.0]], (5, 1))
    with pytest.raises(DataError, match=r"counts must have the shape of y, \(10, 2\). Got"):
        SVMTagger().fit(X, Y, counts=np.ones(shape))
