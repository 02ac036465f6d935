"""Which tags go together in several collections: what is known without any sound."""

from functools import cache
from typing import NamedTuple

import numpy as np

from harmonium import logistic
from harmonium.arrays import Doubles
from harmonium.estimators import model_files
from harmonium.library.model.builtin import BUILTIN_FILE
from harmonium.library.model.odds import MIN_PROBABILITY
from harmonium.rbm.forward import PlainRBM, hidden_given_tags

WORDS_FILE = BUILTIN_FILE.with_name("words.safetensors")  # under its own licence
GAIN_STEPS = 16  # steps for 1 of log-odds: a gain is stored in a byte
NO_GAIN = -128  # in place of an unknown gain


class Words(NamedTuple):
    """Which tags go together in several collections, whatever the sound.

    The log-odds of a tag j are the mean of two: the RBMs', by one mean-field step, and those from
    counting, the mean of p(j | k) over the observed tags k that share a collection with j.
    """

    tags: tuple[str, ...]
    members: tuple[PlainRBM, ...]
    beside: Doubles  # (C, C): p(y_j = 1 | y_k = 1) at [k, j]; NaN where no collection has both
    rates: Doubles  # (C,)

    @classmethod
    def of(cls, data: bytes) -> "Words":
        """Those of a file."""
        arrays, about = model_files.from_bytes(data, name="words.safetensors")
        U, c, d = (arrays[name].astype(np.float64) for name in ("U", "c", "d"))
        odds = arrays["rates"].astype(np.float64)
        gains = np.where(arrays["gains"] == NO_GAIN, np.nan, arrays["gains"] / GAIN_STEPS)
        return cls(
            tags=tuple(about["tags"]),
            members=tuple(PlainRBM(*member) for member in zip(U, c, d, strict=True)),
            beside=logistic.sigmoid(odds + gains),
            rates=logistic.sigmoid(odds),
        )

    def __call__(self, y: Doubles) -> Doubles:
        """Log-odds of the tags, (n, C), for observed tags ``y``, (n, C); in both NaN is unknown."""
        known = ~np.isnan(self.beside)
        with_k = np.nan_to_num(self.beside)
        k = self.rates[:, None]
        # p(j | not k) follows from p(j) and p(j | k); above 0, since shares are smoothed
        without_k = np.maximum((self.rates - k * with_k) / (1 - k), self.rates / 10) * known
        n = ~np.isnan(y) @ known.astype(np.float64)
        mean = ((y == 1) @ with_k + (y == 0) @ without_k) / np.maximum(n, 1)
        odds = (self.by_members(y) + logistic.log_odds(mean, MIN_PROBABILITY)) / 2
        return np.where(n > 0, odds, np.nan)

    def by_members(self, y: Doubles) -> Doubles:
        """The same by the RBMs alone."""
        y = np.nan_to_num(y)
        odds = [rbm.d + hidden_given_tags(rbm, y) @ rbm.U for rbm in self.members]
        return np.mean(odds, axis=0)


@cache
def words() -> Words | None:
    """The package's words; None if somebody deleted the file because of its licence."""
    return Words.of(WORDS_FILE.read_bytes()) if WORDS_FILE.exists() else None
