"""Extractors: a clip's samples → a vector. The paper's, and any other that has a name.

An `Extractor` carries all that is needed to use it and to tell its results from another's. It goes
to other processes as it is, so those need not know the name that it is registered under.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from harmonium.arrays import Floats
from harmonium.audio import musicnn
from harmonium.audio.decoding import (
    DECODING_VERSION,
    Plan,
    SpreadWindows,
    decode_windows,
    quoted,
    windows_of_samples,
)
from harmonium.audio.paper_features import GROUPS, clip_features, feature_names
from harmonium.audio.spectrum import DEFAULTS, FeatureParameters
from harmonium.errors import AudioError, DataError, HarmoniumError

ENTRY_POINTS = "harmonium.extractors"
"""The group of entry points in which other packages name their extractors."""
ONNX = "onnx:"
"""The beginning of the name of a model in ONNX's format; the path of its file follows."""
DEFINITIONS = 1
"""To be raised whenever the paper's features of the same samples change."""
DEFAULT = "musicnn"
"""What a new library is indexed with."""

Function = Callable[[Floats, int], ArrayLike]


@dataclass(frozen=True)
class Extractor:
    """A function from a clip to a vector, with what it needs and what it gives.

    Calling it checks what the function gives.
    """

    name: str
    """What it is asked for by."""
    function: Function = field(repr=False, compare=False)
    """(samples of shape (n,) float32, rate) → n_features numbers, then n_heads probabilities."""
    feature_names: tuple[str, ...] = field(repr=False)
    """What each number is."""
    revision: str = "1"
    """To be changed whenever the function gives other numbers for the same samples."""
    rate: int = 22_050
    """Samples per second of the clips."""
    seconds: float = 10.0
    """Length of the clips; shorter ones come from shorter files."""
    head_names: tuple[str, ...] = field(default=(), repr=False)
    """The tags whose probabilities it gives besides the features, if it is a tagger itself."""
    windows: Plan | None = None
    """Which windows of a sound are heard; the numbers are the mean of theirs. None: one window,
    the middle one."""
    summary: str = field(default="", repr=False)
    """What it hears, in a few words."""
    auc: float | None = field(default=None, repr=False)
    """Mean AUC over tags of Emotify's 400 clips of 15 s, by logistic regression in five folds, as
    ``python benchmarks/extractors.py`` measures it."""
    milliseconds: float | None = field(default=None, repr=False)
    """For such a clip on one core, decoding included."""

    @property
    def n_numbers(self) -> int:
        """How many numbers the function gives: features and heads."""
        return len(self.feature_names) + len(self.head_names)

    @property
    def version(self) -> str:
        """All that the numbers depend on besides the file: two of one version give the same."""
        windows = "" if self.windows is None else f", {self.windows}"
        return (
            f"{self.name} {self.revision}; {self.rate} Hz, {self.seconds:g} s{windows}; "
            f"decoding {DECODING_VERSION}"
        )

    def __call__(self, samples: Floats, rate: int) -> Floats:
        """The features of a clip, (n_features,) float32."""
        return self._numbers(samples, rate)[: len(self.feature_names)]

    def hear_file(self, path: str | os.PathLike[str], start: float | None = None) -> Floats:
        """The features and heads of a file, (n_numbers,); AudioError where it has none."""
        clips = decode_windows(
            path, self.windows, rate=self.rate, seconds=self.seconds, start=start
        )
        try:
            return self._mean(clips)
        except DataError as error:
            raise AudioError(f"{quoted(path)} has no features: {error}") from error.__cause__

    def hear_samples(self, samples: Floats, rate: int, start: float | None = None) -> Floats:
        """The features and heads of a file with these samples, (n_numbers,)."""
        clips = windows_of_samples(
            samples, rate, self.windows, rate=self.rate, seconds=self.seconds, start=start
        )
        return self._mean(clips)

    def _mean(self, clips: Sequence[Floats]) -> Floats:
        """The mean over clips of one sound, each of the extractor's rate."""
        numbers = np.mean([self._numbers(clip, self.rate) for clip in clips], axis=0)
        return numbers.astype(np.float32)

    def _numbers(self, samples: Floats, rate: int) -> Floats:
        """All that the function gives for a clip, (n_numbers,), checked."""
        try:
            vector = np.asarray(self.function(samples, rate), np.float32)
        except HarmoniumError:
            raise
        except Exception as error:  # whatever somebody's function does, it is about this one clip
            raise DataError(
                f"The extractor '{self.name}' failed: {type(error).__name__}: {error}"
            ) from error
        if vector.shape != (self.n_numbers,):
            raise DataError(
                f"The extractor '{self.name}' must give a vector of {self.n_numbers} "
                f"numbers, as registered; it gave the shape {vector.shape}."
            )
        wrong = np.flatnonzero(~np.isfinite(vector))
        if len(wrong):
            name = (*self.feature_names, *self.head_names)[wrong[0]]
            raise DataError(
                f"The extractor '{self.name}' gave {vector[wrong[0]]} for '{name}'; features must "
                "be finite."
            )
        return vector


def features_of_file(
    path: str | os.PathLike[str],
    extractor: str | Extractor = "paper",
    *,
    start: float | None = None,
) -> Floats:
    """The features of a file, (n_features,), of the windows that the extractor hears.

    AudioError where the file cannot be decoded, or the extractor does not take its sound.
    """
    extractor = get_extractor(extractor)
    return extractor.hear_file(path, start)[: len(extractor.feature_names)]


def paper_extractor(
    parameters: FeatureParameters = DEFAULTS,
    *,
    groups: tuple[str, ...] = GROUPS,
    seconds: float = 10.0,
    name: str = "paper",
    **facts: Any,
) -> Extractor:
    """An extractor of the paper's features with other parameters, or of one group of them."""
    return Extractor(
        name,
        partial(clip_features, parameters=parameters, groups=groups),
        tuple(feature_names(parameters, groups=groups)),
        revision=f"{DEFINITIONS} {asdict(parameters)} {groups}",
        rate=parameters.rate,
        seconds=seconds,
        **facts,
    )


_registered: dict[str, Extractor] = {
    "paper": paper_extractor(summary="the paper's timbre and rhythm", auc=0.709, milliseconds=9),
    "timbre": paper_extractor(
        groups=("timbre",), name="timbre", summary="the first part of these: how it sounds"
    ),
    "rhythm": paper_extractor(
        groups=("rhythm",), name="rhythm", summary="the second part: how it moves"
    ),
    "musicnn": Extractor(
        "musicnn",
        musicnn.listen,
        musicnn.FEATURE_NAMES,
        rate=musicnn.RATE,
        seconds=musicnn.PATCH_SECONDS,
        head_names=musicnn.HEAD_NAMES,
        windows=musicnn.Patches(),
        summary="what two networks learnt to hear for tags",
        auc=0.809,
        milliseconds=215,
    ),
}


def register(
    name: str,
    function: Function,
    features: int | Sequence[str],
    *,
    revision: str = "1",
    rate: int = 22_050,
    seconds: float = 10.0,
    replace: bool = False,
) -> Extractor:
    """Give a function from a clip to a vector a name, and get the extractor.

    Parameters
    ----------
    name : what it is asked for by, in ``AudioFeatures`` and on the command line
    function : (samples of shape (n,) float32, rate) → numbers. For other processes it must be
        importable there: a function of a module, not one defined in another.
    features : their names, or how many they are
    revision : to be changed with the function; results kept from an older one are then not used
    rate, seconds : of the clips that the function wants
    replace : whether to replace an extractor of that name

    >>> def loudness(samples, rate):
    ...     return [np.abs(samples).mean(), np.abs(samples).max()]
    >>> extractor = register("loudness", loudness, ["mean", "peak"], replace=True)
    >>> extractor(np.full(22_050, 0.5, np.float32), 22_050)
    array([0.5, 0.5], dtype=float32)
    """
    if isinstance(features, int):
        features = [f"{name} {k}" for k in range(features)]
    names = tuple(features)
    if not callable(function):
        raise DataError(f"'function' must be callable, got {function!r}.")
    if not names or len(set(names)) != len(names):
        raise DataError(f"'features' must be at least one, and their names distinct, got {names}.")
    if not replace and name in available_extractors():
        raise DataError(
            f"There is an extractor '{name}' already. Choose another name, or pass replace=True."
        )
    _registered[name] = Extractor(name, function, names, revision, rate, seconds)
    return _registered[name]


def with_windows(name: str, count: int) -> str:
    """The name of an extractor that hears so many windows of a sound: "paper*3".

    >>> with_windows("paper*3", 1)
    'paper'
    """
    base = name.rpartition("*")[0] or name
    return base if count == 1 else f"{base}*{count}"


def get_extractor(extractor: str | Extractor) -> Extractor:
    """The extractor of a name; an extractor is returned as it is.

    A number after a star is how many windows it hears, spread over the sound: "paper*3" gives the
    mean of the paper's features of three windows. "onnx:FILE" is a model in ONNX's format.
    """
    if isinstance(extractor, Extractor):
        return extractor
    if extractor in _registered:
        return _registered[extractor]
    if extractor in _installed():
        return _load(extractor)
    if extractor.startswith(ONNX):
        from harmonium.audio.onnx_model import onnx_extractor

        return onnx_extractor(extractor.removeprefix(ONNX))
    if extractor.startswith("imported:"):
        raise DataError(
            f"The features {extractor!r} were imported, so files cannot be heard with them. Import "
            "them anew with `harmonium import --features` after new files were indexed with "
            "`harmonium index --extractor NAME`."
        )
    base, _, count = extractor.rpartition("*")
    if base and count.isdecimal() and int(count) >= 1:
        return _spread(extractor, get_extractor(base), int(count))
    raise DataError(
        f"There is no extractor {extractor!r}. Known are {', '.join(available_extractors())}; "
        "onnx:FILE is a network in ONNX's format, and harmonium.audio.register adds one."
    )


def available_extractors() -> tuple[str, ...]:
    """The names that `get_extractor` knows: built in, registered, and those of other packages."""
    return tuple(dict.fromkeys((*_registered, *sorted(_installed()))))


def _spread(name: str, one: Extractor, count: int) -> Extractor:
    """An extractor of one window as one of several."""
    if one.windows is not None:
        raise DataError(f"'{one.name}' chooses its windows itself; ask for '{one.name}'.")
    windows = SpreadWindows(count, round(one.seconds * one.rate))
    return replace(one, name=name, windows=windows, auc=None, milliseconds=None)


@lru_cache(maxsize=1)
def _installed() -> dict[str, EntryPoint]:
    """Extractors of other packages, not loaded yet."""
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


def _load(name: str) -> Extractor:
    """An installed extractor, registered from now on."""
    entry = _installed()[name]
    try:
        extractor = entry.load()
    except Exception as error:
        raise DataError(
            f"The extractor '{name}' of the installed package cannot be loaded from "
            f"{entry.value}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(extractor, Extractor):
        raise DataError(
            f"The entry point '{name}' ({entry.value}) must be a harmonium.audio.Extractor, "
            f"got {type(extractor).__name__}."
        )
    return _registered.setdefault(name, extractor)
