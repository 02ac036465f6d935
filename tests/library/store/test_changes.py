"""Changes and their undoing."""

from contextlib import suppress
from dataclasses import replace
from itertools import count

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from some_tracks import add_tracks, in_force, say, triples

from harmonium.errors import LibraryError
from harmonium.library import Library
from harmonium.library.store.changes import RestoredFiles, standing


def test_undoing_makes_everything_what_it_was(library):
    add_tracks(library, 2)
    say(library, "ann", 1, ["rock", "loud"], ["pop"])
    before = library.opinions.triples()
    change = say(library, "ann", 1, ["pop", "jazz"], ["rock"], ["loud"])
    report = library.changes.undo(change)
    assert (report.ended, report.revived, report.conflicts) == (3, 3, {})
    assert report.complete
    assert (report.n_done, report.n_left) == (6, 0)
    assert replace(report, files_restored=300, values_restored={"track": 40}).n_done == 346
    assert library.opinions.triples().equals(before)  # with the times at which it was said


def test_an_undo_can_be_undone(library):
    add_tracks(library, 2)
    say(library, "ann", 1, ["rock", "loud"], ["pop"])
    before = library.opinions.triples()
    change = say(library, "ann", 1, ["pop", "jazz"], ["rock"], ["loud"])
    after = in_force(library)
    undo = library.changes.undo(change).change
    assert library.changes.get(change).undone_by == undo
    redo = library.changes.undo(undo).change
    assert library.changes.get(undo).summary == f"change {change} undone: ann of 1"
    assert library.changes.get(redo).summary == f"change {undo} undone: an undo"
    assert in_force(library) == after
    assert library.changes.get(change).undone_by is None
    with pytest.raises(LibraryError, match="undone already"):
        library.changes.undo(undo)
    again = library.changes.undo(redo).change
    assert library.opinions.triples().equals(before)
    assert library.changes.get(change).undone_by == undo
    assert library.changes.get(redo).undone_by == again


def test_what_later_changes_touched_stays(library):
    add_tracks(library, 1)
    first = say(library, "ann", 1, ["a", "b", "c"])
    second = say(library, "ann", 1, [], ["b"], ["c"])
    report = library.changes.undo(first)
    assert report.conflicts == {second: 2}
    assert not report.complete
    assert in_force(library) == {("ann", 1, "b"): -1}
    assert library.changes.get(first).undone_by is None
    with pytest.raises(LibraryError, match=rf"later changes .{second}."):
        library.changes.undo(first)
    library.changes.undo(second)
    assert library.changes.undo(first).complete
    assert in_force(library) == {}


def test_an_import_of_many_is_undone_around_what_was_touched(library, monkeypatch):
    monkeypatch.setattr("harmonium.library.store.database.CHUNK", 4)
    ids = add_tracks(library, 20)
    change = library.changes.begin("import", "x")
    library.opinions.add_triples(triples(*[("u", i, "t", 1) for i in ids]), change=change)
    for i in ids[:10]:
        say(library, "u", i, retract=["t"])
    report = library.changes.undo(change)
    assert (report.ended, len(report.conflicts)) == (10, 10)
    assert in_force(library) == {}


def nothing_to_restore(files, number):
    """All files are as they were before."""
    return RestoredFiles(done={file.path for file in files})


def test_files_are_restored_by_whoever_knows_how(library):
    (one,) = add_tracks(library, 1)
    change = library.changes.begin("write", "two files")
    library.changes.keep_file(change, one, "/music/000.mp3", b"first")
    library.changes.keep_file(change, None, "/music/odd\udce9.mp3", b"second")
    library.changes.forget_file(library.changes.keep_file(change, one, "/music/2.mp3", b"third"))
    with pytest.raises(LibraryError, match="needs 'restore'"):
        library.changes.undo(change)
    calls = []

    def restore(files, number):
        calls.extend((file.path, file.record, file.track_id) for file in files)
        library.changes.keep_file(number, None, files[0].path, b"back")
        result = RestoredFiles(left={files[1].path: "is gone."})
        result.note(files[0].path, restored=True)
        return result

    report = library.changes.undo(change, restore=restore)
    assert calls == [("/music/odd\udce9.mp3", b"second", None), ("/music/000.mp3", b"first", one)]
    assert (report.files_restored, report.files_left) == (1, {"/music/000.mp3": "is gone."})
    assert library.changes.get(change).undone_by is None
    report = library.changes.undo(change, restore=nothing_to_restore)
    assert library.changes.get(change).undone_by == report.change
    assert [file.record for file in library.changes.files(report.change)] == []


def test_a_file_that_was_restored_at_last_is_not_left():
    result = RestoredFiles(left={"a": "busy", "b": "gone"})
    result.note("a", restored=True)
    assert (result.n_restored, result.done, result.left) == (1, {"a"}, {"b": "gone"})


def test_undoing_a_part_again_leaves_the_rest_to_undo(library):
    change = library.changes.begin("write", "two files")
    for name in ("a", "b"):
        library.changes.keep_file(change, None, f"/music/{name}.mp3", b"")

    def restore(files, number):
        result = RestoredFiles()
        for file in files:
            if file.path == "/music/b.mp3":
                result.left[file.path] = "is gone."
            else:
                library.changes.keep_file(number, None, file.path, b"")
                result.note(file.path, restored=True)
        return result

    part = library.changes.undo(change, restore=restore)
    redone = library.changes.undo(part.change, restore=restore)
    assert redone.complete
    again = library.changes.undo(redone.change, restore=restore)
    assert again.complete
    now = library.changes.get(change)
    assert (now.undone_by, now.undone_in_part_by, now.left) == (None, part.change, 1)


def test_an_undo_that_could_do_nothing_leaves_the_change_as_it_was(library):
    change = library.changes.begin("write", "a file")
    library.changes.keep_file(change, None, "/music/a.mp3", b"first")
    before = library.changes.get(change)
    report = library.changes.undo(
        change, restore=lambda files, number: RestoredFiles(left={files[0].path: "is read-only."})
    )
    assert (report.n_done, report.n_left) == (0, 1)
    assert library.changes.get(change) == before
    undo = library.changes.get(report.change)
    assert undo.summary == f"nothing of change {change} could be undone"
    assert library.changes.undo(change, restore=nothing_to_restore).complete


def test_the_writes_that_were_not_confirmed_are_known(library):
    change = library.changes.begin("write", "two files")
    first = library.changes.keep_file(change, None, "/music/a.mp3", b"first")
    second = library.changes.keep_file(change, None, "/music/b.mp3", b"second")
    library.changes.confirm_file(first)
    assert [file.id for file in library.changes.pending_files()] == [second]
    library.changes.forget_file(second)
    assert not library.changes.pending_files()
    assert [file.id for file in library.changes.files(change)] == [first]


def test_of_two_undos_at_once_one_is_refused(library, place, monkeypatch):
    """It looks only when nobody else can write."""
    add_tracks(library, 1)
    change, begin = say(library, "ann", 1, ["a"]), library.begin

    def begin_too_late():
        monkeypatch.setattr(library, "begin", begin)
        with Library.open(place) as other:
            assert other.changes.undo(change).complete
        return begin()

    monkeypatch.setattr(library, "begin", begin_too_late)
    with pytest.raises(LibraryError, match="was undone already"):
        library.changes.undo(change)
    assert len(library.changes.list()) == 2


def test_of_two_undos_of_the_same_files_at_once_one_is_refused(library):
    change = library.changes.begin("write", "a file")
    library.changes.keep_file(change, None, "/music/a.mp3", b"first")

    def restore_and_be_overtaken(files, number):
        library.changes.undo(change, restore=nothing_to_restore)
        return nothing_to_restore(files, number)

    with pytest.raises(LibraryError, match="was undone already, by change 2"):
        library.changes.undo(change, restore=restore_and_be_overtaken)
    assert library.changes.get(change).undone_by == 2


def test_an_undo_that_is_undone_meanwhile_leaves_the_change_in_force(library):
    change = library.changes.begin("write", "a file")
    library.changes.keep_file(change, None, "/music/a.mp3", b"first")

    def restore(files, number):
        library.changes.keep_file(number, None, files[0].path, b"back")
        library.changes.undo(number, restore=nothing_to_restore)
        return nothing_to_restore(files, number)

    with pytest.raises(LibraryError, match="Change 2 was stopped: change 3 undoes it"):
        library.changes.undo(change, restore=restore)
    assert library.changes.get(change).undone_by is None
    assert library.changes.undo(change, restore=nothing_to_restore).complete


@pytest.mark.parametrize(
    ("later", "undoes", "expected"),
    [
        ([], {}, 1),
        ([2], {}, 2),
        ([2, 3], {3: 2}, 1),
        ([2], {2: 1}, None),
        ([2, 3], {2: 1, 3: 2}, 1),
        ([2, 3, 4], {2: 1, 3: 2, 4: 3}, None),
        ([2, 3, 4], {3: 2, 4: 3}, 2),
        ([2, 3, 4, 5], {4: 3, 5: 2}, 1),
        ([2, 3], {2: 0}, 3),
        ([2, 3], {1: 0, 2: -1, 0: -1, 3: 0}, 1),
        ([2, 3], {2: 0, 3: 2}, 1),
    ],
)
def test_which_change_stands(later, undoes, expected):
    assert standing(1, later, undoes) == expected


def test_an_undo_can_be_undone_after_another_redo_of_the_same_was_undone(library):
    add_tracks(library, 1)
    change = say(library, "bob", 1, ["a"])
    undo = library.changes.undo(change).change
    redo = library.changes.undo(undo).change
    second_undo = library.changes.undo(redo).change
    library.changes.undo(undo)  # redone again
    library.changes.undo(change)  # and undone, by its first name
    assert in_force(library) == {}
    library.changes.undo(second_undo)
    assert in_force(library) == {("bob", 1, "a"): 1}


# Random histories against a plain model

TAGS, PEOPLE = ("a", "b"), ("ann", "bob")
WORDS = st.dictionaries(st.sampled_from(TAGS), st.sampled_from([1, -1, 0]), min_size=1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(PEOPLE), WORDS),
        st.tuples(st.just("undo"), st.integers(0, 20)),
    ),
    max_size=14,
)
numbers = count()


class Plain:
    """Each triple is a pile of (value before, value after); undoing takes off what is on top."""

    def __init__(self):
        self.values, self.piles, self.effects = {}, {}, {}

    def say(self, change, person, words):
        effects = self.effects[change] = {}
        for tag, value in words.items():
            key, before = (person, tag), self.values.get((person, tag), 0)
            if before != value:
                entry = [before, value]
                self.piles.setdefault(key, []).append(entry)
                effects[key] = ("on", entry, None)
                self.values[key] = value

    def undo(self, undone, by):
        effects = self.effects[by] = {}
        for key, (what, entry, left) in self.effects[undone].items():
            pile = self.piles[key]
            if what == "on" and pile and pile[-1] is entry:
                pile.pop()
                self.values[key] = entry[0]
                effects[key] = ("off", entry, list(map(id, pile)))
            elif what == "off" and list(map(id, pile)) == left:
                pile.append(entry)
                self.values[key] = entry[1]
                effects[key] = ("on", entry, None)

    def can_undo(self, undone):
        return any(
            (pile and pile[-1] is entry) if what == "on" else list(map(id, pile)) == left
            for key, (what, entry, left) in self.effects[undone].items()
            for pile in [self.piles[key]]
        )

    def in_force(self):
        return {key: value for key, value in self.values.items() if value}


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(STEPS)
def test_any_history_of_undone_opinions(library, steps):
    (track,) = add_tracks(library, 1, start=next(numbers))
    plain, changes = Plain(), []
    for step in steps:
        if step[0] == "say":
            _, person, words = step
            said = {v: [t for t, value in words.items() if value == v] for v in (1, -1, 0)}
            changes.append(say(library, person, track, said[1], said[-1], said[0]))
            plain.say(changes[-1], person, words)
        elif changes:
            undone = changes[step[1] % len(changes)]
            if library.changes.get(undone).undone_by or not plain.can_undo(undone):
                with suppress(LibraryError):  # or it is noted that nothing is left of it
                    changes.append(library.changes.undo(undone).change)
                    plain.effects[changes[-1]] = {}
            else:
                changes.append(library.changes.undo(undone).change)
                plain.undo(undone, changes[-1])
        here = {(p, tag): value for (p, t, tag), value in in_force(library).items() if t == track}
        assert here == plain.in_force()
