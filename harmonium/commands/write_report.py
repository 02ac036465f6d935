"""What `harmonium write` and `harmonium undo` show: for people, or for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from harmonium.collection.file_writing import Plan, Planned, Written
    from harmonium.collection.filetags import FieldChange
    from harmonium.collection.recording import Failure

JOINED = "; "
"""Between the values of a field in lines for programs."""
MOST_FAILURES = 30


def show_plan(console: Console, plan: Plan) -> None:
    """All that would change: a picture of it on a terminal, else path, field, before, after."""
    if not console.is_terminal:
        for planned in plan.files:
            for one in planned.change.fields:
                values = [printable(JOINED.join(each)) for each in (one.before, one.after)]
                print(printable(planned.track.path), one.field, *values, sep="\t")
        return
    show_changes(console, plan.files)
    _say(console, f"{_count(len(plan.files))} would change, {plan.n_unchanged:,} would not.")
    _show_left_out(console, plan)


def show_changes(console: Console, files: Sequence[Planned]) -> None:
    """The fields of each file before and after."""
    for planned in files:
        _say(console, Text(printable(planned.track.path), style="bold"))
        for one in planned.change.fields:
            _say(console, _difference(one))


def say_nothing_to_write(console: Console, plan: Plan) -> None:
    """Why no file would change."""
    if plan.n_unchanged:
        _say(console, f"Nothing to write: {_count(plan.n_unchanged)} have their tags already.")
    elif not plan.failures:
        _say(console, "Nothing to write: there are no such tracks.")


def say_written(console: Console, written: Written, plan: Plan) -> None:
    """How many files were written, and how it is undone."""
    parts = [f"Tags written to {_count(len(written.paths))}"]
    if plan.n_unchanged:
        parts.append(f"{plan.n_unchanged:,} had them already")
    failed = len(written.failures) + len(plan.failures)
    if failed:
        parts.append(f"{failed:,} could not be written")
    _say(console, "; ".join(parts) + ".")
    if written.change is not None:
        _say(console, f"To take it back: harmonium undo {written.change}")


def show_failures(errors: Console, failures: Iterable[Failure]) -> None:
    """Files that could not be used, with the reasons, on stderr."""
    shown = list(failures)
    for failure in shown[:MOST_FAILURES]:
        reason = printable(failure.reason)
        told = reason if failure.path in failure.reason else f"{printable(failure.path)}: {reason}"
        _say(errors, told)
    if len(shown) > MOST_FAILURES:
        _say(errors, f"and {len(shown) - MOST_FAILURES:,} more")


def printable(text: str) -> str:
    """Text that does nothing to the terminal, in one line."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _difference(one: FieldChange) -> Text:
    """Values that go are struck through, values that come are green."""
    line = Text(f"  {one.field:<9} ")
    gone = [value for value in one.before if value not in one.after]
    pieces = [Text(printable(value), style="red strike") for value in gone]
    for value in one.after:
        style = "" if value in one.before else "green"
        sign = "" if value in one.before else "+"
        pieces.append(Text(sign + printable(value), style=style))
    line.append_text(Text(", ").join(pieces))
    if one.places:
        line.append(f"  ({one.places[0]})", style="dim")
    return line


def _show_left_out(console: Console, plan: Plan) -> None:
    reasons: dict[str, set[str]] = {}
    for planned in plan.files:
        for tag, reason in planned.change.left_out:
            reasons.setdefault(reason, set()).add(tag)
    for reason, tags in reasons.items():
        _say(console, Text(f"Left out ({reason}): {', '.join(sorted(tags))}", style="dim"))


def _say(console: Console, message: str | Text) -> None:
    text = message if isinstance(message, Text) else Text(message)
    console.print(text, soft_wrap=True)


def _count(n: int) -> str:
    return f"{n:,} {'file' if n == 1 else 'files'}"
