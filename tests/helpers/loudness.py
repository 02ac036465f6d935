"""Somebody's own module with functions from a clip to a vector."""

import numpy as np

from harmonium.audio import Extractor


def peak(samples, rate):
    return [np.abs(samples).max()]


def mean_and_peak(samples, rate):
    return np.abs(samples).mean(), np.abs(samples).max()


INSTALLED = Extractor("installed", peak, ("peak",))
