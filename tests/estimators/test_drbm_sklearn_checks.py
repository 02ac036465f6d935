"""scikit-learn's own checks, with every exception named and explained."""

from typing import Any

import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from tagging_data import quick

from harmonium import DiscriminativeRBM

LEARNT_THRESHOLDS = (
    "predict decides by thresholds learnt for each tag, so that rare tags are found at all; "
    "the check expects p >= 0.5"
)


def exceptions(estimator: Any) -> dict[str, str]:
    return {
        "check_classifier_multioutput": LEARNT_THRESHOLDS,
        # labels (n, 1) are a matrix of one tag, with a learnt threshold; labels (n,) are not
        "check_supervised_y_2d": LEARNT_THRESHOLDS,
    }


@parametrize_with_checks([quick(max_epochs=40, patience=40)], expected_failed_checks=exceptions)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_the_thresholds_are_the_only_reason_for_the_exceptions(monkeypatch):
    def one_half(Y: Any, P: Any) -> Any:
        return 0.5 + 0 * P[0]

    monkeypatch.setattr("harmonium.estimators.classifier.matching_thresholds", one_half)
    for name in exceptions(None):
        getattr(estimator_checks, name)("DiscriminativeRBM", quick())


@pytest.mark.parametrize(
    "training", ["cd", pytest.param("lbp", marks=pytest.mark.long), "pl", "multi_prediction"]
)
def test_the_check_of_what_is_learnt_for_the_defaults_and_other_ways_to_train(training):
    estimator_checks.check_classifiers_train(
        "DiscriminativeRBM", DiscriminativeRBM(training=training, random_state=0)
    )
