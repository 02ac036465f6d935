"""The models of experiments: Harmonium's estimators, and scikit-learn's classifiers like them."""

import inspect
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, cast

import numpy as np

from harmonium.arrays import Floats, Places
from harmonium.estimators.validation import matching_thresholds
from harmonium.evaluation.metrics import are_probabilities
from harmonium.experiments.plan import Run
from harmonium.experiments.recipe import SKLEARN, model_class
from harmonium.logistic import mean_probabilities


class Model(Protocol):
    """A model that an experiment trains.

    It also has ``predict_proba`` or ``decision_function``, and ``complete`` if it takes observed
    tags.
    """

    def fit(self, *arrays: Any, **options: Any) -> Any:
        """Learn from features and labels."""


class CrossFittedModel(Protocol):
    """What a cross-fitted model has learnt about its own training clips."""

    folds_: Places  # (n_clips,)
    held_out_: Floats  # (n_clips, n_tags) the scores of the member that has not seen the clip


def build_model(estimator: str, settings: dict[str, Any], *, seed: int) -> Model:
    """An untrained model."""
    make = model_class(estimator)
    if "random_state" in inspect.signature(make).parameters:
        settings = {"random_state": seed, **settings}
    model = make(**settings)
    if estimator.startswith(SKLEARN):
        return ScikitLearnTagger(model)
    return cast(Model, model)


def model_of_run(run: Run) -> Model:
    """The untrained model of a run."""
    make = partial(build_model, run.estimator, seed=model_seed(run.seed, *run.place))
    parameters = inspect.signature(model_class(run.estimator)).parameters
    if run.valid_fold is not None:
        settings = run.settings
        if "scale_features" in parameters:  # as in the paper, features are standardised
            settings = {"scale_features": "standard", **settings}
        return make(settings)
    if "n_models" in parameters:
        return make({**run.settings, "n_models": run.n_folds - 1})
    return CrossFitted(partial(make, run.settings), refit=run.refit)


def model_seed(*parts: int) -> int:
    """A model's seed: the same for all settings, so that the comparison is fair."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0] % 2**31)


def predict(model: Model, X: Floats) -> Floats:
    """Scores of all tags from the audio alone, (n_clips, n_tags)."""
    predict_proba = getattr(model, "predict_proba", None)
    if predict_proba is not None:
        return cast(Floats, predict_proba(X))
    return cast(Floats, cast(Any, model).decision_function(X))


class CrossFitted:
    """A model for each fold, trained on the other folds, for classes without cross-fitting."""

    def __init__(self, make: Callable[[], Model], *, refit: bool) -> None:
        self.make = make
        self.refit = refit

    def fit(
        self, X: Floats, y: Floats, *, groups: Places, eval_y: Floats, **more: Floats
    ) -> "CrossFitted":
        """Learn; ``groups`` is the fold of each clip, and ``more`` has a row for each clip, too."""
        self.folds_ = groups
        self.held_out_ = np.empty(eval_y.shape, np.float32)
        self.members = []
        for fold in np.unique(groups):
            held_out = groups == fold
            more_to_train = {name: rows[~held_out] for name, rows in more.items()}
            member = self.make()
            member.fit(X[~held_out], y[~held_out], (X[held_out], eval_y[held_out]), **more_to_train)
            self.members.append(member)
            self.held_out_[held_out] = predict(member, X[held_out])
        if are_probabilities(self.held_out_):
            self.thresholds_ = matching_thresholds(eval_y, self.held_out_)
        if self.refit:
            model = self.make()
            model.fit(X, y, **more)
            self.members = [model]
        return self


def mean_of_members(scores: list[Floats]) -> Floats:
    """The mean of the members' log-odds; of their scores, if these are no probabilities."""
    if are_probabilities(scores):
        return mean_probabilities(scores)
    return np.mean(scores, axis=0)


class ScikitLearnTagger:
    """scikit-learn's own classifier on standardised features.

    There is one for all tags if it supports that and all labels are known; else one per tag,
    trained on the clips whose label is known.
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Floats, Y: Floats, eval_set: object = None) -> "ScikitLearnTagger":
        """Learn; there is no early stopping on ``eval_set``."""
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.utils import get_tags

        known = ~np.isnan(Y)
        self._at_once = get_tags(self.classifier).classifier_tags.multi_label and known.all()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a network that max_iter stops warns each time
            if self._at_once:
                self._pipelines = [_fitted(self.classifier, X, Y)]
            else:
                # It also accepts a tag that all clips have.
                classifier = OneVsRestClassifier(self.classifier)
                self._pipelines = [
                    _fitted(classifier, X[known_of_tag], y[known_of_tag])
                    for y, known_of_tag in zip(Y.T, known.T, strict=True)
                ]
        return self

    def predict_proba(self, X: Floats) -> Floats:
        """p(y_j = 1 | x), (n_clips, n_tags)."""
        tables = [pipeline.predict_proba(X) for pipeline in self._pipelines]
        if self._at_once:
            tables = tables[0]
            if not isinstance(tables, list):  # a network gives (n_clips, n_tags)
                return cast(Floats, tables)
        # (n_clips, 2) for each tag, or (n_clips, 1) for a tag that no clip has
        return np.stack([table[:, -1] * (table.shape[1] > 1) for table in tables], axis=1)


def _fitted(classifier: Any, X: Floats, Y: Floats) -> Any:
    """A copy of the classifier, trained on standardised features."""
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), clone(classifier)).fit(X, Y)
