"""What every estimator trained by gradient shares: the training loop and what it records."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import numpy as np

from harmonium.errors import TrainingInterrupted
from harmonium.estimators.model_files import Arrays, StoredEstimator, typed_array
from harmonium.estimators.parameters import COUNT, POSITIVE, SHARE, estimator, parameter
from harmonium.rbm.gradients import Batch, Gradient
from harmonium.rbm.loop import History, Result, train
from harmonium.rbm.training import Optimiser, Penalty, Schedule, Tree


@estimator
class GradientTrained(StoredEstimator):
    """Base of the estimators that the training loop of the RBMs trains."""

    learning_rate: float = parameter(POSITIVE, default=0.01, doc="Step length.")
    schedule: Literal["constant", "inverse", "cosine"] = parameter(
        default="constant", doc="How the step length changes with the epochs."
    )
    batch_size: int = parameter(COUNT, default=20, doc="Clips per step.")
    max_epochs: int = parameter(COUNT, default=200, doc="Passes over the clips at most.")
    patience: int = parameter(
        COUNT,
        default=20,
        doc="""Epochs without a better validation AUC, or as good a one with a better likelihood,
        after which training stops; the best parameters are kept.""",
    )
    validation_fraction: float = parameter(
        SHARE,
        default=0.1,
        doc="""Share of the clips to stop early on when ``fit`` is given no ``eval_set``; 0 trains
        on all clips for ``max_epochs``.""",
    )
    random_state: Any = parameter(
        "random_state",
        default=None,
        doc="Seed; the same seed, data and machine give the same model to the bit.",
    )
    verbose: int = parameter("verbose", default=0, doc="1 shows a progress bar.")

    _score_name: ClassVar[str]  # of the validation score, in ``history_``
    _score_label: ClassVar[str]  # and beside the progress bar

    def _forget(self) -> None:
        """Begin a new account of training."""
        self.history_: dict[str, list[float]] = {name: [] for name in self._history_names()}
        self.n_iter_ = self.best_epoch_ = 0

    def _descend(
        self,
        start: Tree,
        batch: Batch,
        *,
        gradient: Gradient,
        optimiser: Optimiser,
        penalty: Penalty,
        max_epochs: int,
        seed: int,
        score: Callable[[Tree], float] | None,
        title: str = "",
        **more: Any,
    ) -> Result:
        """Train with these settings, and show how it goes if asked to."""
        with epoch_progress(
            max_epochs,
            shown=bool(self.verbose),
            name=type(self).__name__ + title,
            measure=self._score_label,
        ) as on_epoch:
            return train(
                start,
                batch,
                gradient=gradient,
                optimiser=optimiser,
                schedule=Schedule(self.schedule, self.learning_rate, self.max_epochs),
                penalty=penalty,
                batch_size=self.batch_size,
                max_epochs=max_epochs,
                patience=self.patience,
                seed=seed,
                score=score,
                on_epoch=on_epoch,
                **more,
            )

    def _keep(self, result: Result) -> None:
        """Take what training gave, after what was there."""
        self._params = numpy_params(result.params)
        if result.best_epoch:
            self.best_epoch_ = self.n_iter_ + result.best_epoch
        history = result.history
        columns = (history.log_likelihood, history.score, history.seconds)
        for name, values in zip(self._history_names(), columns, strict=True):
            self.history_[name] = self.history_[name] + values
        self.n_iter_ = len(self.history_["seconds"])

    def _warn_if_interrupted(self, result: Result, when: str = "") -> None:
        """To be called by ``fit`` itself, so that the warning points to its caller."""
        if result.interrupted:
            kept = f"epoch {self.best_epoch_}" if result.best_epoch else "the start"
            warnings.warn(
                f"Training was interrupted{when}; the best parameters so far, those of {kept}, are "
                "kept.",
                TrainingInterrupted,
                stacklevel=3,
            )

    def _history_names(self) -> tuple[str, str, str]:
        return ("log_likelihood", self._score_name, "seconds")

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, about = super()._learnt()
        history = {f"history.{k}": np.array(v, np.float64) for k, v in self.history_.items()}
        return arrays | history, about | {"best_epoch": self.best_epoch_}

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        super()._restore(arrays, about)
        columns = {name: typed_array(arrays, f"history.{name}") for name in self._history_names()}
        self.history_ = {name: column.tolist() for name, column in columns.items()}
        self.n_iter_, self.best_epoch_ = len(self.history_["seconds"]), about["best_epoch"]
        shapes = {column.shape for column in columns.values()}
        if shapes != {(self.n_iter_,)} or self.best_epoch_ not in range(self.n_iter_ + 1):
            raise ValueError("its history is not one of whole epochs")


def equal_batch(u: Any, a: Any, y: Any) -> Batch:
    """Clips that all have the same weight."""
    weights: Any = np.ones(len(y), np.float32)
    return Batch(u, a, y, weights)


def numpy_params(params: Tree) -> Tree:
    """The parameters as NumPy arrays of their own."""
    return type(params)(*(np.array(array) for array in params))


def single_precision(kind: Any, *arrays: Any) -> Any:
    """A tuple of that kind, such as parameters, of these arrays in single precision."""
    return kind(*(np.asarray(array, np.float32) for array in arrays))


@contextmanager
def epoch_progress(
    max_epochs: int, *, shown: bool, name: str, measure: str
) -> Iterator[Callable[[History], None]]:
    """A progress bar over epochs, with the best validation score so far; a no-op unless shown."""
    if not shown:
        yield lambda history: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("epoch {task.completed}/{task.total}"),
        TextColumn("{task.fields[score]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr)) as progress:
        task = progress.add_task(name, total=max_epochs, score="")

        def update(history: History) -> None:
            best = np.nanmax(history.score) if np.isfinite(history.score).any() else None
            last = history.score[-1]
            score = f"{measure} {last:.3f}, best {best:.3f}" if best is not None else ""
            progress.update(task, completed=len(history), score=score)

        yield update
