"""`kill -9` at random moments during the commands that change a library, again and again.

    python benchmarks/kills.py [--times 50] [--seed 0] [--only index ...] [--library PLACE]

Each time a command starts on the same material, is killed with all its processes after a random
share of the time that it takes, and what is found then is compared with what was there just before:

- the library opens, and SQLite's own check of the whole file finds nothing wrong;
- nothing that was committed before the kill is lost, people's tags above all;
- the same command, run again, finishes, and gives what an undisturbed run gives;
- a file that was written to is the old one or the new one, with the same sound, and undoing what
  both runs did restores every file to the byte.

A command is an entry of `CASES`: how its material is made, its arguments, and what of the result
can be compared. PLACE is an empty PostgreSQL database; by default the library is an SQLite file.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import soundfile
import sqlalchemy as sa

from harmonium.errors import LibraryError
from harmonium.library import Library
from harmonium.library.filetags import audio_digest, read_tags
from harmonium.library.store.schema import metadata
from harmonium.library.store.tracks import Track
from harmonium.library.writing.restore import last_change, undo_change

RATE = 22_050
N_TRACKS, N_ROWS = 40, 60_000
Facts = set[str]


@dataclass(frozen=True)
class World:
    """Where things are."""

    folder: Path
    place: str

    @property
    def music(self) -> Path:
        return self.folder / "music"

    def harmonium(self, *arguments: str) -> list[str]:
        program = "from harmonium.cli import main; main()"
        return [sys.executable, "-c", program, *arguments, "--library", self.place]

    def run(self, *arguments: str) -> None:
        done = subprocess.run(self.harmonium(*arguments), capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{arguments[0]} ended with {done.returncode}:\n{done.stderr}")


@dataclass(frozen=True)
class Case:
    """A command to kill."""

    arguments: Callable[[World], list[str]]
    """What follows `harmonium`."""
    prepare: Callable[[World], None]
    """Makes what the command needs, in an empty library."""
    facts: Callable[[Library, World], Facts]
    """What is in the library or in the files, in words that are the same in every run."""
    exact: bool = True
    """Whether two runs give the same; if not, only what is kept is compared."""
    reset: Callable[[World], None] = lambda world: None
    """Makes the files what they were."""
    undo: Callable[[Library, World], None] = lambda library, world: None
    """Takes back what the command did, and raises where that is not what was there."""


@dataclass
class Tally:
    """What was seen."""

    killed: int = 0
    ended_before: int = 0
    failures: list[str] = field(default_factory=list)


def make_music(world: World) -> None:
    """Short files, the same in every run."""
    if world.music.is_dir():
        return
    for k in range(N_TRACKS):
        path = world.music / f"album {k // 10}" / f"{k:03}.flac"
        path.parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(k).normal(size=12 * RATE)
        soundfile.write(path, (0.1 * noise).clip(-0.9, 0.9), RATE)
        os.utime(path, (1_600_000_000 + k, 1_600_000_000 + k))


def make_table(world: World) -> None:
    """Tags by many people, for the tracks of the music."""
    rng = np.random.default_rng(0)
    rows = sorted(
        {
            f"user {u},{k:03}.flac,tag {t}\n"
            for u, k, t in zip(
                rng.integers(200, size=N_ROWS),
                rng.integers(N_TRACKS, size=N_ROWS),
                rng.integers(50, size=N_ROWS),
                strict=True,
            )
        }
    )
    (world.folder / "tags.csv").write_text("user,path,tag\n" + "".join(rows))


def indexed(world: World) -> None:
    """The music is in the library, and somebody has said something."""
    make_music(world)
    world.run("index", str(world.music), "--jobs", "1", "--cache", str(world.folder / "cache"))
    with Library.open(world.place) as library, library.begin():
        change = library.changes.begin("say", "by hand")
        for track in library.tracks.all():
            library.opinions.say("me", track.id, own_tags(track), change=change)


def own_tags(track: Track) -> tuple[str, str]:
    """What is said by hand of a track; its number is not the same in every run."""
    return "mine", f"only {Path(track.path).stem}"


def heard(library: Library, world: World) -> Facts:
    """The tracks, those with features, and how many opinions each has."""
    tracks = {track.id: Path(track.path).name for track in library.tracks.all()}
    key = library.settings.get("extractor", "none")
    have = library.tracks.features(list(tracks), extractor=key)[0]
    return {*tracks.values(), *(f"{tracks[i]} heard" for i in have.tolist())}


def said(library: Library, world: World) -> Facts:
    """What people say."""
    names = {track.id: Path(track.path).name for track in library.tracks.all()}
    rows = library.opinions.triples().select("person", "track_id", "tag", "value").rows()
    return heard(library, world) | {
        f"{person} of {names[track]}: {tag} {value}" for person, track, tag, value in rows
    }


def original(world: World, path: Path) -> Path:
    """Where the copy of a file is, as it was before anything was written to it."""
    return world.folder / "originals" / path.relative_to(world.music)


def ready_to_write(world: World) -> None:
    indexed(world)
    shutil.copytree(world.music, world.folder / "originals", dirs_exist_ok=True)


def restore_music(world: World) -> None:
    for path in world.music.rglob("*.flac"):
        shutil.copy2(original(world, path), path)


def written(library: Library, world: World) -> Facts:
    """The files that have their tags; each of the others must be what it was, to the byte."""
    facts = set()
    for track in library.tracks.all():
        path = Path(track.path)
        if read_tags(path).genre == own_tags(track):
            if audio_digest(path) != track.sound:
                raise AssertionError(f"{path.name} has another sound")
            facts.add(path.name)
        elif path.read_bytes() != original(world, path).read_bytes():
            raise AssertionError(f"{path.name} is neither the old nor the new file")
    return facts


def undo_writes(library: Library, world: World) -> None:
    """Also of the run that was killed."""
    while (change := last_change(library)).command == "write":
        if not undo_change(library, change.id).complete:
            raise AssertionError(f"change {change.id} cannot be undone")
    for path in world.music.rglob("*.flac"):
        if path.read_bytes() != original(world, path).read_bytes():
            raise AssertionError(f"undoing did not restore {path.name}")


def ready_to_train(world: World) -> None:
    """Three people tag every track, each with some of four tags."""
    indexed(world)
    rng = np.random.default_rng(1)
    with Library.open(world.place) as library, library.begin():
        change = library.changes.begin("say", "by three people")
        for track in library.tracks.all():
            for person in ("Ann", "Ben", "Cleo"):
                tags = [f"tag {t}" for t in np.flatnonzero(rng.random(4) < 0.4)]
                library.opinions.say(person, track.id, tags, change=change)


def trained(library: Library, world: World) -> Facts:
    """What people say, and what each model is; training twice gives the same one twice."""
    models = [library.models.get(model.id) for model in library.models.list()]
    return said(library, world) | {
        f"model of {', '.join(model.vocabulary)}, thresholds {model.thresholds.tolist()}"
        for model in models
    }


CASES = {
    "index": Case(
        lambda world: ["index", str(world.music), "--jobs", "1", "--no-cache"],
        make_music,
        heard,
    ),
    "import": Case(
        lambda world: ["import", str(world.folder / "tags.csv")],
        lambda world: (indexed(world), make_table(world))[0],
        said,
    ),
    "train": Case(lambda world: ["train"], ready_to_train, trained),
    "write": Case(
        lambda world: ["write", "--people", "--yes"],
        ready_to_write,
        written,
        reset=restore_music,
        undo=undo_writes,
    ),
}


def empty(world: World) -> None:
    """Throw away what is in the library."""
    if "://" not in world.place:
        for file in Path(world.place).parent.glob(f"{Path(world.place).name}*"):
            file.unlink()
        return
    with Library.open(world.place) as library, library.begin() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(sa.delete(table))


class Snapshot:
    """The prepared library, to begin anew from."""

    def __init__(self, case: Case, world: World) -> None:
        self.case, self.world = case, world
        self.copy = world.folder / "prepared.db"
        empty(world)
        case.prepare(world)
        self.copy.unlink(missing_ok=True)
        if "://" not in world.place and Path(world.place).exists():
            # With nobody using it, all of a library is in its file: the log is empty.
            shutil.copyfile(world.place, self.copy)

    def restore(self) -> None:
        self.case.reset(self.world)
        if "://" in self.world.place:
            empty(self.world)
            self.case.prepare(self.world)
        else:
            empty(self.world)
            if self.copy.exists():
                shutil.copyfile(self.copy, self.world.place)


def facts_of(case: Case, world: World) -> Facts:
    """What is in the library now; nothing where there is none yet."""
    try:
        opened = Library.open(world.place, create=False)
    except LibraryError as error:
        if "There is no library" in str(error):
            return set()
        raise
    with opened as library:
        if library.engine.dialect.name == "sqlite":
            with library.connect() as connection:
                state = connection.exec_driver_sql("PRAGMA integrity_check").scalar()
            if state != "ok":
                raise AssertionError(f"the file is damaged: {state}")
        return case.facts(library, world)


def start(case: Case, world: World) -> subprocess.Popen:
    return subprocess.Popen(
        world.harmonium(*case.arguments(world)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_once(case: Case, world: World, seconds: float, whole: Facts, tally: Tally) -> None:
    """Run, kill, look, run again, look again."""
    process = start(case, world)
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    if process.poll() is None:
        before = facts_of(case, world)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        tally.killed += 1
        if lost := before - facts_of(case, world):
            raise AssertionError(f"{len(lost)} committed facts are lost, such as {min(lost)!r}")
    else:
        tally.ended_before += 1
    world.run(*case.arguments(world))
    after = facts_of(case, world)
    if case.exact and after != whole:
        raise AssertionError(f"the result differs in {len(after ^ whole)} facts")
    with Library.open(world.place) as library:
        case.undo(library, world)


def torment(name: str, world: World, times: int, chance: random.Random) -> Tally:
    """Kill a command many times."""
    case, tally = CASES[name], Tally()
    snapshot = Snapshot(case, world)
    began = time.perf_counter()
    world.run(*case.arguments(world))
    takes = time.perf_counter() - began
    whole = facts_of(case, world)
    for number in range(times):
        snapshot.restore()
        seconds = chance.uniform(0, takes)
        try:
            kill_once(case, world, seconds, whole, tally)
        except Exception as error:  # whatever it is, it is what is looked for here
            tally.failures.append(f"time {number}, after {seconds:.2f} s: {error}")
    outcome = "; ".join(tally.failures) or "nothing lost, each finished when run again"
    print(
        f"{name}: {tally.killed} killed within {takes:.1f} s, {tally.ended_before} had ended "
        f"before; {outcome}",
        flush=True,
    )
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=50, help="kills of each command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--library", metavar="PLACE", help="an empty PostgreSQL database")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        world = World(folder, options.library or str(folder / "library.db"))
        tallies = [torment(name, world, options.times, chance) for name in options.only]
    sys.exit(any(tally.failures for tally in tallies))


if __name__ == "__main__":
    main()
