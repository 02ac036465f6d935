"""What a person sees while a model trains."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from harmonium.rbm.training import History


@contextmanager
def epoch_progress(
    max_epochs: int, *, shown: bool, name: str, measure: str = "AUC"
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
