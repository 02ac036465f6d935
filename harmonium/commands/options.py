"""Arguments and options that several commands have."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.store.models import Owner

LibraryOption = Annotated[
    str | None,
    typer.Option(
        "--library",
        "-L",
        metavar="PLACE",
        envvar="HARMONIUM_LIBRARY",
        show_envvar=False,
        help="The library: a file, or postgresql://USER@HOST/DATABASE. By default the one that "
        "HARMONIUM_LIBRARY names, then the library of this user.",
    ),
]
OnlyMineOption = Annotated[
    bool, typer.Option("--only-mine", help="Only tags that were learnt from this library.")
]
OnlyShippedOption = Annotated[
    bool, typer.Option("--only-shipped", help="Only tags of the model that came along.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
PersonOption = Annotated[
    str,
    typer.Option(
        "--person",
        metavar="NAME",
        envvar="HARMONIUM_PERSON",
        show_envvar=False,
        help="Whose word it is; HARMONIUM_PERSON names another than 'me'.",
    ),
]
SeedOption = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, help="Another seed makes other random choices.")
]

# How to listen to files.
ExtractorOption = Annotated[
    str,
    typer.Option(
        "--extractor",
        "-e",
        metavar="NAME",
        help="paper (timbre and rhythm, 389 numbers), timbre, rhythm, musicnn (400 numbers, see "
        "`harmonium extractor`), or one that another package provides.",
    ),
]
StartOption = Annotated[
    float | None,
    typer.Option(
        "--start",
        metavar="S",
        min=0,
        help="Where the clip begins; by default the clip is the middle of the file.",
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        help="Processes to work with; by default one for each core.",
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="processes, serial (no other process), or the address of a Dask scheduler, "
        "tcp://HOST:PORT, for many machines.",
    ),
]
CacheOption = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        metavar="DIR",
        help="Where features are kept for the next time, by the content of files; by default the "
        "folder that HARMONIUM_CACHE names, then the system's folder for caches.",
    ),
]
NoCacheOption = Annotated[
    bool, typer.Option("--no-cache", help="Neither use features kept before nor keep any.")
]
TimeLimitOption = Annotated[
    float,
    typer.Option(
        "--time-limit",
        metavar="S",
        help="Seconds after which a file is given up, because its decoder hangs.",
    ),
]

# How to read a table of people's tags.
TABLE_HELP = "A table of who gave which tag to what: .csv, .tsv or .parquet, also gzipped."
AliasesOption = Annotated[
    Path | None,
    typer.Option(
        "--aliases",
        metavar="FILE",
        help="Spellings that mean the same: a table with the columns alias and tag.",
    ),
]
DelimiterOption = Annotated[
    str | None, typer.Option("--delimiter", metavar="CHAR", help="What separates the columns.")
]
NoHeaderOption = Annotated[
    bool, typer.Option("--no-header", help="The first line is a row, not the names of columns.")
]
EncodingOption = Annotated[
    str, typer.Option("--encoding", metavar="NAME", help="The encoding of a text file.")
]


def owner_of(only_mine: bool, only_shipped: bool) -> "Owner | None":
    """Whose tags are asked for; None: everybody's."""
    from harmonium.errors import DataError

    if only_mine and only_shipped:
        raise DataError("Ask for --only-mine or for --only-shipped; without either, for both.")
    return "own" if only_mine else "built-in" if only_shipped else None


def opened_if_there(
    place: str | None, *, needed: bool = False
) -> "AbstractContextManager[Library | None]":
    """The library, or None if there is none, nobody named one, and none is needed."""
    from harmonium.errors import LibraryError
    from harmonium.library import Library
    from harmonium.library.store.database import default_place

    try:
        return Library.open(place, create=False)
    except LibraryError:
        if needed or place is not None or Path(default_place()).exists():
            raise
        return nullcontext()


def file_option(text: str, *flags: str) -> Any:
    """An option that names a file to read or write."""
    return typer.Option(*flags, metavar="FILE", help=text)


def column(name: str) -> str | int:
    """A column by name, or by position if it is a number."""
    return int(name) if name.isdecimal() else name


def cache_folder(cache: Path | None, no_cache: bool) -> Path | None:
    """The folder for features that --cache and --no-cache mean; None: features are not kept."""
    from harmonium.files import user_cache_folder

    return None if no_cache else cache or user_cache_folder()
