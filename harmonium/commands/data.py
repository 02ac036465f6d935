"""`harmonium data`: the public datasets, and what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from harmonium.commands import options
from harmonium.commands.options import number, value
from harmonium.commands.output import Cell, Output, share_bar

if TYPE_CHECKING:
    from harmonium.data.datasets import DatasetInfo

app = typer.Typer()
FOLDER = value(
    "DIR",
    "The data folder, with a subfolder per dataset; by default HARMONIUM_DATA, else your data "
    "folder (on Linux ~/.local/share/harmonium).",
    "--folder",
    "-f",
)


@app.command("list")
def list_datasets(folder: Path | None = FOLDER, as_json: bool = options.JSON) -> None:
    """List the public datasets, and which of them are on this machine.

    Example: HARMONIUM_DATA=~/datasets harmonium data list
    """
    from harmonium.data import datasets

    out = Output(as_json)
    records = []
    rows = []
    missing = []
    for name in datasets.names(folder):
        info = datasets.info(name)
        path = datasets.is_found(info, folder)
        records.append(_record(info, path))
        rows.append(_row(info, path))
        if path is None:
            missing.append(name)
    roots = [str(root) for root in datasets.data_folders(folder)]
    out.folders = roots[:1]
    out.json(records)
    columns = ("Name", ">Items", ">Tags", ">Features", ">Triples", "Audio", "Folder")
    out.table(columns, rows)
    out.hint("", Text("Searched: " + ", ".join(roots), style="dim"))
    if missing:
        out.hint(Text(f"How to get a missing one: harmonium data show {missing[0]}", style="dim"))


def _record(info: DatasetInfo, path: Path | None) -> dict[str, Any]:
    return {
        "name": info.name,
        "title": info.title,
        "items": info.items,
        "tags": info.tags,
        "features": info.features,
        "triples": info.triples,
        "audio": info.audio,
        "folder": None if path is None else str(path),
    }


def _row(info: DatasetInfo, path: Path | None) -> list[Cell]:
    return [
        info.name,
        "-" if info.items is None else info.items,
        "-" if info.tags is None else info.tags,
        "-" if info.features is None else info.features,
        info.triples or "counts",
        "yes" if info.audio else "no",
        Text("not found", "yellow") if path is None else str(path),
    ]


@app.command("show")
def show_dataset(
    name: str = typer.Argument(..., help="A name from `harmonium data list`, or mulan:NAME."),
    folder: Path | None = FOLDER,
    tags: int = number(10, "List the N most used tags.", "--tags", "-t", min=0),
    as_json: bool = options.JSON,
) -> None:
    """Read a dataset and show its sizes, tags, labels, groups and terms.

    Example: harmonium data show majorminer --tags 20
    In Python: harmonium.data.datasets.load("majorminer")
    """
    from harmonium.data import datasets
    from harmonium.data.datasets.dataset import describe

    out = Output(as_json)
    facts = describe(datasets.load(name, folder), n_tags=tags)
    path = datasets.is_found(datasets.info(name), folder)
    out.json({**facts, "folder": str(path)})
    out.say(Text.assemble((facts["name"], "bold cyan"), "  ", (facts["title"], "bold")))
    out.say(facts["summary"], "")
    out.pairs(_sizes(facts))
    if facts["top_tags"]:
        out.hint("")
        _show_tags(out, facts["top_tags"], n_items=facts["items"])
    out.hint("")
    out.pairs(
        {
            "Cite": facts["citation"],
            "Licence": facts["licence"],
            "Homepage": facts["homepage"],
            "Folder": path or "",
        }
    )


def _show_tags(out: Output, tags: list[dict[str, Any]], *, n_items: int) -> None:
    largest = max(tag["positive"] for tag in tags) or 1
    rows: list[tuple[Cell, ...]] = []
    for tag in tags:
        n = tag["positive"]
        rows.append((tag["tag"], n, f"{n / n_items:.1%}", share_bar(n / largest)))
    out.table(("Most used tags", ">Items", ">Share", ""), rows)


def _sizes(facts: dict[str, Any]) -> dict[str, str]:
    """What `data show` says about the contents."""
    rows = {name: _count(facts[name.lower()]) for name in ("Items", "Tags", "Features")}
    if facts["triples"]:
        rows["Triples"] = f"{facts['triples']:,} by {facts['users']:,} users"
    if facts["listeners_per_item"]:
        rows["Listeners"] = "{} to {} per item".format(*facts["listeners_per_item"])
    groups = [f"{facts[key]:,} {key}" for key in ("tracks", "artists") if facts[key]]
    if groups:
        rows["Groups"] = ", ".join(groups)
    if facts["splits"]:
        rows["Splits"] = ", ".join(f"{name} {size:,}" for name, size in facts["splits"].items())
    if facts["audio_files"]:
        rows["Audio"] = f"{facts['audio_files']:,} files"
    rows["A tag is"] = facts["rule"]
    total = sum(facts["labels"].values()) or 1
    shares = []
    for kind, count in facts["labels"].items():
        shares.append(f"{count / total:.2%} {kind}" if count else f"none {kind}")
    rows["Labels"] = ", ".join(shares)
    return rows


def _count(n: int | None) -> str:
    return "-" if n is None else f"{n:,}"
