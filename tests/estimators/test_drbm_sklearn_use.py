"""What a scikit-learn user does with any classifier: clone, search, cross-validate, pickle."""

import pickle

import joblib
import numpy as np
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tagging_data import altered, quick

from harmonium import DiscriminativeRBM
from harmonium.errors import DataError
from harmonium.evaluation import GroupedTagKFold, auc_per_tag


def test_defaults_are_those_of_the_signature_and_nothing_is_checked_before_fit():
    model = DiscriminativeRBM(n_hidden=-1, training="nonsense")
    assert model.get_params()["n_hidden"] == -1
    assert is_classifier(model)
    assert [name for name in vars(model) if name.endswith("_")] == []


def test_clone_copies_the_settings_and_not_what_was_learnt(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "params_")


def test_fit_changes_neither_its_settings_nor_its_data(train):
    X, Y = train.X.copy(), train.Y.copy()
    model = quick(max_epochs=2)
    before = model.get_params()
    assert model.fit(X, Y) is model
    assert model.get_params() == before
    np.testing.assert_array_equal(X, train.X)
    np.testing.assert_array_equal(Y, train.Y)


def test_grid_search_over_grouped_folds_finds_the_better_setting(train, held_out):
    artists = np.repeat(np.arange(60), 5)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), quick()),
        {"discriminativerbm__learning_rate": [1e-6, 0.03]},
        cv=GroupedTagKFold(n_splits=3),
        error_score="raise",
    )
    search.fit(*train, groups=artists)
    assert search.best_params_ == {"discriminativerbm__learning_rate": 0.03}
    assert search.score(*held_out) == search.best_estimator_.score(*held_out) > 0.85


def test_cross_validation_with_unknown_labels(train):
    Y = train.Y.copy()
    Y[::3, 0] = np.nan
    scores = cross_val_score(quick(), train.X, Y, cv=KFold(3), error_score="raise")
    assert (scores > 0.8).all()
    P = cross_val_predict(quick(), *train, cv=KFold(3), method="predict_proba")
    assert auc_per_tag(train.Y, P).mean > 0.8


@pytest.mark.parametrize("n_tags", [1, 2, 4])
@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision"])
def test_scikit_learns_scorers_see_the_tags_as_labels(train, held_out, scoring, n_tags):
    from sklearn.metrics import average_precision_score, get_scorer, roc_auc_score

    Y = held_out.Y[:, :n_tags]
    model = quick(max_epochs=3).fit(train.X, train.Y[:, :n_tags], eval_set=(held_out.X, Y))
    metric = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}[scoring]
    expected = metric(Y, model.predict_proba(held_out.X))
    assert get_scorer(scoring)(model, held_out.X, Y) == pytest.approx(expected)


@pytest.mark.parametrize("library", ["pickle", "joblib"])
def test_pickling_keeps_every_bit(fitted, held_out, tmp_path, library):
    path = tmp_path / "model"
    if library == "pickle":
        path.write_bytes(pickle.dumps(fitted))
        again = pickle.loads(path.read_bytes())
    else:
        joblib.dump(fitted, path)
        again = joblib.load(path)
    np.testing.assert_array_equal(again.predict_proba(held_out.X), fitted.predict_proba(held_out.X))
    assert again.get_params() == fitted.get_params()
    assert again.history_ == fitted.history_


def test_threads_give_the_same_probabilities(fitted, held_out):
    X = np.tile(held_out.X, (6, 1))  # several chunks, so that there is something to share
    alone = fitted.predict_proba(X)
    for n_jobs in (2, -1):
        together = altered(fitted, n_jobs=n_jobs)
        np.testing.assert_array_equal(together.predict_proba(X), alone)


def test_score_is_the_mean_auc_of_the_tags_that_have_one(fitted, held_out):
    Y = held_out.Y.copy()
    Y[:, 0], Y[::2, 1] = 1, np.nan  # no AUC for the first tag, half of the clips for the second
    expected = auc_per_tag(Y, fitted.predict_proba(held_out.X)).values
    assert np.isnan(expected[0])
    assert fitted.score(held_out.X, Y) == pytest.approx(np.nanmean(expected), abs=1e-12)


def test_known_tags_by_name_and_probabilities_as_a_frame(train, held_out):
    names = [f"tag {j}" for j in range(train.Y.shape[1])]
    model = quick(max_epochs=3).fit(train.X, pl.DataFrame(train.Y, schema=names))
    known = np.full(held_out.Y.shape, np.nan, np.float32)
    known[:, 1] = 1
    expected = model.complete(held_out.X, known)
    np.testing.assert_array_equal(model.complete(held_out.X, {"tag 1": 1}), expected)
    frame = model.predict_frame(held_out.X)
    assert frame.columns == names
    np.testing.assert_array_equal(frame.to_numpy(), model.predict_proba(held_out.X))
    with pytest.raises(DataError, match="tag 'tag x'"):
        model.complete(held_out.X, {"tag x": 1})
