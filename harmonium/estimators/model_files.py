"""Model files: their format, and how an estimator is saved in one.

A model is a file, or bytes, of safetensors whose metadata is JSON. Nothing in it is executed. NumPy
is enough to import this.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from harmonium import __version__
from harmonium.arrays import Arrays, Floats
from harmonium.errors import DataError, ModelFileError
from harmonium.files import PathLike, check_writable, write_atomically

FORMAT = 1  # version of the format; a model with a higher one is refused

_KEY = "harmonium"
_AGAIN = "Train and save the model again, or use an intact copy."


def to_bytes(arrays: Mapping[str, NDArray[Any]], description: dict[str, Any]) -> bytes:
    """Arrays and a JSON description, as a file holds them."""
    text = json.dumps({"format": FORMAT, **description})
    return save({k: np.ascontiguousarray(v) for k, v in arrays.items()}, metadata={_KEY: text})


def from_bytes(
    data: bytes, *, name: str = "The model", way_out: str = _AGAIN
) -> tuple[Arrays, dict[str, Any]]:
    """The arrays and the description that ``to_bytes`` was given; ``name`` is for errors."""
    try:
        arrays = load(data)
        length = int.from_bytes(data[:8], "little")
        text = json.loads(data[8 : 8 + length]).get("__metadata__", {}).get(_KEY)
        description: Any = json.loads(text or "0")
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{name} is not a Harmonium model, or is damaged ({error}). {way_out}"
        ) from None
    if text is None:
        raise ModelFileError(f"{name} is a safetensors file, but not a Harmonium model.")
    version = description.get("format") if isinstance(description, dict) else None
    if not isinstance(version, int) or version < 1:
        raise ModelFileError(f"{name} does not name its model format, or is damaged. {way_out}")
    if version > FORMAT:
        raise ModelFileError(
            f"{name} was written by a newer version of Harmonium "
            f"({description.get('version', 'unknown')}, format {version}; this one "
            f"reads up to {FORMAT}). Upgrade Harmonium to read it."
        )
    return arrays, description


def write_model(path: PathLike, arrays: Arrays, description: dict[str, Any]) -> None:
    """Write arrays and a JSON description; an interrupted write leaves the old file or none."""
    check_writable(path)
    write_atomically(Path(path), to_bytes(arrays, description))


def read_model(path: PathLike) -> tuple[Arrays, dict[str, Any]]:
    """The arrays and the description of a model file."""
    if not Path(path).is_file():
        raise ModelFileError(f"There is no model file at '{path}'.")
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelFileError(f"'{path}' cannot be read ({error}). {_AGAIN}") from None
    return from_bytes(data, name=f"'{path}'")


class StoredEstimator(ABC):
    """Saves and loads an estimator. A subclass says what it has learnt."""

    _param_type: ClassVar[Any]  # NamedTuple of the parameter arrays
    _params: Any

    if TYPE_CHECKING:  # methods of scikit-learn's BaseEstimator, which subclasses have, too

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The parameters by name."""

        def _validate_params(self) -> None:
            """Check them."""

    @abstractmethod
    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        """What was learnt besides ``_params``: arrays, and a description that JSON can hold."""

    @abstractmethod
    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        """Restore what ``_learnt`` returned; LookupError, TypeError or ValueError if damaged."""

    @abstractmethod
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the parameters that the settings ask for, by name."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_params")

    def _check_shapes(self) -> None:
        """Refuse parameters that do not match the settings."""
        found = {name: array.shape for name, array in self._params._asdict().items()}
        wanted = self._shapes()
        if found != wanted:
            raise DataError(
                f"The model's parameters have the shapes {found}, but its settings ask for "
                f"{wanted}. Fit a new model, or restore the settings."
            )

    def save(self, path: PathLike) -> None:
        """Write the fitted model to one file, by convention with the ending ``.safetensors``.

        A ``random_state`` that is not a number, and weights of classes, are not saved.
        """
        arrays, about = self._described()
        write_model(path, arrays, about)

    def to_bytes(self, more: Mapping[str, NDArray[Any]] | None = None) -> bytes:
        """What ``save`` writes; ``more`` arrays are stored with it, and ``load`` ignores them."""
        arrays, about = self._described()
        return to_bytes({**arrays, **(more or {})}, about)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """A fitted model from a file that ``save`` wrote."""
        arrays, about = read_model(path)
        return cls._from_parts(arrays, about, name=f"'{path}'")

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """A fitted model from the bytes of ``to_bytes``."""
        arrays, about = from_bytes(data)
        return cls._from_parts(arrays, about, name="The model")

    def _described(self) -> tuple[Arrays, dict[str, Any]]:
        """The arrays and the description of the fitted model."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        self._check_shapes()
        arrays, about = self._learnt()
        for name, array in self._params._asdict().items():
            half = rounded_to_half(array)
            is_exact = np.array_equal(half, array)
            arrays[f"params.{name}"] = half.astype(np.float16) if is_exact else array
        settings = self.get_params(deep=False)
        parameters = {name: self._described_setting(name, settings[name]) for name in settings}
        description = {
            "version": __version__,
            "class": type(self).__name__,
            "parameters": parameters,
            **about,
        }
        return arrays, description

    def _described_setting(self, name: str, value: Any) -> Any:
        """A parameter for JSON."""
        return _json_value(value)

    @classmethod
    def _restored_setting(cls, name: str, value: Any) -> Any:
        """A parameter from JSON."""
        return tuple(value) if isinstance(value, list) else value

    @classmethod
    def _from_parts(cls, arrays: Arrays, about: dict[str, Any], *, name: str) -> Self:
        if about.get("class") != cls.__name__:
            raise ModelFileError(
                f"{name} holds a {about.get('class')}, not a {cls.__name__}. "
                "harmonium.load reads any model."
            )
        try:
            parameters = {
                name: cls._restored_setting(name, value)
                for name, value in about["parameters"].items()
            }
            model = cls(**parameters)
            model._validate_params()
            names = model._param_type._fields
            params = [stored_parameter(arrays, f"params.{name}") for name in names]
            model._params = model._param_type(*params)
            model._restore(arrays, about)
            model._check_shapes()
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(
                f"{name} does not hold a complete model ({type(error).__name__}: {error}). "
                "Save the model again, or use an intact copy."
            ) from None
        return model


def load_model(path: PathLike) -> Any:
    """A fitted model of any class, from a file that its ``save`` wrote."""
    from harmonium import estimators

    arrays, about = read_model(path)
    kind = about.get("class")
    if kind not in estimators.__all__:
        raise ModelFileError(
            f"'{path}' holds a {kind}, which this version of Harmonium does not have. It has "
            f"{', '.join(estimators.__all__)}."
        )
    return getattr(estimators, kind)._from_parts(arrays, about, name=f"'{path}'")


def _json_value(value: Any) -> Any:
    """A parameter for JSON: NumPy's numbers become Python's, other objects become None."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list) and any(isinstance(part, dict) for part in value):
        return None  # weights of classes, which only fit needs
    if isinstance(value, tuple | list | np.ndarray):
        return [_json_value(part) for part in value]
    return value if isinstance(value, bool | int | float | str) else None


def typed_array(arrays: Arrays, name: str, dtype: Any = np.float64) -> NDArray[Any]:
    """The array with this name, if it has this type."""
    array = arrays[name]
    if array.dtype != dtype:
        raise TypeError(f"{name} must hold {np.dtype(dtype)}, not {array.dtype}")
    return array


def finite_array(arrays: Arrays, name: str, dtype: Any = np.float64) -> NDArray[Any]:
    """The array with this name, if it has this type and all its numbers are finite."""
    array = typed_array(arrays, name, dtype)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers")
    return array


def rounded_to_half(array: NDArray[Any]) -> NDArray[Any]:
    """A single-precision array rounded to half precision, unless its numbers are too large."""
    with np.errstate(over="ignore"):
        half = array.astype(np.float16).astype(np.float32)
    return np.where(np.isfinite(half), half, array)


def stored_parameter(arrays: Arrays, name: str) -> Floats:
    """A parameter in single precision, from a file that may store it in half precision."""
    is_half = arrays[name].dtype == np.float16
    array = finite_array(arrays, name, np.float16 if is_half else np.float32)
    return array.astype(np.float32, copy=False)


def array_of_names(values: Any) -> NDArray[Any]:
    """Names in the form that ``fit`` keeps: an object array of strings, or integers."""
    kinds = {type(value) for value in values} if isinstance(values, list) else set()
    if kinds not in ({str}, {int}):
        raise TypeError(f"expected a list of names or of numbers, not {values!r:.80}")
    return np.array(values, dtype=object if kinds == {str} else None)
