"""`harmonium related`: what a tag makes likely, and what it makes unlikely."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from harmonium.commands.library_option import LibraryOption
from harmonium.commands.listing import percent, show_rows


def related(
    tag: Annotated[str, typer.Argument(metavar="TAG", show_default=False, help="A tag.")],
    library: LibraryOption = None,
    number: Annotated[
        int,
        typer.Option("--number", "-n", metavar="N", min=1, help="How many tags of either kind."),
    ] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the tags that a tag makes more likely, and those that it makes less likely.

    How strongly, is the difference of their log-odds with the tag and
    without it, whatever the track sounds like.

    [dim]Example:[/dim]  harmonium related "hip hop"

    [dim]Exit codes:[/dim]  0 done; 2 the tag is not known, or there is no model.
    """
    from harmonium.collection import Library
    from harmonium.collection.answering.stored_tagger import StoredTagger, current_model
    from harmonium.collection.answering.suggest import related as find

    with Library.open(library, create=False) as opened:
        tagger = StoredTagger(current_model(opened))
    found = find(tagger, tag, number)
    if as_json:
        print(json.dumps([one._asdict() for one in found], indent=1))
        return
    console = Console()
    write = percent if console.is_terminal else "{:.4f}".format
    rows = [
        (
            one.tag,
            f"{one.log_odds:+.2f}",
            write(one.probability_with),
            write(one.probability_without),
        )
        for one in found
    ]
    columns = ("Tag", "Log-odds", "With", "Without")
    show_rows(console, columns, rows, right=columns[1:])
