"""Users' folders on Linux, macOS and Windows; one spelling for paths, and paths as text."""

import os
from pathlib import Path

from platformdirs import user_cache_path, user_data_path


def user_data_folder() -> Path:
    """Where what a user wants to keep goes: the library, fetched datasets."""
    return user_data_path("harmonium", appauthor=False)


def user_cache_folder() -> Path:
    """$HARMONIUM_CACHE, or where what can be computed again goes."""
    if named := os.environ.get("HARMONIUM_CACHE"):
        return Path(named).expanduser()
    return user_cache_path("harmonium", appauthor=False, opinion=False)


def absolute_path(path: str | os.PathLike[str]) -> str:
    """The path as libraries hold it: absolute, ~ expanded, without "..", links kept.

    ".." after a link leads to the folder above its target, as the system has it.
    """
    name = os.path.expanduser(path)  # noqa: PTH111
    if ".." not in name:
        return os.path.abspath(name)  # noqa: PTH100
    full = Path.cwd() / name
    done = full.anchor
    for part in full.parts[1:]:
        if part == "..":
            folder = os.path.realpath(done) if os.path.islink(done) else done  # noqa: PTH114
            done = os.path.dirname(folder)  # noqa: PTH120
        else:
            done = os.path.join(done, part)  # noqa: PTH118
    return done


def readable(path: str | os.PathLike[str]) -> str:
    """A path as text, with bytes that are not UTF-8 as \\xNN."""
    return os.fsencode(path).decode(errors="backslashreplace")
