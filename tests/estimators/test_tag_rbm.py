"""The RBM over tags alone: completing, sampling and judging sets of tags, against enumeration."""

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from tagging_data import paired_model, tag_distribution

import harmonium
from harmonium import TagRBM
from harmonium.errors import DataError, ModelFileError

QUICK = {"n_hidden": 8, "learning_rate": 0.03, "l2": 0.0, "max_epochs": 100, "random_state": 0}
N_TAGS = 4
NAN = np.nan


def true_distribution():
    """All sets of four tags, of which two pairs go together, and their probabilities."""
    model = paired_model()
    states, p = tag_distribution(model._replace(W=model.W[:, :0]), np.zeros((1, 0)))
    return states, p[0]


def drawn(n_clips, seed):
    states, p = true_distribution()
    return states[np.random.default_rng(seed).choice(len(p), n_clips, p=p)]


@pytest.fixture(scope="module")
def model():
    return TagRBM(inference="exact", **QUICK).fit(drawn(300, 0))


@pytest.fixture(scope="module")
def distribution(model):
    """What the model has learnt: all sets of tags, and the probability of each."""
    states, p = tag_distribution(model.params_, np.zeros((1, 0)))
    return states, p[0]


@pytest.mark.parametrize("training", ["cd", "pcd", "pl", "exact"])
def test_it_learns_which_tags_go_together(training):
    """The first two of four tags do; neither goes with the last."""
    settings = {"training": training, "training_steps": None}
    model = TagRBM(**{**QUICK, **settings}).fit(drawn(300, 0))
    alone = model.complete({})[0]
    given = model.complete([[1, NAN, NAN, NAN]])[0]
    assert given[1] > alone[1] + 0.05
    assert abs(given[3] - alone[3]) < 0.6 * (given[1] - alone[1])


def test_completion_is_the_enumeration_given_the_known_tags(model, distribution):
    states, p = distribution
    known = np.array([[1, NAN, NAN, 0], [NAN] * 4, [0, 1, 0, 1]])
    for row, completed in zip(known, model.complete(known), strict=True):
        agrees = (states == row) | np.isnan(row)
        weights = p * agrees.all(axis=1)
        np.testing.assert_allclose(completed, weights @ states / weights.sum(), atol=1e-5)


def test_samples_have_the_frequencies_of_the_distribution(model, distribution):
    states, p = distribution
    for observed, agrees in ((None, p > 0), ({1: 1}, states[:, 1] == 1)):
        tags = model.sample(2000, observed=observed, steps=200, random_state=0)
        assert tags.dtype == np.int64
        share = (tags[:, None] == states[None]).all(axis=2).mean(axis=0)
        expected = p * agrees / (p * agrees).sum()
        np.testing.assert_allclose(share, expected, atol=4 * np.sqrt(expected.max() / 2000))
    again = model.sample(2000, observed={1: 1}, steps=200, random_state=0)
    np.testing.assert_array_equal(tags, again)
    assert (model.sample(2000, steps=200, random_state=1) != again).any()


@pytest.fixture(scope="module")
def agrees(distribution):
    """Which states have the first tag, and not the fourth: those of PARTLY."""
    states, _ = distribution
    return (states[:, 0] == 1) & (states[:, 3] == 0)


PARTLY = np.array([[1, NAN, NAN, 0.0]])


def test_log_likelihoods_are_those_of_the_distribution(model, distribution, agrees):
    states, p = distribution
    np.testing.assert_allclose(model.score_samples(states), np.log(p), atol=1e-5)
    assert model.score(states) == pytest.approx(np.log(p).mean(), abs=1e-5)
    found = model.log_likelihood(PARTLY)
    np.testing.assert_allclose(found.value, np.log(p[agrees].sum()), atol=1e-5)
    assert found.error[0] == 0


def test_joint_decisions_are_those_of_the_distribution(model, distribution, agrees):
    states, p = distribution
    best = states[agrees][p[agrees].argmax()]
    np.testing.assert_array_equal(model.predict_joint(PARTLY)[0], best)


def test_unknown_tags_are_neither_present_nor_absent():
    """The first tag is unknown more often when it is present."""
    Y = drawn(2000, 1)
    share = Y[:, 0].mean()
    hidden = np.random.default_rng(0).random(len(Y)) < np.where(Y[:, 1] == 1, 0.8, 0.1)
    Y[hidden, 0] = NAN
    settings = {**QUICK, "max_epochs": 30, "inference": "exact"}
    left_out, as_zeros = (TagRBM(**settings).fit(tags) for tags in (Y, np.nan_to_num(Y)))
    # known tags alone would give a lower share, and zeros a lower one still
    assert np.nanmean(Y[:, 0]) < share - 0.1
    assert left_out.complete({})[0, 0] > np.nanmean(Y[:, 0]) + 0.05
    assert as_zeros.complete({})[0, 0] < np.nanmean(Y[:, 0])


CLIPS = 30 * [["rock", "guitar"], ["techno"], ["rock", "guitar", "live"]]


@pytest.fixture(scope="module")
def by_lists():
    return TagRBM(**QUICK).fit(CLIPS)


def test_tags_have_their_names_from_lists(by_lists):
    assert by_lists.tags_.tolist() == ["guitar", "live", "rock", "techno"]
    assert by_lists.n_features_in_ == 4
    guitar = by_lists.complete([["rock"], ["techno"]])[:, 0]
    assert guitar[0] > 0.8 > 0.2 > guitar[1]
    with pytest.raises(DataError, match=r"names the tag 'rok'.*'rock'"):
        by_lists.complete({"rok": 1})


def test_a_frame_is_learnt_as_lists_are(by_lists):
    frame = pl.DataFrame(
        {tag: [float(tag in clip) for clip in CLIPS] for tag in by_lists.tags_.tolist()}
    )
    by_frame = TagRBM(**QUICK).fit(frame)
    np.testing.assert_array_equal(by_lists.params_.U, by_frame.params_.U)
    # a list is all of a clip's tags where sets are judged
    assert by_lists.score(CLIPS) == pytest.approx(by_lists.score(frame))


def test_training_stops_early_at_the_best_epoch():
    model = TagRBM(**{**QUICK, "max_epochs": 200, "patience": 3}).fit(drawn(300, 2))
    scores = model.history_["validation"]
    assert model.n_iter_ == len(scores) < 200
    assert model.best_epoch_ == 1 + int(np.argmax(scores))


def test_training_without_held_out_clips_keeps_the_last_epoch():
    alone = TagRBM(**{**QUICK, "max_epochs": 5, "validation_fraction": 0.0}).fit(drawn(300, 2))
    assert np.isnan(alone.history_["validation"]).all()
    assert alone.best_epoch_ == 5


def test_probabilities_are_learnt_from():
    Y = drawn(300, 3)
    soft = np.where(Y == 1, 0.9, 0.1)
    for training in ("cd", "pl"):
        settings = {**QUICK, "training": training, "inference": "exact"}
        share = TagRBM(**settings).fit(soft).complete({})[0]
        np.testing.assert_allclose(share, soft.mean(axis=0), atol=0.08)


def test_a_file_holds_the_model(model, tmp_path):
    file = tmp_path / "tags.safetensors"
    model.save(file)
    known = np.array([[1, NAN, NAN, 0]])
    for loaded in (TagRBM.load(file), harmonium.load(file)):
        np.testing.assert_array_equal(loaded.complete(known), model.complete(known))
        assert loaded.tags_.tolist() == model.tags_.tolist()
        assert loaded.history_ == model.history_
    with pytest.raises(DataError, match="shapes"):
        TagRBM.load(file).set_params(n_hidden=9).complete(known)
    with pytest.raises(ModelFileError, match="holds a TagRBM"):
        harmonium.DiscriminativeRBM.load(file)


def test_scikit_learn_searches_its_settings():
    search = GridSearchCV(TagRBM(**QUICK), {"n_hidden": [1, 8]}, cv=2)
    search.fit(drawn(300, 0))
    assert search.best_params_ == {"n_hidden": 8}


def test_scikit_learn_clones_it(model):
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda model: model.sample(0), "n_samples and steps must be at least 1"),
        (lambda model: model.sample(2, observed=[[1, 0, NAN, NAN]] * 2), "observed must be tag"),
        (lambda model: model.predict_joint({}, beams=0), "beams must be at least 1"),
        (lambda model: clone(model).fit([1, 0, 1]), "a column for each tag"),
        (lambda model: clone(model).fit([[0, 2.0]] * 30), r"y\[0, 1\] is 2"),
        (lambda model: clone(model).fit([[0, NAN]] * 30), "at least one known label"),
        (
            lambda model: TagRBM(21, training="exact").fit(np.eye(30)[:, :21]),
            "training='exact'.* 20 units.* Got 21 hidden units and 21 tags",
        ),
        (
            lambda model: TagRBM(21, inference="exact").fit(np.eye(30)[:, :21]),
            "inference='exact'.* 20 units.* Got 21 hidden units and 21 tags",
        ),
    ],
)
def test_errors_name_what_is_wrong(model, use, message):
    with pytest.raises(DataError, match=message):
        use(model)
