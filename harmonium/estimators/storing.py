"""Saving and loading fitted classifiers: what of them goes into a file, and back."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from harmonium import __version__
from harmonium.errors import ModelFileError
from harmonium.estimators.labels import Targets, classes_of
from harmonium.estimators.model_files import Arrays, read_model, write_model
from harmonium.estimators.scaling import Scaling


class Storable(BaseEstimator, ABC):
    """The part of a classifier that saves and loads it."""

    _param_type: ClassVar[Any]  # NamedTuple of the parameter arrays
    _params: Any
    _scaling: Scaling
    _one_column: bool
    tags_: NDArray[Any]
    classes_: NDArray[Any]
    thresholds_: NDArray[np.float64]

    @abstractmethod
    def _check_shapes(self, params: Any) -> None:
        """Refuse parameters other than the settings ask for."""

    def _more_to_save(self) -> tuple[Arrays, dict[str, Any]]:
        """Arrays and a description of what a subclass learns besides."""
        return {}, {}

    def _restore_more(self, arrays: Arrays, about: dict[str, Any]) -> None:
        """Take back what ``_more_to_save`` gave."""

    def save(self, path: Any) -> None:
        """Write the fitted model to one file, by convention with the ending ``.safetensors``.

        A ``random_state`` that is not a number is not saved.
        """
        check_is_fitted(self)
        self._check_shapes(self._params)
        names = getattr(self, "feature_names_in_", None)
        classes = self.classes_ if self._one_column else None
        more_arrays, more_about = self._more_to_save()
        write_model(
            path,
            {
                **{f"params.{k}": v for k, v in self._params._asdict().items()},
                **{f"scaling.{k}": v for k, v in self._scaling._asdict().items()},
                "thresholds": self.thresholds_,
                **more_arrays,
            },
            {
                "version": __version__,
                "class": type(self).__name__,
                "parameters": {k: _plain(v) for k, v in self.get_params().items()},
                "tags": self.tags_.tolist(),
                "classes": None if classes is None else classes.tolist(),
                "classes_dtype": None if classes is None else classes.dtype.str,
                "features": None if names is None else names.tolist(),
                **more_about,
            },
        )

    @classmethod
    def load(cls, path: Any) -> Self:
        """A fitted model from a file that ``save`` wrote."""
        arrays, about = read_model(path)
        if about.get("class") != cls.__name__:
            raise ModelFileError(
                f"'{path}' holds a {about.get('class')}, not a {cls.__name__}. "
                f"Load it with {about.get('class')}.load."
            )
        try:
            model = cls(**about["parameters"])
            model._validate_params()
            model._restore(arrays, about)
            model._check_shapes(model._params)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(
                f"'{path}' does not hold a whole model ({type(error).__name__}: {error}). "
                "Save the model again, or take a copy that is whole."
            ) from None
        return model

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        """What ``save`` wrote; KeyError, TypeError or ValueError where that is not what it is."""
        self._params = self._param_type(
            *(finite_array(arrays, f"params.{k}", np.float32) for k in self._param_type._fields)
        )
        self._scaling = Scaling(*(finite_array(arrays, f"scaling.{k}") for k in Scaling._fields))
        self.thresholds_ = typed_array(arrays, "thresholds")
        self.tags_ = _names(about["tags"])
        self._one_column = about["classes"] is not None
        dtype, classes = about["classes_dtype"], about["classes"]
        classes = np.array(classes, dtype) if self._one_column else None
        self.classes_ = classes_of(Targets(np.zeros((0, 0), np.float32), self.tags_, classes))
        self.n_features_in_ = len(self._scaling.mean)
        if about["features"] is not None:
            self.feature_names_in_ = _names(about["features"])
        self._check_lengths()
        self._restore_more(arrays, about)

    def _check_lengths(self) -> None:
        """Refuse parts that belong to different models."""
        n_features, n_tags = self.n_features_in_, len(self.tags_)
        agree = (
            self._scaling.mean.shape == self._scaling.scale.shape == (n_features,)
            and self.thresholds_.shape == (n_tags,)
            and len(getattr(self, "feature_names_in_", range(n_features))) == n_features
            and (not self._one_column or (n_tags == 1 and self.classes_.shape == (2,)))
        )
        if not agree:
            raise ValueError("its arrays and its description differ in length")
        if not (self._scaling.scale > 0).all():
            raise ValueError("scaling.scale must be above 0")
        if np.isnan(self.thresholds_).any():
            raise ValueError("thresholds must be numbers")


def _plain(value: Any) -> Any:
    """A parameter as JSON has it: NumPy's numbers as Python's, a random generator as None."""
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, bool | int | float | str) else None


def typed_array(arrays: Arrays, name: str, dtype: Any = np.float64) -> NDArray[Any]:
    """The array of that name, if it has that type."""
    array = arrays[name]
    if array.dtype != dtype:
        raise TypeError(f"{name} must hold {np.dtype(dtype)}, not {array.dtype}")
    return array


def finite_array(arrays: Arrays, name: str, dtype: Any = np.float64) -> NDArray[Any]:
    """The array of that name, if it has that type and no number in it is NaN or infinite."""
    array = typed_array(arrays, name, dtype)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers")
    return array


def _names(values: Any) -> NDArray[Any]:
    """Names as ``fit`` keeps them: an object array of strings, or integers."""
    if not isinstance(values, list) or len({type(value) for value in values}) != 1:
        raise TypeError(f"expected a list of names or of numbers, not {values!r:.80}")
    if isinstance(values[0], str):
        return np.array(values, dtype=object)
    if isinstance(values[0], int):
        return np.array(values)
    raise TypeError(f"expected names or numbers, not {values[0]!r:.80}")
