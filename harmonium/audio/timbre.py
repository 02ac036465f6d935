"""Timbre: mean and covariance of the MFCCs over the clip."""

from functools import lru_cache

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from harmonium.audio.parameters import FeatureParameters
from harmonium.audio.spectrum import Floats, constant, decibels


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


def timbre_features(mel: Floats, parameters: FeatureParameters) -> NDArray[np.float64]:
    """Mean of the MFCCs, then the upper triangle of their covariance row by row.

    (n_frames, n_mels) positive energies → (n_timbre,)
    """
    # In float64: sums of many similar values in float32 lose their differences.
    coefficients = mfccs(mel, parameters).astype(np.float64)
    mean = coefficients.mean(axis=0)
    centred = coefficients - mean
    covariance = centred.T @ centred / (len(centred) - 1)
    return np.concatenate([mean, covariance[np.triu_indices(parameters.n_mfcc)]])


def timbre_names(parameters: FeatureParameters) -> list[str]:
    """What each of `timbre_features` is."""
    rows, columns = np.triu_indices(parameters.n_mfcc)
    means = [f"timbre: mean of MFCC {k}" for k in range(parameters.n_mfcc)]
    return means + [
        f"timbre: variance of MFCC {i}" if i == j else f"timbre: covariance of MFCC {i} and {j}"
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
