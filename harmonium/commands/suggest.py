"""`harmonium suggest` and `harmonium related`: which tags go together."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from harmonium.commands.options import JsonOption, LibraryOption
from harmonium.commands.screen import percent, show_rows

if TYPE_CHECKING:
    import scipy.sparse as sp

    from harmonium.library.answering.stored_tagger import StoredTagger


def suggest(
    tags: Annotated[
        list[str], typer.Argument(metavar="TAG", help="Tags that a track has; with commas or not.")
    ],
    library: LibraryOption = None,
    number: Annotated[
        int, typer.Option("--number", "-n", metavar="N", min=1, help="How many suggestions.")
    ] = 10,
    as_json: JsonOption = False,
) -> None:
    """Suggest further tags for a track that has these, whatever it sounds like.

    Where people in the library gave these tags to tracks, what else they
    gave to the same tracks counts first. Where few did, it is what the
    model has learnt; without one, the model that comes along answers.

    [dim]Example:[/dim]  harmonium suggest rock guitar

    [dim]Exit codes:[/dim]  0 done; 2 a tag is not known.
    """
    from harmonium.library.answering.suggest import suggest_by as find

    given = [part.strip() for tag in tags for part in tag.split(",") if part.strip()]
    tagger, spellings, said = _current_tagger(library)
    found = find(tagger, given, number, said)
    if as_json:
        print(json.dumps([vars(one) for one in found], indent=1))
        return
    console = Console()
    p = percent if console.is_terminal else "{:.4f}".format
    rows = [(spellings.get(one.tag, one.tag), p(one.probability), p(one.usual)) for one in found]
    show_rows(console, ("Tag", "Probability", "Usual"), rows, right=("Probability", "Usual"))


def related(
    tag: Annotated[str, typer.Argument(metavar="TAG", help="A tag.")],
    library: LibraryOption = None,
    number: Annotated[
        int,
        typer.Option("--number", "-n", metavar="N", min=1, help="How many tags of either kind."),
    ] = 10,
    as_json: JsonOption = False,
) -> None:
    """List the tags that a tag makes more likely, and those that it makes less likely.

    The strength is the difference in their log-odds with the tag and
    without it, whatever the track sounds like.

    [dim]Example:[/dim]  harmonium related "hip hop"

    [dim]Exit codes:[/dim]  0 done; 2 the tag is not known.
    """
    from harmonium.library.answering.suggest import related_by as find

    tagger, spellings, said = _current_tagger(library)
    found = find(tagger, tag, number, said)
    if as_json:
        print(json.dumps([vars(one) for one in found], indent=1))
        return
    console = Console()
    p = percent if console.is_terminal else "{:.4f}".format
    rows = [
        (
            spellings.get(one.tag, one.tag),
            f"{one.log_odds:+.2f}",
            p(one.probability_with),
            p(one.probability_without),
        )
        for one in found
    ]
    columns = ("Tag", "Log-odds", "With", "Without")
    show_rows(console, columns, rows, right=columns[1:])


def _current_tagger(
    place: str | None,
) -> tuple[StoredTagger, dict[str, str], sp.csr_array | None]:
    """The tagger, how tags are spelt, and who said what."""
    from harmonium.commands.options import opened_if_there
    from harmonium.library.answering.shipped_model import (
        shipped_model,
        tagger_of,
        use_shipped_model,
    )
    from harmonium.library.answering.suggest import said_together

    with opened_if_there(place) as library:
        if library is None:
            return tagger_of(shipped_model()), {}, None
        tagger = tagger_of(use_shipped_model(library) or shipped_model())
        return tagger, library.spellings(), said_together(library, tagger.tags)
