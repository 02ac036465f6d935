"""scikit-learn's own checks of every classifier, with every exception named and explained."""

from typing import Any

import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from tagging_data import quick

from harmonium import DiscriminativeRBM, GenerativeRBM, LogisticTagger, MLPTagger
from harmonium.estimators import ChainTagger, CooccurrenceTagger, NaiveBayesTagger, SVMTagger

LEARNT_THRESHOLDS = (
    "predict decides by thresholds learnt for each tag, so that rare tags are found at all; "
    "the check expects p >= 0.5"
)
LISTED_CLASSES = (
    "classes_ lists the classes of each tag, as scikit-learn's multi-output classifiers have it; "
    "the check takes it for the one array of classes that all tags share"
)
EVEN_ODDS = (
    "without features, both classes of the check's balanced labels have p = 0.5 for every clip; "
    "predict then says yes, and the check expects the first class"
)
ROUNDING = (
    "in single precision a matrix product may differ in the last bit with the place of a row; "
    "the checks ask for 1e-7"
)
TRAINED: dict[str, Any] = {"max_epochs": 40, "patience": 40, "random_state": 0}
NETWORKS = [
    GenerativeRBM(8, inference="mean_field", learning_rate=0.03, **TRAINED),
    MLPTagger(8, learning_rate=0.03, l2=0.0, **TRAINED),
    LogisticTagger(learning_rate=0.1, **TRAINED),
]
PROBABLE = [
    quick(max_epochs=40, patience=40),
    *(LogisticTagger(solver="newton"), ChainTagger(3, random_state=0), NaiveBayesTagger()),
]
OTHERS = [SVMTagger(random_state=0), CooccurrenceTagger(), NaiveBayesTagger(use_features=False)]


def exceptions(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, SVMTagger):
        return {"check_classifier_multioutput": LISTED_CLASSES}
    if estimator.__sklearn_tags__().classifier_tags.poor_score:
        return {"check_classifiers_train": EVEN_ODDS}
    # labels (n, 1) are a matrix of one tag, with a learnt threshold; labels (n,) are not
    by_threshold = ("check_classifier_multioutput", "check_supervised_y_2d")
    by_rounding = ("check_methods_sample_order_invariance", "check_methods_subset_invariance")
    named = dict.fromkeys(by_threshold, LEARNT_THRESHOLDS)
    rounded = dict.fromkeys(by_rounding, ROUNDING)
    return named | rounded if isinstance(estimator, GenerativeRBM) else named


@parametrize_with_checks([*PROBABLE, *OTHERS], expected_failed_checks=exceptions)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks(NETWORKS, expected_failed_checks=exceptions)
def test_scikit_learn_check_of_networks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", PROBABLE, ids=lambda model: type(model).__name__)
def test_the_thresholds_are_the_only_reason_for_the_exceptions(model, monkeypatch):
    monkeypatch.setattr(
        "harmonium.estimators.classifier.matching_thresholds", lambda Y, P: 0.5 + 0 * P[0]
    )
    for name in exceptions(model):
        getattr(estimator_checks, name)(type(model).__name__, model)


@pytest.mark.parametrize(
    "training", ["cd", pytest.param("lbp", marks=pytest.mark.long), "pl", "multi_prediction"]
)
def test_the_check_of_what_is_learnt_for_the_defaults_and_other_ways_to_train(training):
    estimator_checks.check_classifiers_train(
        "DiscriminativeRBM", DiscriminativeRBM(training=training, random_state=0)
    )
