"""Weights of clips and classes: a weight of 2 is a clip twice, where chance has no part in it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from tagging_data import quick

import harmonium
from harmonium.errors import DataError
from harmonium.estimators import (
    ChainTagger,
    CooccurrenceTagger,
    DiscriminativeRBM,
    GenerativeRBM,
    LogisticTagger,
    MLPTagger,
    NaiveBayesTagger,
    SVMTagger,
    TagRBM,
)
from harmonium.estimators.scaling import standardising
from harmonium.estimators.targets import read_targets
from harmonium.estimators.validation import log_likelihood, matching_thresholds, mean_auc
from harmonium.estimators.weights import read_weights

N, D, C = 60, 4, 3
SOLVED = [
    LogisticTagger(solver="newton"),
    LogisticTagger(solver="newton", scale_features="idf", class_weight="balanced"),
    ChainTagger(3, random_state=0),
    ChainTagger(3, random_state=0, class_weight={0: 1, 1: 3}),
    CooccurrenceTagger(),
    NaiveBayesTagger(),
]
# one minibatch of all clips, and nothing held out: no chance but that of the starting weights
WHOLE = {
    "max_epochs": 30,
    "random_state": 0,
    "averaging": 0,
    "batch_size": 1000,
    "optimizer": "sgd",
}
ALONE = {**WHOLE, "validation_fraction": 0.0}
TRAINED = [
    LogisticTagger(learning_rate=0.5, **ALONE),
    LogisticTagger(learning_rate=0.5, **ALONE, class_weight="balanced"),
    MLPTagger(5, n_models=1, learning_rate=0.1, **ALONE),
    DiscriminativeRBM(5, n_models=1, training="mean_field", learning_rate=0.1, **ALONE),
    DiscriminativeRBM(5, n_models=1, training="exact", learning_rate=0.1, **ALONE),
]


@pytest.fixture(scope="module")
def clips():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    Y = (X[:, :C] + rng.normal(size=(N, C)) > 0.5).astype(float)
    Y[::7, 1] = np.nan
    return X, Y


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(1).integers(0, 4, N)


@pytest.fixture(scope="module")
def counts():
    """Weights whose sum is N: as many repeated rows as there are clips, so chance is the same."""
    return np.bincount(np.random.default_rng(1).integers(0, N, N), minlength=N)


@pytest.mark.parametrize("model", SOLVED, ids=repr)
def test_an_integer_weight_is_a_repetition(model, clips, weights):
    check_repetition(model, clips, weights)


@pytest.mark.parametrize("model", TRAINED, ids=lambda model: type(model).__name__)
def test_an_integer_weight_is_a_repetition_for_a_batch_of_all_clips(model, clips, counts):
    check_repetition(model, clips, counts)


def check_repetition(model, clips, weights):
    X, Y = clips
    weighted = model.fit(X, Y, sample_weight=weights)
    P = weighted.predict_proba(X)
    thresholds = weighted.thresholds_
    rows = np.repeat(np.arange(N), weights)
    repeated = model.fit(X[rows], Y[rows])
    np.testing.assert_allclose(P, repeated.predict_proba(X), atol=2e-5)
    np.testing.assert_allclose(thresholds, repeated.thresholds_, atol=2e-5)
    alike = model.fit(X, Y)
    assert np.abs(P - alike.predict_proba(X)).max() > 0.01
    np.testing.assert_array_equal(
        alike.predict_proba(X), model.fit(X, Y, sample_weight=np.ones(N)).predict_proba(X)
    )


def test_an_integer_weight_is_a_repetition_for_the_svm_if_all_clips_are_examples(clips, weights):
    X, Y = clips
    model = SVMTagger(nu=0.3, balanced=False, scale_features="none", random_state=0)
    weighted = model.fit(X, Y, sample_weight=weights).decision_function(X)
    rows = np.repeat(np.arange(N), weights)
    repeated = model.fit(X[rows], Y[rows]).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, atol=0.02)
    assert np.abs(weighted - model.fit(X, Y).decision_function(X)).max() > 0.1


def test_an_integer_weight_is_a_repetition_for_tags_alone(clips, counts):
    Y = clips[1]
    settings = {"training": "exact", "validation_fraction": 0.0, "learning_rate": 0.1}
    model = TagRBM(n_hidden=4, max_epochs=5, random_state=0, batch_size=1000, **settings)
    weighted = model.fit(Y, sample_weight=counts).complete(Y)
    rows = np.repeat(np.arange(N), counts)
    np.testing.assert_allclose(weighted, model.fit(Y[rows]).complete(Y), atol=1e-4)
    assert np.abs(weighted - model.fit(Y).complete(Y)).max() > 0.01


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1, 1: 4}, [{1: 2}, {0: 3}, {1: 0.5}]])
def test_class_weights_are_those_of_scikit_learn(class_weight, clips):
    X, Y = clips
    Y = np.nan_to_num(Y)
    model = LogisticTagger(solver="newton", class_weight=class_weight, l2=0.01).fit(X, Y)
    scaled = standardising(X)(X)
    per_tag = class_weight if isinstance(class_weight, list) else [class_weight] * C
    for tag, weight in enumerate(per_tag):
        theirs = LogisticRegression(
            C=1 / (N * 0.01), class_weight=weight, solver="newton-cholesky", tol=1e-8
        )
        expected = theirs.fit(scaled, Y[:, tag]).predict_proba(scaled)[:, 1]
        np.testing.assert_allclose(model.predict_proba(X)[:, tag], expected, atol=1e-4)


def test_sample_weights_multiply_class_weights(clips, weights):
    X, Y = clips
    Y = np.nan_to_num(Y)[:, :1]
    model = LogisticTagger(solver="newton", class_weight={1: 5}, scale_features="none")
    both = model.fit(X, Y, sample_weight=weights).predict_proba(X)
    product = weights * np.where(Y[:, 0] == 1, 5, 1)
    # the penalty is relative to the weights of the clips, without those of the classes
    alone = LogisticTagger(
        solver="newton", scale_features="none", l2=1e-3 * weights.mean() / product.mean()
    )
    expected = alone.fit(X, Y, sample_weight=product).predict_proba(X)
    np.testing.assert_allclose(both, expected, atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        quick(max_epochs=30),
        quick(max_epochs=30, calibrate=False),
        MLPTagger(8, n_models=2, max_epochs=30, learning_rate=0.03, random_state=0),
        GenerativeRBM(8, inference="mean_field", learning_rate=0.03, max_epochs=30, random_state=0),
    ],
    ids=["drbm", "not calibrated", "mlp", "generative"],
)
@pytest.mark.filterwarnings("ignore:Training ended")
def test_heavy_positives_raise_probabilities_to_those_of_the_weighted_clips(model, train):
    labels = train.Y[:, 0]
    plain = model.fit(train.X, labels).predict_proba(train.X)[:, 1].mean()
    heavy = model.set_params(class_weight={0: 1, 1: 6}).fit(train.X, labels)
    raised = heavy.predict_proba(train.X)[:, 1].mean()
    model.set_params(class_weight=None)
    assert plain == pytest.approx(labels.mean(), abs=0.08)
    assert raised > plain + 0.1
    weight = np.where(labels == 1, 6, 1)
    assert np.average(heavy.predict_proba(train.X)[:, 1], weights=weight) == pytest.approx(
        np.average(labels, weights=weight), abs=0.1
    )


@pytest.mark.filterwarnings("ignore:Training ended")
def test_class_weights_of_several_tags_act_on_each_tag(train):
    only_first = [{1: 8}, *[{}] * (train.Y.shape[1] - 1)]
    settings = {"training": "multi_prediction", "max_epochs": 30}
    model = quick(**settings).fit(*train)
    weighted = quick(**settings, class_weight=only_first).fit(*train)
    change = weighted.predict_proba(train.X).mean(axis=0) - model.predict_proba(train.X).mean(
        axis=0
    )
    assert change[0] > 0.1
    assert np.abs(change[1:]).max() < 0.05


def test_clips_of_weight_0_count_nowhere(train):
    """Clips with the weight 0 may say anything about their labels."""
    rng = np.random.default_rng(0)
    X = np.vstack([train.X, train.X])
    Y = np.vstack([train.Y, (rng.random(train.Y.shape) < 0.9).astype(np.float32)])
    weight = np.repeat([1.0, 0.0], len(train.X))
    model = quick(max_epochs=30, n_models=2)
    P = model.fit(X, Y, sample_weight=weight).predict_proba(train.X)
    np.testing.assert_allclose(P.mean(axis=0), np.nanmean(train.Y, axis=0), atol=0.06)
    said = model.predict(train.X).mean(axis=0)
    np.testing.assert_allclose(said, np.nanmean(train.Y, axis=0), atol=0.08)
    assert model.fit(X, Y).predict_proba(train.X).mean() > P.mean() + 0.1


def test_scores_by_weight_are_those_of_repetitions():
    rng = np.random.default_rng(0)
    Y = (rng.random((N, C)) < 0.4).astype(np.float32)
    Y[::5, 0] = np.nan
    P = rng.random((N, C)).astype(np.float32).round(2)
    weight = rng.integers(0, 4, N)
    rows = np.repeat(np.arange(N), weight)
    column = weight[:, None].astype(np.float32)
    assert mean_auc(Y, P, column) == pytest.approx(mean_auc(Y[rows], P[rows]))
    assert log_likelihood(Y, P, column) == pytest.approx(log_likelihood(Y[rows], P[rows]), rel=1e-5)
    weighted = matching_thresholds(Y, P, column)
    np.testing.assert_allclose(weighted, matching_thresholds(Y[rows], P[rows]))


@pytest.mark.filterwarnings("ignore:Training ended")
def test_the_score_method_takes_weights(train):
    model = quick(max_epochs=5).fit(*train)
    half = np.repeat([1, 0], len(train.X) // 2)
    expected = model.score(train.X[half == 1], train.Y[half == 1])
    assert model.score(*train, sample_weight=half) == pytest.approx(expected)


@pytest.mark.parametrize("training", ["cd", "pcd", "mean_field", "lbp", "pl", "exact"])
def test_a_likelihood_of_sets_has_no_weights_for_single_labels(training, clips):
    model = DiscriminativeRBM(3, training=training, class_weight={1: 2}, max_epochs=1)
    with pytest.raises(DataError, match=r"class_weight.*sample_weight"):
        model.fit(*clips)
    model.set_params(validation_fraction=0.0, n_models=1)
    model.fit(clips[0], np.nan_to_num(clips[1])[:, 0])  # of one tag, they are weights of clips


@pytest.mark.parametrize("model", [LogisticTagger(solver="newton"), quick(), SVMTagger()])
@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.ones(3), r"60 clips.*\(3,\)"),
        (np.ones((N, 2)), r"\(60, 2\)"),
        (np.full(N, -1.0), r"sample_weight\[0\] is -1"),
        (np.full(N, np.nan), "finite"),
        (np.zeros(N), "Each weight is zero"),
    ],
)
def test_wrong_weights_of_clips(model, weight, words, clips):
    with pytest.raises(DataError, match=words):
        clone(model).fit(*clips, sample_weight=weight)


@pytest.mark.parametrize("wrong", [{2: 1}, {0: -1}, {0: 0, 1: 0}, [{0: 1}], {1: np.inf}])
def test_wrong_weights_of_classes(wrong, clips):
    with pytest.raises(DataError, match="class_weight"):
        LogisticTagger(solver="newton", class_weight=wrong).fit(*clips)


def test_classes_have_their_names():
    targets = read_targets(np.array(["no", "yes", "no", "no"]))
    weights = read_weights([1, 1, 2, 0], {"yes": 3}, targets)
    np.testing.assert_array_equal(weights.of_clips(targets.Y), [[1], [3], [2], [0]])
    balanced = read_weights([1, 1, 2, 0], "balanced", targets)
    np.testing.assert_allclose(balanced.of_clips(targets.Y), [[2 / 3], [2], [4 / 3], [0]])
    assert balanced.of_others(targets.Y)[:, 0].tolist() == pytest.approx([2 / 3, 2, 2 / 3, 2 / 3])


def test_balanced_is_not_for_partial_fit(clips):
    with pytest.raises(DataError, match="balanced"):
        quick(class_weight="balanced").partial_fit(*clips)
    model = LogisticTagger(class_weight={1: 2}).partial_fit(*clips, sample_weight=np.arange(N))
    assert model.n_iter_ == 1


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1, 1: 2}, [{1: 2}] * C])
def test_a_model_with_weights_can_be_saved(class_weight, clips, tmp_path):
    model = LogisticTagger(solver="newton", class_weight=class_weight).fit(*clips)
    model.save(tmp_path / "model.safetensors")
    loaded = harmonium.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(clips[0]), model.predict_proba(clips[0]))


def test_weights_pass_through_scikit_learns_wrappers(clips):
    X, Y = clips
    model = MultiOutputClassifier(LogisticTagger(solver="newton"))
    model.fit(X, np.nan_to_num(Y), sample_weight=np.arange(N))
    assert len(model.predict_proba(X)) == C
