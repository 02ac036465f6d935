"""ν-SVMs: which clips they learn from, with which ν, and what they find."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import NuSVC

from harmonium.errors import DataError, DataWarning
from harmonium.estimators import SVMTagger
from harmonium.estimators.svm import choose_examples, fit_hyperplane, labels_by_count


def chosen(labels, counts, max_examples, *, seed=0, balanced=True):
    rng = np.random.default_rng(seed)
    labels, counts = np.array(labels, float), np.array(counts, float)
    examples = choose_examples(labels, counts, max_examples, rng, balanced=balanced)
    return tuple(sorted(rows.tolist()) for rows in examples)


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
def test_the_most_tagged_positives_and_the_least_tagged_negatives(max_examples, balanced, expected):
    assert chosen(LABELS, COUNTS, max_examples, balanced=balanced) == expected


def test_ties_are_broken_by_chance_and_by_the_seed():
    labels = np.repeat([1.0, 0.0], 50)
    by_seed = [chosen(labels, labels, 5, seed=seed) for seed in range(10)]
    assert by_seed[0] == chosen(labels, labels, 5, seed=0)
    everything = {clip for positives, _ in by_seed for clip in positives}
    assert len(everything) > 20  # of 50, ten times 5 drawn
    assert everything <= set(range(50))


def test_labels_from_counts_alone():
    counts = np.array([[0.9, 0, 1], [0.8, 0, 1], [0.4, 0, 1], [0.3, 3, 0], [0.1, 0, 1]])
    counts = np.column_stack([counts, counts[:, 1] + 0.1])
    labels = labels_by_count(counts, 200, np.random.default_rng(0))
    np.testing.assert_array_equal(labels[:, 0], [1, 1, np.nan, 0, 0])
    # one clip above the others is the only positive; two of the four others are negatives
    assert labels[3, [1, 3]].tolist() == [1, 1]
    assert np.nansum(labels, axis=0)[[1, 3]].tolist() == [1, 1]
    assert (labels == 0).sum(axis=0)[[1, 3]].tolist() == [2, 2]
    # a clip that ties with the positives is not a negative
    assert (labels[:, 2] == 1).sum() == 2
    assert np.flatnonzero(labels[:, 2] == 0).tolist() == [3]
    few = labels_by_count(counts, 1, np.random.default_rng(0))
    np.testing.assert_array_equal(few[:, 0], [1, np.nan, np.nan, np.nan, 0])


def clouds(n_positive, n_negative, *, shift, n_features=10, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_positive + n_negative, n_features))
    X[:n_positive, 0] += shift
    examples = np.arange(n_positive), np.arange(n_positive, len(X))
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


def test_the_nu_of_each_tag_is_kept_and_threads_give_the_same_model():
    X, _, signs = clouds(20, 180, shift=6.0)
    Y = np.column_stack([signs > 0, X[:, 1] > 0]).astype(float)
    model = SVMTagger(0.3, balanced=False, random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.nu_, [0.2, 0.3], rtol=1e-6)
    one, two = (SVMTagger(0.3, random_state=0, n_jobs=n).fit(X, Y) for n in (None, 2))
    np.testing.assert_allclose(one.nu_, [0.3, 0.3])
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert not hasattr(one, "predict_proba")


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
    with pytest.warns(DataWarning, match="1 of 1 tags"):  # whose clips are all equal
        model = SVMTagger().fit(np.zeros((6, 2)), [[0], [1], [0], [1], [0], [1]])
    assert (model.coef_ == 0).all()


def test_counts_choose_the_examples():
    """Clips tagged most follow the first feature, those tagged once the second."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    counts = np.zeros((400, 1))
    counts[:100, 0], counts[100:200, 0] = 5, 1
    X[:100, 0] += 6
    X[100:200, 1] += 6
    Y = (counts > 0).astype(float)
    for given in (counts, sparse.csr_array(counts)):
        model = SVMTagger(max_examples=100, random_state=0).fit(X, Y, counts=given)
        assert model.coef_[0, 0] > 5 * abs(model.coef_[0, 1])


def test_counts_must_fit_the_labels_and_nu_is_a_share():
    X, Y = np.random.default_rng(0).normal(size=(10, 2)), np.tile([[0.0, 1.0], [1.0, 0.0]], (5, 1))
    for counts in (np.ones((10, 3)), np.ones((9, 2))):
        with pytest.raises(DataError, match=r"counts must have the shape of y, \(10, 2\). Got"):
            SVMTagger().fit(X, Y, counts=counts)
    for nu in (0.0, 1.5):
        with pytest.raises(ValueError, match=r"'nu' parameter of SVMTagger must be a float in"):
            SVMTagger(nu).fit(X, Y)
