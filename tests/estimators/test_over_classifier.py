"""The RBM over another classifier: what it learns from, what it says, what it refuses."""

import warnings
from copy import copy

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tagging_data import draw, easy_model, paired_model

import harmonium
from harmonium import DiscriminativeRBM
from harmonium.errors import DataError, ModelFileError, TrainingWarning
from harmonium.estimators.base_classifier import fit_classifiers
from harmonium.estimators.model_files import from_bytes, to_bytes
from harmonium.estimators.stacked import fit_stacked
from harmonium.evaluation import auc_per_tag
from harmonium.logistic import log_odds, sigmoid

QUICK = {"n_hidden": 8, "max_epochs": 15, "random_state": 0, "calibrate": False}
REGRESSION = LogisticRegression(C=10.0)


def quick(**changes):
    return DiscriminativeRBM(**{**QUICK, "estimator": REGRESSION, "n_models": 3, **changes})


@pytest.fixture(scope="module")
def data():
    X, Y = draw(easy_model(), 150, 0)
    Y[::11, 0] = np.nan
    return X, Y, np.arange(150) // 3


@pytest.fixture(scope="module")
def model(data):
    X, Y, artists = data
    return quick().fit(X, Y, groups=artists)


def regressions_by_hand(X, Y, folds):
    """log-odds out of fold, and the mean of all folds' as a function, by scikit-learn alone."""
    out_of_fold = np.zeros(Y.shape)
    by_fold = []
    limits = []
    for fold in np.unique(folds):
        by_tag = []
        for tag in range(Y.shape[1]):
            known = (folds != fold) & ~np.isnan(Y[:, tag])
            by_tag.append(clone(REGRESSION).fit(X[known], Y[known, tag]))
            limit = np.log(2 * known.sum() + 1)
            limits.append(limit)
            own = folds == fold
            said = np.clip(by_tag[-1].decision_function(X[own]), -limit, limit)
            out_of_fold[own, tag] = said
        by_fold.append(by_tag)

    def of_all(X):
        said = [[r.decision_function(X) for r in by_tag] for by_tag in by_fold]
        limit = np.reshape(limits, (len(by_fold), -1, 1))
        return np.mean(np.clip(said, -limit, limit), axis=0).T

    return out_of_fold, of_all


def test_clips_have_the_log_odds_of_the_classifier_that_has_not_seen_their_fold(data, model):
    X, Y, artists = data
    folds = model.folds_
    assert all(len(set(folds[artists == artist])) == 1 for artist in set(artists))
    by_hand, of_all = regressions_by_hand(X, Y, folds)
    _, out_of_fold = fit_classifiers(REGRESSION, X, np.float32(Y), folds, seed=0, n_jobs=None)
    np.testing.assert_allclose(out_of_fold, by_hand, atol=1e-4)
    X_new, _ = draw(easy_model(), 20, 1)
    np.testing.assert_allclose(model._below.log_odds(X_new), of_all(X_new), atol=1e-4)


def test_held_out_probabilities_are_those_without_the_fold(data, model):
    X, Y, _ = data
    by_hand, _ = regressions_by_hand(X, Y, model.folds_)
    inputs = np.hstack([model._scaling(X), np.float32(by_hand)])
    architecture = model._architecture()
    for fold, params in enumerate(model._member_params()):
        own = model.folds_ == fold
        expected = architecture.probabilities(params, inputs[own])
        np.testing.assert_allclose(model.held_out_[own], expected, atol=1e-5)


class Memory(ClassifierMixin, BaseEstimator):
    """Knows the label of every clip that it has learnt from, and nothing of the others."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.seen = {tuple(x): label for x, label in zip(X, y, strict=True)}
        return self

    def predict_proba(self, X):
        p = np.array([0.05 + 0.9 * self.seen.get(tuple(x), 0.5) for x in X])
        return np.column_stack([1 - p, p])


@pytest.mark.parametrize("settings", [{"n_models": 3}, {"n_models": 1}])
def test_no_clip_is_judged_by_a_classifier_that_has_learnt_from_it_or_its_artist(data, settings):
    X, Y, artists = data
    twins = X.copy()
    twins[1::3] = twins[0::3]  # of the same artist
    model = quick(estimator=Memory(), **settings)
    with pytest.warns(TrainingWarning, match="Memory"):
        model.fit(twins, Y, groups=artists)
    seen = {}

    def spy(X, Y, folds, groups, sample_weight):
        seen["log_odds"] = DiscriminativeRBM._fit_below(model, X, Y, folds, groups)
        return seen["log_odds"]

    model._fit_below = spy
    with pytest.warns(TrainingWarning, match="Memory"):
        model.fit(twins, Y, groups=artists)
    np.testing.assert_allclose(seen["log_odds"], 0.0, atol=1e-6)
    assert np.abs(model._below.log_odds(twins)).max() > 1


def test_the_model_begins_as_the_classifier(data):
    X, Y, _ = data
    model = quick(learning_rate=1e-7, max_epochs=1, averaging=0.0).fit(X, Y)
    X_new, _ = draw(easy_model(), 50, 1)
    said = sigmoid(model._below.log_odds(X_new))
    np.testing.assert_allclose(model.predict_proba(X_new), said, atol=0.02)
    np.testing.assert_allclose(model.params_.V, 1.0, atol=1e-3)
    np.testing.assert_allclose(model.params_.d, 0.0, atol=1e-3)


def test_it_takes_longer_steps_than_without_a_classifier():
    over, alone = DiscriminativeRBM(estimator=REGRESSION), DiscriminativeRBM()
    assert (alone._step_length, over._step_length) == (0.01, 0.03)
    assert quick(learning_rate=0.5)._step_length == 0.5


def test_it_takes_more_patience_than_without_a_classifier():
    over, alone = DiscriminativeRBM(estimator=REGRESSION), DiscriminativeRBM()
    trainers = []
    for model in (over, alone, quick(patience=7, learning_rate=0.5)):
        X, Y = draw(easy_model(), 150, 0)
        model._describe(*model._read(X, Y, like=None))
        trainers.append(model._trainer(model._architecture(), soft=False))
    assert [trainer.min_patience for trainer in trainers[:2]] == [100, 20]
    assert trainers[2].patience == 7


@pytest.mark.parametrize("training", ["cd", "pcd", "mean_field", "lbp", "pl", "exact"])
def test_every_objective_learns_over_a_classifier(training, data):
    X, Y, _ = data
    X_new, Y_new = draw(easy_model(), 200, 1)
    model = quick(training=training, n_models=1).fit(X, Y)
    alone = auc_per_tag(Y_new, model._below.log_odds(X_new)).mean
    assert model.score(X_new, Y_new) > alone - 0.01
    assert not np.array_equal(model.params_.V, np.ones((1, 4)))


def test_it_learns_which_tags_go_together_unlike_the_classifier():
    X, Y = draw(paired_model(), 300, 0)
    X_new, Y_new = draw(paired_model(), 200, 1)
    model = quick(max_epochs=100, learning_rate=0.03).fit(X, Y)
    known = np.full(Y_new.shape, np.nan)
    known[:, ::2] = Y_new[:, ::2]
    completed = model.complete(X_new, known)
    assert auc_per_tag(Y_new, completed).values[1::2].mean() > model.score(X_new, Y_new) + 0.1
    np.testing.assert_array_equal(completed[:, ::2], Y_new[:, ::2])
    joint = model.predict_joint(X_new)
    assert np.mean(joint[:, 0] == joint[:, 1]) > 0.8
    together = model.log_likelihood(X_new, Y_new).value
    P = sigmoid(model._below.log_odds(X_new).astype(float))
    apart = np.where(Y_new == 1, np.log(P), np.log(1 - P)).sum(axis=1)
    assert together.mean() > apart.mean() + 0.3


def test_hidden_conditions_reach_every_question(data, model):
    """A classifier that says more raises what the model says, in each method."""
    X, _, _ = data
    louder = copy(model)
    said = model._below.log_odds(X[:5])

    class Louder:
        def log_odds(self, X):
            return said + 3.0

    louder._below = Louder()
    assert (louder.predict_proba(X[:5]) > model.predict_proba(X[:5])).all()
    known = np.full((5, 4), np.nan)
    known[:, 0] = 1
    assert (louder.complete(X[:5], known)[:, 1:] > model.complete(X[:5], known)[:, 1:]).all()
    assert louder.predict_joint(X[:5]).sum() > model.predict_joint(X[:5]).sum()
    ones = np.ones((5, 4))
    assert (
        louder.log_likelihood(X[:5], ones).value > model.log_likelihood(X[:5], ones).value
    ).all()


def test_few_labels_in_a_fold_give_limited_log_odds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    Y = np.zeros((40, 3), np.float32)
    Y[:, 0] = X[:, 0] > 0
    Y[::2, 0] = np.nan
    Y[:, 1] = 1
    Y[3, 2] = 1  # present in one fold's clips only
    folds = np.arange(40) % 2
    below, out_of_fold = fit_classifiers(
        ExtraTreesClassifier(20, random_state=0), X, Y, folds, seed=0, n_jobs=None
    )
    np.testing.assert_allclose(out_of_fold[:, 1], log_odds(np.float64(21 / 22)), rtol=1e-6)
    np.testing.assert_allclose(out_of_fold[folds == 1, 2], log_odds(np.float64(1 / 22)), rtol=1e-6)
    # of 20 other clips, 20 or none have a known first tag; trees are sure of it
    assert np.abs(out_of_fold[folds == 0, 0]).max() == pytest.approx(np.log(41))
    np.testing.assert_array_equal(out_of_fold[folds == 1, 0], 0.0)
    assert (np.abs(below.log_odds(X)) <= np.log(41) + 1e-6).all()


def test_probabilities_as_labels():
    X, Y = draw(easy_model(), 150, 0)
    soft = 0.1 + 0.8 * Y
    model = quick(estimator="trees").fit(X, soft, eval_y=Y)
    assert model.score(X, Y) > 0.9


def test_one_column_of_two_classes(data):
    X, Y, _ = data
    words = np.where(Y[:, 1] == 1, "yes", "no")
    model = quick().fit(X, words)
    assert np.mean(model.predict(X) == words) > 0.8
    assert model.predict_proba(X).shape == (150, 2)


def test_clips_without_weight_are_not_learnt_from(data):
    X, Y, artists = data
    weights = (np.arange(150) % 2).astype(float)
    nonsense = Y.copy()
    nonsense[weights == 0] = 1 - np.nan_to_num(Y[weights == 0])
    right = quick().fit(X, Y, groups=artists, sample_weight=weights)
    wrong = quick().fit(X, nonsense, groups=right.folds_, sample_weight=weights)
    right = quick().fit(X, Y, groups=right.folds_, sample_weight=weights)
    np.testing.assert_allclose(right._below.log_odds(X), wrong._below.log_odds(X), atol=1e-6)
    with pytest.raises(DataError, match="KNeighborsClassifier"):
        quick(estimator=KNeighborsClassifier()).fit(X, Y, sample_weight=weights)


def test_a_sparse_matrix_gives_the_same_model(data):
    X, Y, _ = data
    X = np.round(np.maximum(X, 0), 1)
    dense = quick(max_epochs=2).fit(X, Y)
    sparse = quick(max_epochs=2).fit(csr_array(X), Y)
    P = sparse.predict_proba(csr_array(X))
    np.testing.assert_allclose(P, dense.predict_proba(X), atol=1e-4)


def test_an_eval_set_is_judged_by_the_mean_of_the_classifiers(data):
    X, Y, _ = data
    X_new, Y_new = draw(easy_model(), 60, 1)
    model = quick().fit(X, Y, eval_set=(X_new, Y_new))
    assert model.params_.V.shape == (1, 4)
    assert len(model._below.folds) == 5
    assert model.history_["auc"][model.best_epoch_ - 1] == pytest.approx(
        model.score(X_new, Y_new), abs=0.01
    )


def test_one_group_leaves_nothing_to_learn_out_of_fold(data):
    X, Y, _ = data
    model = quick(n_models=1, validation_fraction=0).fit(X, Y, groups=np.zeros(150))
    np.testing.assert_array_equal(model._below.log_odds(X), 0.0)


def test_partial_fit_keeps_the_classifiers(data):
    X, Y, _ = data
    model = quick(n_models=1).partial_fit(X, Y)
    below = model._below
    before = model.params_
    X_new, Y_new = draw(easy_model(), 60, 1)
    model.partial_fit(X_new, Y_new)
    assert model._below is below  # the new clips are out of all folds
    assert not np.array_equal(before.U, model.params_.U)


def test_warm_start_goes_on_counting_epochs(data):
    X, Y, _ = data
    warm = quick(warm_start=True, max_epochs=3).fit(X, Y)
    assert warm.fit(X, Y).n_iter_ == 6


def test_a_clone_has_the_classifiers_settings():
    model = quick(max_epochs=2, n_models=1)
    assert clone(model).get_params()["estimator__C"] == 10.0


def test_a_grid_search_reaches_the_classifiers_settings(data):
    X, Y, _ = data
    model = quick(max_epochs=2, n_models=1)
    search = GridSearchCV(model, {"estimator__C": [1e-4, 10.0]}, cv=2).fit(X, np.nan_to_num(Y))
    assert search.best_params_ == {"estimator__C": 10.0}


def test_an_estimator_that_is_no_classifier_is_refused(data):
    X, Y, _ = data
    with pytest.raises(ValueError, match="'estimator' parameter of DiscriminativeRBM"):
        quick(estimator="trunks").fit(X, Y)


def test_the_same_seed_gives_the_same_model(data):
    X, Y, _ = data
    settings = {"estimator": ExtraTreesClassifier(10), "max_epochs": 2}
    first, second = (quick(**settings).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert first.estimator.random_state is None


def test_a_model_of_the_features_takes_no_classifier(data):
    X, Y, _ = data
    with pytest.raises(DataError, match="generative_weight"):
        quick(generative_weight=0.1).fit(X, Y)


def test_importances_are_refused(data, model):
    with pytest.raises(DataError, match="classifier"):
        model.importances(data[0], 1)


def test_a_stack_equals_models_one_by_one(data):
    X, Y, artists = data
    Y = np.float32(Y)
    X = np.float32(X)
    folds = artists % 4
    train = [np.flatnonzero(folds != f) for f in range(2)]
    models = [
        quick(estimator="trees", max_epochs=3, random_state=f, l2=l2)
        for f in range(2)
        for l2 in (0.1, 1.0)
    ]
    fit_stacked(models, X, Y, [train[0], train[0], train[1], train[1]], [[]] * 4, folds=folds)
    assert models[0]._below is models[1]._below
    assert models[0]._below is not models[2]._below
    alone = quick(estimator="trees", max_epochs=3, random_state=0, l2=0.1)
    alone.fit(X[train[0]], Y[train[0]], groups=folds[train[0]])
    np.testing.assert_array_equal(np.unique(alone.folds_[artists[train[0]] == 1]).size, 1)
    assert models[0].score(X, Y) == pytest.approx(alone.score(X, Y), abs=0.02)


# Files

SAVED = [
    "trees",
    ExtraTreesClassifier(10, bootstrap=True, max_leaf_nodes=5, random_state=3),
    make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
    LogisticRegression(),
]


@pytest.mark.parametrize(
    "classifier", SAVED, ids=lambda c: c if isinstance(c, str) else type(c).__name__
)
def test_a_saved_model_says_the_same(classifier, data, tmp_path):
    X, Y, _ = data
    model = quick(estimator=classifier, max_epochs=3).fit(X, Y)
    model.save(tmp_path / "model.safetensors")
    loaded = harmonium.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    known = np.where(np.arange(4) == 1, Y, np.nan)
    np.testing.assert_array_equal(loaded.complete(X, known), model.complete(X, known))
    assert repr(loaded.estimator) == repr(model.estimator)
    again = loaded.fit(X, Y)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-6)


def test_fit_says_that_a_class_cannot_be_saved(data, tmp_path):
    X, Y, _ = data
    model = quick(estimator=KNeighborsClassifier(), max_epochs=2)
    with pytest.warns(TrainingWarning, match=r"KNeighborsClassifier.*cannot be saved"):
        model.fit(X, np.nan_to_num(Y))
    with pytest.raises(DataError, match=r"KNeighborsClassifier cannot be saved"):
        model.save(tmp_path / "model.safetensors")
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingWarning)
        quick(estimator="trees", max_epochs=2).fit(X, Y)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("below.1.feature", lambda a: a + 100),
        ("below.1.left", lambda a: np.zeros_like(a)),
        ("below.0.clips", lambda a: a.astype(np.int64) + 1000),
        ("below.0.starts", lambda a: a[::-1].copy()),
        ("below.0.labels", lambda a: a + 5),
        ("below.0.threshold", lambda a: a * np.nan),
        ("below.2.learnt", lambda a: a + 4),
        ("below.2.limit", lambda a: a[:2]),
        ("below.2.roots", None),
    ],
)
def test_damaged_files_are_refused(name, change, data):
    X, Y, _ = data
    model = quick(estimator="trees", max_epochs=2, n_models=3)
    model.set_params(estimator=ExtraTreesClassifier(3, min_samples_leaf=3)).fit(X, Y)
    arrays, about = from_bytes(model.to_bytes())
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change(arrays[name])
    about = {key: value for key, value in about.items() if key != "format"}
    with pytest.raises(ModelFileError):
        DiscriminativeRBM.from_bytes(to_bytes(arrays, about))
