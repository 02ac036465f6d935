"""Does work in processes that are killed on the way.

    python killed.py experiment RECIPE FOLDER SIZE [SIZE ...]   when the results have so many bytes
    python killed.py library PLACE FOLDER SEED TIMES            index FOLDER/music, import tags.csv
    python killed.py write EMPTY_FOLDER SEED TIMES              write a library's tags to its files
    python killed.py write_file EMPTY_FOLDER MUSIC_FILE         one file, killed at every moment
    python killed.py train PLACE                                train, and say each step
    python killed.py commands                                   as each line of its input says
    python killed.py store PLACE                                die while a model is stored

A moment is before or after a call that touches a file or the database. Those that kill their
processes themselves print one line of JSON for each: whether it was killed, what is there then, and
whether the work can be done again and undone.
"""

import contextlib
import functools
import io
import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
import traceback
from pathlib import Path

FILES = (io.BufferedRandom, io.BufferedReader, io.FileIO)
METHODS = ("write", "truncate", "flush", "close", "__exit__")
CALLS = ("open", "replace", "fsync", "chmod", "chown", "utime", "unlink", "close", "flock")
EVENTS = ("before_cursor_execute", "after_cursor_execute", "commit")
DEAD = ".harmonium-0000000000000000.part"


def kill_this():
    os.kill(os.getpid(), signal.SIGKILL)


def is_a_moment(event, function):
    if event not in ("c_call", "c_return"):
        return False
    name, of = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if isinstance(of, sqlite3.Connection | sqlite3.Cursor):
        return name in ("execute", "commit")
    if isinstance(of, FILES):
        return name in METHODS
    return name in CALLS and getattr(function, "__module__", "") in ("posix", "fcntl", "_io", "io")


def in_child(work, kill_at=None):
    """What the work returns in a new process, and its moments; None where it was killed at one.

    This process itself does nothing that starts threads, which would not be there in a new one.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        seen = 0

        def watch(frame, event, function):
            nonlocal seen
            if is_a_moment(event, function):
                seen += 1
                if seen == kill_at:
                    kill_this()

        try:
            sys.setprofile(watch)
            answer = work()
            sys.setprofile(None)
            os.write(writing, json.dumps([answer, seen]).encode())
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


class Killed(BaseException):
    """The process ends here."""


def die():
    raise Killed


def watch_moments(engine, end_at=None, *, events=EVENTS, then=die):
    """A function that gives the number of moments so far; at ``end_at`` something happens."""
    import sqlalchemy as sa

    seen = 0

    def count(*_):
        nonlocal seen
        seen += 1
        if seen == end_at:
            then()

    for event in events:
        sa.event.listen(engine, event, count)
    return lambda: seen


def experiment(recipe, folder, *sizes):
    from harmonium.experiments.recipe import read_recipe
    from harmonium.experiments.results import open_results
    from harmonium.experiments.run import run_experiment

    recipe, results = Path(recipe), Path(folder) / "results.jsonl"
    read_recipe(recipe)  # loads the modules of its models
    for size in map(int, sizes):
        child = os.fork()
        if not child:
            try:
                with open_results(results.parent, recipe.read_text()) as store:
                    run_experiment(read_recipe(recipe), store, engine="serial")
                os._exit(0)
            finally:
                os._exit(1)
        status = None
        while status is None and not (results.exists() and results.stat().st_size >= size):
            ended, status_now = os.waitpid(child, os.WNOHANG)
            status = status_now if ended else None
            time.sleep(0.001)
        if status is None:
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(status) or status == 0
        print(os.WIFSIGNALED(status), flush=True)


def library(place, folder, seed, times):
    """The moments are those of the database alone, so that it may be PostgreSQL."""
    import sqlalchemy as sa
    from noise_files import LEVEL

    from harmonium.audio.extractors import extractor_key
    from harmonium.library import Library
    from harmonium.library.imports import import_table
    from harmonium.library.index import index
    from harmonium.library.store import database
    from harmonium.library.store.schema import metadata

    database.SYNCHRONOUS = "OFF"  # a process that dies takes nothing with it from the disk's cache
    kept = {"index": (), "import": ("track", "feature", "extractor", "setting")}

    def run(command, moment=None):
        """Run the command, up to a moment; how many moments there were."""
        with Library.open(place) as library:
            seen = watch_moments(library.engine, moment, then=kill_this)
            if command == "index":
                index(library, [Path(folder, "music")], extractor=LEVEL, engine="serial")
            else:
                import_table(library, Path(folder, "tags.csv"))
        return seen()

    def look():
        """What is in the library, by names that are the same in every run."""
        with Library.open(place) as library:
            tracks = {track.id: Path(track.path).name for track in library.tracks.all()}
            have = library.tracks.features(list(tracks), extractor=extractor_key(LEVEL))[0]
            rows = library.opinions.triples().select("person", "track_id", "tag", "value").rows()
        said = [f"{who} {tracks[track]} {tag} {value}" for who, track, tag, value in rows]
        return sorted([*tracks.values(), *(f"heard {tracks[i]}" for i in have.tolist()), *said])

    def prepare(command):
        with Library.open(place) as library, library.begin() as connection:
            for table in reversed(metadata.sorted_tables):
                if table.name not in kept[command]:
                    connection.execute(sa.text(f"DELETE FROM {table.name}"))
        return look()

    def do(*steps):
        """What each of some steps returns, all in one process; None where it was killed."""
        found = in_child(lambda: [step() for step in steps])
        return found and found[0]

    chance = random.Random(int(seed))
    for command in kept:
        again, first = functools.partial(run, command), functools.partial(prepare, command)
        _, total, whole = do(first, again, look)
        for moment in sorted(chance.sample(range(1, total + 1), min(int(times), total))):
            before = do(first)[0]
            done = do(functools.partial(run, command, moment))
            killed, _, finished = do(look, again, look)
            report = {"command": command, "moment": moment, "killed": done is None}
            report["lost"] = sorted(set(before) - set(killed))
            report["wrong"] = sorted(set(killed) - set(whole))
            report |= {"n_kept": len(killed), "finished": finished == whole}
            print(json.dumps(report), flush=True)


def write(folder, seed, times):
    from tagged_files import name_of
    from written_music import make_songs, predict, say

    from harmonium.library import Library
    from harmonium.library.filetags import Rules, read_tags
    from harmonium.library.writing.file_plans import plan_writes
    from harmonium.library.writing.restore import last_change, undo_change
    from harmonium.library.writing.writer import write_planned

    kinds = ("mp3", "flac", "ogg", "m4a", "wav", "aiff")
    folder = Path(folder)
    start, music, place = folder / "start", folder / "music", folder / "now" / "library.db"
    songs = {kind: music / kind / name_of(kind) for kind in kinds}

    def make_library():
        with Library.open(start / "library.db") as library:
            make_songs(library, music, kinds)
            say(library, [("ann", "dreamy", 1)])
            predict(library)

    def write_all():
        with Library.open(place) as library:
            plan = plan_writes(library, library.tracks.ids().tolist(), Rules())
            write_planned(library, plan.files)

    def undo_all():
        """Undo all writes, the last first."""
        with Library.open(place) as library:
            while (change := last_change(library)).command == "write":
                assert undo_change(library, change.id).complete

    def state(kind, path):
        genres = ("Rock", "Élan vital", "dreamy", "guitar", "hip hop", "mellow")
        if read_tags(path).genre == genres:
            return "new"
        return "old" if path.read_bytes() == original[kind] else "neither"

    def states():
        return [state(*song) for song in songs.items()]

    in_child(make_library)
    original = {kind: path.read_bytes() for kind, path in songs.items()}
    moments, chance = None, random.Random(int(seed))
    for _ in range(int(times) + 1):
        shutil.rmtree(place.parent, ignore_errors=True)
        shutil.copytree(start, place.parent)
        for kind, path in songs.items():
            path.write_bytes(original[kind])
        number = None if moments is None else chance.randint(1, moments * 9 // 10)
        lived = in_child(write_all, number)
        moments = moments or lived[1]
        report = {"number": number, "killed": lived is None, "songs": states()}
        for name, work in {"undone": undo_all, "again": write_all, "restored": undo_all}.items():
            in_child(work)
            report[name] = states()
        report["left"] = sorted(path.name for path in folder.rglob("*.part"))
        print(json.dumps(report), flush=True)


def write_file(folder, original):
    from harmonium.library.filetags import UndoRecord, apply_change, plan_write, undo

    folder = Path(folder)
    song, kept, old = folder / "song", folder / "kept", Path(original).read_bytes()

    def keep(record):
        kept.with_suffix(".new").write_bytes(record.to_bytes())
        kept.with_suffix(".new").rename(kept)

    def apply():
        apply_change(plan_write(song, ["jazz", "sad"]), keep=keep)

    def take_back():
        undo(song, record, keep=keep)

    song.write_bytes(old)
    record = apply_change(plan_write(song, ["jazz", "sad"]))
    names = {old: "old", song.read_bytes(): "new"}
    for start, work in zip(list(names), (apply, take_back), strict=True):
        number, killed = 0, True
        while killed:
            number += 1
            for path in folder.iterdir():
                path.unlink()
            song.write_bytes(start)
            (folder / DEAD).touch()  # as one that was killed before would leave
            killed = in_child(work, number) is None
            found = names.get(song.read_bytes(), "neither")
            if song.read_bytes() != start:
                undo(song, UndoRecord.from_bytes(kept.read_bytes()))
            report = {"from": names[start], "number": number, "killed": killed, "song": found}
            report["undone"] = song.read_bytes() == start
            report["folder"] = sorted(path.name for path in folder.iterdir())
            print(json.dumps(report), flush=True)


def commands():
    """Do what each line says; its answer, or null if it was killed.

    A line is a list in JSON: the place of a library, a command and its argument, and the number of
    the call ("file") or statement of the database ("statement") at which the process is killed.
    """
    from noise_files import LEVEL

    from harmonium.errors import LibraryError
    from harmonium.library import Library
    from harmonium.library.index import index
    from harmonium.library.store import database
    from harmonium.library.teaching import say  # noqa: F401
    from harmonium.library.writing import writer  # noqa: F401
    from harmonium.web import jobs
    from harmonium.web.guard import ServerSettings
    from harmonium.web.service import Service

    database.SYNCHRONOUS = "OFF"
    jobs.get_context = lambda _: Forks()
    do = {
        "index": lambda library, folder: index(library, [folder], extractor=LEVEL, engine="serial"),
        "say": lambda library, _: library.say(1, "calm", "-loud", person="ann"),
        "write": lambda library, _: library.write(predicted=False),
        "undo": lambda library, number: library.undo(number),
    }

    def work(place, command, argument, kind, moment):
        if command == "serve":
            return serve(place, kind, moment)
        with contextlib.suppress(LibraryError), Library.open(place) as library:
            if kind == "statement":
                watch_moments(library.engine, moment, then=kill_this)
            with library.learner.paused():
                do[command](library, argument)
        return True

    def serve(place, kind, moment):
        """Continue the job that an earlier server left, or write; the job at its end."""
        service = Service(ServerSettings(place=place))
        if kind == "statement":
            watch_moments(service.library().engine, moment, then=kill_this)
        service.jobs.resume()
        job = next(iter(service.jobs.list()), None)
        if job is None or job["state"] not in jobs.UNFINISHED:
            asked = {"q": "", "precision": 0.9, "ignore": [], "skip": []}
            job = service.jobs.start("write", asked)
        end = time.monotonic() + 60
        while job["state"] in jobs.UNFINISHED:
            assert time.monotonic() < end, job
            time.sleep(0.005)
            job = service.jobs.get(job["id"])
        service.jobs.close()
        service.library().close()
        return job

    for line in sys.stdin:
        *_, kind, moment = said = json.loads(line)
        done = in_child(functools.partial(work, *said), moment if kind == "file" else None)
        print(json.dumps(done and done[0]), flush=True)


class Forks:
    """Makes processes as multiprocessing's "spawn" does, which share no pipe, but sooner."""

    def __init__(self):
        self.context = multiprocessing.get_context("fork")

    def Pipe(self):
        self.ours, theirs = self.context.Pipe()
        return self.ours, theirs

    def Process(self, target, args):
        def work():
            self.ours.close()
            target(*args)

        return self.context.Process(target=work)


def store(place):
    """Die when the model is written, and not yet said to be in use."""
    import numpy as np

    from harmonium.library import Library
    from harmonium.library.store.models import StoredModel
    from harmonium.library.store.reports import ModelReport

    with Library.open(place, create=False) as library:
        library.settings.set = lambda *_, **__: kill_this()
        about = {"name": "nothing", "vocabulary": ["rock"], "extractor": "none"}
        about |= {"report": ModelReport()}
        thresholds = np.ones(1, np.float32)
        library.models.add(StoredModel(thresholds=thresholds, bytes=bytes(10**6), **about))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
