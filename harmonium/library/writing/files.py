"""The files of tracks: which of several names to write to."""

import os
from collections.abc import Sequence


def distinct_files(paths: Sequence[str]) -> list[str]:
    """The paths without second names of the same file.

    If a file and a symbolic link to it are both named, the file's own path is kept. Hard links are
    files of their own: writing to one leaves the others as they are.
    """
    if len(paths) < 2:
        return list(paths)
    by_target: dict[str, str] = {}
    for path in paths:
        target = os.path.realpath(path)
        if target not in by_target or path == target:
            by_target[target] = path
    kept = set(by_target.values())
    return [path for path in paths if path in kept]
