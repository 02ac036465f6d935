"""Ctrl-C during training: estimators keep the best so far, a library wants all or nothing."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from harmonium.errors import TrainingInterrupted


@contextmanager
def interrupts_raise() -> Iterator[None]:
    """Raise KeyboardInterrupt where ``fit`` would warn that it was interrupted."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingInterrupted)
        try:
            yield
        except TrainingInterrupted as warning:
            raise KeyboardInterrupt(str(warning)) from None
