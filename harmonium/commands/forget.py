"""`harmonium forget`: tracks out of the library."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from harmonium.commands.options import JsonOption, LibraryOption
from harmonium.commands.quick_learning import learn
from harmonium.commands.screen import say
from harmonium.errors import counted


def forget(
    tracks: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACK", help="Files, the ends of their paths, #NUMBER, or artist - title."
        ),
    ],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take tracks out of the library; their files are not touched.

    A track that is forgotten is not found, tagged, learnt from or written
    to, and 'harmonium index' passes over its file. 'harmonium undo'
    brings it back, with all that people said of it.

    [dim]Example:[/dim]  harmonium forget "Audiobook - Chapter 1"

    [dim]Exit codes:[/dim]  0 done; 2 nothing was done, with the reason.
    """
    from harmonium.library import Library
    from harmonium.library.correcting.forget import forget as take_out

    with Library.open(library, create=False) as opened:
        found = [opened.tracks.resolve(text) for text in tracks]
        change = take_out(opened, list(dict.fromkeys(track.id for track in found)))
        learn(opened)
    if as_json:
        print(json.dumps({"tracks": [track.id for track in found], "change": change}))
        return
    console = Console()
    name = found[0].name if len(found) == 1 else counted(len(found), "track")
    are = "is" if len(found) == 1 else "are"
    say(console, f"{name} {are} out of the library; no file was touched.")
    say(console, f"To bring {'it' if len(found) == 1 else 'them'} back: harmonium undo {change}")
