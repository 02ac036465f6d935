"""Trains the library that is named, and says each step; or dies while it stores the model."""

import functools
import os
import signal
import sys

import numpy as np

from harmonium.library import Library
from harmonium.library.learning import train
from harmonium.library.learning.fitting import Hyperparameters, fit
from harmonium.library.store.models import StoredModel


def main(place, mode):
    train.fit = functools.partial(fit, to_try=(Hyperparameters(0.01, 0.1),), n_hidden=5)
    with Library.open(place, create=False) as library:
        if mode == "store":  # dies when the model is written, and not yet said to be in use
            library.settings.set = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
            library.models.add(
                StoredModel(
                    name="nothing",
                    vocabulary=["rock"],
                    thresholds=np.ones(1, np.float32),
                    extractor="none",
                    bytes=bytes(1_000_000),
                    report={},
                )
            )
        train.train(library, progress=lambda *step: print(*step, flush=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
