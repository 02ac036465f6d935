"""Extractors: a clip's samples → a vector. The paper's, and any other that has a name.

An `Extractor` carries all that must be known to use it and to tell its results from another's: the
rate and length of the clips it wants and where in a sound they lie, the names of its features, and
its version. It goes to other processes as it is, so those need not know the name that it is
registered under.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonium.audio import onnx_model
from harmonium.audio.clip import DECODING_VERSION, clip_of_samples, decode, quoted
from harmonium.audio.musicnn import listening as musicnn
from harmonium.audio.paper_features import DEFAULTS, GROUPS, clip_features, feature_names
from harmonium.audio.parameters import FeatureParameters
from harmonium.audio.windows import Plan, SpreadWindows, decode_windows, windows_of_samples
from harmonium.errors import AudioError, DataError, HarmoniumError

ENTRY_POINTS = "harmonium.extractors"
"""The group of entry points in which other packages name their extractors."""

DEFINITIONS = 1
"""To be raised whenever the paper's features of the same samples change."""

N_WINDOWS = 3
"""Windows of a track that a new collection is indexed by, where the extractor hears one."""

Function = Callable[[NDArray[np.float32], int], ArrayLike]


class Measured(NamedTuple):
    """What ``python benchmarks/extractors.py`` found on Emotify's 400 clips of 15 s."""

    auc: float
    """Mean area under the ROC curve over tags, by logistic regression in five folds."""
    milliseconds: float
    """For a clip on one core, decoding included."""


class Heard(NamedTuple):
    """What an extractor gives for a sound."""

    features: NDArray[np.float32]
    """(n_features,)"""
    heads: NDArray[np.float32]
    """(n_heads,) the tag probabilities of its own; most extractors have none"""


@dataclass(frozen=True)
class Extractor:
    """A function from a clip to a vector, with what it needs and what it gives.

    Calling it checks what the function gives.
    """

    name: str
    """What it is asked for by."""
    function: Function = field(repr=False)
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
    check: Callable[[], None] | None = field(default=None, repr=False)
    """Raises a HarmoniumError where something that the function needs is not there."""
    summary: str = field(default="", repr=False)
    """What it hears, in a few words."""
    measured: Measured | None = field(default=None, repr=False)
    """How good and how fast it is, where that was measured."""

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

    def __call__(self, samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
        """The features of a clip, (n_features,) float32."""
        return self._numbers(samples, rate)[: len(self.feature_names)]

    def hear(self, clips: Sequence[NDArray[np.float32]]) -> Heard:
        """The mean over clips of one sound, each of the extractor's rate."""
        numbers = np.mean([self._numbers(clip, self.rate) for clip in clips], axis=0)
        return Heard(*np.split(numbers.astype(np.float32), [len(self.feature_names)]))

    def hear_file(self, path: str | os.PathLike[str], start: float | None = None) -> Heard:
        """What it gives for a file; AudioError where there is nothing to hear in it."""
        if self.windows is None:
            clip = decode(path, rate=self.rate, seconds=self.seconds, start=start)
            clips = [clip.samples]
        else:
            clips = decode_windows(path, self.windows, rate=self.rate, start=start)
        try:
            return self.hear(clips)
        except DataError as error:
            raise AudioError(f"{quoted(path)} has no features: {error}") from error.__cause__

    def hear_samples(
        self, samples: NDArray[np.float32], rate: int, start: float | None = None
    ) -> Heard:
        """What it would give for a file with these samples."""
        if self.windows is not None:
            return self.hear(
                windows_of_samples(samples, rate, self.windows, rate=self.rate, start=start)
            )
        clip = clip_of_samples(samples, rate, rate=self.rate, seconds=self.seconds, start=start)
        return self.hear([clip.samples])

    def _numbers(self, samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
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
    extractor: "str | Extractor" = "paper",
    *,
    start: float | None = None,
) -> NDArray[np.float32]:
    """The features of a file, (n_features,), of the windows that the extractor hears.

    Raises
    ------
    AudioError
        where the file cannot be decoded, or its sound is not one that the extractor takes
    DataError
        where there is no such extractor
    """
    return get_extractor(extractor).hear_file(path, start).features


@dataclass(frozen=True)
class PaperFeatures:
    """The paper's features, or some groups of them, as a function that other processes can get."""

    parameters: FeatureParameters = DEFAULTS
    groups: tuple[str, ...] = GROUPS

    def __call__(self, samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
        """(n,) samples → (n_features,)"""
        return clip_features(samples, rate, parameters=self.parameters, groups=self.groups)


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
        PaperFeatures(parameters, groups),
        tuple(feature_names(parameters, groups=groups)),
        revision=f"{DEFINITIONS} {asdict(parameters)} {groups}",
        rate=parameters.rate,
        seconds=seconds,
        **facts,
    )


def _check_musicnn() -> None:
    from harmonium.audio.musicnn.weights import check_weights

    check_weights()


_registered: dict[str, Extractor] = {
    "paper": paper_extractor(
        summary="the paper's timbre and rhythm",
        measured=Measured(auc=0.709, milliseconds=9),
    ),
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
        check=_check_musicnn,
        summary="what two networks learnt to hear for tags",
        measured=Measured(auc=0.809, milliseconds=215),
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
    replace : whether an extractor of that name may be there already

    >>> def loudness(samples, rate):
    ...     return [np.abs(samples).mean(), np.abs(samples).max()]
    >>> extractor = register("loudness", loudness, ["mean", "peak"], replace=True)
    >>> extractor(np.full(22_050, 0.5, np.float32), 22_050)
    array([0.5, 0.5], dtype=float32)
    """
    names = (
        tuple(f"{name} {k}" for k in range(features))
        if isinstance(features, int)
        else tuple(features)
    )
    _check_registration(name, function, names, replace)
    extractor = Extractor(name, function, names, revision, rate, seconds)
    _registered[name] = extractor
    return extractor


def _check_registration(
    name: str, function: Function, names: tuple[str, ...], replace: bool
) -> None:
    if not callable(function):
        raise DataError(f"'function' must be callable, got {function!r}.")
    if not names or len(set(names)) != len(names):
        raise DataError(f"'features' must be at least one, and their names distinct, got {names}.")
    if not replace and name in available_extractors():
        raise DataError(
            f"There is an extractor '{name}' already. Choose another name, or pass replace=True."
        )


def default_extractor() -> str:
    """The extractor for a new collection: musicnn where its weights are, else the paper's."""
    from harmonium.audio.musicnn.weights import are_there

    return "musicnn" if are_there() else with_windows("paper", N_WINDOWS)


def with_windows(name: str, count: int) -> str:
    """The name of an extractor that hears so many windows of a sound: "paper*3".

    >>> with_windows("paper*3", 1)
    'paper'
    """
    base = name.rpartition("*")[0] or name
    return base if count == 1 else f"{base}*{count}"


def _of_onnx(name: str) -> Extractor:
    """The extractor of a name such as "onnx:model.onnx"."""
    found = onnx_model.described(name)
    return Extractor(
        found.name,
        found.model,
        tuple(f"embedding {j}" for j in range(found.n_features)),
        revision=found.model.digest,
        rate=found.rate,
        seconds=found.seconds,
        windows=SpreadWindows(found.windows, round(found.seconds * found.rate), whole=True),
    )


def _spread(name: str) -> Extractor | None:
    """The extractor of a name such as "paper*3"; None for another name."""
    base, _, count = name.rpartition("*")
    if not base or not count.isdecimal() or int(count) < 1:
        return None
    one = get_extractor(base)
    if one.windows is not None:
        raise DataError(f"The extractor '{base}' chooses its windows itself; ask for '{base}'.")
    windows = SpreadWindows(int(count), round(one.seconds * one.rate))
    return replace(one, name=name, windows=windows, measured=None)


def get_extractor(extractor: str | Extractor) -> Extractor:
    """The extractor of a name; an extractor is given back as it is.

    A number after a star is how many windows it hears, spread over the sound: "paper*3" gives the
    mean of the paper's features of three windows.
    """
    if isinstance(extractor, Extractor):
        return extractor
    if extractor in _registered:
        return _registered[extractor]
    if extractor in _installed():
        return _load(extractor)
    if extractor.startswith(onnx_model.PREFIX):
        return _of_onnx(extractor)
    if extractor.startswith("imported:"):
        raise DataError(
            f"The features {extractor!r} were imported, so files cannot be heard with them. Import "
            "them anew with `harmonium import --features` after new files were indexed with "
            "`harmonium index --extractor NAME`."
        )
    if (spread := _spread(extractor)) is not None:
        return spread
    raise DataError(
        f"There is no extractor {extractor!r}. Known are {', '.join(available_extractors())}; "
        "onnx:FILE is a network in ONNX's format, and harmonium.audio.register adds one."
    )


def available_extractors() -> tuple[str, ...]:
    """The names that `get_extractor` knows: built in, registered, and those of other packages."""
    return tuple(dict.fromkeys((*_registered, *sorted(_installed()))))


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
