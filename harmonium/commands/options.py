"""Arguments and options that several commands share."""

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from harmonium.errors import DataError, NoLibraryError

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.store.models import Owner


def value(metavar: str, text: str, *names: str, default: Any = None, **more: Any) -> Any:
    """An option that takes a text."""
    return typer.Option(default, *names, metavar=metavar, help=text, **more)


def file(text: str, *names: str, default: Any = None) -> Any:
    """An option that names a file to read or write."""
    return value("FILE", text, *names, default=default)


def number(default: Any, text: str, *names: str, min: float | None = 1, **more: Any) -> Any:
    """An option that takes a number."""
    return value("N", text, *names, default=default, min=min, **more)


def probability(default: float | None, text: str, *names: str, max: float = 1) -> Any:
    """An option that takes a number from 0 to 1."""
    return value("P", text, *names, default=default, min=0, max=max)


def flag(text: str, *names: str, default: bool | None = False, **more: Any) -> Any:
    """An option that is on or off."""
    return typer.Option(default, *names, help=text, **more)


def argument(metavar: str, text: str, default: Any = None) -> Any:
    """An argument; with ... as the default it is required."""
    return typer.Argument(default, metavar=metavar, help=text)


LIBRARY = value(
    "PLACE",
    "The library: a file, or postgresql://USER@HOST/DATABASE. By default HARMONIUM_LIBRARY, else "
    "library.db in your data folder.",
    "--library",
    "-L",
    envvar="HARMONIUM_LIBRARY",
    show_envvar=False,
)
JSON = flag("Print JSON.", "--json")
ONLY_OWN = flag("Only tags learnt from this library.", "--only-own")
ONLY_BUILT_IN = flag("Only tags of the built-in model.", "--only-built-in")
PERSON = value(
    "NAME",
    "Whose tags these are; by default HARMONIUM_PERSON, else me.",
    "--person",
    default="me",
    envvar="HARMONIUM_PERSON",
    show_envvar=False,
)
SEED = number(0, "Random seed.", "--seed", min=0)
TRACK_HELP = "A file, the end of its path, #NUMBER, or artist - title."
SUBSONIC = value("URL", "A Subsonic server: https://USER@HOST.", "--to")
PASSWORD_FILE = value("FILE", "File with the server's password in its first line.")

# How to extract features.
EXTRACTOR = value(
    "NAME",
    "paper (timbre and rhythm, 389 numbers), timbre, rhythm, musicnn (400 numbers, see `harmonium "
    "extractor`), or one from another package.",
    "--extractor",
    "-e",
    default="paper",
)
START = value("S", "Start of the clip; by default the clip is centred.", min=0)
JOBS = number(None, "Number of processes; by default one per core.", "--jobs", "-j")
CACHE = value(
    "DIR",
    "Where features are cached, by file content; by default HARMONIUM_CACHE, else your cache "
    "folder.",
)
NO_CACHE = flag("Neither read nor write the cache.", "--no-cache")
TIME_LIMIT = value("S", "Give up on a file after S seconds, if its decoder hangs.", default=300)

RAW = flag(
    "Write CSV cells as they are; by default, those that a spreadsheet would run as formulas begin "
    "with an apostrophe.",
    "--raw",
)

# How to read a table of tags.
TABLE_HELP = "A table of who gave which tag to which track: .csv, .tsv or .parquet, or gzipped."
ALIASES = file("Alternative spellings: a table with columns alias and tag.")
DELIMITER = value("CHAR", "The column separator.")
NO_HEADER = flag("The first line is data, not column names.", "--no-header")
ENCODING = value("NAME", "The encoding of a text file.", default="utf-8")


def engine(default: str) -> Any:
    """The option that says where the work is done."""
    text = "processes, serial (this process only), or a Dask scheduler at tcp://HOST:PORT."
    return value("ENGINE", text, default=default)


def owner_of(only_own: bool, only_built_in: bool) -> "Owner | None":
    """Whose tags to use; None for all."""
    if only_own and only_built_in:
        raise DataError("Use --only-own or --only-built-in, not both.")
    if only_own:
        return "own"
    return "built-in" if only_built_in else None


def opened(place: str | None) -> "Library":
    """The library, which must exist."""
    from harmonium.library import Library

    return Library.open(place, create=False)


def opened_if_any(place: str | None) -> "AbstractContextManager[Library | None]":
    """The library; None if there is none yet and ``--library`` does not name one."""
    from harmonium.library.store.database import ENVIRONMENT

    try:
        return opened(place)
    except NoLibraryError:
        if place not in (None, os.environ.get(ENVIRONMENT)):
            raise
        return nullcontext()


def numbered_column(name: str) -> str | int:
    """A column by name, or by position if it is a number."""
    return int(name) if name.isdecimal() else name


def column(name: str | None) -> str | int | None:
    """The same for a column that need not be there."""
    return None if name is None else numbered_column(name)


def cache_folder(cache: Path | None, no_cache: bool) -> Path | None:
    """The folder that --cache and --no-cache name; None if features are not cached."""
    from harmonium.files import user_cache_folder

    if no_cache:
        return None
    return cache or user_cache_folder()
