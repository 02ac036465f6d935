"""What the runs of an arm took, from the measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.experiments.plan import Results, Run

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cost:
    """What the runs of an arm took; empty arrays where nothing was measured."""

    training: Values
    """Seconds of training, of each final run."""
    to_best: Values
    """Seconds until the best epoch, of each final run that stops early."""
    testing: Values
    """Seconds of testing, of each final run."""
    clips: Values
    """Clips trained on, of each final run."""
    n_runs: int
    """All runs, the search included."""
    total: float
    """Seconds of all runs, smoothing and testing included; NaN where nothing was measured."""
    peak_memory: float
    """Megabytes of the process, the largest of all runs; NaN where nothing was measured."""


def cost_of(final: Sequence[Run], searched: Sequence[Run], measurements: Results) -> Cost:
    """What the final runs and those of the search took; each run counts once."""
    keys = list(dict.fromkeys(run.key for run in (*final, *searched)))
    everything = [measurements[key] for key in keys if key in measurements]
    finals = [measurements[run.key] for run in final if run.key in measurements]
    parts = ("seconds", "test_seconds", "smoothing_seconds")
    memory = _measured(everything, "peak_memory_mb")
    return Cost(
        training=_measured(finals, "seconds"),
        to_best=_measured(finals, "seconds_to_best"),
        testing=_measured(finals, "test_seconds"),
        clips=_measured(finals, "clips"),
        n_runs=len(keys),
        total=sum(_measured(everything, part).sum() for part in parts) if everything else np.nan,
        peak_memory=float(memory.max()) if len(memory) else np.nan,
    )


def versions(results: Results, measurements: Results) -> tuple[str, ...]:
    """What the runs were computed with, each set of versions once."""
    found = set()
    for key in results:
        packages = measurements.get(key, {}).get("versions")
        if isinstance(packages, dict) and packages:
            found.add(", ".join(f"{name} {packages[name]}" for name in sorted(packages)))
    return tuple(sorted(found))


def _measured(lines: Sequence[Mapping[str, Any]], name: str) -> Values:
    """One measurement, of the runs that have it."""
    values = [line.get(name) for line in lines]
    return np.array([v for v in values if isinstance(v, int | float)], dtype=np.float64)
