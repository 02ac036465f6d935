"""`harmonium data`: which public datasets there are, what is in them, and fetching the paper's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harmonium.commands.options import JsonOption
from harmonium.commands.screen import plain_table

if TYPE_CHECKING:
    from harmonium.data.datasets import DatasetInfo

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List, describe and fetch the public datasets that Harmonium reads.",
)

FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        "-f",
        metavar="DIR",
        help="The data folder, with one subfolder per dataset. By default the one that "
        "HARMONIUM_DATA names, then the user's own (on Linux ~/.local/share/harmonium).",
    ),
]


@app.command("list")
def list_datasets(folder: FolderOption = None, as_json: JsonOption = False) -> None:
    """List the public datasets, and say which of them are on this machine.

    [dim]Example:[/dim]  HARMONIUM_DATA=~/datasets harmonium data list
    """
    from harmonium.data import datasets

    infos = [datasets.info(name) for name in datasets.names(folder)]
    found = {info.name: datasets.is_found(info, folder) for info in infos}
    if as_json:
        names = ("name", "title", "items", "tags", "features", "triples", "audio")
        records = [
            {name: getattr(info, name) for name in names}
            | {"folder": found[info.name] and str(found[info.name])}
            for info in infos
        ]
        print(json.dumps(records, indent=2, ensure_ascii=False))
        return
    roots = datasets.data_folders(folder)
    console = Console()
    console.print(_list_table(infos, found, roots, with_titles=console.width >= 110))
    console.print()
    console.print(Text("Searched: " + ", ".join(_from_home(root) for root in roots), style="dim"))
    if not all(found.values()):
        missing = next(name for name, path in found.items() if path is None)
        console.print(
            Text(f"How to get one that is not found: harmonium data show {missing}", style="dim")
        )


@app.command("show")
def show_dataset(
    name: Annotated[str, typer.Argument(help="A name from 'harmonium data list', or mulan:NAME.")],
    folder: FolderOption = None,
    tags: Annotated[int, typer.Option("--tags", "-t", min=0, help="How many tags to list.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Read a dataset and show its sizes, tags, labels, groups and terms.

    [dim]Example:[/dim]  harmonium data show majorminer --tags 20
    """
    from harmonium.data import datasets
    from harmonium.data.datasets.dataset import describe

    facts = describe(datasets.load(name, folder), n_tags=tags)
    path = datasets.is_found(datasets.info(name), folder)
    if as_json:
        print(json.dumps({**facts, "folder": str(path)}, indent=2, ensure_ascii=False))
    else:
        Console().print(_description(facts, path))


@app.command("fetch")
def fetch_dataset(
    name: Annotated[str, typer.Argument(help="mturk or majmin.")],
    folder: FolderOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Fetch files again even if they are there.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option(
            envvar="HARMONIUM_FETCH_URL",
            help="A mirror: the address of the folder that has mturk/ and majmin/ in it.",
        ),
    ] = None,
    sha256: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE=HEX", help="The SHA-256 that a file must have; once for each file."
        ),
    ] = None,
) -> None:
    """Download the paper's own MTurk or MajorMiner files into the data folder.

    The SHA-256 of each file is kept beside them, and a file that has changed since is refused.

    [dim]Example:[/dim]  harmonium data fetch mturk
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from harmonium.data.datasets.paper_files import fetch

    name_of_file = TextColumn("{task.description}")
    columns = (name_of_file, BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def progress(file: str, received: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bars.add_task(file, total=total)
            bars.update(tasks[file], completed=received)

        digests = {file: digest for file, _, digest in (one.partition("=") for one in sha256 or ())}
        paths = fetch(name, folder, url=url, force=force, sha256=digests, progress=progress)
    what = f"{len(tasks)} files fetched" if tasks else "Already there"
    print(f"{what}: {paths[0].parent}")
    print(f"Next: harmonium data show {name}")


def _list_table(
    infos: list[DatasetInfo],
    found: dict[str, Path | None],
    roots: list[Path],
    *,
    with_titles: bool,
) -> Table:
    table = plain_table()
    table.expand = with_titles
    table.add_column("Name", style="cyan", no_wrap=True)
    for heading in ("Items", "Tags", "Features", "Triples"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("Audio", no_wrap=True)
    table.add_column("Found in", overflow="fold")
    if with_titles:
        table.add_column("What it is", style="dim", no_wrap=True, ratio=1)
    for info in infos:
        path = found[info.name]
        table.add_row(
            info.name,
            *(_number(value) for value in (info.items, info.tags, info.features)),
            _number(info.triples) if info.triples else Text("counts", style="dim"),
            "yes" if info.audio else Text("no", style="dim"),
            Text("not found", style="yellow") if path is None else _below(path, roots),
            *([info.title] if with_titles else []),
        )
    return table


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
    table = plain_table("Tags with most positives")
    table.add_column("Items", justify="right", no_wrap=True)
    table.add_column("Share", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    largest = max(tag["positive"] for tag in facts["top_tags"]) or 1
    for tag in facts["top_tags"]:
        bar = Text("━" * round(24 * tag["positive"] / largest), style="cyan")
        share = tag["positive"] / facts["items"]
        table.add_row(escape(tag["tag"]), f"{tag['positive']:,}", f"{share:.1%}", bar)
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
    """The path as it is below the data folder, where it is in the first one."""
    return str(path.relative_to(roots[0])) if path.is_relative_to(roots[0]) else _from_home(path)


def _from_home(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
