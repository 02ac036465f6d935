"""`harmonium suggest`: which tags go with some."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from harmonium.commands.library_option import LibraryOption
from harmonium.commands.listing import percent, show_rows


def suggest(
    tags: Annotated[
        list[str],
        typer.Argument(
            metavar="TAG", show_default=False, help="Tags that a track has; with commas or not."
        ),
    ],
    library: LibraryOption = None,
    number: Annotated[
        int, typer.Option("--number", "-n", metavar="N", min=1, help="How many suggestions.")
    ] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Suggest further tags for a track that has these, whatever it sounds like.

    Goes by which tags the people of the library give together, if there
    were several when it was trained, else by what the model has learnt.

    [dim]Example:[/dim]  harmonium suggest rock guitar

    [dim]Exit codes:[/dim]  0 done; 2 a tag is not known, or there is no model.
    """
    from harmonium.collection import Library
    from harmonium.collection.answering.stored_tagger import StoredTagger, current_model
    from harmonium.collection.answering.suggest import suggest as find

    given = [part.strip() for tag in tags for part in tag.split(",") if part.strip()]
    with Library.open(library, create=False) as opened:
        tagger = StoredTagger(current_model(opened))
    found = find(tagger, given, number)
    if as_json:
        print(json.dumps([one._asdict() for one in found], indent=1))
        return
    console = Console()
    if console.is_terminal:
        rows = [(one.tag, percent(one.probability), percent(one.usual)) for one in found]
    else:
        rows = [(one.tag, f"{one.probability:.4f}", f"{one.usual:.4f}") for one in found]
    show_rows(console, ("Tag", "Probability", "Usual"), rows, right=("Probability", "Usual"))
