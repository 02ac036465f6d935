"""`harmonium hide`: tags that the model is to leave alone."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from harmonium.commands.options import JsonOption, LibraryOption
from harmonium.commands.quick_learning import learn
from harmonium.commands.screen import say, show_rows


def hide(
    tag: Annotated[
        str | None, typer.Argument(metavar="[TAG]", help="A tag; without one, the hidden ones.")
    ] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Predict and learn a tag no more.

    For tags that say nothing of the sound, such as "seen live" or "to
    listen". What people say of it stays and can be searched for, and is
    still written to files. 'harmonium undo' shows it again. Without a
    tag, those that are hidden are listed.

    [dim]Example:[/dim]  harmonium hide "seen live"

    [dim]Exit codes:[/dim]  0 done; 2 nothing was done, with the reason.
    """
    from harmonium.library import Library
    from harmonium.library.correcting.tags import hide_tag

    console = Console()
    with Library.open(library, create=False) as opened:
        change = None if tag is None else hide_tag(opened, tag)
        if change is not None:
            learn(opened)
        hidden, spellings = sorted(opened.hidden_tags()), opened.spellings()
    if as_json:
        print(json.dumps({"change": change, "hidden": hidden}))
    elif change is not None:
        say(console, f"{tag} is not predicted any more. To take it back: harmonium undo {change}")
    elif hidden:
        show_rows(console, ("Hidden",), [(spellings.get(name, name),) for name in hidden])
    else:
        say(Console(stderr=True), "No tag is hidden. 'harmonium hide TAG' hides one.")
