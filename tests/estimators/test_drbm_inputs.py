"""Every form of features and labels, and what a scikit-learn user does with a classifier."""

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


@pytest.fixture(params=FRAMES)
def frame(request):
    """Makes a frame of an array and the names of its columns."""
    return FRAMES[request.param]


class TestFrames:
    @pytest.fixture
    def named(self, train, frame):
        """A model of frames, and the frames."""
        X, Y = frame(train.X, FEATURES), frame(train.Y, TAGS)
        return quick(max_epochs=3).fit(X, Y), X, Y

    def test_their_columns_give_the_names(self, named):
        model, _, _ = named
        assert model.feature_names_in_.tolist() == FEATURES
        assert model.tags_.tolist() == TAGS
        assert model.n_features_in_ == N_FEATURES

    def test_they_give_the_model_of_their_values(self, named, train, reference, frame):
        model, X, _ = named
        assert_same_model(model, reference, train.X, lambda X: frame(X, FEATURES))
        known = train.Y.copy()
        known[:, 0] = np.nan
        completed = model.complete(X, frame(known, TAGS))
        np.testing.assert_array_equal(completed, reference.complete(train.X, known))

    @pytest.mark.parametrize("method", ["score", "complete", "partial_fit"])
    def test_tags_in_another_order_are_refused(self, named, train, frame, method):
        model, X, _ = named
        other = frame(train.Y[:, ::-1], TAGS[::-1])
        with pytest.raises(ValueError, match=r"columns of y must be the model's tags"):
            getattr(model, method)(X, other)

    def test_an_eval_set_with_tags_in_another_order_is_refused(self, named, train, frame):
        model, X, Y = named
        other = frame(train.Y[:, ::-1], TAGS[::-1])
        with pytest.raises(ValueError, match=r"columns of eval_set\[1\] .*'slow'"):
            clone(model).fit(X, Y, eval_set=(X, other))

    def test_features_in_another_order_are_refused(self, named, train, frame):
        model, _, _ = named
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame(train.X, FEATURES[::-1]))


MISSING = {
    "pandas": lambda Y: pd.DataFrame(Y, columns=TAGS).astype("Int64"),
    "pandas booleans": lambda Y: pd.DataFrame(Y, columns=TAGS).astype("boolean"),
    "polars": lambda Y: pl.DataFrame(Y, schema=TAGS).fill_nan(None).cast(pl.Int8),
    "polars booleans": lambda Y: pl.DataFrame(Y, schema=TAGS).fill_nan(None).cast(pl.Boolean),
}


@pytest.mark.parametrize("form", MISSING)
def test_missing_values_of_frames_are_unknown_labels(train, form):
    unknown = train.Y.copy()
    unknown[::4, 1] = np.nan
    frame = MISSING[form](unknown)
    n_missing = frame["jazz"].isna().sum() if form[:2] == "pa" else frame["jazz"].null_count()
    assert n_missing == 75
    expected = quick(max_epochs=3).fit(train.X, unknown)
    assert_same_model(quick(max_epochs=3).fit(train.X, frame), expected, train.X)


def test_arrays_number_the_tags(reference):
    assert reference.tags_.tolist() == [0, 1, 2, 3]
    assert not hasattr(reference, "feature_names_in_")


def test_tags_may_have_numbers_as_names(train):
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


class TestOneColumnOfTwoClasses:
    NAMES = np.array(["absent", "present"])

    @pytest.fixture
    def y(self, train):
        return self.NAMES[train.Y[:, 0].astype(int)]

    @pytest.fixture
    def y_new(self, held_out):
        return self.NAMES[held_out.Y[:, 0].astype(int)]

    @pytest.fixture
    def model(self, train, held_out, y, y_new):
        return quick().fit(train.X, y, eval_set=(held_out.X, y_new))

    def test_probabilities_are_those_of_both_classes(self, model, held_out):
        assert model.classes_.tolist() == ["absent", "present"]
        P = model.predict_proba(held_out.X)
        assert P.shape == (200, 2)
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-6)

    def test_the_more_probable_class_is_predicted(self, model, held_out):
        P = model.predict_proba(held_out.X)
        np.testing.assert_array_equal(model.predict(held_out.X), self.NAMES[P.argmax(axis=1)])

    def test_labels_to_score_by_are_classes(self, model, held_out, y_new):
        assert model.score(held_out.X, y_new) > 0.9
        assert model.score(held_out.X[:5], y_new[:5].tolist()) <= 1

    def test_an_eval_set_may_have_one_class(self, train, held_out, y):
        only = np.full(200, "present")  # by itself, one class would be coded as 0
        model = quick(max_epochs=2).fit(train.X, y, eval_set=(held_out.X, only))
        assert np.isnan(model.history_["auc"]).all()

    def test_another_class_is_refused(self, train, held_out, y):
        with pytest.raises(ValueError, match=r"eval_set\[1\] .*'absent'.*'maybe'"):
            quick().fit(train.X, y, eval_set=(held_out.X, np.full(200, "maybe")))


@pytest.mark.parametrize("n_tags", [1, 2, 4])
@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision"])
def test_scikit_learns_scorers_see_the_tags_as_labels(train, held_out, scoring, n_tags):
    from sklearn.metrics import average_precision_score, get_scorer, roc_auc_score

    Y = held_out.Y[:, :n_tags]
    model = quick(max_epochs=3).fit(train.X, train.Y[:, :n_tags], eval_set=(held_out.X, Y))
    metric = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}[scoring]
    expected = metric(Y, model.predict_proba(held_out.X))
    assert get_scorer(scoring)(model, held_out.X, Y) == pytest.approx(expected)


class TestNamedTags:
    @pytest.fixture
    def model(self, train):
        names = [f"tag {j}" for j in range(train.Y.shape[1])]
        return quick(max_epochs=3).fit(train.X, pl.DataFrame(train.Y, schema=names))

    @pytest.mark.parametrize("form", ["mapping", "lists", "series"])
    def test_known_tags_may_be_named(self, model, held_out, form):
        known = np.full(held_out.Y.shape, np.nan, np.float32)
        known[:, 1] = 1
        lists = [["tag 1"] for _ in known]
        named = {"mapping": {"tag 1": 1}, "lists": lists, "series": pl.Series(lists)}[form]
        expected = model.complete(held_out.X, known)
        np.testing.assert_array_equal(model.complete(held_out.X, named), expected)

    def test_probabilities_are_a_frame(self, model, held_out):
        frame = model.predict_frame(held_out.X)
        assert frame.columns == model.tags_.tolist()
        np.testing.assert_array_equal(frame.to_numpy(), model.predict_proba(held_out.X))

    @pytest.mark.parametrize("is_mapping", [True, False])
    def test_an_unknown_name_is_refused(self, model, held_out, is_mapping):
        named = {"tag x": 1} if is_mapping else [["tag x"]] * len(held_out.X)
        with pytest.raises(DataError, match=r"tag 'tag x'.* Did you mean"):
            model.complete(held_out.X, named)


def test_a_model_of_numbered_tags_takes_no_names(reference, held_out):
    with pytest.raises(DataError, match=r"tag 'tag 1'.* to name them, fit with a frame"):
        reference.complete(held_out.X, {"tag 1": 1})
    with pytest.raises(DataError, match="to name them, fit with a frame"):
        reference.score(held_out.X, [["tag 1"], *[[]] * (len(held_out.X) - 1)])


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


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(("name", "value"), WRONG_SETTINGS)
def test_a_wrong_setting_is_named(train, name, value, method):
    message = rf"The '{name}' parameter of DiscriminativeRBM must be .* Got {value!r} instead"
    with pytest.raises(ValueError, match=message):
        getattr(quick(**{name: value}), method)(*train)


@pytest.mark.parametrize("name", ["training", "inference"])
def test_the_choices_are_named(train, name):
    with pytest.raises(ValueError, match="'lbp'"):
        quick(**{name: "nothing"}).fit(*train)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("setting", ["inference", "training"])
def test_too_large_an_enumeration_is_refused_before_training(monkeypatch, setting, method):
    monkeypatch.setattr("harmonium.estimators.trainer.train_stack", None)  # would fail
    model = quick(n_hidden=21, **{setting: "exact"})
    message = rf"{setting}='exact'.* 20 units.*Got 21 hidden units and 21 tags"
    with pytest.raises(DataError, match=message):
        getattr(model, method)(np.zeros((30, 2)), np.eye(30)[:, :21])


@pytest.mark.parametrize("method", ["predict_proba", "predict", "infer"])
def test_too_large_an_enumeration_is_refused_of_a_fitted_model(
    fitted, held_out, monkeypatch, method
):
    """What counts is what was fitted, not what the settings have become since."""
    monkeypatch.setattr("harmonium.rbm.inference.MAX_UNITS", 3)
    model = altered(fitted, inference="exact", n_hidden=2)
    with pytest.raises(DataError, match=r"at most 3 units.* Got 8 hidden units and 4 tags"):
        getattr(model, method)(held_out.X)


def changed(array, position, value):
    array = np.array(array, dtype=object if isinstance(value, str) else None)
    array[position] = value
    return array


@pytest.mark.parametrize("method", ["fit", "predict_proba"])
@pytest.mark.parametrize("form", [list, np.array, pd.Series, lambda paths: [*map(Path, paths)]])
def test_paths_instead_of_features_are_told_where_to_go(train, fitted, form, method):
    paths = form([f"{i}.mp3" for i in range(len(train.X))])
    use = {"fit": lambda X: quick().fit(X, train.Y), "predict_proba": fitted.predict_proba}[method]
    with pytest.raises(DataError, match=r"0\.mp3.*make_pipeline\(harmonium\.AudioFeatures\(\)"):
        use(paths)


# Every way to hand over labelled clips: to a new model, to one that goes on, …
USES = {
    "fit": lambda model, train, X, Y: quick().fit(X, Y),
    "partial_fit": lambda model, train, X, Y: quick().partial_fit(X, Y),
    "more partial_fit": lambda model, train, X, Y: altered(model).partial_fit(X, Y),
    "warm start": lambda model, train, X, Y: altered(model, warm_start=True).fit(X, Y),
    "eval_set": lambda model, train, X, Y: quick().fit(*train, eval_set=(X, Y)),
    "score": lambda model, train, X, Y: model.score(X, Y),
    "complete": lambda model, train, X, Y: model.complete(X, Y),
    "infer": lambda model, train, X, Y: model.infer(X, Y),
}
FIT = ["fit", "partial_fit"]
GO_ON = ["more partial_fit", "warm start"]
VALIDATE = ["eval_set"]
ASK = ["score", "complete", "infer"]
EVERY = [*FIT, *GO_ON, *VALIDATE, *ASK]


def with_label(value):
    return lambda X, Y: (X, changed(Y, (7, 2), value))


def without(rows=0, columns=0, features=0):
    """Leaves out the last clips, tags or features."""
    return lambda X, Y: (
        X[:, : X.shape[1] - features],
        Y[: len(Y) - rows, : Y.shape[1] - columns],
    )


SOFT = r"\[7, 2\] is 0\.5, .* Only the y of fit"
TO_LEARN = r"1 \(present\), a probability between, or NaN"
TO_ASK = r"y must hold .* 1 \(present\) or NaN .* values\.$"
TO_STOP = r"eval_set\[1\] must hold .*\[7, 2\] is 3"
LABELLED = {
    "above 1": (with_label(1.5), EVERY, r"\[7, 2\] is 1\.5, one of 1 such"),
    "below 0": (with_label(-1), EVERY, r"\[7, 2\] is -1, one of 1 such"),
    "infinite": (with_label(np.inf), EVERY, "contains infinity"),
    "words": (with_label("rock"), EVERY, "'rock'"),
    "rule to learn": (with_label(2), [*FIT, *GO_ON], TO_LEARN),
    "rule to ask": (with_label(2), ASK, TO_ASK),
    "rule to stop by": (with_label(3), VALIDATE, TO_STOP),
    "probabilities": (with_label(0.5), [*VALIDATE, *ASK], SOFT),
    # a score of clips without labels is scikit-learn's to refuse
    "clips missing": (without(rows=1), [use for use in EVERY if use != "score"], r"\[300, 299\]"),
    "tags missing": (without(columns=1), [*GO_ON, *VALIDATE, *ASK], "4 tags. Got 3 columns"),
    "one column": (lambda X, Y: (X, Y[:, 0]), [*GO_ON, *ASK], "Expected 2D array, got 1D array"),
    "features missing": (without(features=1), [*GO_ON, *VALIDATE, *ASK], "X has 5 features"),
}
CASES = [(case, use) for case, (_, uses, _) in LABELLED.items() for use in uses]


@pytest.mark.parametrize(("case", "use"), CASES)
def test_clips_whose_labels_do_not_fit(train, fitted, case, use):
    change, _, message = LABELLED[case]
    X, Y = change(*train)
    with pytest.raises(ValueError, match=message):
        USES[use](fitted, train, X, Y)


@pytest.mark.parametrize("method", FIT)
def test_tags_without_a_known_label_are_named(train, method):
    Y = changed(train.Y, (slice(None), [1, 3]), np.nan)
    named = pd.DataFrame(Y, columns=["rock", "jazz", "piano", "slow"])
    with pytest.raises(DataError, match=r"Tag 'jazz' \(column 1\) and 1 more has none"):
        getattr(quick(), method)(train.X, named)


def test_a_tag_without_a_known_label_is_numbered(train):
    Y = changed(train.Y[:, :3], (slice(None), 1), np.nan)
    with pytest.raises(DataError, match=r"Tag 1 \(column 1\) has none"):
        quick().fit(train.X, Y)


@pytest.mark.parametrize("method", FIT)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.arange(300) % 3, "Only binary classification is supported.* a list of tags"),
        (np.linspace(0, 1, 300), "Unknown label type: continuous"),
        (np.full(300, "rock"), "only one class, 'rock'"),
        (np.r_[np.nan, np.ones(299)], "y contains NaN"),
        (None, "the target y is None"),
        (np.zeros((300, 2, 2)), "dim 3"),
        (np.zeros((300, 0)), r"y has no tags: .* shape \(300, 0\)"),
        (5, "got scalar array"),
    ],
)
def test_labels_of_the_wrong_kind(train, y, message, method):
    with pytest.raises(ValueError, match=message):
        getattr(quick(), method)(train.X, y)


BEFORE_FIT = {
    "predict": lambda model, X, Y: model.predict(X),
    "predict_proba": lambda model, X, Y: model.predict_proba(X),
    "infer": lambda model, X, Y: model.infer(X),
    "complete": lambda model, X, Y: model.complete(X, Y),
    "score": lambda model, X, Y: model.score(X, Y),
    "params_": lambda model, X, Y: model.params_,
}


@pytest.mark.parametrize("use", BEFORE_FIT)
def test_a_model_must_be_fitted_first(train, use):
    with pytest.raises(NotFittedError, match="DiscriminativeRBM instance is not fitted yet"):
        BEFORE_FIT[use](quick(), *train)


def test_a_model_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError, match="DiscriminativeRBM instance is not fitted yet"):
        quick().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_fit_that_is_refused_leaves_the_model_that_there_was(train, fitted):
    model = altered(fitted)
    wrong = changed(train.Y, (0, 0), 7)
    with pytest.raises(DataError):
        model.fit(train.X, train.Y[:, :3], eval_set=(train.X, wrong[:, :3]))
    np.testing.assert_array_equal(model.predict_proba(train.X), fitted.predict_proba(train.X))
    assert model.tags_.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("names_tags", [False, True])
def test_one_clip_is_not_enough_to_learn_from(train, names_tags):
    Y = [["rock"]] if names_tags else train.Y[:1]
    with pytest.raises(ValueError, match=r"1 sample.*minimum of 2 is required by Disc"):
        quick().fit(train.X[:1], Y)


def test_one_clip_is_enough_to_predict(train, fitted):
    assert fitted.predict_proba(train.X[:1]).shape == (1, 4)


USES_OF_FEATURES = {
    "predict_proba": lambda model, train, X: model.predict_proba(X),
    "infer": lambda model, train, X: model.infer(X),
    "partial_fit": lambda model, train, X: quick().partial_fit(X, train.Y),
    "eval_set": lambda model, train, X: quick().fit(*train, eval_set=(X, train.Y)),
}


@pytest.mark.parametrize("use", USES_OF_FEATURES)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: changed(X, (3, 2), np.nan), "X contains NaN"),
        (lambda X: X[:, :, None], "dim 3"),
    ],
    ids=["NaN", "three axes"],
)
def test_features_that_cannot_be_used(train, fitted, change, message, use):
    """scikit-learn's own checks have more of them, for fit and predict."""
    with pytest.raises((ValueError, TypeError), match=message):
        USES_OF_FEATURES[use](fitted, train, change(train.X))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[]] * 300, "at least one tag in its lists"),
        (pl.DataFrame(), "y has no tags"),
        ([], "y is empty"),
    ],
    ids=["empty lists", "empty frame", "empty"],
)
def test_labels_without_a_tag_are_refused_as_such(train, labels, message):
    with pytest.raises(DataError, match=message):
        quick().fit(train.X, labels)
