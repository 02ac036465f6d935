"""Indexes and imports again and again, each time in a process that kills itself at some moment.

    python killed_library.py PLACE FOLDER SEED TIMES

A moment is a statement or a commit of the database. FOLDER has the folder music and the table
tags.csv. Prints one line of JSON for each process: whether it was killed, what was committed then
and is still there, and what is there when the command has run once more.
"""

import json
import os
import random
import signal
import sys
import traceback
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from harmonium.audio.extractors import Extractor
from harmonium.library import Library
from harmonium.library.imports import import_table
from harmonium.library.index import extractor_key, index
from harmonium.library.store import database
from harmonium.library.store.schema import metadata

TABLES = [table.name for table in reversed(metadata.sorted_tables)]


def level(samples, rate):
    return [np.abs(samples).mean(), np.abs(samples).max()]


LEVEL = Extractor("level", level, ("mean", "peak"), rate=8000, seconds=1)


def do(command, library, folder):
    if command == "index":
        index(library, [folder / "music"], extractor=LEVEL, engine="serial")
    else:
        import_table(library, folder / "tags.csv")


def facts(library):
    """What is in a library, by names that are the same in every run."""
    tracks = {track.id: Path(track.path).name for track in library.tracks.all()}
    have = library.tracks.features(list(tracks), extractor=extractor_key(LEVEL))[0]
    rows = library.opinions.triples().select("person", "track_id", "tag", "value").rows()
    said = [f"{who} {tracks[track]} {tag} {value}" for who, track, tag, value in rows]
    return sorted([*tracks.values(), *(f"heard {tracks[i]}" for i in have.tolist()), *said])


def empty(library, command):
    """As it was before the command."""
    kept = {"index": (), "import": ("track", "feature", "extractor", "setting")}[command]
    with library.begin() as connection:
        for table in TABLES:
            if table not in kept:
                connection.execute(sa.text(f"DELETE FROM {table}"))


def in_child(work):
    """What a process of its own returns, as JSON; None where it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, json.dumps(work()).encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return None
    if status:
        raise SystemExit("a process failed")
    return json.loads(answer)


def run(place, folder, command, moment=None):
    """Run the command, up to a moment; how many moments there were."""
    seen = 0

    def count(*_):
        nonlocal seen
        seen += 1
        if seen == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    with Library.open(place) as library:
        for event in ("before_cursor_execute", "after_cursor_execute", "commit"):
            sa.event.listen(library.engine, event, count)
        do(command, library, folder)
    return seen


def prepare(place, command):
    with Library.open(place) as library:
        empty(library, command)
        return facts(library)


def look(place):
    with Library.open(place) as library:
        return facts(library)


def look_and_go_on(place, folder, command):
    """What is there after the kill, and when the command has run to its end."""
    killed = look(place)
    run(place, folder, command)
    return killed, look(place)


def run_whole(place, folder, command):
    prepare(place, command)
    return run(place, folder, command), look(place)


def main(place, folder, seed, times):
    database.SYNCHRONOUS = "OFF"  # a process that dies takes nothing with it from the disk's cache
    chance = random.Random(seed)
    for command in ("index", "import"):
        total, whole = in_child(lambda command=command: run_whole(place, folder, command))
        for moment in sorted(chance.sample(range(1, total + 1), min(times, total))):
            before = in_child(lambda command=command: prepare(place, command))
            done = in_child(lambda c=command, moment=moment: run(place, folder, c, moment))
            found = in_child(lambda command=command: look_and_go_on(place, folder, command))
            killed, finished = found
            report = {
                "command": command,
                "moment": moment,
                "of": total,
                "killed": done is None,
                "lost": sorted(set(before) - set(killed)),
                "wrong": sorted(set(killed) - set(whole)),
                "n_kept": len(killed),
                "finished": finished == whole,
            }
            print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
