"""Writes tags again and again, each time in a process that kills itself one moment later.

    python killed_writer.py EMPTY_FOLDER MUSIC_FILE

A moment is before or after a call that touches a file. Prints one line of JSON for each process:
its number, whether it was killed, what the song is then, whether it can be undone, and what is in
the folder; the last is the one that was not killed.
"""

import io
import json
import os
import signal
import sys
from pathlib import Path

from harmonium.library.filetags import UndoRecord, apply_change, plan_write, undo

OF_FILES = (io.BufferedRandom, io.BufferedReader, io.FileIO)
METHODS = ("write", "truncate", "flush", "close", "__exit__")
DEAD = ".harmonium-0000000000000000.part"
CALLS = ("open", "replace", "fsync", "chmod", "chown", "utime", "unlink", "close", "flock")


def is_a_moment(event: str, function: object) -> bool:
    if event not in ("c_call", "c_return"):
        return False
    name = getattr(function, "__name__", "")
    if isinstance(getattr(function, "__self__", None), OF_FILES):
        return name in METHODS
    return name in CALLS and getattr(function, "__module__", "") in ("posix", "fcntl", "_io", "io")


def killed_at(number: int, work) -> bool:
    """Whether a process that does the work lives until its moment of this number comes."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    seen = 0

    def watch(frame, event, function):
        nonlocal seen
        if is_a_moment(event, function):
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(watch)
    work()
    sys.setprofile(None)
    os._exit(0)


def main(folder: Path, original: Path) -> None:
    song, kept = folder / "song", folder / "kept"
    old = original.read_bytes()

    def keep(record: UndoRecord) -> None:
        kept.with_suffix(".new").write_bytes(record.to_bytes())
        kept.with_suffix(".new").rename(kept)

    song.write_bytes(old)
    record = apply_change(plan_write(song, ["jazz", "sad"]))
    new = song.read_bytes()
    names = {old: "old", new: "new"}
    for start, work in (
        (old, lambda: apply_change(plan_write(song, ["jazz", "sad"]), keep=keep)),
        (new, lambda: undo(song, record, keep=keep)),
    ):
        number, killed = 0, True
        while killed:
            number += 1
            for path in folder.iterdir():
                path.unlink()
            song.write_bytes(start)
            (folder / DEAD).touch()  # as one that was killed before would leave
            killed = killed_at(number, work)
            found = names.get(song.read_bytes(), "neither")
            changed = song.read_bytes() != start
            if changed:
                undo(song, UndoRecord.from_bytes(kept.read_bytes()))
            report = {
                "from": names[start],
                "number": number,
                "killed": killed,
                "song": found,
                "undone": song.read_bytes() == start,
                "folder": sorted(path.name for path in folder.iterdir()),
            }
            print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
