"""Samples in, features out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonium.audio.parameters import FeatureParameters
from harmonium.audio.rhythm import rhythm_features, rhythm_names
from harmonium.audio.spectrum import Floats, mel_spectrogram, raise_to_floor
from harmonium.audio.timbre import timbre_features, timbre_names
from harmonium.errors import DataError

DEFAULTS = FeatureParameters()

GROUPS = ("timbre", "rhythm")
"""The groups of features, in their order."""

# Full scale is 1. Far beyond it, the squares in float32 overflow.
LARGEST_SAMPLE = 1e12


def clip_features(
    samples: ArrayLike,
    rate: int,
    *,
    parameters: FeatureParameters = DEFAULTS,
    groups: Sequence[str] = GROUPS,
) -> NDArray[np.float32]:
    """The features of one clip.

    Parameters
    ----------
    samples : (n,) floats, one channel, full scale 1; at least ``parameters.shortest_length``
    rate : samples per second; must be ``parameters.rate``
    parameters : the definitions' numbers; `feature_names` says what the features then are
    groups : ``"timbre"``, ``"rhythm"``, or both

    Returns
    -------
    (n_features,) float32, finite; ``parameters.n_features`` of them for both groups

    Raises
    ------
    DataError
        for another rate, more than one channel, whole numbers, too few samples, NaN or infinity

    >>> noise = np.random.default_rng(0).normal(scale=0.1, size=10 * 22_050)
    >>> clip_features(noise, 22_050).shape
    (389,)
    """
    mel = mel_energies(samples, rate, parameters)
    computed = [_FEATURES[group](mel, parameters) for group in checked_groups(groups)]
    return np.concatenate(computed).astype(np.float32)


def feature_names(
    parameters: FeatureParameters = DEFAULTS, *, groups: Sequence[str] = GROUPS
) -> list[str]:
    """What each number of `clip_features` is.

    >>> feature_names()[212]
    'rhythm: low band, coefficient 23'
    """
    return [name for group in checked_groups(groups) for name in _NAMES[group](parameters)]


_FEATURES = {"timbre": timbre_features, "rhythm": rhythm_features}
_NAMES = {"timbre": timbre_names, "rhythm": rhythm_names}


def checked_groups(groups: Sequence[str]) -> Sequence[str]:
    """The groups, if there are such, each once."""
    if isinstance(groups, str) or not groups or not set(groups) <= set(GROUPS):
        raise DataError(f"'groups' must be some of {GROUPS}, got {groups!r}.")
    if len(set(groups)) != len(groups):
        raise DataError(f"'groups' must be distinct, got {groups!r}.")
    return groups


def mel_energies(samples: ArrayLike, rate: int, parameters: FeatureParameters) -> Floats:
    """What the features of a clip are computed from, (n_frames, n_mels), all of it positive."""
    checked = check_samples(samples, rate, parameters)
    centred = checked - checked.mean()  # an offset cannot be heard
    return raise_to_floor(mel_spectrogram(centred, parameters), parameters)


def check_samples(samples: ArrayLike, rate: int, parameters: FeatureParameters) -> Floats:
    """The samples as contiguous float32, (n,), or a DataError that says what is wrong."""
    if rate != parameters.rate:
        raise DataError(
            f"'rate' must be {parameters.rate}, got {rate!r}. Resample the clip first, for "
            "instance with scipy.signal.resample_poly."
        )
    array = np.asarray(samples)
    _check_form(array, parameters)
    with np.errstate(over="ignore"):  # a float64 too large for float32 becomes an infinity
        array = np.ascontiguousarray(array, np.float32)
    # A NaN makes the comparison false as well.
    if not (array.min() >= -LARGEST_SAMPLE and array.max() <= LARGEST_SAMPLE):
        place = int(np.argmax(~(np.abs(array) <= LARGEST_SAMPLE)))
        raise DataError(
            f"'samples' must be finite and at most {LARGEST_SAMPLE:g} in size (full scale is 1), "
            f"got {array[place]} at {place} ({place / rate:.3f} s). Repair or leave out the clip."
        )
    return array


def _check_form(array: NDArray[np.generic], parameters: FeatureParameters) -> None:
    if array.ndim != 1:
        raise DataError(
            f"'samples' must be one channel, an array of shape (n,), got shape {array.shape}. "
            "Take the mean over the channels first: samples.mean(axis=1) where they are columns."
        )
    if not np.issubdtype(array.dtype, np.floating):
        raise DataError(
            f"'samples' must be floating-point numbers with full scale 1, got {array.dtype}. "
            "Divide 16-bit samples by 32768."
        )
    if len(array) < parameters.shortest_length:
        raise DataError(
            f"'samples' must last at least {parameters.shortest_length / parameters.rate:.2f} s "
            f"({parameters.shortest_length} samples), got {len(array) / parameters.rate:.2f} s "
            f"({len(array)} samples). Take a longer clip."
        )
