"""The one loop that trains: one model, the members of a model, or a stack of models at once."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from harmonium.arrays import Doubles, Ids, Places
from harmonium.estimators.architecture import Parameters
from harmonium.estimators.history import Epoch
from harmonium.rbm.descent import Optimiser, Penalty
from harmonium.rbm.gradients import Batch, Gradient
from harmonium.rbm.stacks import stacked
from harmonium.rbm.training import History, Result, Schedule, Stack, train_stack

MIN_STEPS = 500  # of patience, since with few clips a model learns nothing in fewer

Score: TypeAlias = Callable[[Parameters, Places], Doubles]
"""The scores (S,) of a stack of parameters, for the members with these numbers; larger is better.
"""


class Member(NamedTuple):
    """One model to train: where it starts, and what it learns from."""

    start: Parameters
    rows: Ids  # the clips that it learns from
    seed: int
    penalty: Penalty
    schedule: Schedule


@dataclass(frozen=True, kw_only=True)
class Trainer:
    """How members are trained together; they are of one architecture."""

    gradient: Gradient
    optimiser: Optimiser
    batch_size: int
    max_epochs: int
    patience: int | None = None  # epochs without a better score; None: the least that is allowed
    min_patience: int = 20  # epochs, or 500 steps if they are more
    averaging: float = 0.0  # epochs over which parameters are averaged
    row_rate: float | None = None  # step length of V's rows, if they are trained one by one
    verbose: int = 0
    title: str = ""  # of the progress bar
    score_label: str = ""  # the validation score's name beside the bar
    callback: Callable[[Epoch], bool | None] | None = None  # after each epoch; True: the last one

    def train(
        self, members: Sequence[Member], data: Batch, score: Score | None = None
    ) -> list[Result]:
        """Train every member until its score stops rising; without a score, ``max_epochs`` long."""
        stack = Stack(
            params=stacked([member.start for member in members]),
            rows=[member.rows for member in members],
            schedules=[member.schedule for member in members],
            penalties=[member.penalty for member in members],
            seeds=[member.seed for member in members],
        )
        with self._progress() as show:

            def on_epoch(histories: Sequence[History]) -> bool:
                show(histories)
                return self.callback is not None and bool(self.callback(_last_epoch(histories[0])))

            return train_stack(
                stack,
                data,
                gradient=self.gradient,
                optimiser=self.optimiser,
                batch_size=self.batch_size,
                max_epochs=self.max_epochs,
                patience=self._epochs_of_patience(members),
                averaging=self.averaging,
                row_rate=self.row_rate,
                score=score,
                on_epoch=on_epoch,
            )

    def _epochs_of_patience(self, members: Sequence[Member]) -> int:
        if self.patience is not None:
            return self.patience
        n_clips = max(len(member.rows) for member in members)
        steps_per_epoch = math.ceil(n_clips / self.batch_size)
        return max(self.min_patience, math.ceil(MIN_STEPS / steps_per_epoch))

    @contextmanager
    def _progress(self) -> Iterator[Callable[[Sequence[History]], None]]:
        """A progress bar with the best validation score so far; nothing unless ``verbose``."""
        if not self.verbose:
            yield lambda histories: None
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
            task = progress.add_task(self.title, total=self.max_epochs, score="")

            def update(histories: Sequence[History]) -> None:
                scores = histories[0].score
                shown = ""
                if np.isfinite(scores).any():
                    shown = f"{self.score_label} {scores[-1]:.3f}, best {np.nanmax(scores):.3f}"
                progress.update(task, completed=len(scores), score=shown)

            yield update


def _last_epoch(history: History) -> Epoch:
    return Epoch(
        number=len(history),
        log_likelihood=history.log_likelihood[-1],
        score=history.score[-1],
        seconds=history.seconds[-1],
    )


def batch_of(u: Any, y: Any, a: Any = None, weights: Any = None) -> Batch:
    """Clips to learn from; without ``a``, nothing conditions the tags.

    ``weights`` are of the clips, (N, 1), or of their labels, (N, C); without, all count alike.
    """
    n_clips = len(y)
    if a is None:
        a = np.zeros((n_clips, 0), np.int32)
    alike: Any = np.ones(n_clips, np.float32)
    if weights is None:
        return Batch(u=u, a=a, y=y, w=alike)
    if weights.shape[1] == 1:
        return Batch(u=u, a=a, y=y, w=weights[:, 0])
    return Batch(u=u, a=a, y=y, w=alike, label_weights=weights)
