"""What classifiers with one linear function of the features per tag share."""

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from harmonium.errors import DataError
from harmonium.estimators.classifier import ProbabilisticTagClassifier, TagClassifier


class LinearParams(NamedTuple):
    """o = d + Wx."""

    W: NDArray[np.float32]  # (C, D)
    d: NDArray[np.float32]  # (C,)


class LinearTagClassifier(TagClassifier):
    """A classifier whose score is a linear function of the features, or a monotone one of it."""

    _param_type = LinearParams

    @property
    def coef_(self) -> NDArray[np.float64]:
        """(n_tags, n_features), for features as given to ``fit``."""
        self._check_linear_in_features("coef_ and intercept_")
        return self._params.W / self._scaling.scale

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """(n_tags,), for features as given to ``fit``."""
        return self._params.d - self.coef_ @ self._scaling.mean

    def _linear(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """d + Wx, shape (N, C), of scaled features.

        In double precision, so that a clip's score does not depend on the clips beside it.
        """
        return X.astype(np.float64) @ self._params.W.T.astype(np.float64) + self._params.d

    def _check_shapes(self, params: Any) -> None:
        n_tags, n_features = len(self.tags_), len(self._scaling.mean)
        if params.W.shape != (n_tags, n_features) or params.d.shape != (n_tags,):
            raise DataError(
                f"The model has weights of the shapes {params.W.shape} and {params.d.shape}, not "
                f"those of {n_tags} tags and {n_features} features."
            )


class SolvedTagClassifier(ProbabilisticTagClassifier):
    """A classifier of probabilities whose parameters are solved for all at once."""

    @abstractmethod
    def _solve(self, X: NDArray[np.float32], Y: NDArray[np.float32]) -> Any:
        """The parameters, from scaled features (N, D) and labels (N, C)."""

    def fit(self, X: Any, y: Any, eval_set: tuple[Any, Any] | None = None) -> Self:
        """Learn from clips and their tags.

        Parameters
        ----------
        X : (n_clips, n_features) features; array, pandas or polars frame.
        y : (n_clips, n_tags) labels: 0 absent, 1 present, NaN unknown; or a probability between,
            as smoothed tags have it. A frame's columns name the tags. Or (n_clips,) with two
            classes, for one tag.
        eval_set : (X, y) to set thresholds with, without probabilities; without it they are set on
            the clips themselves.

        Returns
        -------
        self
        """
        self._validate_params()
        X, targets = self._read(X, y, like=None)
        valid = (X, targets) if eval_set is None else self._read_eval_set(eval_set, targets)
        self._describe(X, targets)
        self._params = self._solve(self._scaling(X), targets.Y)
        self._set_thresholds(*valid)
        return self
