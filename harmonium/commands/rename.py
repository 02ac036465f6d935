"""`harmonium rename`: another name for a tag."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from harmonium.commands.options import JsonOption, LibraryOption
from harmonium.commands.quick_learning import learn
from harmonium.commands.screen import say
from harmonium.errors import counted


def rename(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A tag.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a tag another name, or make it one with another tag.

    What people say, and the models, have the new name from now on. If NEW
    is a tag already, the two become one. Files are not touched; what they
    and tables have under the old name is imported under the new one.

    [dim]Example:[/dim]  harmonium rename "electronica" electronic

    [dim]Exit codes:[/dim]  0 done; 2 nothing was done, with the reason.
    """
    from harmonium.library import Library
    from harmonium.library.correcting.tags import rename_tag

    with Library.open(library, create=False) as opened:
        done = rename_tag(opened, old, new)
        learn(opened)
        spellings = opened.spellings()
    if as_json:
        print(json.dumps(done._asdict()))
        return
    console = Console()
    verb = "is now one with" if done.merged else "is now"
    now = spellings.get(done.new, done.new)
    say(console, f"{done.old} {verb} {now}: {counted(done.n_moved, 'tag')} of people moved.")
    if done.n_dropped:
        say(console, f"{done.n_dropped:,} had both names; what was said with {done.new} stays.")
    if done.needs_training:
        say(
            console,
            f"The model in use had learnt both. It predicts {done.new} as before, and "
            f"{done.old} no more; 'harmonium train' learns from all of them.",
        )
    say(console, f"To take it back: harmonium undo {done.change}")
