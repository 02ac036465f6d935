"""Every form of features and labels, and what a scikit-learn user does with a classifier."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tagging_data import N_FEATURES, altered, quick

from harmonium.errors import DataError
from harmonium.evaluation import GroupedTagKFold, auc_per_tag

FEATURES = [f"mfcc {i}" for i in range(N_FEATURES)]
TAGS = ["rock", "jazz", "piano", "slow"]


@pytest.fixture(scope="module")
def reference(train):
    return quick(max_epochs=3).fit(*train)


def assert_same_model(model, reference, X, names=None):
    np.testing.assert_array_equal(
        model.predict_proba(X if names is None else names(X)), reference.predict_proba(X)
    )


FRAMES = {
    "pandas": lambda X, columns: pd.DataFrame(X, columns=columns),
    "polars": lambda X, columns: pl.DataFrame(X, schema=columns),
}


@pytest.mark.parametrize("library", FRAMES)
def test_frames_give_their_columns_as_names(train, reference, library):
    frame = FRAMES[library]
    model = quick(max_epochs=3).fit(frame(train.X, FEATURES), frame(train.Y, TAGS))
    assert model.feature_names_in_.tolist() == FEATURES
    assert model.tags_.tolist() == TAGS
    assert model.n_features_in_ == N_FEATURES
    assert_same_model(model, reference, train.X, lambda X: frame(X, FEATURES))
    known = train.Y.copy()
    known[:, 0] = np.nan
    np.testing.assert_array_equal(
        model.complete(frame(train.X, FEATURES), frame(known, TAGS)),
        reference.complete(train.X, known),
    )


@pytest.mark.parametrize("library", FRAMES)
def test_frames_with_columns_in_another_order_are_refused(train, library):
    frame = FRAMES[library]
    X, Y = frame(train.X, FEATURES), frame(train.Y, TAGS)
    other = frame(train.Y[:, ::-1], TAGS[::-1])
    model = quick(max_epochs=1)
    message = r"columns of eval_set\[1\] must be the model's tags.*0 is 'slow'.*tag is 'rock'"
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, eval_set=(X, other))
    model.fit(X, Y)
    for use in (model.score, model.complete, model.partial_fit):
        with pytest.raises(ValueError, match=r"columns of y must be the model's tags"):
            use(X, other)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame(train.X, FEATURES[::-1]))


def test_missing_values_of_frames_are_unknown_labels(train):
    unknown = train.Y.copy()
    unknown[::4, 1] = np.nan
    reference = quick(max_epochs=3).fit(train.X, unknown)
    pandas = pd.DataFrame(unknown, columns=TAGS).astype("Int64")
    polars = pl.DataFrame(unknown, schema=TAGS).fill_nan(None).cast(pl.Boolean)
    assert pandas["jazz"].isna().sum() == polars["jazz"].null_count() == 75
    for Y in (pandas, pandas.astype("boolean"), polars, polars.cast(pl.Int8)):
        assert_same_model(quick(max_epochs=3).fit(train.X, Y), reference, train.X)


def test_labels_without_names_are_numbered(reference, train):
    assert reference.tags_.tolist() == [0, 1, 2, 3]
    assert not hasattr(reference, "feature_names_in_")
    numbered = pd.DataFrame(train.Y, columns=[10, 20, 30, 40])
    assert quick(max_epochs=1).fit(train.X, numbered).tags_.tolist() == [10, 20, 30, 40]


@pytest.mark.parametrize(
    "form",
    [sparse.csr_matrix, sparse.coo_array, np.asfortranarray, np.ndarray.tolist]
    + [lambda Y, dtype=dtype: Y.astype(dtype) for dtype in (bool, int, np.int8, np.float32)],
    ids=["csr", "coo", "fortran", "lists", "bool", "int", "int8", "float32"],
)
def test_forms_of_labels(train, reference, form):
    assert_same_model(quick(max_epochs=3).fit(train.X, form(train.Y)), reference, train.X)


@pytest.mark.parametrize("form", [np.asfortranarray, np.ndarray.tolist, np.float32], ids=str)
def test_forms_of_features(train, reference, form):
    found = quick(max_epochs=3).fit(form(train.X), train.Y).predict_proba(form(train.X))
    rounding = 1e-4 if form is np.float32 else 0
    np.testing.assert_allclose(found, reference.predict_proba(train.X), rtol=0, atol=rounding)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8])
def test_integer_features_are_their_floats(train, dtype):
    X = np.round(20 * train.X).clip(-100, 100) + (100 if dtype == np.uint8 else 0)
    model = quick(max_epochs=3).fit(X.astype(dtype), train.Y)
    assert_same_model(model, quick(max_epochs=3).fit(X, train.Y), X)


def test_one_column_of_two_named_classes(train, held_out):
    names = np.array(["absent", "present"])
    y, y_new = names[train.Y[:, 0].astype(int)], names[held_out.Y[:, 0].astype(int)]
    model = quick().fit(train.X, y, eval_set=(held_out.X, y_new))
    assert model.classes_.tolist() == ["absent", "present"]
    P = model.predict_proba(held_out.X)
    assert P.shape == (200, 2)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(model.predict(held_out.X), names[P.argmax(axis=1)])
    assert model.score(held_out.X, y_new) > 0.9
    assert model.score(held_out.X[:5], y_new[:5].tolist()) <= 1


def test_validation_labels_of_one_column_are_coded_by_the_training_classes(train, held_out):
    y = np.where(train.Y[:, 0] == 1, "yes", "no")
    only = np.full(200, "yes")  # by itself, one class coded as 0
    model = quick(max_epochs=2).fit(train.X, y, eval_set=(held_out.X, only))
    assert np.isnan(model.history_["auc"]).all()
    with pytest.raises(ValueError, match=r"eval_set\[1\] must hold the classes .*'no'.*'maybe'"):
        model.fit(train.X, y, eval_set=(held_out.X, np.full(200, "maybe")))


def test_a_matrix_of_one_tag_stays_a_matrix(train, held_out):
    model = quick().fit(train.X, train.Y[:, :1])
    assert model.predict_proba(held_out.X).shape == model.predict(held_out.X).shape == (200, 1)
    assert set(np.unique(model.predict(held_out.X))) == {0, 1}
    assert model.tags_.tolist() == [0]
    assert model.score(held_out.X, held_out.Y[:, :1]) > 0.9


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


def test_pickling_keeps_every_bit(fitted, held_out):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(held_out.X), fitted.predict_proba(held_out.X))
    assert again.get_params() == fitted.get_params()
    assert again.history_ == fitted.history_


def test_threads_give_the_same_probabilities(fitted, held_out):
    X = np.tile(held_out.X, (6, 1))  # several chunks, so that there is something to share
    alone = fitted.predict_proba(X)
    for n_jobs in (2, -1):
        together = altered(fitted, n_jobs=n_jobs)
        np.testing.assert_array_equal(together.predict_proba(X), alone)


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
