"""Every form of features and labels, and what a scikit-learn user does with a classifier."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tagging_data import N_FEATURES, altered, quick

from harmonium.errors import DataError

FEATURES = [f"mfcc {i}" for i in range(N_FEATURES)]
TAGS = ["rock", "jazz", "piano", "slow"]


@pytest.fixture(scope="module")
def reference(train):
    return quick(max_epochs=3).fit(*train)


def assert_same_model(model, reference, X, names=None):
    found = model.predict_proba(X if names is None else names(X))
    np.testing.assert_array_equal(found, reference.predict_proba(X))


FRAMES = {
    "pandas": lambda X, columns: pd.DataFrame(X, columns=columns),
    "polars": lambda X, columns: pl.DataFrame(X, schema=columns),
}


@pytest.mark.parametrize("library", FRAMES)
def test_frames_name_tags_and_features_and_keep_their_order(train, reference, library):
    frame = FRAMES[library]
    X, Y = frame(train.X, FEATURES), frame(train.Y, TAGS)
    model = quick(max_epochs=3).fit(X, Y)
    assert model.feature_names_in_.tolist() == FEATURES
    assert model.tags_.tolist() == TAGS
    assert model.n_features_in_ == N_FEATURES
    assert_same_model(model, reference, train.X, lambda X: frame(X, FEATURES))
    known = train.Y.copy()
    known[:, 0] = np.nan
    found = model.complete(X, frame(known, TAGS))
    np.testing.assert_array_equal(found, reference.complete(train.X, known))
    other = frame(train.Y[:, ::-1], TAGS[::-1])  # the columns in another order
    with pytest.raises(ValueError, match=r"columns of eval_set\[1\] .*'slow'"):
        clone(model).fit(X, Y, eval_set=(X, other))
    for use in (model.score, model.complete, model.partial_fit):
        with pytest.raises(ValueError, match=r"columns of y must be the model's tags"):
            use(X, other)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame(train.X, FEATURES[::-1]))


def test_missing_values_of_frames_are_unknown_labels_and_missing_names_numbers(train, reference):
    unknown = train.Y.copy()
    unknown[::4, 1] = np.nan
    expected = quick(max_epochs=3).fit(train.X, unknown)
    pandas = pd.DataFrame(unknown, columns=TAGS).astype("Int64")
    polars = pl.DataFrame(unknown, schema=TAGS).fill_nan(None).cast(pl.Boolean)
    assert pandas["jazz"].isna().sum() == polars["jazz"].null_count() == 75
    for Y in (pandas, pandas.astype("boolean"), polars, polars.cast(pl.Int8)):
        assert_same_model(quick(max_epochs=3).fit(train.X, Y), expected, train.X)
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


@pytest.mark.parametrize("form", [list, tuple, pd.Series, pl.Series])
def test_a_list_of_tags_for_each_clip(train, form):
    """They name the tags, in the order of the alphabet; a clip without tags lacks all of them."""
    names = sorted(TAGS)
    Y = np.nan_to_num(train.Y)
    given = [[names[j] for j in np.flatnonzero(row)] for row in Y]
    assert [] in given
    model = quick(max_epochs=3).fit(train.X, form(given))
    assert model.tags_.tolist() == names
    assert_same_model(model, quick(max_epochs=3).fit(train.X, Y), train.X)
    more = [[*tags, "unheard of"] for tags in given]
    assert model.score(train.X, more) == model.score(train.X, Y)
    pair = (train.X, given)
    assert quick(max_epochs=1).fit(*pair, eval_set=pair).tags_.tolist() == names


def test_one_column_of_two_named_classes_that_code_the_validation_labels(train, held_out):
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
    only = np.full(200, "present")  # by itself, one class coded as 0
    model = quick(max_epochs=2).fit(train.X, y, eval_set=(held_out.X, only))
    assert np.isnan(model.history_["auc"]).all()
    with pytest.raises(ValueError, match=r"eval_set\[1\] .*'absent'.*'maybe'"):
        model.fit(train.X, y, eval_set=(held_out.X, np.full(200, "maybe")))


@pytest.mark.parametrize("n_tags", [1, 2, 4])
@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision"])
def test_scikit_learns_scorers_see_the_tags_as_labels(train, held_out, scoring, n_tags):
    from sklearn.metrics import average_precision_score, get_scorer, roc_auc_score

    Y = held_out.Y[:, :n_tags]
    model = quick(max_epochs=3).fit(train.X, train.Y[:, :n_tags], eval_set=(held_out.X, Y))
    metric = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}[scoring]
    expected = metric(Y, model.predict_proba(held_out.X))
    assert get_scorer(scoring)(model, held_out.X, Y) == pytest.approx(expected)


def test_known_tags_by_name_and_probabilities_as_a_frame(train, held_out):
    names = [f"tag {j}" for j in range(train.Y.shape[1])]
    model = quick(max_epochs=3).fit(train.X, pl.DataFrame(train.Y, schema=names))
    known = np.full(held_out.Y.shape, np.nan, np.float32)
    known[:, 1] = 1
    expected = model.complete(held_out.X, known)
    listed = [["tag 1"] for _ in known]
    for named in ({"tag 1": 1}, listed, pl.Series(listed)):
        np.testing.assert_array_equal(model.complete(held_out.X, named), expected)
    frame = model.predict_frame(held_out.X)
    assert frame.columns == names
    np.testing.assert_array_equal(frame.to_numpy(), model.predict_proba(held_out.X))
    for named in ({"tag x": 1}, [*listed[1:], ["tag x"]]):
        with pytest.raises(DataError, match=r"tag 'tag x'.* Did you mean"):
            model.complete(held_out.X, named)
    model = quick(max_epochs=1).fit(train.X, train.Y)
    with pytest.raises(DataError, match=r"tag 'tag 1'.* to name them, fit with a frame"):
        model.complete(held_out.X, {"tag 1": 1})
    with pytest.raises(DataError, match="to name them, fit with a frame"):
        model.score(held_out.X, [["tag 1"], *[[]] * (len(held_out.X) - 1)])


# Bad input: each case is refused with an error that says what was wrong and where.

COUNTS = ["n_hidden", "training_steps", "inference_steps", "batch_size", "max_epochs", "patience"]
WRONG_SETTINGS = [
    *((name, value) for name in COUNTS for value in (0, -1, 1.5, "many")),
    *((name, "nothing") for name in ("training", "inference", "schedule", "optimizer")),
    *(("damping", 1.0), ("damping", -0.1), ("tolerance", -1e-3), ("learning_rate", 0)),
    *(("momentum", 1.0), ("averaging", -1), ("l1", -1), ("l2", -1), ("n_jobs", 1.5)),
    *(("validation_fraction", 1.0), ("validation_fraction", -0.1), ("scale_features", "yes")),
    *(("warm_start", "yes"), ("random_state", "seed")),
]


@pytest.mark.parametrize(("name", "value"), WRONG_SETTINGS)
def test_wrong_settings_are_named_by_fit_and_partial_fit(train, name, value):
    model = quick(**{name: value})
    message = rf"The '{name}' parameter of DiscriminativeRBM must be .* Got {value!r} instead"
    for train_with in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message) as caught:
            train_with(*train)
    if name in ("training", "inference"):
        assert "'lbp'" in str(caught.value)


def test_too_large_an_enumeration_is_refused_before_training_and_later(
    fitted, held_out, monkeypatch
):
    monkeypatch.setattr("harmonium.rbm.training.train_stack", None)  # would fail
    X, Y = np.zeros((30, 2)), np.eye(30)[:, :21]
    model = quick(n_hidden=21, inference="exact")
    for use in (model.fit, model.partial_fit):
        with pytest.raises(DataError, match=r"'exact'.* 20 units.*Got 21 hidden units and 21 tags"):
            use(X, Y)
    monkeypatch.setattr("harmonium.estimators.networks.MAX_UNITS", 3)
    # what counts is what was fitted, not what the settings have become since
    model = altered(fitted, inference="exact", n_hidden=2)
    for use in (model.predict_proba, model.predict, model.infer):
        with pytest.raises(DataError, match=r"at most 3 units.* Got 8 hidden units and 4 tags"):
            use(held_out.X)


def changed(array, position, value):
    array = np.array(array, dtype=object if isinstance(value, str) else None)
    array[position] = value
    return array


@pytest.mark.parametrize("form", [list, np.array, pd.Series, lambda paths: [*map(Path, paths)]])
def test_paths_instead_of_features_are_told_where_to_go(train, fitted, form):
    paths = [f"{i}.mp3" for i in range(len(train.X))]
    for use in (lambda X: quick().fit(X, train.Y), fitted.predict_proba):
        with pytest.raises(DataError, match=r"0\.mp3.*make_pipeline\(harmonium\.AudioFeatures\(\)"):
            use(form(paths))


FIT, GO_ON, VALIDATE, ASK = "fit", "go on", "validate", "ask"


def uses(fitted, train, X, Y):
    """Every way to hand over labelled clips: to a new model, to one that goes on, …"""
    warm = altered(fitted, warm_start=True)
    return {
        FIT: [lambda: quick().fit(X, Y), lambda: quick().partial_fit(X, Y)],
        GO_ON: [lambda: altered(fitted).partial_fit(X, Y), lambda: warm.fit(X, Y)],
        VALIDATE: [lambda: quick().fit(*train, eval_set=(X, Y))],
        ASK: [partial(f, X, Y) for f in (fitted.score, fitted.complete, fitted.infer)],
    }


def with_label(value):
    return lambda X, Y: (X, changed(Y, (7, 2), value))


SOFT = r"\[7, 2\] is 0\.5, .* Only the y of fit"
LABELLED = {
    "above 1": (with_label(1.5), [FIT, GO_ON, VALIDATE, ASK], r"\[7, 2\] is 1\.5, one of 1 such"),
    "below 0": (with_label(-1), [FIT, GO_ON, VALIDATE, ASK], r"\[7, 2\] is -1, one of 1 such"),
    "infinite": (with_label(np.inf), [FIT, GO_ON, VALIDATE, ASK], "contains infinity"),
    "words": (with_label("rock"), [FIT, GO_ON, VALIDATE, ASK], "'rock'"),
    "rule to learn": (with_label(2), [FIT, GO_ON], r"1 \(present\), a probability between, or NaN"),
    "rule to ask": (with_label(2), [ASK], r"y must hold .* 1 \(present\) or NaN .* values\.$"),
    "rule to stop by": (with_label(3), [VALIDATE], r"eval_set\[1\] must hold .*\[7, 2\] is 3"),
    "probabilities": (with_label(0.5), [VALIDATE, ASK], SOFT),
    "clips missing": (lambda X, Y: (X, Y[:299]), [FIT, GO_ON, VALIDATE, ASK], r"\[300, 299\]"),
    "tags missing": (lambda X, Y: (X, Y[:, :3]), [GO_ON, VALIDATE, ASK], "4 tags. Got 3 columns"),
    "one column": (lambda X, Y: (X, Y[:, 0]), [GO_ON, ASK], "Expected 2D array, got 1D array"),
    "features missing": (lambda X, Y: (X[:, :5], Y), [GO_ON, VALIDATE, ASK], "X has 5 features"),
}  # fmt: skip


@pytest.mark.parametrize("case", LABELLED)
def test_clips_and_labels_that_do_not_fit(train, fitted, case):
    change, kinds, message = LABELLED[case]
    by_kind = uses(fitted, train, *change(*train))
    for use in (use for kind in kinds for use in by_kind[kind]):
        if case == "clips missing" and use is by_kind[ASK][0]:
            continue  # a score of clips without labels is scikit-learn's to refuse
        with pytest.raises(ValueError, match=message):
            use()


def test_tags_without_a_known_label_are_named(train):
    Y = changed(train.Y, (slice(None), [1, 3]), np.nan)
    named = pd.DataFrame(Y, columns=["rock", "jazz", "piano", "slow"])
    for use in (quick().fit, quick().partial_fit):
        with pytest.raises(DataError, match=r"Tag 'jazz' \(column 1\) and 1 more has none"):
            use(train.X, named)
    with pytest.raises(DataError, match=r"Tag 1 \(column 1\) has none"):
        quick().fit(train.X, Y[:, :3])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.arange(300) % 3, "Only binary classification is supported.* a list of tags"),
        (np.linspace(0, 1, 300), "Unknown label type: continuous"),
        (np.full(300, "rock"), "only one class, 'rock'"),
        (np.r_[np.nan, np.ones(299)], "y contains NaN"),
        (None, "the target y is None"),
        (np.zeros((300, 2, 2)), "dim 3"),
        (np.zeros((300, 0)), r"0 feature\(s\)"),
        (5, "got scalar array"),
    ],
)
def test_labels_of_the_wrong_kind(train, y, message):
    for use in (quick().fit, quick().partial_fit):
        with pytest.raises(ValueError, match=message):
            use(train.X, y)


def test_nothing_is_done_before_fit(train, tmp_path):
    model = quick()
    uses = [partial(use, train.X) for use in (model.predict, model.predict_proba, model.infer)]
    uses += [partial(model.complete, *train), partial(model.score, *train)]
    uses += [partial(getattr, model, "params_")]
    for use in (*uses, partial(model.save, tmp_path / "model")):
        with pytest.raises(NotFittedError, match="DiscriminativeRBM instance is not fitted yet"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_a_fit_that_is_refused_leaves_the_model_that_there_was(train, fitted):
    model = altered(fitted)
    wrong = changed(train.Y, (0, 0), 7)
    with pytest.raises(DataError):
        model.fit(train.X, train.Y[:, :3], eval_set=(train.X, wrong[:, :3]))
    np.testing.assert_array_equal(model.predict_proba(train.X), fitted.predict_proba(train.X))
    assert model.tags_.tolist() == [0, 1, 2, 3]


def test_one_clip_is_not_enough_to_learn_from(train, fitted):
    for X, Y in ((train.X[:1], train.Y[:1]), (train.X[:1], [["rock"]])):
        with pytest.raises(ValueError, match=r"1 sample.*minimum of 2 is required by Disc"):
            quick().fit(X, Y)
    assert fitted.predict_proba(train.X[:1]).shape == (1, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: changed(X, (3, 2), np.nan), "X contains NaN"),
        (lambda X: X[:, :, None], "dim 3"),
        (sparse.csr_matrix, "dense data is required"),
    ],
)
def test_features_that_cannot_be_used(train, fitted, change, message):
    """scikit-learn's own checks have more of them, for fit and predict."""
    X = change(train.X)
    uses = [partial(use, X) for use in (fitted.predict_proba, fitted.infer)]
    uses += [partial(quick().partial_fit, X, train.Y)]
    for use in (*uses, partial(quick().fit, *train, eval_set=(X, train.Y))):
        with pytest.raises((ValueError, TypeError), match=message):
            use()
