"""Finding music files in folders."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from harmonium.files import PathLike

EXTENSIONS = frozenset(
    [
        ".wav",
        ".wave",
        ".bwf",
        ".w64",
        ".rf64",
        ".aif",
        ".aiff",
        ".aifc",
        ".au",
        ".snd",
        ".flac",
        ".mp3",
        ".mp2",
        ".ogg",
        ".oga",
        ".opus",
        ".m4a",
        ".m4b",
        ".aac",
        ".caf",
        ".alac",
        ".ape",
        ".wv",
        ".wma",
        ".mka",
        ".tta",
        ".ac3",
        ".dsf",
    ]
)
"""Endings of the files to take from folders, in lower case."""

MAX_LOOKED = 5000  # files to look at when counting the music in listed folders


class FoundAudio(NamedTuple):
    """What was found in files and folders."""

    files: list[str]
    unreadable: dict[str, str]  # the folders and links that could not be searched, with the reasons
    hidden: list[str]  # the hidden folders, which were left out


def find_audio(paths: Iterable[PathLike]) -> FoundAudio:
    """The named files, of any kind, and the music files in the named folders.

    Folders are searched with all their subfolders, in order of name, and links are followed; each
    folder and file counts once. Hidden ones are left out, such as macOS's "._" files.
    """
    files: dict[str, None] = {}
    unreadable: dict[str, str] = {}
    hidden: list[str] = []
    searched: set[tuple[int, int]] = set()
    waiting = [os.fspath(path) for path in paths][::-1]  # not by recursion: folders may be deep
    while waiting:
        path = waiting.pop()
        if not os.path.isdir(path):  # noqa: PTH112
            files[path] = None
            continue
        try:
            status = os.stat(path)  # noqa: PTH116
            folder = (status.st_dev, status.st_ino)
            if folder in searched:
                continue
            searched.add(folder)
            with os.scandir(path) as listing:
                entries = sorted(listing, key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            unreadable[path] = f"cannot be listed: {error.strerror or error}."
            continue
        inside = []
        for entry in entries:
            try:
                is_folder = entry.is_dir()
            except OSError as error:  # a link to itself, say, or into an unreadable folder
                is_folder = False
                if not is_hidden(entry.name) and not _is_music(entry.name):
                    unreadable[entry.path] = f"cannot be followed: {error.strerror or error}."
            if is_hidden(entry.name):
                if is_folder:
                    hidden.append(entry.path)
            elif is_folder or _is_music(entry.name):
                inside.append(entry.path)
        waiting += reversed(inside)
    return FoundAudio(files=[*files], unreadable=unreadable, hidden=hidden)


@dataclass(frozen=True)
class Folder:
    """A folder on this machine, for choosing one with music."""

    path: str
    name: str
    n_sounds: int  # music files in it and in its subfolders
    counted: bool  # whether that is all: counting stops after a while


def list_folders(path: str) -> tuple[Folder, list[Folder]]:
    """A folder, and its subfolders by name, without hidden ones; OSError if it cannot be listed."""
    with os.scandir(path) as listing:
        entries = [entry for entry in listing if not is_hidden(entry.name) and _is_folder(entry)]
    entries.sort(key=lambda entry: entry.name.casefold())
    max_looked = MAX_LOOKED // max(1, len(entries))
    folder = _counted_folder(path, os.path.basename(path), MAX_LOOKED)  # noqa: PTH119
    return folder, [_counted_folder(entry.path, entry.name, max_looked) for entry in entries]


def _counted_folder(path: str, name: str, max_looked: int) -> Folder:
    """A folder with its music files, counted until ``max_looked`` files were looked at."""
    n_sounds = 0
    n_looked = 0
    for _, folders, files in os.walk(path):
        folders[:] = [name for name in folders if not is_hidden(name)]
        n_sounds += sum(not is_hidden(name) and _is_music(name) for name in files)
        n_looked += 1 + len(files)
        if n_looked > max_looked and folders:
            return Folder(path=path, name=name, n_sounds=n_sounds, counted=False)
    return Folder(path=path, name=name, n_sounds=n_sounds, counted=True)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder; a link that cannot be followed is not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_music(name: str) -> bool:
    """Whether a file is music, by its ending."""
    return os.path.splitext(name)[1].lower() in EXTENSIONS  # noqa: PTH122


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is hidden: ".git" is, "...And Oceans" is not."""
    return name.startswith(".") and not name.startswith("..")
