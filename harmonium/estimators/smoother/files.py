"""Saving and loading smoothers: the parameters, and the pairs whose tags they answer with."""

from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from harmonium.data import Conditioning
from harmonium.estimators.model_files import (
    Arrays,
    StoredEstimator,
    finite_array,
    typed_array,
)
from harmonium.estimators.smoother.conditions import Conditions, Others, parts_of, with_pairs
from harmonium.rbm.model import Params

_NAMES = ("users", "items", "tracks", "tags")


class StoredSmoother(StoredEstimator):
    """The part of a smoother that saves and loads it.

    A file has what the smoother answers with: the parameters, the names of users, clips, tracks and
    tags, and who gave which tag to what.
    """

    conditioning: str
    n_hidden: int
    prior_users: float
    _param_type = Params
    _data: Conditioning
    _conditions: Conditions
    baseline_: float

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        others, parts = self._conditions
        arrays = {
            "baseline": np.array([self.baseline_]),
            **_packed_pairs(self._data),
        }
        if others is not None:
            arrays |= {"others.rates": others.rates, "others.spread": others.spread}
        return arrays, {"parts": list(parts.names)}

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        data = self._data = _unpacked_pairs(arrays)
        parts = parts_of(data, tuple(about["parts"]))
        others = None
        if self.conditioning == "other_users":
            rates, spread = (
                finite_array(arrays, f"others.{name}", np.float32) for name in ("rates", "spread")
            )
            others = Others(rates, spread, float(self.prior_users))
        self._conditions = Conditions(others, parts)
        self.baseline_ = float(typed_array(arrays, "baseline")[0])

    def _check_shapes(self, params: Params) -> None:
        n_hidden, n_tags, others = self.n_hidden, len(self._data.tags), self._conditions.others
        wanted = {
            "U": (n_hidden, n_tags),
            "W": (n_hidden, 0 if others is None else n_tags),
            "V": (self._conditions.parts.n_rows, n_tags),
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
