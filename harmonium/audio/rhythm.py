"""Rhythm: how the energies of four broad bands swing, at 0 to 10 times a second.

After Mandel and Ellis, "A web-based game for collecting music metadata", 2008. docs/features.md has
the definitions.
"""

from functools import lru_cache
from math import ceil

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from harmonium.audio.parameters import FeatureParameters
from harmonium.audio.spectrum import Floats, hann_window, mel_centres
from harmonium.audio.timbre import dct_basis
from harmonium.errors import DataError


@lru_cache(maxsize=16)
def band_of_mel(parameters: FeatureParameters) -> NDArray[np.intp]:
    """The broad band that the centre of each mel band lies in, (n_mels,)."""
    bands = np.searchsorted(parameters.band_edges, mel_centres(parameters), side="right")
    empty = set(range(len(parameters.band_names))) - set(bands.tolist())
    if empty:
        raise DataError(
            f"'band_edges' {parameters.band_edges} leave the band "
            f"'{parameters.band_names[min(empty)]}' without a mel band. Choose other edges, or "
            f"more mel bands than 'n_mels' = {parameters.n_mels}."
        )
    bands.flags.writeable = False
    return bands


def band_envelopes(mel: Floats, parameters: FeatureParameters) -> NDArray[np.float64]:
    """Energy of each broad band over time, divided by its mean.

    (n_frames, n_mels) positive energies → (n_frames, n_bands), every column with mean 1
    """
    starts = np.searchsorted(band_of_mel(parameters), np.arange(len(parameters.band_names)))
    energies = np.add.reduceat(mel.astype(np.float64), starts, axis=1)
    return energies / energies.mean(axis=0)


def modulation_frequencies(parameters: FeatureParameters) -> NDArray[np.float64]:
    """Hz of each column of `modulation_spectra`, (n_modulations,)."""
    frequencies = scipy.fft.rfftfreq(parameters.modulation_fft, 1 / parameters.frame_rate)
    return frequencies[: parameters.n_modulations]


def modulation_spectra(
    envelopes: NDArray[np.float64], parameters: FeatureParameters
) -> NDArray[np.float64]:
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


def rhythm_features(mel: Floats, parameters: FeatureParameters) -> NDArray[np.float64]:
    """The first DCT coefficients of each broad band's modulation spectrum, band after band.

    (n_frames, n_mels) positive energies → (n_bands · n_rhythm,)
    """
    spectra = modulation_spectra(band_envelopes(mel, parameters), parameters)
    return (spectra @ dct_basis(parameters.n_modulations, parameters.n_rhythm)).ravel()


def rhythm_names(parameters: FeatureParameters) -> list[str]:
    """What each of `rhythm_features` is."""
    return [
        f"rhythm: {band} band, coefficient {k}"
        for band in parameters.band_names
        for k in range(parameters.n_rhythm)
    ]
