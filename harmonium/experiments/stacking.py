"""Runs that are alike, trained as one program."""

import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from harmonium.estimators.stacked import fit_stacked, signature
from harmonium.estimators.tagger import Tagger
from harmonium.experiments.materials import material
from harmonium.experiments.models import build
from harmonium.experiments.performing import Given, judged, perform, run_seed, split
from harmonium.experiments.plan import Run

LARGEST = 256
"""Models in one stack; bounds the memory."""


def perform_stacked(runs: list[Run]) -> Iterator[tuple[Run, Given]]:
    """`perform` for each run, those that are alike together. Seconds are a run's share."""
    stacks: dict[Any, list[tuple[Run, Tagger]]] = defaultdict(list)
    for run in runs:
        model = build(run.estimator, run.settings, seed=run_seed(run))
        if isinstance(model, Tagger) and not run.smoothing:
            alike = (run.dataset, run.features, run.clips, signature(model))
            stacks[alike].append((run, model))
        else:
            yield run, perform(run)
    for members in stacks.values():
        for first in range(0, len(members), LARGEST):
            yield from _perform(members[first : first + LARGEST])


def _perform(members: list[tuple[Run, Tagger]]) -> Iterator[tuple[Run, Given]]:
    runs, models = zip(*members, strict=True)
    data = material(runs[0].dataset)
    X = data.features(runs[0].features)
    rows = [split(run, data) for run in runs]
    began = time.perf_counter()
    fit_stacked(models, X, data.Y, [r.train for r in rows], [r.valid for r in rows])
    seconds = (time.perf_counter() - began) / len(runs)
    for run, model, own in zip(runs, models, rows, strict=True):
        yield run, judged(run, model, X, data, own, seconds=seconds, smoothing=0.0)
