"""Where work is done: in processes of this machine, in this process, or on a Dask cluster.

- ``make_executor`` turns an engine's name into a ``concurrent.futures.Executor``.
- ``completed`` runs a function over any number of tasks, a few at a time, and yields each task's
  outcome as it comes; ``Runner`` does the same by hand. Both survive the death of a worker.

docs/extraction.md says which engines there are, and what becomes of a task whose worker dies.
"""

from harmonium.engine.base import (
    Engine,
    EngineError,
    Serial,
    TaskLost,
    TimedOut,
    WorkerDied,
    available_cores,
)
from harmonium.engine.choice import make_executor
from harmonium.engine.runner import Outcome, Runner, completed

__all__ = [
    "Engine",
    "EngineError",
    "Outcome",
    "Runner",
    "Serial",
    "TaskLost",
    "TimedOut",
    "WorkerDied",
    "available_cores",
    "completed",
    "make_executor",
]
