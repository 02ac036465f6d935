"""Writes the tags of a library to its files, in processes that kill themselves on the way.

    python killed_write_command.py EMPTY_FOLDER SEED TIMES

A moment is before or after a call that touches a file or the database. Prints one line of JSON for
each process: whether it was killed, what the files are then, and whether writing again finishes,
and undoing restores every byte.
"""

import json
import os
import random
import shutil
import signal
import sqlite3
import sys
from pathlib import Path

import killed_writer
from tagged_files import name_of, tagged
from written_music import make_songs, predict, say

from harmonium.library import Library
from harmonium.library.filetags import Rules, read_tags
from harmonium.library.write import last_change, plan_writes, undo_change, write_planned

KINDS = ("mp3", "flac", "ogg", "m4a", "wav", "aiff")
OF_DATABASE = (sqlite3.Connection, sqlite3.Cursor)


def is_a_moment(event, function) -> bool:
    if isinstance(getattr(function, "__self__", None), OF_DATABASE):
        return event in ("c_call", "c_return") and function.__name__ in ("execute", "commit")
    return killed_writer.is_a_moment(event, function)


def write_all(place: Path) -> None:
    with Library.open(place) as library:
        plan = plan_writes(library, library.tracks.ids().tolist(), Rules())
        write_planned(library, plan.files)


def child(work, number: int | None = None) -> int:
    """Work in a new process, which kills itself at a moment; how many moments it had, or -1.

    This process itself does nothing that starts threads, which would not be there in a new one.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        seen = 0

        def watch(frame, event, function):
            nonlocal seen
            if is_a_moment(event, function):
                seen += 1
                if seen == number:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(watch)
        code = 1
        try:
            work()
            code = 0
        finally:
            sys.setprofile(None)
            sys.stderr.flush()
            os.write(writer, str(seen).encode())
            os._exit(code)
    os.close(writer)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(reader) as said:
        text = said.read()
    if os.WIFSIGNALED(status):
        return -1
    if os.WEXITSTATUS(status):
        raise SystemExit("a process failed")
    return int(text)


def make_library(place: Path, music: Path) -> None:
    with Library.open(place) as library:
        make_songs(library, music, KINDS)
        say(library, [("ann", "dreamy", 1)])
        predict(library)


def undo_all(place: Path) -> None:
    """Undo all writes, the last first."""
    with Library.open(place) as library:
        while (change := last_change(library)).command == "write":
            assert undo_change(library, change.id).complete


def states(songs: dict[str, Path]) -> list[str]:
    names = []
    for kind, path in songs.items():
        genres = read_tags(path).genre
        new = genres == ("Rock", "Élan vital", "dreamy", "guitar", "hip hop", "mellow")
        old = path.read_bytes() == tagged(kind)
        names.append("new" if new else "old" if old else "neither")
    return names


def main(folder: Path, seed: int, times: int) -> None:
    start, music, place = folder / "start", folder / "music", folder / "now" / "library.db"
    child(lambda: make_library(start / "library.db", music))
    songs = {kind: music / kind / name_of(kind) for kind in KINDS}
    moments = None
    chance = random.Random(seed)
    for _ in range(times + 1):
        shutil.rmtree(place.parent, ignore_errors=True)
        shutil.copytree(start, place.parent)
        for kind, path in songs.items():
            path.write_bytes(tagged(kind))
        number = None if moments is None else chance.randint(1, moments * 9 // 10)
        lived = child(lambda: write_all(place), number)
        moments = moments or lived
        report = {"number": number, "killed": lived < 0, "songs": states(songs)}
        child(lambda: undo_all(place))
        report["undone"] = states(songs)
        child(lambda: write_all(place))
        report["again"] = states(songs)
        child(lambda: undo_all(place))
        report["restored"] = states(songs)
        report["left"] = sorted(path.name for path in folder.rglob("*.part"))
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
