"""The music files in folders."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

EXTENSIONS = frozenset(
    {
        *(".wav", ".wave", ".bwf", ".w64", ".rf64", ".aif", ".aiff", ".aifc", ".au", ".snd"),
        *(".flac", ".mp3", ".mp2", ".ogg", ".oga", ".opus", ".m4a", ".m4b", ".aac", ".caf"),
        *(".alac", ".ape", ".wv", ".wma", ".mka", ".tta", ".ac3", ".dsf"),
    }
)
"""Endings of the files that are taken from folders, in lower case."""


@dataclass
class AudioFiles:
    """Music files, and folders that were not searched."""

    files: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    """Folder → why it could not be listed."""
    hidden: list[str] = field(default_factory=list)
    """Folders that were skipped, as their names begin with one dot."""


def find_audio(paths: Iterable[str | os.PathLike[str]]) -> AudioFiles:
    """The files that are named, whatever they are, and the music files in folders that are named.

    Folders are searched to the bottom, in the order of the names, and links are followed; each
    folder and file counts once. Hidden ones are left out: among them are the "._" files that macOS
    leaves on other systems' disks, which have the endings of music files.
    """
    found = AudioFiles()
    searched: set[tuple[int, int]] = set()
    files: dict[str, None] = {}
    for path in paths:
        name = os.fspath(path)
        inside = _search(name, searched, found) if os.path.isdir(name) else (name,)  # noqa: PTH112
        files.update(dict.fromkeys(inside))
    found.files.extend(files)
    return found


def _search(folder: str, searched: set[tuple[int, int]], found: AudioFiles) -> Iterator[str]:
    """The files of a folder and of those in it, depth first."""
    open_folders = [_entries(folder, searched, found)]
    while open_folders:
        entry = next(open_folders[-1], None)
        if entry is None:
            open_folders.pop()
        elif entry.is_dir():
            open_folders.append(_entries(entry.path, searched, found))
        elif os.path.splitext(entry.name)[1].lower() in EXTENSIONS:  # noqa: PTH122
            yield entry.path


def _entries(
    folder: str, searched: set[tuple[int, int]], found: AudioFiles
) -> Iterator[os.DirEntry[str]]:
    """What is in a folder, sorted; nothing if it was searched before or cannot be."""
    try:
        status = os.stat(folder)  # noqa: PTH116
        if (status.st_dev, status.st_ino) in searched:
            return iter(())
        searched.add((status.st_dev, status.st_ino))
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        found.unreadable[folder] = f"cannot be listed: {error.strerror or error}."
        return iter(())
    found.hidden += [one.path for one in entries if is_hidden(one.name) and one.is_dir()]
    return iter([entry for entry in entries if not is_hidden(entry.name)])


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is hidden: ".git" is, "...And Oceans" is not."""
    return name.startswith(".") and not name.startswith("..")
