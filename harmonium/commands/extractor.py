"""`harmonium extractor`: what can listen to music, and getting the weights of musicnn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from harmonium.commands.options import JsonOption, file_option
from harmonium.commands.screen import say, show_rows

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List what can listen to music, and fetch the weights of musicnn.",
)


@app.command("list")
def list_extractors(as_json: JsonOption = False) -> None:
    """List what can listen to music: how good, how fast, and whether it is there.

    How good: the mean AUC over the nine emotions of Emotify, by logistic
    regression in five folds. How fast: milliseconds for a clip of 15 s on
    one core, decoding included. Both were measured once, on one machine.

    [dim]Example:[/dim]  harmonium extractor list
    """
    from harmonium.audio.extractors import available_extractors, default_extractor

    records = [_record(name) for name in available_extractors()]
    if as_json:
        print(json.dumps(records, indent=2))
        return
    console = Console()
    columns = ("Name", "Numbers", "AUC", "ms", "Is there", "What it hears")
    rows = [
        (
            one["name"],
            f"{one['features']:,}",
            "-" if one["auc"] is None else f"{one['auc']:.3f}",
            "-" if one["milliseconds"] is None else f"{one['milliseconds']:.0f}",
            "yes" if one["missing"] is None else "no",
            one["summary"],
        )
        for one in records
    ]
    show_rows(console, columns, rows, right=("Numbers", "AUC", "ms"))
    errors = Console(stderr=True)
    for one in records:
        if one["missing"] is not None:
            say(errors, one["missing"])
    if console.is_terminal:
        say(console, f"A new library is indexed with {default_extractor()}.")


@app.command("fetch")
def fetch_extractor(
    name: Annotated[str, typer.Argument(metavar="NAME", help="musicnn.")],
    wheel: Annotated[
        Path | None,
        file_option("The wheel of musicnn 0.1.0, if it is at hand; otherwise pip gets it."),
    ] = None,
) -> None:
    """Fetch the weights of musicnn, and keep them in the user's data folder.

    pip downloads the wheel of musicnn (29 MB) from the registry that it is
    set up for. Its SHA-256 is checked, the weights are taken out of it
    (6 MB), and the rest is thrown away: nothing of it is installed or run.

    [dim]Example:[/dim]  harmonium extractor fetch musicnn

    [dim]Without a network:[/dim]  on another machine, pip download --no-deps
    musicnn==0.1.0; then here, harmonium extractor fetch musicnn --wheel FILE
    """
    from harmonium.audio.musicnn import check_weights, is_installed
    from harmonium.errors import DataError, ModelFileError

    if name != "musicnn":
        raise DataError(f"Only musicnn can be fetched, got '{name}'.")
    if wheel is None and is_installed():
        try:
            check_weights()
        except ModelFileError:
            pass  # damaged: again
        else:
            print("The weights of musicnn are there already.")
            return
    _fetch(Console(stderr=True), wheel)


def ask_for_musicnn(errors: Console) -> None:
    """Ask for the weights at a terminal, and fetch them; a no is remembered."""
    from harmonium.audio.musicnn_fetch import LICENCE, decline

    say(
        errors,
        "musicnn, two networks that learnt to hear what people tag, makes far better features "
        f"than the paper's. Its weights are a download of 29 MB ({LICENCE}).",
    )
    if not typer.confirm("Fetch them now?", default=True, err=True):
        decline()
        say(errors, "Not fetched; `harmonium extractor fetch musicnn` does it at any time.")
        return
    from harmonium.errors import HarmoniumError

    try:
        _fetch(errors, None)
    except HarmoniumError as error:
        say(errors, f"{error} Going on with the paper's features.")


def _fetch(errors: Console, wheel: Path | None) -> None:
    from harmonium.audio.musicnn_fetch import CITATION, LICENCE, fetch_musicnn

    with errors.status("Fetching musicnn (29 MB)"):
        file = fetch_musicnn(wheel)
    console = Console()
    say(console, f"The weights of musicnn: {file}")
    say(console, f"Licence: {LICENCE}")
    say(console, f"Cite: {CITATION}")
    say(console, "New libraries are indexed with it; an older one by index --extractor musicnn.")


def _record(name: str) -> dict[str, Any]:
    from harmonium.audio.extractors import get_extractor
    from harmonium.errors import HarmoniumError

    missing = None
    extractor = get_extractor(name)
    try:
        if extractor.check:
            extractor.check()
    except HarmoniumError as error:
        missing = str(error)
    return {
        "name": name,
        "features": len(extractor.feature_names),
        "heads": len(extractor.head_names),
        "auc": extractor.auc,
        "milliseconds": extractor.milliseconds,
        "summary": extractor.summary,
        "missing": missing,
    }
