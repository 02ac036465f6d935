"""The option that says which library a command is about."""

from typing import Annotated

import typer

LibraryOption = Annotated[
    str | None,
    typer.Option(
        "--library",
        "-L",
        metavar="PLACE",
        envvar="HARMONIUM_LIBRARY",
        show_default=False,
        show_envvar=False,
        help="The library: a file, or postgresql://USER@HOST/DATABASE. By default what "
        "HARMONIUM_LIBRARY names, then the library of this user.",
    ),
]
