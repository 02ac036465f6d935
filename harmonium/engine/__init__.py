"""Where work is done: in processes of this machine, in this process, or on a Dask cluster.

- ``make_executor`` turns an engine's name into a ``concurrent.futures.Executor``.
- ``completed`` runs a function over any number of tasks, a few at a time, and yields each task's
  outcome as it comes; ``Runner`` does the same by hand. Both survive the death of a worker, and
  of a cluster that comes back.

docs/features.md says which engines there are, and what becomes of a task whose worker dies.
"""

from harmonium.engine.interface import (
    Engine,
    EngineError,
    Serial,
    TimedOut,
    WorkerDied,
    available_cores,
)
from harmonium.engine.runner import Runner, TaskOutcome, completed, make_executor

__all__ = [
    "Engine",
    "EngineError",
    "Runner",
    "Serial",
    "TaskOutcome",
    "TimedOut",
    "WorkerDied",
    "available_cores",
    "completed",
    "make_executor",
]
