"""`harmonium say`: a person's own word on a track."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from harmonium.commands.denied_tags import takes_denied_tags
from harmonium.commands.options import JsonOption, LibraryOption, PersonOption
from harmonium.commands.quick_learning import learn, learnt
from harmonium.commands.screen import say as tell


@takes_denied_tags
def say(
    track: Annotated[
        str,
        typer.Argument(
            metavar="TRACK",
            help="A file, the end of its path, #NUMBER, or artist - title.",
        ),
    ],
    tags: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TAG",
            help="Tags that fit, and with a minus before them tags that do not; a tag of several "
            "words in quotes.",
        ),
    ] = None,
    library: LibraryOption = None,
    unsay: Annotated[
        list[str] | None,
        typer.Option("--unsay", metavar="TAG", help="Take back what you said of this tag."),
    ] = None,
    person: PersonOption = "me",
    as_json: JsonOption = False,
) -> None:
    """Say which tags a track has, and which it has not.

    It counts from now on in searches, in what is written into files, and
    at the next training. The model learns from it at once: the track's
    other tags follow, and so do tracks that sound like it. A word that
    no model knows is learnt when five tracks have it. What you say takes
    the place of what you said before of the same tags, and of what the
    file says to the contrary. 'harmonium undo' takes it back.

    [dim]Example:[/dim]  harmonium say song.mp3 rock "hip hop" -live

    [dim]Exit codes:[/dim]  0 done, or you had said so before; 2 nothing was done,
    with the reason.
    """
    from harmonium.errors import DataError
    from harmonium.library import Library
    from harmonium.library.correcting.say import read_said
    from harmonium.library.correcting.say import say as keep

    present, absent = read_said(tags or [])
    unsaid = unsay or []
    if not present and not absent and not unsaid:
        raise DataError("Say which tags the track has: harmonium say TRACK rock -live")
    with Library.open(library, create=False) as opened:
        found = opened.tracks.resolve(track)
        change = keep(
            opened, found.id, present=present, absent=absent, unsaid=unsaid, person=person
        )
        report = None if change is None else learn(opened)
    if as_json:
        print(json.dumps({"track": found.id, "change": change}))
        return
    console = Console()
    if change is None:
        tell(console, f"{found.name}: you had said so before.")
        return
    words = [*present, *(f"not {tag}" for tag in absent), *(f"{tag} taken back" for tag in unsaid)]
    tell(console, f"{found.name}: {', '.join(words)}")
    if line := learnt(report):
        tell(console, line)
    tell(console, f"To take it back: harmonium undo {change}")
