"""`harmonium data`: the public datasets, and what is in them."""

from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from harmonium.commands import options
from harmonium.commands.options import number, value
from harmonium.commands.output import Cell, Output, share_bar

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
    infos = [datasets.info(name) for name in datasets.names(folder)]
    found = {info.name: datasets.is_found(info, folder) for info in infos}
    names = ("name", "title", "items", "tags", "features", "triples", "audio")
    facts = [{name: getattr(info, name) for name in names} for info in infos]
    out.json([one | {"folder": found[one["name"]] and str(found[one["name"]])} for one in facts])
    roots = [str(one) for one in datasets.data_folders(folder)]
    out.folders = roots[:1]
    columns = ("Name", ">Items", ">Tags", ">Features", ">Triples", "Audio", "Folder")
    rows: list[list[Cell]] = [
        [
            info.name,
            *("-" if n is None else n for n in (info.items, info.tags, info.features)),
            info.triples or "counts",
            "yes" if info.audio else "no",
            Text("not found", "yellow") if path is None else str(path),
        ]
        for info, path in zip(infos, found.values(), strict=True)
    ]
    out.table(columns, rows)
    out.hint("", Text("Searched: " + ", ".join(roots), style="dim"))
    missing = next((name for name, path in found.items() if path is None), None)
    if missing is not None:
        out.hint(Text(f"How to get a missing one: harmonium data show {missing}", style="dim"))


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
    if most_used := facts["top_tags"]:
        largest, n_items = max(tag["positive"] for tag in most_used) or 1, facts["items"]
        lines = [
            (tag["tag"], n, f"{n / n_items:.1%}", share_bar(n / largest))
            for tag in most_used
            for n in [tag["positive"]]
        ]
        out.hint("")
        out.table(("Most used tags", ">Items", ">Share", ""), lines)
    out.hint("")
    terms = {key: facts[key.lower()] for key in ("Licence", "Homepage")}
    out.pairs({"Cite": facts["citation"], **terms, "Folder": path or ""})


def _sizes(facts: dict[str, Any]) -> dict[str, str]:
    """What `data show` says about the contents."""
    total = sum(facts["labels"].values()) or 1
    triples, listeners = facts["triples"], facts["listeners_per_item"]
    counts = {name: facts[name.lower()] for name in ("Items", "Tags", "Features")}
    rows = {
        **{name: "-" if n is None else f"{n:,}" for name, n in counts.items()},
        "Triples": triples and f"{triples:,} by {facts['users']:,} users",
        "Listeners": listeners and "{} to {} per item".format(*listeners),
        "Groups": ", ".join(f"{facts[key]:,} {key}" for key in ("tracks", "artists") if facts[key]),
        "Splits": ", ".join(f"{name} {size:,}" for name, size in facts["splits"].items()),
        "Audio": facts["audio_files"] and f"{facts['audio_files']:,} files",
        "A tag is": facts["rule"],
        "Labels": ", ".join(
            f"{count / total:.2%} {kind}" if count else f"none {kind}"
            for kind, count in facts["labels"].items()
        ),
    }
    return {key: value for key, value in rows.items() if value}
