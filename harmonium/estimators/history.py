"""What happened in training, epoch by epoch: attributes that estimators have in common."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np

from harmonium.arrays import Arrays
from harmonium.errors import TrainingInterrupted, TrainingWarning
from harmonium.estimators.model_files import typed_array

if TYPE_CHECKING:
    from harmonium.rbm.training import Result

DIVERGED = 3 * np.log(0.5)  # log-likelihood per tag: three times as bad as tossing coins
RISING = 20  # epochs; a score that was best in the last ones may still have risen
ENDED = "Training ended after max_epochs"


class Epoch(NamedTuple):
    """An epoch of training that has just ended."""

    number: int  # counted from 1 in this call of fit
    log_likelihood: float  # of the training clips, a proxy, per tag
    score: float  # by which early stopping judges; NaN if no clips are held out
    seconds: float


EpochCallback = Annotated[Callable[[Epoch], bool | None], callable]


@contextmanager
def content_with_max_epochs() -> Iterator[None]:
    """No warning about training that ``max_epochs`` ends."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ENDED)
        yield


class EpochHistory:
    """A base for estimators that are trained in epochs."""

    history_: dict[str, list[float]]
    n_iter_: int  # epochs
    best_epoch_: int  # counted from 1; 0 if none is finished

    _score_name: ClassVar[str]  # the validation score's name in ``history_``
    _score_label: ClassVar[str]  # and next to the progress bar

    def _begin_history(self) -> None:
        names = ("log_likelihood", self._score_name, "seconds")
        self.history_ = {name: [] for name in names}
        self.n_iter_ = 0
        self.best_epoch_ = 0

    def _extend_history(self, result: "Result") -> None:
        """Add the epochs of a training after what was there."""
        if result.best_epoch:
            self.best_epoch_ = self.n_iter_ + result.best_epoch
        epochs = {
            "log_likelihood": result.history.log_likelihood,
            self._score_name: result.history.score,
            "seconds": result.history.seconds,
        }
        self.history_ = {name: self.history_[name] + epochs[name] for name in self.history_}
        self.n_iter_ = len(self.history_["seconds"])

    def _history_arrays(self) -> Arrays:
        """The history in the form of a model file; the description has the best epoch."""
        return {
            f"history.{name}": np.array(values, np.float64)
            for name, values in self.history_.items()
        }

    def _restore_history(self, arrays: Arrays, about: Mapping[str, Any]) -> None:
        """Restore the history from a model file."""
        self._begin_history()
        columns = {name: typed_array(arrays, f"history.{name}") for name in self.history_}
        self.history_ = {name: column.tolist() for name, column in columns.items()}
        self.n_iter_ = len(self.history_["seconds"])
        self.best_epoch_ = about["best_epoch"]
        shapes = {column.shape for column in columns.values()}
        if shapes != {(self.n_iter_,)} or self.best_epoch_ not in range(self.n_iter_ + 1):
            raise ValueError("its history is not one of whole epochs")

    def _warn_if_interrupted(self, interrupted: bool, when: str = "") -> None:
        """Warn the caller of ``fit``, which calls this."""
        if interrupted:
            kept = f"epoch {self.best_epoch_}" if self.best_epoch_ else "the start"
            warnings.warn(
                f"Training was interrupted{when}; the best parameters so far, those of {kept}, are "
                "kept.",
                TrainingInterrupted,
                stacklevel=3,
            )

    def _warn_if_not_converged(self, result: "Result", *, stops_early: bool) -> None:
        """Warn the caller of ``fit``, which calls this.

        With ``stops_early``, the best epoch should come well before the last.
        """
        if result.interrupted or not result.best_epoch:
            return
        proxies = result.history.log_likelihood
        n_epochs = len(proxies)
        if proxies[result.best_epoch - 1] < DIVERGED:
            warnings.warn(
                "Training diverged: it gives the tags of its own clips lower probabilities than "
                "tossing coins would. Use a smaller learning_rate, or scale the features "
                "(scale_features='standard').",
                TrainingWarning,
                stacklevel=3,
            )
        elif stops_early and not result.stopped and result.best_epoch > n_epochs - RISING:
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(
                f"{ENDED}={n_epochs} while the validation "
                f"{self._score_label} may still have risen: it was best in epoch "
                f"{result.best_epoch}. Raise max_epochs, or learning_rate.",
                ConvergenceWarning,
                stacklevel=3,
            )
