"""Bad input: each case is refused with a message that says what was wrong and where."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from tagging_data import altered, quick

from harmonium import DiscriminativeRBM
from harmonium.errors import DataError, HarmoniumError

# Settings. ------------------------------------------------------------------------------------

COUNTS = ["n_hidden", "training_steps", "inference_steps", "batch_size", "max_epochs", "patience"]
WRONG_SETTINGS = [
    *((name, value) for name in COUNTS for value in (0, -1, 1.5, "many")),
    ("training", "contrastive"),
    ("inference", "belief"),
    ("schedule", "linear"),
    ("optimizer", "lbfgs"),
    ("damping", 1.0),
    ("damping", -0.1),
    ("tolerance", -1e-3),
    ("learning_rate", 0),
    ("momentum", 1.0),
    ("averaging", -1),
    ("validation_fraction", 1.0),
    ("validation_fraction", -0.1),
    ("l1", -1),
    ("l2", -1),
    ("scale_features", "yes"),
    ("warm_start", "yes"),
    ("n_jobs", 1.5),
    ("random_state", "seed"),
]


@pytest.mark.parametrize(("name", "value"), WRONG_SETTINGS)
def test_wrong_settings_are_named_by_fit_and_partial_fit(train, name, value):
    model = quick(**{name: value})
    message = rf"The '{name}' parameter of DiscriminativeRBM must be .* Got {value!r} instead"
    for train_with in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            train_with(*train)


@pytest.mark.parametrize("name", ["training", "inference"])
def test_the_message_for_an_unknown_method_lists_those_there_are(train, name):
    with pytest.raises(ValueError, match=r"a str among \{.*'lbp'.*\}.*Got 'nothing'"):
        quick(**{name: "nothing"}).fit(*train)


@pytest.mark.parametrize("go", ["fit", "partial_fit"])
def test_too_large_an_enumeration_is_refused_before_training(go, monkeypatch):
    monkeypatch.setattr("harmonium.rbm.training.train_stack", None)  # would fail
    X, Y = np.zeros((30, 2)), np.eye(30)[:, :21]
    message = r"'exact'.* at most 20 units.*Got 21 hidden units and 21 tags; use inference='lbp'"
    with pytest.raises(DataError, match=message):
        getattr(quick(n_hidden=21, inference="exact"), go)(X, Y)


def test_too_large_an_enumeration_is_refused_by_a_fitted_model(fitted, held_out, monkeypatch):
    monkeypatch.setattr("harmonium.estimators.networks.MAX_UNITS", 3)
    # what counts is what was fitted, not what the settings have become since
    model = altered(fitted, inference="exact", n_hidden=2)
    for use in (model.predict_proba, model.predict, model.infer):
        with pytest.raises(DataError, match=r"at most 3 units.* Got 8 hidden units and 4 tags"):
            use(held_out.X)


# Features. ------------------------------------------------------------------------------------


def changed(array, position, value):
    array = np.array(array, dtype=object if isinstance(value, str) else None)
    array[position] = value
    return array


WRONG_FEATURES = {
    "NaN": (lambda X: changed(X, (3, 2), np.nan), "Input X contains NaN"),
    "infinite": (lambda X: changed(X, (3, 2), np.inf), "Input X contains infinity"),
    "strings": (lambda X: changed(X, (3, 2), "loud"), "could not convert string to float: 'loud'"),
    "complex": (lambda X: X + 1j, "Complex data not supported"),
    "1-D": (lambda X: X[:, 0], "Expected 2D array, got 1D array instead"),
    "3-D": (lambda X: X[:, :, None], "Found array with dim 3"),
    "no clips": (lambda X: X[:0], r"Found array with 0 sample\(s\) \(shape=\(0, 6\)\)"),
    "no features": (lambda X: X[:, :0], r"Found array with 0 feature\(s\)"),
}


@pytest.mark.parametrize("case", WRONG_FEATURES)
def test_features_that_cannot_be_used(train, fitted, case):
    change, message = WRONG_FEATURES[case]
    for use in (quick().fit, quick().partial_fit):
        with pytest.raises(ValueError, match=message):
            use(change(train.X), train.Y)
    for use in (fitted.predict_proba, fitted.predict, fitted.infer):
        with pytest.raises(ValueError, match=message):
            use(change(train.X))
    with pytest.raises(ValueError, match=message):
        quick().fit(*train, eval_set=(change(train.X), train.Y))


def test_sparse_features_are_refused_with_a_way_out(train):
    from scipy.sparse import csr_matrix

    with pytest.raises(TypeError, match="dense data is required"):
        quick().fit(csr_matrix(train.X), train.Y)


def test_features_of_another_number_than_the_models(train, fitted):
    message = r"X has 5 features, but DiscriminativeRBM is expecting 6 features as input"
    for use in (fitted.predict_proba, fitted.predict, fitted.infer):
        with pytest.raises(ValueError, match=message):
            use(train.X[:, :5])
    for use in (fitted.score, fitted.complete, fitted.partial_fit):
        with pytest.raises(ValueError, match=message):
            use(train.X[:, :5], train.Y)
    with pytest.raises(ValueError, match=message):
        quick().fit(*train, eval_set=(train.X[:, :5], train.Y))
    with pytest.raises(ValueError, match=message):
        altered(fitted, warm_start=True).fit(train.X[:, :5], train.Y)


# Labels. --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.5, r"y\[7, 2\] is 1\.5, one of 1 such values"),
        (2, r"y\[7, 2\] is 2, one of 1 such values"),
        (-1, r"y\[7, 2\] is -1, one of 1 such values"),
        (np.inf, r"Input y contains infinity"),
        ("rock", r"could not convert string to float: 'rock'"),
    ],
)
def test_labels_below_0_or_above_1(train, fitted, value, message):
    Y = changed(train.Y, (7, 2), value)
    for use in (quick().fit, quick().partial_fit, fitted.score, fitted.complete):
        with pytest.raises(ValueError, match=message):
            use(train.X, Y)


def test_the_message_says_what_labels_may_be(train, fitted):
    Y = changed(train.Y, (7, 2), 2)
    rule = r"y must hold 0 \(absent\), 1 \(present\), a probability between, or NaN \(unknown\)\."
    for use in (quick().fit, quick().partial_fit):
        with pytest.raises(DataError, match=rule):
            use(train.X, Y)
    for use in (fitted.score, fitted.complete):
        with pytest.raises(DataError, match=r"y must hold 0 .* or NaN \(unknown\)\. .* values\.$"):
            use(train.X, Y)


def test_probabilities_are_for_learning_only(train, fitted):
    Y = changed(train.Y, (7, 2), 0.5)
    message = r"y\[7, 2\] is 0\.5, .* Only the y of fit may hold"
    for use in (fitted.score, fitted.complete, fitted.infer):
        with pytest.raises(DataError, match=message):
            use(train.X, Y)
    with pytest.raises(DataError, match=r"eval_set\[1\]\[7, 2\] is 0\.5.* Only the y of fit"):
        quick().fit(*train, eval_set=(train.X, Y))


def test_wrong_labels_of_the_validation_clips_are_said_to_be_those(train):
    Y = changed(train.Y, (7, 2), 3)
    message = r"eval_set\[1\] must hold 0 .absent.*eval_set\[1\]\[7, 2\] is 3"
    with pytest.raises(DataError, match=message):
        quick().fit(*train, eval_set=(train.X, Y))


def test_tags_without_a_known_label_are_named(train):
    Y = train.Y.copy()
    Y[:, 1] = np.nan
    for use in (quick().fit, quick().partial_fit):
        with pytest.raises(DataError, match=r"Tag 1 \(column 1\) has none: label some clips or"):
            use(train.X, Y)
    Y[:, 3] = np.nan
    named = pd.DataFrame(Y, columns=["rock", "jazz", "piano", "slow"])
    with pytest.raises(DataError, match=r"Tag 'jazz' \(column 1\) and 1 more has none"):
        quick().fit(train.X, named)


def test_features_and_labels_of_different_numbers_of_clips(train, fitted):
    message = r"inconsistent numbers of samples: \[300, 299\]"
    for use in (quick().fit, quick().partial_fit, fitted.complete, fitted.infer):
        with pytest.raises(ValueError, match=message):
            use(train.X, train.Y[:299])
    with pytest.raises(ValueError, match=message):
        quick().fit(*train, eval_set=(train.X, train.Y[:299]))


def test_labels_of_another_number_of_tags_than_the_models(train, fitted):
    message = "y must have one column for each of the model's 4 tags. Got 3 columns instead"
    warm = altered(fitted, warm_start=True)
    for use in (fitted.score, fitted.complete, fitted.infer, fitted.partial_fit, warm.fit):
        with pytest.raises(DataError, match=message):
            use(train.X, train.Y[:, :3])
    with pytest.raises(DataError, match=r"eval_set\[1\] must have one column .* 4 tags"):
        quick().fit(*train, eval_set=(train.X, train.Y[:, :3]))


def test_one_column_given_to_a_model_of_a_matrix(train, fitted):
    for use in (fitted.score, fitted.complete, fitted.partial_fit):
        with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
            use(train.X, train.Y[:, 0])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.arange(300) % 3, "Only binary classification is supported.* pass a matrix"),
        (np.linspace(0, 1, 300), "Unknown label type: continuous"),
        (np.zeros(300), "y has only one class, 0.0; two are needed"),
        (np.full(300, "rock"), "y has only one class, 'rock'; two are needed"),
        (np.r_[np.nan, np.ones(299)], "Input y contains NaN"),
        (np.r_[np.inf, np.ones(299)], "Input y contains infinity"),
        (None, "requires y to be passed, but the target y is None"),
        (np.zeros((300, 2, 2)), "Found array with dim 3"),
        (np.zeros((300, 0)), r"Found array with 0 feature\(s\)"),
        (5, "Expected 2D array, got scalar array instead"),
    ],
)
def test_labels_of_the_wrong_kind(train, y, message):
    for use in (quick().fit, quick().partial_fit):
        with pytest.raises(ValueError, match=message):
            use(train.X, y)


@pytest.mark.parametrize("eval_set", ["both", (1, 2, 3), np.zeros((2, 2))])
def test_an_eval_set_that_is_no_pair(train, eval_set):
    with pytest.raises(ValueError, match=r"eval_set must be a pair \(X, y\).* Got (str|tuple|nda)"):
        quick().fit(*train, eval_set=eval_set)


def test_classes_of_partial_fit_are_two(train):
    with pytest.raises(DataError, match="Only binary classification is supported"):
        quick().partial_fit(train.X, train.Y[:, 0], classes=[0, 1, 2])


# Order of calls. ------------------------------------------------------------------------------


@pytest.mark.parametrize("use", ["predict", "predict_proba", "infer"])
def test_nothing_is_predicted_before_fit(train, use):
    with pytest.raises(NotFittedError, match="This DiscriminativeRBM instance is not fitted yet"):
        getattr(quick(), use)(train.X)


def test_nothing_is_completed_scored_or_saved_before_fit(train, tmp_path):
    for use in (quick().complete, quick().score):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use(*train)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        quick().save(tmp_path / "model")
    assert not hasattr(quick(), "params_")
    assert list(tmp_path.iterdir()) == []


def test_a_fit_that_is_refused_leaves_the_model_that_there_was(train, fitted):
    model = altered(fitted)
    wrong = changed(train.Y, (0, 0), 7)
    with pytest.raises(DataError):
        model.fit(train.X, train.Y[:, :3], eval_set=(train.X, wrong[:, :3]))
    np.testing.assert_array_equal(model.predict_proba(train.X), fitted.predict_proba(train.X))
    assert model.tags_.tolist() == [0, 1, 2, 3]


def test_errors_of_the_library_are_of_its_own_kind():
    assert issubclass(DataError, HarmoniumError)
    assert issubclass(DataError, ValueError)
    assert DiscriminativeRBM().get_params()["n_hidden"] >= 1
