"""`harmonium data`: the public datasets, what is in them, and downloading the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harmonium.commands import options
from harmonium.commands.output import Cell, Output, plain_table
from harmonium.errors import counted

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List, describe and download the public datasets.",
)

FOLDER = options.value(
    "DIR",
    "The data folder, with a subfolder per dataset; by default HARMONIUM_DATA, else your data "
    "folder (on Linux ~/.local/share/harmonium).",
    "--folder",
    "-f",
)
MIN_WIDTH_FOR_TITLES = 110
"""Columns of a terminal from which on the list has the titles of the datasets."""


@app.command("list")
def list_datasets(folder: Path | None = FOLDER, as_json: bool = options.JSON) -> None:
    """List the public datasets, and which of them are on this machine.

    Example: HARMONIUM_DATA=~/datasets harmonium data list
    """
    from harmonium.data import datasets

    out = Output(as_json)
    infos = [datasets.info(name) for name in datasets.names(folder)]
    found = {info.name: datasets.is_found(info, folder) for info in infos}
    names = ("name", "title", "items", "tags", "features", "triples", "audio")
    out.json(
        [
            {name: getattr(info, name) for name in names}
            | {"folder": found[info.name] and str(found[info.name])}
            for info in infos
        ]
    )
    roots = datasets.data_folders(folder)
    columns = ["Name", ">Items", ">Tags", ">Features", ">Triples", "Audio", "Folder"]
    rows: list[list[Cell]] = [
        [
            info.name,
            *("-" if n is None else n for n in (info.items, info.tags, info.features)),
            info.triples or "counts",
            "yes" if info.audio else "no",
            Text("not found", "yellow") if path is None else _below(path, roots),
        ]
        for info, path in zip(infos, found.values(), strict=True)
    ]
    if out.is_terminal and out.console.width >= MIN_WIDTH_FOR_TITLES:
        columns.append("What it is")
        rows = [[*row, Text(info.title, "dim")] for row, info in zip(rows, infos, strict=True)]
    out.table(columns, rows)
    out.hint("", Text("Searched: " + ", ".join(map(_from_home, roots)), style="dim"))
    missing = next((name for name, path in found.items() if path is None), None)
    if missing is not None:
        out.hint(Text(f"How to get a missing one: harmonium data show {missing}", style="dim"))


@app.command("show")
def show_dataset(
    name: str = typer.Argument(..., help="A name from `harmonium data list`, or mulan:NAME."),
    folder: Path | None = FOLDER,
    tags: int = options.number(10, "List the N most used tags.", "--tags", "-t", min=0),
    as_json: bool = options.JSON,
) -> None:
    """Read a dataset and show its sizes, tags, labels, groups and terms.

    Example: harmonium data show majorminer --tags 20
    """
    from harmonium.data import datasets
    from harmonium.data.datasets.dataset import describe

    out = Output(as_json)
    facts = describe(datasets.load(name, folder), n_tags=tags)
    path = datasets.is_found(datasets.info(name), folder)
    out.json({**facts, "folder": str(path)})
    if not as_json:
        out.console.print(_description(facts, path))


@app.command("download")
def download_dataset(
    name: str = typer.Argument(..., help="mturk or majmin."),
    folder: Path | None = FOLDER,
    force: bool = options.flag("Download existing files again.", "--force"),
    url: str | None = options.value(
        "URL",
        "A mirror: the address of the folder that has mturk/ and majmin/ in it.",
        envvar="HARMONIUM_FETCH_URL",
    ),
    sha256: list[str] | None = options.value(
        "FILE=HEX", "The SHA-256 that a file must have; repeatable."
    ),
) -> None:
    """Download the paper's own MTurk or MajorMiner files into the data folder.

    The SHA-256 of each file is stored beside it, and a file that changes later is refused.

    Example: harmonium data download mturk
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from harmonium.data.datasets.paper_files import download

    out = Output()
    name_of_file = TextColumn("{task.description}")
    columns = (name_of_file, BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out.errors) as bars:
        tasks: dict[str, Any] = {}

        def progress(file: str, received: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bars.add_task(file, total=total)
            bars.update(tasks[file], completed=received)

        digests = {file: digest for file, _, digest in (one.partition("=") for one in sha256 or ())}
        paths = download(name, folder, url=url, force=force, sha256=digests, progress=progress)
    what = f"{counted(len(tasks), 'file')} downloaded" if tasks else "Already downloaded"
    out.say(f"{what}: {paths[0].parent}", f"Next: harmonium data show {name}")


def _description(facts: dict[str, Any], path: Path | None) -> Group:
    """The page that `data show` prints."""
    total = sum(facts["labels"].values()) or 1
    rows = {
        "Items": _number(facts["items"]),
        "Tags": _number(facts["tags"]),
        "Features": _number(facts["features"]),
        "Triples": facts["triples"] and f"{facts['triples']:,} by {facts['users']:,} users",
        "Listeners": facts["listeners_per_item"]
        and "{} to {} per item".format(*facts["listeners_per_item"]),
        "Groups": ", ".join(f"{facts[key]:,} {key}" for key in ("tracks", "artists") if facts[key]),
        "Splits": ", ".join(f"{name} {size:,}" for name, size in facts["splits"].items()),
        "Audio": facts["audio_files"] and f"{facts['audio_files']:,} files",
        "A tag is": facts["rule"],
        "Labels": ", ".join(
            f"{count / total:.2%} {kind}" if count else f"none {kind}"
            for kind, count in facts["labels"].items()
        ),
    }
    terms = {
        "Cite": facts["citation"],
        "Licence": facts["licence"],
        "Homepage": facts["homepage"],
        "Folder": "" if path is None else _from_home(path),
    }
    return Group(
        Text.assemble((facts["name"], "bold cyan"), "  ", (facts["title"], "bold")),
        Padding(Text(facts["summary"]), (0, 0, 1, 0)),
        _pairs({key: value for key, value in rows.items() if value}),
        *([Padding(_tags_table(facts), (1, 0, 0, 0))] if facts["top_tags"] else []),
        Padding(_pairs(terms), (1, 0, 0, 0)),
    )


def _tags_table(facts: dict[str, Any]) -> Table:
    table = plain_table("Most used tags", ">Items", ">Share", "")
    largest = max(tag["positive"] for tag in facts["top_tags"]) or 1
    for tag in facts["top_tags"]:
        bar = Text("━" * round(24 * tag["positive"] / largest), style="cyan")
        share = tag["positive"] / facts["items"]
        table.add_row(Text(tag["tag"]), f"{tag['positive']:,}", f"{share:.1%}", bar)
    return table


def _pairs(rows: dict[str, Any]) -> Table:
    table = plain_table()
    table.show_header = False
    table.add_column(style="bold", no_wrap=True, min_width=9)
    table.add_column(overflow="fold")
    for key, value in rows.items():
        table.add_row(key, Text(str(value)))
    return table


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _below(path: Path, roots: list[Path]) -> str:
    """The path below the first data folder, if it is in that one."""
    return str(path.relative_to(roots[0])) if path.is_relative_to(roots[0]) else _from_home(path)


def _from_home(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
