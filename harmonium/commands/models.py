"""`harmonium models`: the models that were trained, and which of them is in use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from harmonium.commands.options import JsonOption, LibraryOption
from harmonium.commands.quick_learning import learn
from harmonium.commands.screen import say, show_rows

if TYPE_CHECKING:
    from harmonium.library.correcting.models import ModelEntry


def models(
    action: Annotated[
        str | None, typer.Argument(metavar="[use]", help="'use' chooses another model.")
    ] = None,
    number: Annotated[
        int | None, typer.Argument(metavar="[N]", help="The number of the model to use.")
    ] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the models that were trained, or go back to an earlier one.

    The AUC is the mean over a model's tags, for tracks that it had not
    learnt from: 0.5 is chance, 1 is perfect. Models of different tags
    and tracks cannot be compared by it.

    [dim]Example:[/dim]  harmonium models use 2

    [dim]Exit codes:[/dim]  0 done; 2 there is no such model.
    """
    from harmonium.library import Library
    from harmonium.library.correcting.models import list_models, use_model

    if action not in (None, "use") or (action is None) != (number is None):
        raise typer.BadParameter("Write 'harmonium models', or 'harmonium models use N'.")
    console = Console()
    with Library.open(library, create=False) as opened:
        change = None if number is None else use_model(opened, number)
        if change is not None:
            learn(opened)
        found = list_models(opened)
        n_tracks = opened.tracks.count("present")
    if as_json:
        records = [{**one._asdict(), "made_at": one.made_at.isoformat()} for one in found]
        print(json.dumps(records, indent=1))
    elif number is None:
        _show(console, found)
    else:
        say(console, f"Model {number} {'was' if change is None else 'is'} in use.")
        if change is not None:
            say(console, f"To take it back: harmonium undo {change}")
        if next(one for one in found if one.id == number).n_tagged < n_tracks:
            say(console, "It has not tagged all tracks yet. Next: harmonium tag")


def _show(console: Console, found: list[ModelEntry]) -> None:
    if console.is_terminal and not found:
        say(console, "There is no model yet. 'harmonium train' makes one.")
        return
    rows: list[tuple[str | Text, ...]] = []
    for one in found:
        here = one.made_at.astimezone().strftime("%Y-%m-%d %H:%M")
        rows.append(
            (
                Text(str(one.id), style="cyan"),
                here if console.is_terminal else one.made_at.isoformat(),
                f"{one.n_learnt:,} of {one.n_tags:,}",
                "" if one.mean_auc is None else f"{one.mean_auc:.3f}",
                "" if one.n_tracks is None else f"{one.n_tracks:,}",
                f"{one.n_tagged:,}",
                Text("in use" if one.in_use else "", style="green"),
            )
        )
    columns = ("Model", "Made", "Tags learnt", "AUC", "Learnt from", "Has tagged", "")
    show_rows(console, columns, rows, right=("Model", *columns[2:6]))
