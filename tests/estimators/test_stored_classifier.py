"""scikit-learn's classifiers as arrays say what scikit-learn says."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from harmonium.estimators.base_classifier import AllAtOnce, TagByTag, fit_scorer
from harmonium.estimators.stored_classifier import Forest, Regressions
from harmonium.logistic import sigmoid

FORESTS = [
    ExtraTreesClassifier(20, random_state=0),
    ExtraTreesClassifier(20, min_samples_leaf=3, max_features=None, random_state=1),
    ExtraTreesClassifier(20, bootstrap=True, max_leaf_nodes=7, random_state=2),
    RandomForestClassifier(20, max_depth=3, random_state=3),
    RandomForestClassifier(20, bootstrap=False, criterion="entropy", random_state=4),
]


@pytest.fixture(scope="module")
def clips():
    """Features, some of which are whole numbers, so that clips lie on thresholds; and tags."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(120, 3)), rng.integers(0, 3, (120, 3))])
    Y = (X[:, :3] + X[:, 3:] + rng.normal(size=(120, 3)) > 1).astype(np.float32)
    return X[:80], Y[:80], X[80:]


def said_by_scikit_learn(classifier, X):
    P = classifier.predict_proba(X)
    P = P if isinstance(P, list) else [P]
    return np.stack([table[:, 1] for table in P], axis=1)


@pytest.mark.parametrize("n_tags", [1, 3])
@pytest.mark.parametrize("forest", FORESTS, ids=str)
def test_a_forest_says_what_scikit_learns_does(forest, n_tags, clips):
    X, Y, X_new = clips
    Y = Y[:, :n_tags]
    scorer = fit_scorer(lambda: forest, X, Y)
    assert isinstance(scorer, Forest)
    for clips_asked in (X, X_new):
        expected = said_by_scikit_learn(forest, clips_asked)
        np.testing.assert_allclose(scorer.probabilities(clips_asked), expected, atol=1e-12)
    stored = Forest.restored(scorer.arrays(), X.shape[1], n_tags)
    np.testing.assert_array_equal(stored.probabilities(X_new), scorer.probabilities(X_new))


def test_clips_count_by_their_weights(clips):
    X, Y, X_new = clips
    weights = np.random.default_rng(1).uniform(0.1, 3, len(X))
    for forest in FORESTS:
        scorer = fit_scorer(lambda forest=forest: forest, X, Y, weights)
        assert isinstance(scorer, AllAtOnce if forest.bootstrap else Forest)
        if forest.bootstrap:
            continue
        expected = said_by_scikit_learn(forest, X_new)
        np.testing.assert_allclose(scorer.probabilities(X_new), expected, atol=1e-12)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    scorer = fit_scorer(pipeline.__sklearn_clone__, X, Y, weights)
    pipeline.fit(X, Y[:, 0], logisticregression__sample_weight=weights)
    expected = pipeline.decision_function(X_new)
    np.testing.assert_allclose(scorer.log_odds(X_new)[:, 0], expected, atol=1e-9)


def test_leaves_are_scikit_learns_also_on_thresholds(clips):
    X, Y, _ = clips
    forest = FORESTS[0]
    scorer = fit_scorer(lambda: forest, X, Y)
    used = np.concatenate([tree.tree_.threshold for tree in forest.estimators_])
    on_thresholds = np.repeat(np.random.default_rng(0).choice(used, 500)[:, None], 6, axis=1)
    near = np.concatenate([on_thresholds, np.nextafter(np.float32(on_thresholds), np.float32(9))])
    nodes = forest.apply(near)
    is_leaf = scorer.feature < 0
    number = np.cumsum(is_leaf) - 1
    np.testing.assert_array_equal(scorer.leaves(near), number[nodes + scorer.roots[:-1]])


def test_unknown_labels_have_no_part_in_what_leaves_say(clips):
    X, Y, X_new = clips
    Y = Y.copy()
    Y[::3, 0] = np.nan
    forest = FORESTS[1]
    scorer = fit_scorer(lambda: forest, X, Y)
    leaf, leaf_new = forest.apply(X), forest.apply(X_new)
    for clip in range(5):
        weight = np.zeros(len(X))
        for tree in range(20):
            same = leaf[:, tree] == leaf_new[clip, tree]
            weight += same / same.sum()
        known = ~np.isnan(Y[:, 0])
        expected = (weight[known] @ Y[known, 0]) / weight[known].sum()
        assert scorer.probabilities(X_new[clip : clip + 1])[0, 0] == pytest.approx(expected)
    labels = np.where(np.isnan(Y), 1 - 0 * Y, Y)
    changed = Forest(**{**vars(scorer), "labels": np.where(np.isnan(Y), np.nan, labels)})
    np.testing.assert_array_equal(changed.probabilities(X_new), scorer.probabilities(X_new))


def test_many_clips_are_asked_in_blocks(clips, monkeypatch):
    X, Y, X_new = clips
    scorer = fit_scorer(lambda: FORESTS[0], X, Y)
    whole = scorer.probabilities(X_new)
    monkeypatch.setattr("harmonium.estimators.stored_classifier.AT_ONCE", 60)
    np.testing.assert_allclose(scorer.probabilities(X_new), whole, atol=1e-12)


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
        make_pipeline(
            StandardScaler(with_mean=False), StandardScaler(with_std=False), LogisticRegression()
        ),
    ],
    ids=["alone", "scaled", "scaled twice"],
)
def test_regressions_say_what_scikit_learns_do(classifier, clips):
    X, Y, X_new = clips
    scorer = fit_scorer(lambda: classifier.__sklearn_clone__(), X, Y)
    assert isinstance(scorer, Regressions)
    expected = [classifier.__sklearn_clone__().fit(X, y).predict_proba(X_new)[:, 1] for y in Y.T]
    np.testing.assert_allclose(sigmoid(scorer.log_odds(X_new)), np.stack(expected, 1), atol=1e-9)
    stored = Regressions.restored(scorer.arrays(), 6, 3)
    np.testing.assert_array_equal(stored.log_odds(X_new), scorer.log_odds(X_new))


@pytest.mark.parametrize("unknown", [False, True])
def test_other_classifiers_stay_as_they_are(unknown, clips):
    from sklearn.neighbors import KNeighborsClassifier

    X, Y, X_new = clips
    Y = Y.copy()
    if unknown:
        Y[::5, 1] = np.nan
    scorer = fit_scorer(lambda: KNeighborsClassifier(7), X, Y)
    assert isinstance(scorer, TagByTag if unknown else AllAtOnce)
    for tag in range(3):
        known = ~np.isnan(Y[:, tag])
        expected = KNeighborsClassifier(7).fit(X[known], Y[known, tag]).predict_proba(X_new)[:, 1]
        np.testing.assert_allclose(sigmoid(scorer.log_odds(X_new))[:, tag], expected, atol=1e-9)
