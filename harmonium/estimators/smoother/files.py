"""Saving and loading smoothers: the parameters, and the pairs whose tags they answer with."""

from typing import Any, Self

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from harmonium import __version__
from harmonium.data import Conditioning
from harmonium.errors import ModelFileError
from harmonium.estimators.model_files import Arrays, read_model, write_model
from harmonium.estimators.smoother.rows import Conditions, Others, Parts, with_pairs
from harmonium.estimators.storing import finite_array, typed_array
from harmonium.rbm.model import Params

_NAMES = ("users", "items", "tracks", "tags")
_HISTORY = ("log_likelihood", "validation", "seconds")


class StoredSmoother:
    """The part of a smoother that saves and loads it."""

    _data: Conditioning
    _conditions: Conditions
    _params: Params
    history_: dict[str, list[float]]
    best_epoch_: int
    n_iter_: int
    baseline_: float

    def save(self, path: Any) -> None:
        """Write the fitted smoother to one file, by convention with the ending ``.safetensors``.

        The file has what the smoother answers with: the parameters, the names of users, clips,
        tracks and tags, and who gave which tag to what. A ``random_state`` that is not a number is
        not saved.
        """
        check_is_fitted(self)
        others, parts = self._conditions
        arrays = {
            **{f"params.{name}": array for name, array in self._params._asdict().items()},
            **{f"history.{name}": np.array(self.history_[name], np.float64) for name in _HISTORY},
            "baseline": np.array([self.baseline_]),
            **_packed_pairs(self._data),
        }
        if others is not None:
            arrays |= {"others.rates": others.rates, "others.spread": others.spread}
        settings = {name: _plain(value) for name, value in self.get_params().items()}  # type: ignore[attr-defined]
        about = {
            "version": __version__,
            "class": type(self).__name__,
            "parameters": settings,
            "parts": list(parts.names),
            "best_epoch": self.best_epoch_,
        }
        write_model(path, arrays, about)

    @classmethod
    def load(cls, path: Any) -> Self:
        """A fitted smoother from a file that ``save`` wrote."""
        arrays, about = read_model(path)
        if about.get("class") != cls.__name__:
            raise ModelFileError(
                f"'{path}' holds a {about.get('class')}, not a {cls.__name__}. "
                f"Load it with {about.get('class')}.load."
            )
        try:
            settings = dict(about["parameters"])
            settings["auxiliary"] = tuple(settings["auxiliary"])
            model = cls(**settings)
            model._validate_params()  # type: ignore[attr-defined]
            model._restore(arrays, about)
        except (KeyError, TypeError, ValueError, OverflowError, IndexError) as error:
            raise ModelFileError(
                f"'{path}' does not hold a whole model ({type(error).__name__}: {error}). "
                "Save the model again, or take a copy that is whole."
            ) from None
        return model

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        """What ``save`` wrote; KeyError, TypeError or ValueError where that is not what it is."""
        data = _unpacked_pairs(arrays)
        sizes = {"user": len(data.users), "track": len(data.tracks), "clip": len(data.items)}
        parts = Parts(tuple(about["parts"]), tuple(sizes[name] for name in about["parts"]))
        others = None
        if self.conditioning == "other_users":  # type: ignore[attr-defined]
            rates, spread = (
                finite_array(arrays, f"others.{name}", np.float32) for name in ("rates", "spread")
            )
            others = Others(rates, spread, float(self.prior_users))  # type: ignore[attr-defined]
        loaded: list[Any] = [
            finite_array(arrays, f"params.{k}", np.float32) for k in Params._fields
        ]
        params = Params(*loaded)
        _check_shapes(params, self.n_hidden, data, parts, others)  # type: ignore[attr-defined]
        self._data, self._conditions, self._params = data, Conditions(others, parts), params
        self.history_ = {k: typed_array(arrays, f"history.{k}").tolist() for k in _HISTORY}
        self.n_iter_, self.best_epoch_ = len(self.history_["seconds"]), int(about["best_epoch"])
        self.baseline_ = float(typed_array(arrays, "baseline")[0])


def _check_shapes(
    params: Params, n_hidden: int, data: Conditioning, parts: Parts, others: Others | None
) -> None:
    """Refuse parts that belong to different models."""
    n_tags = len(data.tags)
    n_inputs = 0 if others is None else n_tags
    wanted = {
        "U": (n_hidden, n_tags),
        "W": (n_hidden, n_inputs),
        "V": (parts.n_rows, n_tags),
        "c": (n_hidden,),
        "d": (n_tags,),
    }
    for name, shape in wanted.items():
        found = getattr(params, name).shape
        if found != shape:
            raise ValueError(f"{name} has the shape {found} where {shape} belongs")
    if others is not None and not others.rates.shape == others.spread.shape == (n_tags,):
        raise ValueError("the others' tags are scaled for another vocabulary")
    if others is not None and not (others.spread > 0).all():
        raise ValueError("others.spread must be above 0")


def _packed_pairs(data: Conditioning) -> Arrays:
    """Who gave which tag to what, as arrays; counts follow from these."""
    names: Arrays = {}
    for kind in _NAMES:
        encoded = [name.encode() for name in getattr(data, kind)]
        names[f"{kind}.text"] = np.frombuffer(b"".join(encoded), np.uint8)
        names[f"{kind}.ends"] = np.cumsum([len(name) for name in encoded], dtype=np.int64)
    return names | {
        "pairs.user": data.user,
        "pairs.item": data.item,
        "pairs.tags": data.y.indices.astype(np.int32),
        "pairs.ends": data.y.indptr.astype(np.int64),
        "items.track": data.item_track,
    }


def _unpacked_pairs(arrays: Arrays) -> Conditioning:
    users, items, tracks, tags = (_unpacked_names(arrays, kind) for kind in _NAMES)
    user, item, tag, track = (
        _codes(arrays[name], limit, name)
        for name, limit in (
            ("pairs.user", len(users)),
            ("pairs.item", len(items)),
            ("pairs.tags", len(tags)),
            ("items.track", len(tracks)),
        )
    )
    ones = np.ones(len(tag), np.float32)
    y = sp.csr_array((ones, tag, arrays["pairs.ends"]), shape=(len(user), len(tags)))
    if not len(user) == len(item) or len(track) != len(items):
        raise ValueError("its pairs of users and items differ in length")
    none = sp.csr_array((len(items), len(tags)), dtype=np.float32)
    nobody = np.zeros(len(items), np.int32)
    empty = Conditioning(user, item, item, y, none, nobody, track, users, items, tracks, tags)
    return with_pairs(empty, user, item, y)


def _unpacked_names(arrays: Arrays, kind: str) -> pl.Series:
    text, ends = arrays[f"{kind}.text"].tobytes(), arrays[f"{kind}.ends"].tolist()
    starts = [0, *ends[:-1]]
    if ends and (ends[-1] != len(text) or any(a > b for a, b in zip(starts, ends, strict=True))):
        raise ValueError(f"its names of {kind} are not whole")
    found = [text[a:b].decode() for a, b in zip(starts, ends, strict=True)]
    return pl.Series(found, dtype=pl.String)


def _codes(array: NDArray[Any], limit: int, name: str) -> NDArray[np.int32]:
    """Codes of names, which must be among those there are."""
    if array.dtype != np.int32 or array.ndim != 1:
        raise TypeError(f"{name} must be a column of int32, not {array.dtype}")
    if len(array) and not 0 <= array.min() <= array.max() < limit:
        raise ValueError(f"{name} has codes outside 0..{limit - 1}")
    return array


def _plain(value: Any) -> Any:
    """A parameter as JSON has it; a random generator as None."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list | np.ndarray):
        return [str(part) for part in value]
    return value if isinstance(value, bool | int | float | str) else None
