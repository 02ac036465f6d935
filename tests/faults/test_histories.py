"""Any history of a library by two people, a server, other programs, kills and full disks is safe.

No byte is lost, and every report is true:

    SEQUENCES=2000 python -m pytest -n 0 -m "not long" tests/faults/test_histories.py

The files on the disk are the truth: what each change did to them is what was seen before and after
it, and not what it says. A file's content is always one that other programs gave it, or follows
from one by changes that can be undone.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import soundfile
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from killed import EVENTS
from noise_files import LEVEL, RATE, long_ago
from places import HELPERS
from small_disks import full, mount, read_only, unmount
from some_tracks import in_force

from harmonium.errors import LibraryError
from harmonium.library import Library
from harmonium.library.filetags import apply_change, audio_digest, plan_write
from harmonium.library.index import index
from harmonium.library.store import database
from harmonium.library.writing.restore import last_change

KINDS = ("flac", "mp3", "ogg", "wav")
WORDS = ("calm", "loud", "Artist")
SHM = "/dev/shm" if Path("/dev/shm").is_dir() else None  # quicker than a disk
NUMBER, ACTOR = st.integers(0, 5), st.integers(0, 1)
MEANWHILE = st.sampled_from(["", "", "undo", "edit", "replace", "move", "index", "say"])
TROUBLE = st.sampled_from(["music full", "library full", "read-only"])
PAGES = st.integers(0, 24)  # free ones on a full disk
MAX_LINKS = 3


def retagged(data, kind, word):
    """The file with another program's genre."""
    with tempfile.TemporaryDirectory(dir=SHM) as folder:
        path = Path(folder, f"song.{kind}")
        path.write_bytes(data)
        apply_change(plan_write(path, [word]))
        return path.read_bytes()


@cache
def song(kind, seed):
    """A short noise with a genre."""
    with tempfile.TemporaryDirectory(dir=SHM) as folder:
        path = Path(folder, f"song.{kind}")
        noise = 0.1 * np.random.default_rng(seed).normal(size=RATE // 20)
        soundfile.write(path, noise.clip(-0.9, 0.9), RATE)
        return retagged(path.read_bytes(), kind, "Artist")


class Killing:
    """A process that starts others, which do what they are told and are killed on the way."""

    def __init__(self):
        line = [sys.executable, HELPERS / "killed.py", "commands"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(line, **pipes)

    def run(self, *command):
        """Its answer; None if it was killed."""
        print(json.dumps(command), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class History(RuleBasedStateMachine):
    make_place, killing = None, None

    def __init__(self):
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="history", dir=SHM))
        self.music = self.home / "music"
        self.own = self.home / "library"  # its folder, if it is in SQLite
        for folder, size in {self.music: "1m", self.own: "32m"}.items():
            folder.mkdir()
            self.has_disks = mount(folder, size)
        self.place = type(self).make_place(self.own)
        self.actors = [Library.open(self.place, wait=20) for _ in range(2)]
        self.theirs = {}  # path → the contents that other programs gave the file
        self.files = {}  # change → path now → what the file was before it, and after
        self.said = {}  # change → (person, track, tag) → value before it, and after
        self.unindexed = set()  # paths that `index` has not seen
        self.n_made = 0
        self.trouble = ""  # with a disk, at the moment

    def teardown(self):
        try:
            self.index(0)
            for change in self.actors[0].changes.list():
                if change.undone_in_part_by is not None and change.left is None:
                    self.undo_now(0, change.id)  # a redo, perhaps, that was interrupted
            for change in self.actors[0].changes.list():
                if change.undoes is None and change.undone_by is None:
                    self.undo_now(0, change.id)
            for path, now in self.disk().items():
                assert now in self.theirs[path], path
        finally:
            for library in self.actors:
                library.close()
            if self.has_disks:
                unmount(self.music)
                unmount(self.own)
            shutil.rmtree(self.home)

    # What is there. ----------------------------------------------------------------------------

    def disk(self):
        paths = sorted(self.music.glob("[!.]*"))
        return {str(path): path.read_bytes() for path in paths if not path.is_symlink()}

    def links(self):
        """Links to songs → these."""
        paths = [path for path in self.music.glob("[!.]*") if path.is_symlink() and path.is_file()]
        return {str(path): os.path.realpath(path) for path in paths}

    def path(self, which):
        names = sorted(self.disk())
        return names[which % len(names)]

    def new_path(self, old=None):
        self.n_made += 1
        kind = KINDS[self.n_made % 4] if old is None else old.rpartition(".")[2]
        return str(self.music / f"{self.n_made:03}.{kind}")

    def note(self, number, before, after):
        """Add what a change was seen to do to files, and to what people say."""
        (disk, said), (disk_after, said_after) = before, after
        assert disk.keys() == disk_after.keys()
        files = self.files.setdefault(number, {})
        for path, now in disk_after.items():
            if now != disk[path]:
                files[path] = (files[path][0] if path in files else disk[path], now)
        keys = self.said.setdefault(number, {})
        for key in said.keys() | said_after.keys():
            if said.get(key) != said_after.get(key):
                keys[key] = said.get(key), said_after.get(key)

    def now(self):
        return self.disk(), in_force(self.actors[0])

    def last(self):
        return max((one.id for one in self.actors[0].changes.list(1)), default=0)

    # Other programs. ---------------------------------------------------------------------------

    @initialize(n=st.integers(1, 3))
    def begin(self, n):
        for _ in range(n):
            self.add()
        self.index(0)

    @precondition(lambda self: len(self.theirs) < 6)
    @rule()
    def add(self):
        path = self.new_path()
        Path(path).write_bytes(song(path.rpartition(".")[2], self.n_made))
        long_ago(path, self.n_made)
        self.theirs[path] = {Path(path).read_bytes()}
        self.unindexed.add(path)

    @precondition(lambda self: len(self.theirs) < 6)
    @rule(which=NUMBER)
    def copy(self, which):
        old = self.path(which)
        new = self.new_path(old)
        shutil.copy2(old, new)
        self.theirs[new] = {*self.theirs[old], Path(new).read_bytes()}
        self.unindexed.add(new)

    @rule(which=NUMBER)
    def move(self, which):
        self.rename({self.path(which): self.new_path(self.path(which))})

    @rule(a=NUMBER, b=NUMBER)
    def swap(self, a, b):
        a, b = self.path(a), self.path(b)
        if a != b and a.rpartition(".")[2] == b.rpartition(".")[2]:
            self.rename({a: b, b: a})

    def rename(self, names):
        for old in names:
            Path(old).rename(f"{old}.moving")
        for old, new in names.items():
            Path(f"{old}.moving").rename(new)
        for known in (self.theirs, *self.files.values()):
            moved = {new: known.pop(old) for old, new in names.items() if old in known}
            known.update(moved)
        self.unindexed = {names.get(path, path) for path in self.unindexed} | set(names.values())

    @rule(which=NUMBER, word=st.sampled_from(WORDS), in_place=st.booleans())
    def edit(self, which, word, in_place):
        path = self.path(which)
        found = Path(path).read_bytes()
        data = retagged(found, path.rpartition(".")[2], word)
        if in_place:
            Path(path).write_bytes(data)
        else:
            Path(f"{path}.new").write_bytes(data)
            Path(f"{path}.new").replace(path)
        if data != found:
            self.give(path, data)

    def give(self, path, data):
        """Note what another program made of a file. If changes made the same, undo may go on."""
        self.theirs[path] = known = {data}
        pairs = [files[path] for files in self.files.values() if path in files]
        for _ in pairs:
            known |= {before for before, after in pairs if after in known}

    @rule(which=NUMBER)
    def edit_quietly(self, which):
        """Size and time stay."""
        path = Path(self.path(which))
        data, about = path.read_bytes(), path.stat()
        if path.suffix == ".ogg" or b"Artist" not in data:
            return
        data = data.replace(b"Artist", b"Tsitra")
        with path.open("r+b") as file:
            file.write(data)
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
        self.give(str(path), data)

    @rule(which=NUMBER)
    def replace(self, which):
        """Another sound under the same name."""
        path = self.path(which)
        self.n_made += 1
        Path(path).write_bytes(song(path.rpartition(".")[2], self.n_made))
        self.theirs[path] = {Path(path).read_bytes()}
        self.unindexed.add(path)

    @rule(which=NUMBER, first=st.booleans(), to=st.sampled_from(["a song", "a folder", "itself"]))
    def link(self, which, first, to):
        """A symbolic link, whose name is before or after those of the songs."""
        old = self.path(which)
        names = [path.name for path in self.music.glob("*link*")]
        if len(names) < MAX_LINKS:
            self.n_made += 1
            link = self.music / f"{'0' if first else 'z'}link{self.n_made}.{old.rpartition('.')[2]}"
            link.symlink_to({"a song": old, "a folder": self.music, "itself": link}[to])

    @rule(which=NUMBER)
    def unlink(self, which):
        links = sorted(self.music.glob("*link*"))
        if links:
            links[which % len(links)].unlink()

    # The two people. ---------------------------------------------------------------------------

    @rule(who=ACTOR)
    def index(self, who):
        before, links = self.now(), self.links()
        report = index(self.actors[who], [self.music], extractor=LEVEL, engine="serial", cache=None)
        assert self.now() == before
        refused = {*report.unreadable, *report.still_unreadable, *report.unlisted}
        assert not refused & {*before[0], *links}, report
        lists = (report.new, report.moved, report.changed, report.retagged, report.back)
        n_found = sum(map(len, (*lists, report.copies))) + report.unchanged
        assert n_found == len(before[0]) + len(links), report
        self.unindexed.clear()
        tracks = {one.path: one for one in self.actors[who].tracks.all() if one.state == "present"}
        copies = self.actors[who].tracks.copies([one.id for one in tracks.values()])
        owners = {path: one for one in tracks.values() for path in copies.get(one.id, [])}
        for path in (*before[0], *links):
            assert (tracks.get(path) or owners[path]).sound == audio_digest(path), path
        assert tracks.keys() <= {*before[0], *links}
        assert not tracks.keys() & owners.keys()

    @rule(who=ACTOR, which=NUMBER, tag=st.sampled_from(WORDS[:2]), fits=st.booleans())
    def say(self, who, which, tag, fits):
        before, ids = self.now(), self.actors[who].tracks.ids().tolist()
        number, person = ids[which % len(ids)], ("ann", "bob")[who]
        what = {"yes" if fits else "no": [tag]}
        with self.actors[who].learner.paused():
            said = self.actors[who].say(number, person=person, **what)
        after = self.now()
        assert after[0] == before[0]
        assert after[1] == before[1] | {(person, number, tag): 1 if fits else -1}
        assert (said.change is None) == (after[1] == before[1])
        if said.change is not None:
            self.note(said.change, before, after)

    def meanwhile(self, who, what, which):
        """What somebody else does while a change is under way."""
        if what == "undo":
            self.undo_now(who, self.last())
        elif what == "edit":
            self.edit(which, WORDS[which % 2], in_place=which > 2)
        elif what == "say":
            self.say(who, which, WORDS[which % 2], fits=True)
        elif what == "index":
            self.index(who)
        elif what:
            getattr(self, what)(which)

    @rule(who=ACTOR, what=MEANWHILE, at=st.integers(1, 4), which=NUMBER)
    def write(self, who, what, at, which):
        meanwhile = (at, lambda: self.meanwhile(1 - who, what, which)) if what else None
        failures = self.write_now(who, meanwhile)
        if failures is not None and not what:
            self.check_rest(who, failures)

    def write_now(self, who, meanwhile=None):
        """Path → why it was not written, which is checked; None if nothing could be stored."""
        plan = self.actors[who].writer.plan(predicted=False)
        seen, done, number = self.now(), {}, None

        def look(n, total):
            nonlocal seen, number
            path = os.path.realpath(plan.files[n - 1].change.path)
            before, seen = seen, self.now()
            assert [p for p in before[0] if before[0][p] != seen[0][p]] in ([], [path])
            if before != seen:
                number = number or self.last()  # others may make changes after the first file
                self.note(number, before, seen)
                done[path] = seen[0][path]
            if meanwhile and n == meanwhile[0]:
                meanwhile[1]()
                seen = self.now()

        try:
            report = self.actors[who].write(plan, progress=look)
        except LibraryError:
            assert not done
            return None
        assert sorted(map(os.path.realpath, report.paths)) == sorted(done)
        assert not {os.path.realpath(path) for path in report.failures} & done.keys()
        assert (report.change is None) == (not done)
        if meanwhile is None and not self.trouble:
            assert {os.path.realpath(path) for path in report.failures} <= self.unindexed
        return plan.failures | report.failures

    def check_rest(self, who, failures):
        """That the next plan has the files that could not be written, and no others."""
        again = self.actors[who].writer.plan(predicted=False)
        assert {one.change.path for one in again.files} | again.failures.keys() == failures.keys()

    @contextmanager
    def in_trouble(self, what, pages):
        """While a disk is full or read-only, if this process may mount such disks."""
        with ExitStack() as stack:
            if self.has_disks and what == "read-only":
                stack.enter_context(read_only(self.music))
            elif self.has_disks:
                disk = self.music if what == "music full" else self.own
                stack.enter_context(full(disk, pages << 12))
            self.trouble = what
            yield
        self.trouble = ""

    @rule(who=ACTOR, what=TROUBLE, pages=PAGES)
    def write_in_trouble(self, who, what, pages):
        with self.in_trouble(what, pages):
            failures = self.write_now(who)
        if failures is not None:
            self.check_rest(who, failures)

    @rule(who=ACTOR, which=NUMBER, what=TROUBLE, pages=PAGES)
    def undo_in_trouble(self, who, which, what, pages):
        """An undo that did nothing is tried again by the next."""
        numbers = [one.id for one in self.actors[who].changes.list(6)]
        if numbers:
            before, due = self.now(), self.due(who)
            number = numbers[which % len(numbers)]
            with self.in_trouble(what, pages):
                report = self.undo_now(who, number)
            if before == self.now() and number == due and not (report and report.complete):
                assert self.due(who) == due

    def due(self, who):
        """The change that would be undone next."""
        with suppress(LibraryError):
            return last_change(self.actors[who]).id

    @rule(who=ACTOR, which=NUMBER, tag=st.sampled_from(WORDS[:2]), pages=PAGES)
    def say_in_trouble(self, who, which, tag, pages):
        before = self.now()
        with self.in_trouble("library full", pages):
            try:
                self.say(who, which, tag, fits=True)
            except LibraryError:
                assert self.now() == before

    @rule(who=ACTOR, what=TROUBLE, pages=PAGES)
    def index_in_trouble(self, who, what, pages):
        before = self.now()
        with self.in_trouble(what, pages), suppress(LibraryError):
            self.index(who)
        assert self.now() == before

    @rule(who=ACTOR, which=NUMBER, moment=st.integers(1, 30), word=st.sampled_from(WORDS))
    def write_while_another_program_does(self, who, which, moment, word):
        """The other program changes a file at any statement of the database."""
        before, last, found, edited = self.now(), self.last(), {}, {}

        def edit():
            path = self.path(which)
            found[path] = Path(path).read_bytes()
            self.edit(which, word, in_place=moment % 2 > 0)
            edited[path] = Path(path).read_bytes()

        plan = self.actors[who].writer.plan(predicted=False)
        with at_moment(self.actors[who].engine, moment, edit):
            report = self.actors[who].write(plan)
        now = self.now()
        for path, was in found.items():
            if was != before[0][path]:  # it was written to first
                self.files.setdefault(report.change, {})[path] = (before[0][path], was)
            before[0][path] = edited[path]
        for path in before[0].keys() - self.files.get(report.change, {}).keys():
            written = map(os.path.realpath, report.paths)
            assert (now[0][path] != before[0][path]) == (path in written), path
        if report.change is not None:
            self.note(report.change, before, now)
        assert self.last() == (report.change or last)

    @rule(who=ACTOR, which=NUMBER, what=MEANWHILE, at=st.integers(1, 3), other=NUMBER)
    def undo(self, who, which, what, at, other):
        numbers = [one.id for one in self.actors[who].changes.list(6)]
        if numbers:
            meanwhile = (at, lambda: self.meanwhile(1 - who, what, other)) if what else None
            self.undo_now(who, numbers[which % len(numbers)], meanwhile)

    @rule(who=ACTOR)
    def undo_last(self, who):
        with suppress(LibraryError):
            self.undo_now(who, last_change(self.actors[who]).id)

    @rule(who=ACTOR)
    def redo(self, who):
        undos = [one.id for one in self.actors[who].changes.list(10) if one.undoes is not None]
        if undos:
            self.undo_now(who, undos[0])

    def undo_now(self, who, number, meanwhile=None):
        """The report, whose truth is checked; None if nothing could be stored."""
        start = seen = self.now()
        records, keys = dict(self.files.get(number, {})), self.said.get(number, {})
        n_restored, disturbed = 0, False

        def look(n, total):
            nonlocal seen, n_restored, disturbed
            before, seen = seen, self.now()
            n_restored += self.check_undone(number, before, seen)
            if meanwhile and n == meanwhile[0]:
                disturbed = True
                meanwhile[1]()
                seen = self.now()

        excused = self.excused(records, start[0])
        try:
            with self.actors[who].learner.paused():
                report = self.actors[who].undo(number, progress=look)
        except LibraryError:
            self.check_undone(number, seen, self.now())
            return None
        end = self.now()
        n_restored += self.check_undone(number, seen, end)
        assert report.files_restored == n_restored
        if disturbed:
            return report
        for path, (before, _) in records.items():
            if report.complete and not excused:
                assert end[0][path] == before, path
        assert excused or self.trouble or not report.files_left, report
        if report.complete:
            assert all(end[1].get(key) == before for key, (before, _) in keys.items())
        return report

    def excused(self, records, disk):
        """Whether files may be left: others changed or moved them, or there are other copies."""
        sounds = {path: audio_digest(path) for path in disk}
        spare = {(sounds[path], now) for path, now in disk.items() if path not in records}
        for path, pair in records.items():
            if path in self.unindexed or disk[path] not in pair:
                return True
            if {(sounds[path], one) for one in pair} & spare:
                return True
        return False

    def check_undone(self, number, before, after):
        """That undoing did what takes the change back, and only that; how many files changed."""
        records = self.files.get(number, {})
        for path, now in after[0].items():
            pair = now, before[0][path]
            assert now == before[0][path] or pair in records.values(), path
            if now != before[0][path] and records.get(path) != pair:
                self.theirs[path].add(now)  # it could be the file, moved: sound and bytes are same
                for twin in records.keys() & after[0].keys():  # of two that are equal, one is
                    if after[0][twin] == before[0][path]:
                        self.theirs[twin].add(after[0][twin])
        for key in before[1].keys() | after[1].keys():
            if before[1].get(key) != after[1].get(key):
                assert after[1].get(key) == self.said[number][key][0], key
        undoing = [one.id for one in self.actors[0].changes.list() if one.undoes == number]
        if before != after:
            self.note(undoing[0], before, after)
        return sum(now != before[0][path] for path, now in after[0].items())

    # Kills. ------------------------------------------------------------------------------------

    @rule(
        command=st.sampled_from(["index", "say", "write", "write", "undo", "undo"]),
        which=NUMBER,
        kind=st.sampled_from(["file", "statement"]),
        moment=st.integers(1, 120),
    )
    def kill(self, command, which, kind, moment):
        changes = [one.id for one in self.actors[0].changes.list(6)]
        number = changes[which % len(changes)] if changes else 0
        argument = {"index": str(self.music), "undo": number, "say": which}.get(command)
        self.run_killed(command, argument, kind, moment)

    @rule(
        command=st.sampled_from(["write", "undo"]),
        which=NUMBER,
        moment=st.integers(1, 120),
        what=TROUBLE,
        pages=PAGES,
    )
    def kill_in_trouble(self, command, which, moment, what, pages):
        changes = [one.id for one in self.actors[0].changes.list(6)]
        number = changes[which % len(changes)] if changes else 0
        with self.in_trouble(what, pages):
            self.run_killed(command, number, "file", moment)

    @rule(kind=st.sampled_from(["file", "statement"]), moment=st.integers(1, 400))
    def serve(self, kind, moment):
        """A server that continues the job of the last one, or writes; it or its job is killed."""
        before, job = self.now(), self.run_killed("serve", None, kind, moment)
        if job is not None and job["state"] == "done":
            after = self.now()
            n_written = sum(after[0][path] != was for path, was in before[0].items())
            assert job["result"]["written"] == n_written, job
            assert (job["result"]["change"] is None) == (n_written == 0), job

    def run_killed(self, command, argument, kind, moment):
        """What the command answers, or None if it was killed; what it did is checked."""
        before, last = self.now(), self.last()
        for library in self.actors:
            library.engine.dispose()
        answer = type(self).killing.run(self.place, command, argument, kind, moment)
        after = self.now()
        if command == "undo":
            self.check_undone(argument, before, after)
        elif before != after:
            assert command in ("say", "write", "serve")
            assert self.last() > last, "changed, and no change to undo it"
            self.note(self.last(), before, after)
        return answer


@contextmanager
def at_moment(engine, moment, then):
    """Do something else at one of the statements of the database inside."""
    seen = count(1)

    def look(*_):
        if next(seen) == moment:
            then()

    for event in EVENTS:
        sa.event.listen(engine, event, look)
    try:
        yield
    finally:
        for event in EVENTS:
            sa.event.remove(engine, event, look)


@pytest.fixture(scope="module")
def killing():
    process = Killing()
    yield process
    process.close()


@pytest.mark.parametrize(
    "n", [int(os.environ.get("SEQUENCES", "8")), pytest.param(100, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_no_history_loses_a_byte_or_reports_what_is_not_so(request, monkeypatch, killing, kind, n):
    monkeypatch.setattr(database, "SYNCHRONOUS", "OFF")
    empty = request.getfixturevalue("empty_file" if kind == "sqlite" else "empty_schemas")

    def make_place(folder):
        return empty() if callable(empty) else str(shutil.copy(empty, folder / "library.db"))

    about = {"make_place": staticmethod(make_place), "killing": killing}
    machine = type("Machine", (History,), about)
    options = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}
    options["phases"] = (Phase.generate,)  # to shorten a history takes longer than to read it
    options["derandomize"] = "SEQUENCES" not in os.environ  # the same histories in every run
    run_machine(machine, settings=settings(max_examples=n, stateful_step_count=25, **options))
