"""The paper's features of a clip: timbre, and then rhythm; docs/features.md defines them.

Timbre is the mean and the covariance of the MFCCs. Rhythm is how the energies of four broad bands
swing, 0 to 10 times a second, after Mandel and Ellis, "A web-based game for collecting music
metadata", 2008.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import ceil

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike, NDArray

from harmonium.arrays import Doubles, Floats
from harmonium.audio.spectrum import (
    DEFAULTS,
    FeatureParameters,
    constant,
    decibels,
    hann_window,
    mel_corners,
    mel_spectrogram,
    raise_to_floor,
)
from harmonium.errors import DataError

GROUPS = ("timbre", "rhythm")
"""The groups of features, in their order."""
MAX_SAMPLE = 1e12
"""Full scale is 1. Far beyond this, the squares in float32 overflow."""


def clip_features(
    samples: ArrayLike,
    rate: int,
    *,
    parameters: FeatureParameters = DEFAULTS,
    groups: Sequence[str] = GROUPS,
) -> Floats:
    """The features of one clip.

    Parameters
    ----------
    samples : (n,) floats, one channel, full scale 1; at least ``parameters.shortest_length``
    rate : samples per second; must be ``parameters.rate``
    parameters : the definitions' numbers; `feature_names` says what the features then are
    groups : ``"timbre"``, ``"rhythm"``, or both

    Returns
    -------
    (n_features,) float32, finite; a DataError says which samples cannot be used

    >>> noise = np.random.default_rng(0).normal(scale=0.1, size=10 * 22_050)
    >>> clip_features(noise, 22_050).shape
    (389,)
    """
    mel = mel_energies(samples, rate, parameters)
    _check_groups(groups)
    features = {"timbre": timbre_features, "rhythm": rhythm_features}
    return np.concatenate([features[group](mel, parameters) for group in groups]).astype(np.float32)


def feature_names(
    parameters: FeatureParameters = DEFAULTS, *, groups: Sequence[str] = GROUPS
) -> list[str]:
    """What each number of `clip_features` is.

    >>> feature_names()[212]
    'rhythm: low band, coefficient 23'
    """
    _check_groups(groups)
    pairs = np.column_stack(np.triu_indices(parameters.n_mfcc)).tolist()
    timbre = [f"mean of MFCC {k}" for k in range(parameters.n_mfcc)] + [
        f"variance of MFCC {i}" if i == j else f"covariance of MFCC {i} and {j}" for i, j in pairs
    ]
    bands, coefficients = parameters.band_names, range(parameters.n_rhythm)
    rhythm = [f"{band} band, coefficient {k}" for band in bands for k in coefficients]
    names = {"timbre": timbre, "rhythm": rhythm}
    return [f"{group}: {name}" for group in groups for name in names[group]]


def mel_energies(samples: ArrayLike, rate: int, parameters: FeatureParameters) -> Floats:
    """What the features of a clip are computed from, (n_frames, n_mels), all of it positive."""
    checked = _check_samples(samples, rate, parameters)
    centred = checked - checked.mean()  # an offset cannot be heard
    return raise_to_floor(mel_spectrogram(centred, parameters), parameters)


@lru_cache(maxsize=16)
def dct_basis(length: int, n_coefficients: int) -> Floats:
    """Column k is the k-th cosine of the orthonormal DCT-II: (length, n_coefficients)."""
    basis = scipy.fft.dct(np.eye(length), axis=1, norm="ortho")[:, :n_coefficients]
    return constant(np.ascontiguousarray(basis))


def mfccs(mel: Floats, parameters: FeatureParameters) -> Floats:
    """The DCT of the mel energies in dB.

    (n_frames, n_mels) positive energies → (n_frames, n_mfcc)
    """
    return decibels(mel) @ dct_basis(parameters.n_mels, parameters.n_mfcc)


def timbre_features(mel: Floats, parameters: FeatureParameters) -> Doubles:
    """Mean of the MFCCs, then the upper triangle of their covariance row by row.

    (n_frames, n_mels) positive energies → (n_timbre,)
    """
    # In float64: sums of many similar values in float32 lose their differences.
    coefficients = mfccs(mel, parameters).astype(np.float64)
    mean = coefficients.mean(axis=0)
    centred = coefficients - mean
    covariance = centred.T @ centred / (len(centred) - 1)
    return np.concatenate([mean, covariance[np.triu_indices(parameters.n_mfcc)]])


@lru_cache(maxsize=16)
def band_of_mel(parameters: FeatureParameters) -> NDArray[np.intp]:
    """The broad band that the centre of each mel band lies in, (n_mels,)."""
    centres = mel_corners(parameters)[1:-1]
    bands = np.searchsorted(parameters.band_edges, centres, side="right")
    empty = set(range(len(parameters.band_names))) - set(bands.tolist())
    if empty:
        raise DataError(
            f"'band_edges' {parameters.band_edges} leave the band "
            f"'{parameters.band_names[min(empty)]}' without a mel band. Choose other edges, or "
            f"more mel bands than 'n_mels' = {parameters.n_mels}."
        )
    bands.flags.writeable = False
    return bands


def band_envelopes(mel: Floats, parameters: FeatureParameters) -> Doubles:
    """Energy of each broad band over time, divided by its mean.

    (n_frames, n_mels) positive energies → (n_frames, n_bands), every column with mean 1
    """
    starts = np.searchsorted(band_of_mel(parameters), np.arange(len(parameters.band_names)))
    energies = np.add.reduceat(mel.astype(np.float64), starts, axis=1)
    return energies / energies.mean(axis=0)


def modulation_frequencies(parameters: FeatureParameters) -> Doubles:
    """Hz of each column of `modulation_spectra`, (n_modulations,)."""
    frequencies = scipy.fft.rfftfreq(parameters.modulation_fft, 1 / parameters.frame_rate)
    return frequencies[: parameters.n_modulations]


def modulation_spectra(envelopes: Doubles, parameters: FeatureParameters) -> Doubles:
    """√ of the mean over frames of |FFT of the windowed envelope − 1|², scaled to depth.

    An envelope 1 + a cos(2πft) gives a peak of height a at f. A clip shorter than a frame is one
    frame of its own length; the frames of a longer one are spread evenly, and overlap by at least
    half. (n_frames, n_bands) → (n_bands, n_modulations)
    """
    length = min(parameters.modulation_frame, len(envelopes))
    n_starts = 1 + ceil((len(envelopes) - length) / (length / 2))
    starts = np.linspace(0, len(envelopes) - length, n_starts).round().astype(int)
    window = hann_window(length).astype(np.float64)
    window = window * (2 / window.sum())
    power = np.zeros((envelopes.shape[1], parameters.n_modulations))
    for start in starts:
        swings = (envelopes[start : start + length] - 1).T * window
        spectrum = scipy.fft.rfft(swings, parameters.modulation_fft, workers=1)
        power += np.abs(spectrum[:, : parameters.n_modulations]) ** 2
    return np.sqrt(power / n_starts)


def rhythm_features(mel: Floats, parameters: FeatureParameters) -> Doubles:
    """The first DCT coefficients of each broad band's modulation spectrum, band after band.

    (n_frames, n_mels) positive energies → (n_bands · n_rhythm,)
    """
    spectra = modulation_spectra(band_envelopes(mel, parameters), parameters)
    return (spectra @ dct_basis(parameters.n_modulations, parameters.n_rhythm)).ravel()


def _check_groups(groups: Sequence[str]) -> None:
    known = not isinstance(groups, str) and set(groups) <= set(GROUPS)
    if not known or not groups or len(set(groups)) != len(groups):
        raise DataError(f"'groups' must be some of {GROUPS}, each once, got {groups!r}.")


def _check_samples(samples: ArrayLike, rate: int, parameters: FeatureParameters) -> Floats:
    """The samples as contiguous float32, (n,), or a DataError that says what is wrong."""
    if rate != parameters.rate:
        raise DataError(
            f"'rate' must be {parameters.rate}, got {rate!r}. Resample the clip first, for "
            "instance with scipy.signal.resample_poly."
        )
    array = np.asarray(samples)
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
    shortest = parameters.shortest_length
    if len(array) < shortest:
        raise DataError(
            f"'samples' must last at least {shortest / rate:.2f} s ({shortest} samples), got "
            f"{len(array) / rate:.2f} s ({len(array)} samples). Take a longer clip."
        )
    with np.errstate(over="ignore"):  # a float64 too large for float32 becomes an infinity
        array = np.ascontiguousarray(array, np.float32)
    # A NaN makes the comparison false as well.
    if not (array.min() >= -MAX_SAMPLE and array.max() <= MAX_SAMPLE):
        place = int(np.argmax(~(np.abs(array) <= MAX_SAMPLE)))
        raise DataError(
            f"'samples' must be finite and at most {MAX_SAMPLE:g} in size (full scale is 1), "
            f"got {array[place]} at {place} ({place / rate:.3f} s). Repair or leave out the clip."
        )
    return array
