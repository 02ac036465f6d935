"""Model files, and how a stored model predicts. NumPy is enough: no JAX, no scikit-learn.

A model is a file, or bytes, of safetensors whose metadata is JSON. Nothing in it is executed.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from harmonium import __version__
from harmonium.arrays import Arrays, Doubles, Floats, Numbers
from harmonium.errors import DataError, ModelFileError
from harmonium.files import PathLike, check_writable, write_atomically

FORMAT = 1  # version of the format; a model with a higher one is refused
MAX_SCALED = 1e30  # of a feature; sums of larger ones would overflow single precision
MIN_SLOPE = 0.1  # smallest slope of the correction, so that it never reverses the order of clips
MAX_LOG_ODDS = 16.0  # for probabilities of 0 and 1; single precision has none farther from 0.5
STEPS = {"cd": 1, "mean_field": 5, "lbp": 10, "multi_prediction": 3}  # training steps by default
MAX_STEPS = 10_000  # of inference
BLOCK = 2**24  # numbers in one block of a table

_KEY = "harmonium"
_AGAIN = "Train and save the model again, or use an intact copy."

_Precision = TypeVar("_Precision", bound=np.floating)


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


def sigmoid(x: NDArray[_Precision]) -> NDArray[_Precision]:
    """1 / (1 + e^-x), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * x))


def log_odds(p: NDArray[_Precision], smallest: float = 0.0) -> NDArray[_Precision]:
    """log(p / (1 - p)), with p limited to [smallest, 1 - smallest]; without a limit, up to ±∞."""
    limited = np.clip(p, smallest, 1 - smallest) if smallest else p
    with np.errstate(divide="ignore"):
        return np.log(limited) - np.log1p(-limited)


def blocks(table: Any) -> Iterator[NDArray[Any]]:
    """All rows of a table (N, D), a block at a time; a small table is one block."""
    size = max(1, BLOCK // max(table.shape[1], 1))
    for first in range(0, len(table), size):
        yield table[first : first + size]


def is_soft(Y: Any) -> bool:
    """Whether some label of (N, C) is a probability other than 0 and 1."""
    return any(((block > 0) & (block < 1)).any() for block in blocks(Y))


NORMAL = np.linspace(-3.0, 3.0, 61)  # standard normal values that quantiles are mapped to


class Scaling(NamedTuple):
    """x ← (x - mean) / scale, by feature; then x ← x / ‖x‖, by clip, if the norm should be 1.

    With knots, the quantiles of each feature are first mapped to those of the normal distribution:
    a feature at ``knots[i]`` becomes ``NORMAL[i]``, with linear interpolation in between. Mean and
    scale then apply to the mapped features.
    """

    mean: Doubles  # (D,)
    scale: Doubles  # (D,), never 0
    unit_norm: bool = False
    knots: Doubles | None = None  # (Q, D), rising

    @property
    def linear(self) -> bool:
        """Whether weights for scaled features can be turned into weights for raw features."""
        return not self.unit_norm and self.knots is None

    @property
    def of_words(self) -> bool:
        """Whether features are weighted like words: not centred, and some more than others."""
        return self.unit_norm and not self.mean.any() and bool((self.scale != 1).any())

    def __call__(self, X: Numbers) -> Floats:
        """Scaled in double precision, returned in single; shape (N, D). A row of zeros stays."""
        result, first = np.empty(X.shape, np.float32), 0
        for block in blocks(X):  # all of it in double precision would take four times the memory
            scaled = (self.mapped(block) - self.mean) / self.scale
            wrong = np.argwhere(~(np.abs(scaled) <= MAX_SCALED))
            if len(wrong):
                row, column = wrong[0]
                raise DataError(
                    f"X[{first + row}, {column}] is {block[row, column]:g}, too far from the "
                    f"training data (mean {self.mean[column]:g}, scale {self.scale[column]:g}) to "
                    "compute with. Check the units of the features, or scale them."
                )
            if self.unit_norm:
                norm = np.linalg.norm(scaled, axis=1, keepdims=True)
                scaled /= np.where(norm > 0, norm, 1.0)
            result[first : first + len(block)] = scaled
            first += len(block)
        return result

    def mapped(self, X: Numbers) -> Numbers:
        """The features mapped by their quantiles, (N, D); equal quantiles map to their middle."""
        if self.knots is None:
            return X
        mapped = np.empty(X.shape)
        for j, knots in enumerate(self.knots.T):
            from_below = np.interp(X[:, j], knots, NORMAL)
            from_above = -np.interp(-X[:, j], -knots[::-1], NORMAL)
            mapped[:, j] = (from_below + from_above) / 2
        return mapped

    def inverse(self, X: Floats) -> Doubles:
        """Features from scaled ones, except for their norm."""
        found = X.astype(np.float64) * self.scale + self.mean
        if self.knots is None:
            return found
        columns = zip(found.T, self.knots.T, strict=True)
        return np.stack([np.interp(x, NORMAL, knots) for x, knots in columns], axis=1)

    def arrays(self) -> Arrays:
        """The scaling in the form of a model file; the description says whether the norm is 1."""
        knots = {} if self.knots is None else {"scaling.knots": self.knots}
        return {"scaling.mean": self.mean, "scaling.scale": self.scale} | knots


def stored_scaling(arrays: Arrays, about: Mapping[str, Any]) -> Scaling:
    """The scaling among the arrays of a model file."""
    mean, scale = (finite_array(arrays, f"scaling.{k}") for k in ("mean", "scale"))
    knots = None
    if "scaling.knots" in arrays:
        knots = finite_array(arrays, "scaling.knots")
        if knots.shape != (len(NORMAL), *mean.shape) or (np.diff(knots, axis=0) < 0).any():
            raise ValueError("scaling.knots must be rising quantiles of each feature")
    if mean.ndim != 1 or scale.shape != mean.shape:
        raise ValueError(f"the scaling has the shapes {mean.shape} and {scale.shape}")
    if not (scale > 0).all():
        raise ValueError("scaling.scale must be above 0")
    return Scaling(mean, scale, about.get("unit_norm", False) is True, knots)


def chosen_inference(
    parameters: Mapping[str, Any],
) -> tuple[Literal["lbp", "mean_field", "gibbs", "exact"], int]:
    """The method and steps that an estimator's ``inference`` and ``inference_steps`` mean.

    A model trained by multi-prediction predicts best with as many mean-field steps as in training.
    All others use belief propagation.
    """
    method, steps = parameters["inference"], parameters["inference_steps"]
    unrolled = parameters.get("training") == "multi_prediction"
    if method == "auto":
        method = "mean_field" if unrolled else "lbp"
    if steps is None:
        steps = 20
        if unrolled and method == "mean_field":
            steps = parameters.get("training_steps") or STEPS["multi_prediction"]
    if not 1 <= steps <= MAX_STEPS:
        raise DataError(f"'inference_steps' must be from 1 to {MAX_STEPS:,}. Got {steps}.")
    return method, int(steps)


class Recalibration(NamedTuple):
    """The correction of probabilities; :mod:`harmonium.estimators.calibration` has its formula."""

    offsets: Doubles  # (C,) a_j
    slopes: Doubles  # (C,) b_j
    observed_offsets: Doubles  # (2,) α, α'
    observed_slopes: Doubles  # (2,) β, β'

    def __call__(self, P: Floats, observed: Doubles | None = None) -> Floats:
        """Corrected probabilities, (N, C); ``observed`` (N,) is each clip's observed fraction."""
        Z = observed_columns(np.zeros(len(P)) if observed is None else observed)[:, 1:]
        slope = np.maximum(self.slopes + (Z @ self.observed_slopes)[:, None], MIN_SLOPE)
        offset = self.offsets + (Z @ self.observed_offsets)[:, None]
        return sigmoid(offset + slope * limited_log_odds(P)).astype(np.float32)

    def arrays(self) -> Arrays:
        """The correction in the form of a model file."""
        return dict(zip(_RECALIBRATION, self, strict=True))


_RECALIBRATION = tuple(
    f"recalibration.{name}" for name in ("offsets", "slopes", "told_offsets", "told_slopes")
)


def stored_recalibration(arrays: Arrays, n_tags: int) -> Recalibration | None:
    """The correction among the arrays of a model file; None if it has none."""
    if _RECALIBRATION[0] not in arrays:
        return None
    found = Recalibration(*(finite_array(arrays, name) for name in _RECALIBRATION))
    if [part.shape for part in found] != [(n_tags,), (n_tags,), (2,), (2,)]:
        raise ValueError("its recalibration does not fit its tags")
    return found


def mean_probabilities(members: Sequence[Floats]) -> Floats:
    """σ of the mean of the members' log-odds, (N, C)."""
    if len(members) == 1:
        return members[0]
    return sigmoid(np.mean([limited_log_odds(P) for P in members], axis=0)).astype(np.float32)


def observed_fraction(Y: Floats) -> Doubles:
    """The fraction of each clip's tags that are known, (N,), of (N, C) with NaN for unknown."""
    return np.mean(~np.isnan(Y), axis=1, dtype=np.float64)


def observed_columns(fraction: Doubles) -> Doubles:
    """(1, [some tag is observed], t) of each clip, (N, 3), from the observed fractions t."""
    return np.column_stack([np.ones(len(fraction)), fraction > 0, fraction])


def limited_log_odds(P: Floats) -> Doubles:
    """log(p / (1 - p)), at most `MAX_LOG_ODDS` from 0."""
    return np.clip(log_odds(P.astype(np.float64)), -MAX_LOG_ODDS, MAX_LOG_ODDS)


class StoredEstimator(ABC):
    """Saves and loads an estimator. A subclass says what it has learnt."""

    _param_type: ClassVar[Any]  # NamedTuple of the parameter arrays
    _params: Any

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

        A ``random_state`` that is not a number is not saved.
        """
        write_model(path, *self._described())

    def to_bytes(self, more: Mapping[str, NDArray[Any]] | None = None) -> bytes:
        """What ``save`` writes; ``more`` arrays are stored with it, and ``load`` ignores them."""
        arrays, about = self._described()
        return to_bytes(arrays | dict(more or {}), about)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """A fitted model from a file that ``save`` wrote."""
        return cls._from_parts(*read_model(path), name=f"'{path}'")

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """A fitted model from the bytes of ``to_bytes``."""
        return cls._from_parts(*from_bytes(data), name="The model")

    def _described(self) -> tuple[Arrays, dict[str, Any]]:
        """The arrays and the description of the fitted model."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        self._check_shapes()
        arrays, about = self._learnt()
        parameters: Any = self.get_params()  # type: ignore[attr-defined]
        description = {
            "version": __version__,
            "class": type(self).__name__,
            "parameters": {name: _json_value(value) for name, value in parameters.items()},
        }
        for name, array in self._params._asdict().items():
            half = rounded_to_half(array)
            exact = np.array_equal(half, array)
            arrays[f"params.{name}"] = half.astype(np.float16) if exact else array
        return arrays, description | about

    @classmethod
    def _from_parts(cls, arrays: Arrays, about: dict[str, Any], *, name: str) -> Self:
        if about.get("class") != cls.__name__:
            raise ModelFileError(
                f"{name} holds a {about.get('class')}, not a {cls.__name__}. "
                "harmonium.load reads any model."
            )
        try:
            settings = about["parameters"].items()
            model = cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in settings})
            model._validate_params()  # type: ignore[attr-defined]
            kind = model._param_type
            model._params = kind(*(stored_parameter(arrays, f"params.{k}") for k in kind._fields))
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
    """A parameter for JSON: NumPy's numbers become Python's, a random generator becomes None."""
    if isinstance(value, np.generic):
        return value.item()
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
    half = arrays[name].dtype == np.float16
    array = finite_array(arrays, name, np.float16 if half else np.float32)
    return array.astype(np.float32, copy=False)


def array_of_names(values: Any) -> NDArray[Any]:
    """Names in the form that ``fit`` keeps: an object array of strings, or integers."""
    kinds = {type(value) for value in values} if isinstance(values, list) else set()
    if kinds not in ({str}, {int}):
        raise TypeError(f"expected a list of names or of numbers, not {values!r:.80}")
    return np.array(values, dtype=object if kinds == {str} else None)
