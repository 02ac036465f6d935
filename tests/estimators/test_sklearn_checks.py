"""scikit-learn's own checks of every classifier, with every exception named and explained."""

import inspect
from typing import Annotated, Any

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from tagging_data import quick

from harmonium import DiscriminativeRBM, GenerativeRBM, LogisticTagger, MLPTagger, estimators
from harmonium.estimators import ChainTagger, CooccurrenceTagger, NaiveBayesTagger, SVMTagger
from harmonium.parameters import Count, Positive, estimator, parameter

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
REPEATED_BY_CHANCE = (
    "the copies of a clip come into minibatches one by one, the clip with the weight 2 in one; "
    "test_weights.py has one minibatch of all clips"
)
ROUNDED_REPETITIONS = "equal up to single precision; the check asks for 1e-9"
CHOSEN_EXAMPLES = (
    "the examples are chosen without regard to the weights; test_weights.py takes all clips"
)
CONSTANT = "without weight in one class the score is constant, and a warning says so"
TRAINED: dict[str, Any] = {"max_epochs": 40, "patience": 40, "random_state": 0}
NETWORKS = [
    GenerativeRBM(8, inference="mean_field", learning_rate=0.03, **TRAINED),
    MLPTagger(8, n_models=2, learning_rate=0.03, l2=0.0, **TRAINED),
    LogisticTagger(learning_rate=0.1, **TRAINED),
]
PROBABLE = [
    quick(max_epochs=40, patience=40),
    quick(max_epochs=40, patience=40, estimator=LogisticRegression()),
    *(LogisticTagger(solver="newton"), ChainTagger(3, random_state=0), NaiveBayesTagger()),
]
OTHERS = [SVMTagger(random_state=0), CooccurrenceTagger(), NaiveBayesTagger(use_features=False)]


REPETITION = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)


def exceptions(estimator: Any) -> dict[str, str]:
    named = {"check_classifier_multioutput": LISTED_CLASSES}
    if isinstance(estimator, SVMTagger):
        constant = ("check_classifiers_one_label_sample_weights", "check_class_weight_classifiers")
        named |= dict.fromkeys(constant, CONSTANT)
        return named | dict.fromkeys(REPETITION, CHOSEN_EXAMPLES)
    if estimator.__sklearn_tags__().classifier_tags.poor_score:
        even = ("check_classifiers_train", "check_classifiers_classes")
        return named | dict.fromkeys(even, EVEN_ODDS)
    # labels (n, 1) are a matrix of one tag, with a learnt threshold; labels (n,) are not
    named["check_supervised_y_2d"] = LEARNT_THRESHOLDS
    is_trained = hasattr(estimator, "max_epochs") and getattr(estimator, "solver", "") != "newton"
    named |= dict.fromkeys(REPETITION, REPEATED_BY_CHANCE if is_trained else ROUNDED_REPETITIONS)
    by_rounding = ("check_methods_sample_order_invariance", "check_methods_subset_invariance")
    if isinstance(estimator, GenerativeRBM):
        named |= dict.fromkeys(by_rounding, ROUNDING)
    return named


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
        "harmonium.estimators.thresholds.matching_thresholds", lambda Y, P, weights: 0.5 + 0 * P[0]
    )
    for name, reason in exceptions(model).items():
        if reason == LEARNT_THRESHOLDS:
            getattr(estimator_checks, name)(type(model).__name__, model)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"training": "cd", "n_models": 1},
        {"training": "pl", "n_models": 1},
        pytest.param({"training": "lbp", "n_models": 1}, marks=pytest.mark.long),
    ],
)
def test_the_check_of_what_is_learnt_for_each_way_to_train(settings):
    model = DiscriminativeRBM(random_state=0, **settings)
    estimator_checks.check_classifiers_train("DiscriminativeRBM", model)


# Parameters: written once, and known to the constructor, the checks and help().


@estimator
class Base(BaseEstimator):
    """A base."""

    rate: Positive = parameter("Step length.", default=0.1)
    kind: Annotated[str, str] = parameter("Its kind.", default="a")


@estimator
class Model(Base):
    """A model.

    {parameters}
    """

    size: Count | None = parameter("Its size.", default=3, kw_only=False)
    rate: Positive = parameter(default=0.5)


def test_a_class_may_change_a_default_alone():
    assert Base().rate == 0.1
    model = Model(5)
    assert (model.size, model.rate, model.kind) == (5, 0.5, "a")
    assert clone(model.set_params(kind="b")).get_params() == {"kind": "b", "rate": 0.5, "size": 5}
    with pytest.raises(TypeError, match="positional"):
        Model(5, 0.5)
    with pytest.raises(ValueError, match="The 'rate' parameter of Model must be a float in"):
        Model(rate=-1)._validate_params()
    Model(None)._validate_params()
    assert str(inspect.signature(Model)) == "(size=3, *, rate=0.5, kind='a')"
    assert Model.__doc__ == (
        "A model.\n\nsize : int or None, default=3\n    Its size.\n"
        "rate : float, default=0.5\n    Step length.\nkind : str, default='a'\n    Its kind."
    )


CLASSES = [name for name in estimators.__all__ if inspect.isclass(getattr(estimators, name))]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_parameter_is_described_with_its_default(kind):
    kind = getattr(estimators, kind)
    text = kind.__doc__
    for name, given in inspect.signature(kind).parameters.items():
        assert f"\n{name} : " in text
        line = next(line for line in text.splitlines() if line.startswith(f"{name} : "))
        assert line.endswith(f"default={given.default!r}")


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in CLASSES for name in getattr(estimators, kind)().get_params()],
)
def test_a_wrong_value_of_a_parameter_is_refused(kind, name):
    kind = getattr(estimators, kind)
    with pytest.raises(ValueError, match=f"The '{name}' parameter of {kind.__name__} must be"):
        kind(**{name: object()})._validate_params()


@pytest.mark.parametrize("kind", CLASSES)
def test_the_default_of_every_parameter_is_accepted(kind):
    getattr(estimators, kind)()._validate_params()


@pytest.mark.parametrize("kind", CLASSES)
def test_every_parameter_is_stored_as_it_is_given(kind):
    kind = getattr(estimators, kind)
    marks = {name: object() for name in inspect.signature(kind).parameters}
    assert vars(kind(**marks)) == marks
