"""Estimators that may stand over another classifier, whose log-odds condition their tags."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from harmonium.arrays import Arrays, Doubles, Floats, Ids, Numbers
from harmonium.errors import DataError
from harmonium.estimators.base_classifier import (
    INNER_FOLDS,
    ClassifierBelow,
    any_folds,
    described_classifier,
    fit_classifiers,
    made_classifier,
    restored_classifiers,
)
from harmonium.estimators.classifier import random_generator
from harmonium.estimators.gradient_tagger import GradientTagger
from harmonium.estimators.holdout import choose_folds
from harmonium.estimators.tables import ClipTable, Table
from harmonium.estimators.weights import Weights
from harmonium.parameters import Count, Positive, estimator, parameter

# A model that begins as a good classifier gets worse at first, while its hidden units still say
# nothing. With shorter steps or less patience, early stopping ends it there.
LEARNING_RATE_OVER = 0.03
MIN_PATIENCE_OVER = 100


@estimator
class OverClassifier(GradientTagger):
    """Base of the estimators that may stand over a classifier.

    Its inputs are the scaled features and, in further columns, the classifier's log-odds.
    """

    estimator: ClassifierBelow = parameter(
        """A classifier to stand over: any of scikit-learn's with ``predict_proba``, or "trees" (400
        extremely randomised trees with at least 3 clips in each leaf). The model begins as that
        classifier, and learns what it lacks. It learns from log-odds out of fold, so there is a
        classifier for each member's fold, or for each of 5 folds if there is one member, and
        predicts from the mean of their log-odds. The classifier gets the features unscaled.
        ``n_jobs`` is also how many cores fit it. Forests and logistic regressions can be saved.""",
        default=None,
    )
    learning_rate: Positive | None = parameter(
        "Step length; None means 0.01, or 0.03 over a classifier.", default=None
    )
    patience: Count | None = parameter(
        """Training stops after this many epochs without a better validation AUC, or an equal one
        with a better likelihood; the best parameters are kept. None means 20, or 100 over a
        classifier, or more if there are so few clips that these are fewer than 500 steps.""",
        default=None,
    )

    @property
    def _step_length(self) -> float:
        if self.learning_rate is None and self.estimator is not None:
            return LEARNING_RATE_OVER
        return super()._step_length

    @property
    def _min_patience(self) -> int:
        return super()._min_patience if self.estimator is None else MIN_PATIENCE_OVER

    def _inputs(self, X: Any) -> Table:
        if self.estimator is None:
            return super()._inputs(X)
        return np.hstack([self._dense(X), self._below.log_odds(_as_array(X))])

    @property
    def _n_inputs(self) -> int:
        return super()._n_inputs + self._n_below

    @property
    def _n_below(self) -> int:
        """How many of the inputs are log-odds of a classifier."""
        return 0 if self.estimator is None else len(self.tags_)

    def _training_clips(
        self, X: Numbers, Y: Floats, weights: Weights, folds: Ids | None, groups: Ids | None
    ) -> ClipTable:
        if self.estimator is None:
            return super()._training_clips(X, Y, weights, folds, groups)
        scaled = self._dense(X)
        out_of_fold = self._fit_below(_as_array(X), Y, folds, groups, weights.clips)
        inputs = np.hstack([scaled, out_of_fold])
        return ClipTable(X=inputs, Y=Y, weights=weights.of_clips(Y))

    def _fit_below(
        self,
        X: Numbers,
        Y: Floats,
        folds: Ids | None,
        groups: Ids | None = None,
        sample_weight: Doubles | None = None,
    ) -> Floats:
        """Fit the classifiers; their log-odds for each clip, without its fold, (N, C)."""
        self._refuse_classifier()
        seed = int(random_generator(self.random_state).integers(2**31))
        if folds is None:
            folds = choose_folds(Y, groups, n_folds=INNER_FOLDS, seed=seed)
        if folds is None:
            folds = any_folds(len(Y), groups, seed=seed)
        self._below, out_of_fold = fit_classifiers(
            self.estimator,
            X,
            Y,
            folds,
            seed=seed,
            sample_weight=sample_weight,
            n_jobs=getattr(self, "n_jobs", None),
            verbose=self.verbose,
        )
        return out_of_fold

    def _refuse_classifier(self) -> None:
        """Refuse settings that do not go together with a classifier."""

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, about = super()._learnt()
        if self.estimator is None:
            return arrays, about
        unsaved = self._below.why_not_saved()
        if unsaved is not None:
            raise DataError(
                f"A model over {unsaved} cannot be saved, as fit said: only forests, logistic "
                "regressions and those after a StandardScaler can be stored without pickle."
            )
        of_classifiers, kinds = self._below.stored()
        return arrays | of_classifiers, {**about, "below": kinds}

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        super()._restore(arrays, about)
        if self.estimator is not None:
            self._below = restored_classifiers(
                arrays, about["below"], self.n_features_in_, len(self.tags_)
            )

    def _described_setting(self, name: str, value: Any) -> Any:
        if name == "estimator":
            return described_classifier(value)
        return super()._described_setting(name, value)

    @classmethod
    def _restored_setting(cls, name: str, value: Any) -> Any:
        if name == "estimator":
            return made_classifier(value)
        return super()._restored_setting(name, value)


def _as_array(X: Any) -> Numbers:
    """Features as an array, as forests' arrays take them."""
    return X.toarray() if issparse(X) else np.asarray(X)
