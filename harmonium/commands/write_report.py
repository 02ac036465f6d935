"""What `harmonium write` shows: for people, or for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harmonium.commands.screen import Flow, percent, printable, say, show_rows
from harmonium.errors import counted

if TYPE_CHECKING:
    from harmonium.library.filetags import FieldChange
    from harmonium.library.write import PlannedFile, WritePlan, WriteReport

MOST_NAMED = 20
"""Tags that are named as not written."""
JOINED = "; "
"""Between the values of a field in lines for programs."""


def show_plan(console: Console, plan: WritePlan) -> None:
    """All that would change: a picture of it on a terminal, else path, field, before, after."""
    if not console.is_terminal:
        for planned in plan.files:
            for one in planned.change.fields:
                values = (JOINED.join(one.before), JOINED.join(one.after))
                show_rows(console, (), [(planned.change.path, one.field, *values)])
        return
    show_changes(console, plan.files)
    say(
        console, f"{counted(len(plan.files), 'file')} would change, {plan.n_unchanged:,} would not."
    )
    say_expected(console, plan)
    reasons: dict[str, set[str]] = {}
    for planned in plan.files:
        for tag, reason in planned.change.left_out:
            reasons.setdefault(reason, set()).add(tag)
    for reason, tags in reasons.items():
        say(console, Text(f"Left out ({reason}): {', '.join(sorted(tags))}", style="dim"))


def show_changes(console: Console, files: Sequence[PlannedFile]) -> None:
    """The fields of each file before and after."""
    for planned in files:
        say(console, Text(printable(planned.change.path), style="bold"))
        table = Table.grid(padding=(0, 1))
        for style in ("", "dim"):
            table.add_column(style=style, no_wrap=True)
        table.add_column(overflow="fold")
        for one in planned.change.fields:
            table.add_row(f"  {one.field}", one.places[0], _difference(one, planned.guessed))
        console.print(table)


def say_expected(console: Console, plan: WritePlan) -> None:
    """How many of the predicted tags are expected to be wrong."""
    if plan.n_guessed:
        wrong = plan.expected_wrong
        about = f"about {wrong:,.0f}" if wrong >= 1 else "less than 1"
        say(
            console,
            f"The model adds {counted(plan.n_guessed, 'tag')}; {about} of them will be wrong, by "
            "their probabilities.",
        )


def say_imprecise(
    console: Console,
    found: Sequence[str] | None,
    precision: float,
    spellings: Mapping[str, str],
) -> None:
    """Which tags are not written, since they would be wrong too often."""
    if found is None:
        say(
            console,
            "The model was trained before precision was measured, so predictions are written from "
            "its own thresholds on. 'harmonium train' measures it.",
        )
    elif found:
        names = [spellings.get(tag, tag) for tag in found]
        some = ", ".join(names[:MOST_NAMED]) + (" …" if len(names) > MOST_NAMED else "")
        say(
            console,
            f"Not predicted, since held-out tracks do not show that they are right "
            f"{percent(precision)} of the time: {some}. A lower --precision writes more.",
        )


def say_measured_elsewhere(console: Console, n: int) -> None:
    """What the precision of tags that came along does not say."""
    if n:
        are = "is a word" if n == 1 else "are words"
        say(
            console,
            f"{counted(n, 'predicted tag')} {are} of the model that came along. How often it is "
            "right was measured on other music; on yours it may be less often. 'harmonium review' "
            "lets you check.",
        )


def say_nothing_to_write(console: Console, plan: WritePlan) -> None:
    """Why no file would change."""
    if plan.n_unchanged:
        say(console, f"Nothing to write: {counted(plan.n_unchanged, 'file')} need no change.")
    elif not plan.failures:
        say(console, "Nothing to write: there are no such tracks.")


def say_written(console: Console, written: WriteReport, plan: WritePlan) -> None:
    """How many files were written, and how it is undone."""
    parts = [f"Tags written to {counted(len(written.paths), 'file')}"]
    if plan.n_unchanged:
        parts.append(f"{plan.n_unchanged:,} needed no change")
    failed = len(written.failures) + len(plan.failures)
    if failed:
        parts.append(f"{failed:,} could not be written")
    say(console, "; ".join(parts) + ".")
    if written.change is not None:
        say(console, f"To take it back: harmonium undo {written.change}")


def _difference(one: FieldChange, guessed: Mapping[str, float]) -> Flow:
    """Values that go are struck through, values that come are green, with their probability."""

    def new(value: str) -> Text:
        sure = f" {percent(guessed[value])}" if value in guessed else ""
        return Text(f"+{printable(value)}{sure}", style="green")

    before, after = one.tags
    gone = [Text(f"-{printable(v)}", style="red strike") for v in before if v not in after]
    now = [Text(printable(v)) if v in before else new(v) for v in after]
    return Flow([*gone, *now])
