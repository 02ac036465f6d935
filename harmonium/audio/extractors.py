"""Extractors: functions from a sound to features, by name.

An `Extractor` carries everything needed to use it and to tell its results from another's. It is
sent to other processes as it is, so they need not know its registered name.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, entry_points

import numpy as np
from numpy.typing import ArrayLike

from harmonium.arrays import Floats
from harmonium.audio.decoding import DECODING_VERSION, decode_windows, quoted
from harmonium.audio.paper import (
    DEFAULTS,
    DEFINITIONS,
    FEATURE_GROUPS,
    GROUPS,
    FeatureParameters,
    clip_features,
    feature_names,
)
from harmonium.audio.windows import Plan, SpreadWindows
from harmonium.errors import AudioError, DataError, HarmoniumError
from harmonium.files import PathLike

DEFAULT = "musicnn"  # the extractor of a new library
ENTRY_POINTS = "harmonium.extractors"  # entry points by which other packages name extractors
ONNX = "onnx:"  # prefix of the name of a model in ONNX's format; the path of its file follows
IMPORTED = "imported:"  # prefix of the name of features that were imported

Function = Callable[[Floats, int], ArrayLike]
"""(samples of shape (n,) float32, rate) → n_features numbers, then n_heads probabilities."""


@dataclass(frozen=True)
class Extractor:
    """A function from a clip to a vector, with what it needs and what it gives.

    Calling it checks the function's result.
    """

    name: str  # its name in options and calls
    function: Function = field(repr=False, compare=False)
    feature_names: tuple[str, ...] = field(repr=False)  # what each number is
    revision: str = "1"  # change it whenever the function's numbers for the same samples change
    rate: int = 22_050  # samples per second of the clips
    seconds: float = 10.0  # length of the clips; shorter files give shorter ones
    head_names: tuple[str, ...] = field(default=(), repr=False)
    """The tags whose probabilities it gives after the features, if it is a tagger itself."""
    windows: Plan | None = None  # the windows to average features over; None: the middle one
    summary: str = field(default="", repr=False)  # what its features describe, in a few words
    auc: float | None = field(default=None, repr=False)
    """Mean AUC over tags of Emotify's 400 clips of 15 s, by logistic regression in five folds, as
    ``python benchmarks/extractors.py`` measures it."""
    milliseconds: float | None = field(default=None, repr=False)
    """For such a clip on one core, decoding included."""

    @property
    def n_numbers(self) -> int:
        """How many numbers the function returns: features and heads."""
        return len(self.feature_names) + len(self.head_names)

    @property
    def version(self) -> str:
        """Everything the numbers depend on, except the file: equal versions give equal numbers."""
        windows = "" if self.windows is None else f", {self.windows}"
        return (
            f"{self.name} {self.revision}; {self.rate} Hz, {self.seconds:g} s{windows}; "
            f"decoding {DECODING_VERSION}"
        )

    def __call__(self, samples: Floats, rate: int) -> Floats:
        """The features of a clip, (n_features,) float32."""
        return self._numbers(samples, rate)[: len(self.feature_names)]

    def extract(self, sound: PathLike | tuple[Floats, int], start: float | None = None) -> Floats:
        """The features and heads, (n_numbers,), of a file or of samples with their rate.

        Raises an AudioError if a file has none, a DataError if samples have none.
        """
        clips = decode_windows(
            sound, self.windows, rate=self.rate, seconds=self.seconds, start=start
        )
        try:
            numbers = np.mean([self._numbers(clip, self.rate) for clip in clips], axis=0)
        except DataError as error:
            if isinstance(sound, tuple):
                raise
            raise AudioError(f"{quoted(sound)} has no features: {error}") from error.__cause__
        return numbers.astype(np.float32)

    def _numbers(self, samples: Floats, rate: int) -> Floats:
        """The function's whole result for a clip, (n_numbers,), checked."""
        try:
            vector = np.asarray(self.function(samples, rate), np.float32)
        except HarmoniumError:
            raise
        except Exception as error:  # any failure of the function affects only this clip
            raise DataError(
                f"The extractor '{self.name}' failed: {type(error).__name__}: {error}"
            ) from error
        if vector.shape != (self.n_numbers,):
            raise DataError(
                f"The extractor '{self.name}' must give a vector of {self.n_numbers} "
                f"numbers, as registered; it gave the shape {vector.shape}."
            )
        not_finite = np.flatnonzero(~np.isfinite(vector))
        if len(not_finite):
            place = not_finite[0]
            name = (*self.feature_names, *self.head_names)[place]
            raise DataError(
                f"The extractor '{self.name}' gave {vector[place]} for '{name}'; features must "
                "be finite."
            )
        return vector


def features_of_file(
    path: PathLike,
    extractor: str | Extractor = "paper",
    *,
    start: float | None = None,
) -> Floats:
    """The features of a file, (n_features,), of the windows that the extractor uses.

    Raises an AudioError if the file cannot be decoded or the extractor refuses its sound.
    """
    extractor = get_extractor(extractor)
    return extractor.extract(path, start)[: len(extractor.feature_names)]


def paper_extractor(
    parameters: FeatureParameters = DEFAULTS,
    *,
    groups: tuple[str, ...] = GROUPS,
    seconds: float = 10.0,
    name: str = "paper",
    summary: str = "",
    auc: float | None = None,
    milliseconds: float | None = None,
) -> Extractor:
    """An extractor for the paper's features with other parameters, or for one group of them."""
    return Extractor(
        name=name,
        function=partial(clip_features, parameters=parameters, groups=groups),
        feature_names=tuple(feature_names(parameters, groups=groups)),
        revision=f"{DEFINITIONS} {asdict(parameters)} {groups}",
        rate=parameters.rate,
        seconds=seconds,
        summary=summary,
        auc=auc,
        milliseconds=milliseconds,
    )


_registered: dict[str, Extractor] = {
    "paper": paper_extractor(summary="the paper's timbre and rhythm", auc=0.709, milliseconds=9),
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
    """Register a function from a clip to a vector under a name; returns the extractor.

    Parameters
    ----------
    name : its name in ``AudioFeatures`` and on the command line
    function : (samples of shape (n,) float32, rate) → numbers. For other processes it must be
        importable there: a function of a module, not one defined in another.
    features : their names, or how many they are
    revision : change it with the function; cached results from an older one are then not used
    rate, seconds : of the clips that the function needs
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
            f"There is already an extractor '{name}'. Choose another name, or pass replace=True."
        )
    extractor = Extractor(
        name=name,
        function=function,
        feature_names=names,
        revision=revision,
        rate=rate,
        seconds=seconds,
    )
    _registered[name] = extractor
    return extractor


def with_windows(name: str, count: int) -> str:
    """The name of an extractor that averages over ``count`` windows: "paper*3".

    >>> with_windows("paper*3", 1)
    'paper'
    """
    base = name.rpartition("*")[0] or name
    return base if count == 1 else f"{base}*{count}"


def get_extractor(extractor: str | Extractor) -> Extractor:
    """The extractor with this name; an extractor is returned as it is.

    A number after a star is how many windows it uses, spread over the sound: "paper*3" gives the
    mean of the paper's features of three windows. "onnx:FILE" is a model in ONNX's format.
    """
    if isinstance(extractor, Extractor):
        return extractor
    if extractor in _registered:
        return _registered[extractor]
    if extractor in FEATURE_GROUPS:
        summary = FEATURE_GROUPS[extractor].summary
        return paper_extractor(groups=(extractor,), name=extractor, summary=summary)
    if extractor in _installed():
        return _registered.setdefault(extractor, _loaded(_installed()[extractor]))
    if extractor.startswith(ONNX):
        from harmonium.audio.onnx_model import onnx_extractor

        return onnx_extractor(extractor.removeprefix(ONNX))
    if extractor.startswith(IMPORTED):
        raise DataError(
            f"The features {extractor!r} were imported, and cannot be computed for files. Import "
            "them again with `harmonium import --features` after new files were indexed with "
            "`harmonium index --extractor NAME`."
        )
    base, _, count = extractor.rpartition("*")
    if base and count.isdecimal() and int(count) >= 1:
        return _averaged(get_extractor(base), int(count), name=extractor)
    raise DataError(
        f"There is no extractor {extractor!r}. The known ones are "
        f"{', '.join(available_extractors())}; onnx:FILE is a network in ONNX's format, and "
        "harmonium.audio.register adds one."
    )


def _averaged(extractor: Extractor, count: int, *, name: str) -> Extractor:
    """The same extractor as a mean over windows, under another name."""
    if extractor.windows is not None:
        raise DataError(
            f"'{extractor.name}' chooses its windows itself; ask for '{extractor.name}'."
        )
    windows = SpreadWindows(count, round(extractor.seconds * extractor.rate))
    return replace(extractor, name=name, windows=windows, auc=None, milliseconds=None)


def available_extractors() -> tuple[str, ...]:
    """The names that `get_extractor` knows: built in, registered, and from other packages."""
    names = ("paper", *FEATURE_GROUPS, *_registered, DEFAULT, *sorted(_installed()))
    return tuple(dict.fromkeys(names))


@lru_cache(maxsize=1)
def _installed() -> dict[str, EntryPoint]:
    """Extractors that are not loaded yet: other packages', and musicnn."""
    own = EntryPoint(DEFAULT, "harmonium.audio.musicnn:EXTRACTOR", ENTRY_POINTS)
    return {entry.name: entry for entry in (*entry_points(group=ENTRY_POINTS), own)}


def _loaded(entry: EntryPoint) -> Extractor:
    try:
        extractor = entry.load()
        if not isinstance(extractor, Extractor):
            raise TypeError(f"it must be a harmonium.audio.Extractor, got {extractor!r}")
    except Exception as error:
        raise DataError(
            f"The extractor '{entry.name}' of the installed package cannot be loaded from "
            f"{entry.value}: {type(error).__name__}: {error}"
        ) from error
    return extractor


def extractor_key(extractor: str | Extractor) -> str:
    """The key of an extractor's features: its name, and a digest of everything that matters."""
    extractor = get_extractor(extractor)
    digest = hashlib.sha256(extractor.version.encode()).hexdigest()
    return f"{extractor.name}@{digest[:12]}"
