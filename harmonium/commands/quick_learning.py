"""What commands do when answers have begun or ended: the model learns from them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from harmonium.commands.screen import bar, say
from harmonium.errors import HarmoniumError, counted

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.learning.quick import QuickReport


def learn(library: Library) -> QuickReport | None:
    """Learn from the answers that are in force; None, and a line that says why, where it fails.

    What was answered is kept already, and stays.
    """
    from harmonium.library.learning.quick import learn_answers

    errors = Console(stderr=True)
    try:
        with bar(errors, "learning") as progress:
            return learn_answers(library, progress)
    except HarmoniumError as error:
        say(errors, f"It is kept, but the model could not learn from it yet: {error}")
        return None


def learnt(report: QuickReport | None) -> str | None:
    """For example "Learnt jazz anew for all tracks, from 12 answers, in 0.2 s.", or None."""
    if report is None or not report.refreshed:
        return None
    tags = ", ".join(report.refreshed)
    used = sum(one.n_yes + one.n_no for one in report.tags if one.name in report.refreshed)
    answers = counted(used, "answer")
    return f"Learnt {tags} anew for all tracks, from {answers}, in {report.seconds:.1f} s."
