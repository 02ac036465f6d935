"""Updating a library from its files.

Files are distinguished by their sound. Files that have not changed are not read. The sounds of the
others are compared in this order: first files at known paths, to learn which paths no longer have
their sound; then new files, which may have been moved from there; and then files whose sound has
changed. Features are computed while more files are read, and stored a few hundred at a time: what
was stored before an interruption is not done again.
"""

import hashlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import sqlalchemy as sa

from harmonium.arrays import Floats
from harmonium.audio.decoding import find_audio
from harmonium.audio.extraction import (
    SETTLED_NS,
    STOPPED,
    TIME_LIMIT,
    FileProgress,
    GivenFile,
    file_digest,
    iterate_files,
    reason_of,
)
from harmonium.audio.extractors import (
    DEFAULT,
    Extractor,
    extractor_key,
    get_extractor,
    with_windows,
)
from harmonium.engine import Engine, Runner
from harmonium.errors import FileTagError, LibraryError, readable
from harmonium.files import PathLike, absolute_path
from harmonium.library.filetags import audio_digest, read_tags
from harmonium.library.library import Library
from harmonium.library.store.database import batches, end_transactions, loaded_path
from harmonium.library.store.schema import EXTRACTOR, FOLDERS, track, track_copy
from harmonium.library.store.tracks import FORGOTTEN, Track, is_below, update_sound_vectors

Reader = Runner[str, Track]
_READ_TOGETHER = 64  # files whose tracks are stored in one transaction
_KEPT_TOGETHER = 256  # features that are stored at once, unless they are due earlier
_KEPT_SECONDS = 3.0  # when they are due; later if storing and tagging take long


@dataclass
class IndexReport:
    """The outcome of one run for each file; paths are absolute.

    Each file found is in one of the lists, or counted as unchanged; `missing` has files that were
    not found, and `unlisted` and `hidden` have folders.
    """

    new: list[str] = field(default_factory=list)  # files with a new sound
    moved: list[tuple[str, str]] = field(default_factory=list)  # (where it was, where it is)
    changed: list[str] = field(default_factory=list)  # files with a new sound; people's tags stayed
    retagged: list[str] = field(default_factory=list)  # files that changed, but not their sound
    back: list[str] = field(default_factory=list)  # missing files that are back
    missing: list[str] = field(default_factory=list)  # files that are gone
    copies: list[tuple[str, str]] = field(default_factory=list)  # (file, file with the same sound)
    known_copies: set[str] = field(default_factory=set)  # the ones known before
    forgotten: list[str] = field(default_factory=list)  # files of tracks that `forget` removed
    unreadable: dict[str, str] = field(default_factory=dict)  # file → why it cannot be used
    still_unreadable: dict[str, str] = field(default_factory=dict)  # as before, unchanged
    unlisted: dict[str, str] = field(default_factory=dict)  # folder → why it could not be searched
    hidden: list[str] = field(default_factory=list)  # skipped folders whose names begin with a dot
    unchanged: int = 0  # unchanged files; most were not read, some were read and are the same
    extracted: int = 0  # tracks that got features
    cached: int = 0  # how many of these features were in the cache
    tagged: int | None = None  # tracks that were tagged; None without a model for their features

    @property
    def complete(self) -> bool:
        """Whether all files that are new, changed or retried could be used."""
        return not self.unreadable and not self.unlisted

    def give_up(self, path: str, reason: str) -> None:
        """Count a file as unreadable, whatever it counted as before."""
        for names in (self.new, self.changed, self.retagged, self.back):
            if path in names:
                names.remove(path)
                break
        else:
            moved = [pair for pair in self.moved if pair[1] != path]
            self.unchanged -= len(moved) == len(self.moved)
            self.moved = moved
        self.unreadable[path] = reason

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        lists = ("new", "changed", "retagged", "back", "missing", "forgotten")
        reasons = ("unreadable", "still_unreadable", "unlisted")
        return {
            **{name: getattr(self, name) for name in lists},
            "moved": [{"from": old, "to": new} for old, new in self.moved],
            "copies": [{"path": path, "of": of} for path, of in self.copies],
            **{
                name: [{"path": p, "reason": r} for p, r in getattr(self, name).items()]
                for name in reasons
            },
            **{key: getattr(self, key) for key in ("hidden", "unchanged", "extracted", "cached")},
        }


def kept_extractor(library: Library) -> str | None:
    """The name of the extractor that a library was indexed with, if any."""
    key = library.settings.get(EXTRACTOR)
    return None if key is None else key.rpartition("@")[0] or key


def index(
    library: Library,
    paths: Iterable[PathLike] = (),
    *,
    extractor: str | Extractor | None = None,
    windows: int | None = None,
    jobs: int | None = None,
    engine: str | Engine = "processes",
    cache: PathLike | None = None,
    progress: FileProgress | None = None,
    time_limit: float | None = TIME_LIMIT,
    retry: bool = False,
    stored: Callable[[], object] | None = None,
) -> IndexReport:
    """Update a library from folders and files, like `Library.index` without tagging.

    ``stored`` is called now and then, when more tracks have features.
    """
    # Raises a `LibraryError` if nothing was named or indexed before; a bad file is no error.
    named = extractor or kept_extractor(library) or ("paper" if windows else DEFAULT)
    if windows is not None and isinstance(named, str):
        named = with_windows(named, windows)
    chosen = get_extractor(named)
    run = _Run(library, chosen, progress, stored)
    folders, gone, files = _find(library, paths, run.report)
    todo = run.begin(folders, gone, files, retry)
    # The same processes read tags and compute features; a bad file cannot hold them up.
    with Runner(examine, engine=engine, jobs=jobs, time_limit=time_limit) as reader:
        run.extract(run.needing_features(todo, reader), {"engine": reader.engine, "cache": cache})
    run.note_vanished([*folders, *gone], set(files))
    update_sound_vectors(library)
    return run.report


class _Run:
    """One run over the files."""

    def __init__(
        self,
        library: Library,
        extractor: Extractor,
        progress: FileProgress | None,
        stored: Callable[[], object] | None,
    ) -> None:
        self.library = library
        self.extractor = extractor
        self.key = extractor_key(extractor)
        self.progress, self.stored = progress, stored
        self.report = IndexReport()
        with library.connect() as connection:
            self.known = KnownFiles(connection)
        present = library.tracks.ids()
        have = library.tracks.with_features(present, extractor=self.key)
        self.lacking = set(np.setdiff1d(present, have).tolist())
        self.altered: list[Track] = []  # files at known paths with another sound; decided last
        self.given: list[int] = []  # path given to the extraction → its track
        self.waiting: list[tuple[int, Floats]] = []  # features to store
        self.done = self.total = 0
        self.due = time.monotonic() + _KEPT_SECONDS

    def begin(
        self, folders: list[str], gone: list[str], files: list[str], retry: bool
    ) -> dict[str, list[str]]:
        """Compare the files with what the library knows; returns the ones to read."""
        report, known = self.report, self.known
        before = set(self.library.folders())
        with self.library.begin():
            self.library.settings.set(FOLDERS, sorted((before | set(folders)) - set(gone)))
            self.library.settings.set(EXTRACTOR, self.key)
        todo = defaultdict(list)
        for path in files:
            todo[known.kind(path, retry)].append(path)
        unchanged = [known.by_path[path] for path in todo["unchanged"]]
        self.library.tracks.drop_copies(known.copies.keys() & {*todo["unchanged"]})
        report.unchanged = sum(one.state != "missing" for one in unchanged)
        report.back += [one.path for one in unchanged if one.state == "missing"]
        owners = {path: known.by_id[known.copies[path].id].path for path in todo["copies"]}
        report.copies += owners.items()
        report.known_copies |= owners.keys()
        report.forgotten += todo["forgotten"]
        unreadable = [known.by_path[path].id for path in todo["unreadable"]]
        for one in self.library.tracks.many(unreadable):
            report.still_unreadable[one.path] = one.reason or ""
        returned = [one for one in unchanged if one.state != "present"]
        self.library.tracks.set_state([one.id for one in returned], "present")
        self.lacking |= self._without_features([one.id for one in returned])
        for one in returned:
            known.put(replace(one, state="present"))
        todo["unchanged"] = [one.path for one in unchanged if one.id in self.lacking]
        self.total = sum(len(todo[kind]) for kind in ("unchanged", "changed", "new"))
        return todo

    def needing_features(self, todo: dict[str, list[str]], reader: Reader) -> Iterator[GivenFile]:
        """Read files and store their tracks; returns the tracks without features."""
        for path in todo["unchanged"]:
            yield self._give(self.known.by_path[path])
        yield from self._stored(examine_all(todo["changed"], reader), self._same_path)
        yield from self._stored(examine_all(todo["new"], reader), self._new_path)
        # Known sounds come first, so that a moved file is not taken for a changed one.
        self.altered.sort(key=lambda one: one.sound not in self.known.by_sound)
        self.total += len(self.altered)
        yield from self._stored(self.altered, self._altered_path)

    def extract(self, files: Iterator[GivenFile], options: dict[str, Any]) -> None:
        """Compute features and store them."""
        first = next(files, None)
        if first is None:
            return  # without starting any process
        results = iterate_files(chain([first], files), extractor=self.extractor, **options)
        try:
            for found in results:
                one = self.known.by_id[self.given[found.position]]
                if found.vector is None:
                    self.report.give_up(one.path, found.reason or "")
                    self._unreadable(one, found.reason or "")
                else:
                    self.waiting.append((one.id, found.vector))
                    self.report.cached += found.cached
                    if len(self.waiting) >= _KEPT_TOGETHER or time.monotonic() >= self.due:
                        began = time.monotonic()
                        self._keep()
                        if self.stored is not None:
                            self.stored()
                        now = time.monotonic()
                        self.due = now + max(_KEPT_SECONDS, 10 * (now - began))
                self._count()
        except KeyboardInterrupt as interrupt:
            end_transactions(interrupt)
            raise
        finally:
            self._keep()

    def note_vanished(self, searched: list[str], there: Collection[str]) -> None:
        """Mark tracks as missing, and forget copies that are gone."""
        # searched : folders with all below them, and files; there : the files that were found

        def gone_from(path: str) -> bool:
            below = is_below(path, searched) or path in searched
            return below and not is_below(path, self.report.unlisted)

        gone = [
            one
            for one in self.known.by_id.values()
            if one.state not in ("missing", FORGOTTEN)
            and gone_from(one.path)
            and (one.id in self.known.displaced or not os.path.lexists(one.path))
        ]
        self.library.tracks.set_state([one.id for one in gone], "missing")
        self.report.missing += [one.path for one in gone]
        self.library.tracks.drop_copies(
            path for path in self.known.copies if path not in there and gone_from(path)
        )

    def _stored(
        self, files: Iterable[Track], decide: Callable[[Track], Track | None]
    ) -> Iterator[GivenFile]:
        """Store what was read, some at a time; returns the tracks that need features."""
        # ``decide`` takes a file and returns its track, or None if it does not have its own.
        for batch in batches(files, _READ_TOGETHER):
            with self.library.begin():
                decided = [decide(one) for one in batch]
            for one in decided:
                if one is not None and one.id in self.lacking and one.state == "present":
                    yield self._give(one)
                else:
                    self._count()

    def _same_path(self, file: Track) -> Track | None:
        """A changed file at a known path."""
        known = self.known.by_path[file.path]
        if file.reason is not None:
            if known.state == "unreadable" and same_file(known, file):  # tried once more
                self.report.still_unreadable[known.path] = file.reason
            else:
                self._unreadable(known, file.reason, file)
            return None
        if known.sound != file.sound:
            self.known.displaced.add(known.id)
            self.altered.append(file)
            return None
        if known.state == FORGOTTEN:
            self.report.forgotten.append(known.path)
            return None
        stored = self.library.tracks.get(known.id)
        now, before = ((one.title, one.artist, one.album, one.file_tags) for one in (file, stored))
        if known.state == "missing":
            self.report.back.append(known.path)
        elif now != before:
            self.report.retagged.append(known.path)
        else:
            self.report.unchanged += 1
        return self._replace(known, file)

    def _new_path(self, file: Track) -> Track | None:
        """A file at an unknown path, or at one that no track has any more."""
        owner = self.known.by_sound.get(file.sound)
        if owner is None:
            return self._add(file)
        if owner.state == FORGOTTEN:
            if file.path != owner.path:
                self.library.tracks.put_copy(replace(file, id=owner.id))
            self.report.forgotten.append(file.path)
            return None
        if owner.path == file.path:  # found twice, by different paths
            self.report.unchanged += 1
            return owner
        if self.known.has_its_file(owner):
            self.library.tracks.put_copy(replace(file, id=owner.id))
            self.report.copies.append((file.path, owner.path))
            known = self.known.copies.get(file.path)
            self.report.known_copies |= {file.path} if known and known.id == owner.id else set()
            return None
        self.report.moved.append((owner.path, file.path))
        self.known.displaced.discard(owner.id)
        return self._replace(owner, file)

    def _altered_path(self, file: Track) -> Track | None:
        """A known path with another sound, once all other files are decided."""
        former = self.known.by_path.get(file.path)
        if former is None or former.state == FORGOTTEN or file.sound in self.known.by_sound:
            return self._new_path(file)
        found = self.report.new if former.sound.startswith(UNREAD) else self.report.changed
        found.append(file.path)
        with self.library.begin():  # features and predictions are invalid
            self.library.tracks.drop_features(former.id)
            self.library.predictions.forget_tracks([former.id])
        self.known.displaced.discard(former.id)
        self.lacking.add(former.id)
        return self._replace(former, file)

    def _add(self, file: Track) -> Track:
        (number,) = self.library.tracks.put([file])
        added = replace(file, id=number)
        self._own(added)
        if file.reason is None:
            self.report.new.append(file.path)
            self.lacking.add(number)
        else:
            self.report.unreadable[file.path] = file.reason
        return added

    def _replace(self, known: Track, file: Track) -> Track:
        now = replace(file, id=known.id)
        self.library.tracks.replace(now)
        self._own(now)
        if known.state != "present":
            self.lacking |= self._without_features([now.id])
        return now

    def _own(self, track: Track) -> None:
        """Note that the file is this track's, and no longer another one's copy."""
        if self.known.copies.pop(track.path, None) is not None:
            self.library.tracks.drop_copies([track.path])
        self.known.put(track)

    def _unreadable(self, known: Track, reason: str, file: Track | None = None) -> None:
        seen = file or known  # as last seen: it is not tried again until it changes
        modified = UNSETTLED if reason.startswith(STOPPED) else seen.modified
        stored = replace(self.library.tracks.get(known.id), size=seen.size, modified=modified)
        now = replace(stored, state="unreadable", reason=reason)
        self.library.tracks.replace(now)
        self.known.put(now)
        self.report.unreadable[known.path] = reason

    def _without_features(self, ids: list[int]) -> set[int]:
        have, _ = self.library.tracks.features(ids, extractor=self.key)
        return set(ids) - set(have.tolist())

    def _give(self, one: Track) -> GivenFile:
        """Pass a track's file to the extraction."""
        self.given.append(one.id)
        self.lacking.discard(one.id)  # not twice
        return one.path, bytes.fromhex(one.sound), one.size, one.modified

    def _keep(self) -> None:
        if self.waiting:
            ids, vectors = zip(*self.waiting, strict=True)
            self.library.tracks.put_features(ids, np.stack(vectors), extractor=self.key)
            self.report.extracted += len(ids)
            self.waiting = []

    def _count(self) -> None:
        self.done += 1
        if self.progress:
            self.progress(self.done, self.total)


def _find(
    library: Library, paths: Iterable[PathLike], report: IndexReport
) -> tuple[list[str], list[str], list[str]]:
    """Search the named places, or else the folders of earlier runs."""
    # Returns the folders searched, the named places that are gone, and the files found.
    named = [absolute_path(path) for path in paths]
    before = library.folders()
    places = named or before
    if not places:
        raise LibraryError(
            "Name a folder of music: this library has none yet. Later, without a name, all its "
            "folders are updated."
        )
    there = [place for place in places if os.path.lexists(place)]
    gone = [place for place in places if place not in there]
    files, report.unlisted, report.hidden = find_audio(there)
    if named:
        for place in gone:  # it must have been there before
            if place not in before and library.tracks.find(place) is None:
                raise LibraryError(f"There is no file or folder {readable(place)}.")
    else:  # perhaps on an unmounted disk: its tracks stay as they are
        report.unlisted |= dict.fromkeys(gone, "is missing. Its tracks stay as they are.")
        gone = []
    folders = [place for place in there if os.path.isdir(place)]  # noqa: PTH112
    return folders, gone, files


UNREAD = "unread:"  # prefix of the sound digest of a file that cannot be opened
UNSETTLED = -1  # for a file that has just changed: another change might not show


def examine(path: str) -> Track:
    """Read a file: the digest of its sound, its tags, size and time; or why it cannot be read."""
    try:
        seen = _seen(path)
        try:
            tags, sound = read_tags(path), audio_digest(path)
        except FileTagError:  # a format whose tags are not supported
            return Track(path, file_digest(path).hex(), *seen)
        return Track(path, sound, *seen, **tags.of_track)
    except OSError as error:
        return _unread(path, f"cannot be read: {error.strerror or error}.")


def _seen(path: str) -> tuple[int, int]:
    """A file's size and time, which show whether it has changed."""
    with suppress(OSError):
        status = os.stat(path)  # noqa: PTH116
        settled = time.time_ns() - status.st_mtime_ns > SETTLED_NS
        return status.st_size, status.st_mtime_ns if settled else UNSETTLED
    return 0, UNSETTLED


def examine_all(paths: Iterable[str], reader: Reader) -> Iterator[Track]:
    """Read files in this order, several at once, in the reader's processes."""
    for some in batches(paths, _READ_TOGETHER):
        for path in some:
            reader.submit(path)
        found: dict[str, Track] = {}
        for outcome in (reader.next() for _ in some):
            path, reason = outcome.task, reason_of(outcome)
            seen = () if reason.startswith(STOPPED) else _seen(path)
            found[path] = outcome.result or _unread(path, reason, *seen)
        yield from (found[path] for path in some)


def _unread(path: str, reason: str, size: int = 0, modified: int = UNSETTLED) -> Track:
    # Each gets its own sound digest, so that no two of them count as copies.
    sound = UNREAD + hashlib.sha256(os.fsencode(path)).hexdigest()
    return Track(path, sound, size, modified, state="unreadable", reason=reason)


def same_file(one: Track, other: Track) -> bool:
    """Whether size and time are the same: the file counts as unchanged."""
    return (one.size, one.modified) == (other.size, other.modified)


def _now(path: str) -> Track:
    status = os.stat(path)  # noqa: PTH116
    return Track(path, "", status.st_size, status.st_mtime_ns)


class KnownFiles:
    """A library's tracks by path, sound and number, and the copies of their files.

    These tracks lack the files' tags, which take long to read for a whole library.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self.by_path: dict[str, Track] = {}
        self.by_sound: dict[str, Track] = {}
        self.by_id: dict[int, Track] = {}
        self.copies: dict[str, Track] = {}
        """Path → another file with a track's sound; it has the track's number."""
        self.displaced: set[int] = set()  # tracks whose path has another sound now
        columns = ("id", "path", "path_bytes", "sound", "size", "modified", "state")
        for row in connection.execute(sa.select(*(track.c[name] for name in columns))):
            about = {name: getattr(row, name) for name in ("id", "sound", "size", "modified")}
            self.put(Track(loaded_path(row), state=row.state, **about))
        for row in connection.execute(sa.select(track_copy)):
            path, sound = loaded_path(row), self.by_id[row.track_id].sound
            self.copies[path] = Track(path, sound, row.size, row.modified, id=row.track_id)

    def put(self, one: Track) -> None:
        """Add or update a track."""
        former, there = self.by_id.get(one.id), self.by_path.get(one.path)
        if former is None:
            # Two tracks can have had one path in turn; the file belongs to the present one.
            takes_path = there is None or there.state != "present"
        else:
            had_path = self.by_path.get(former.path) is former
            takes_path = had_path or former.path != one.path
            if had_path:
                del self.by_path[former.path]
            if former.sound != one.sound:
                del self.by_sound[former.sound]
        if takes_path:
            self.by_path[one.path] = one
        self.by_sound[one.sound] = self.by_id[one.id] = one

    def has_its_file(self, one: Track) -> bool:
        """Whether a track's file seems to be in place, with the same sound."""
        if one.id in self.displaced or one.state == "missing" or one.sound.startswith(UNREAD):
            return False
        return os.path.exists(one.path)  # noqa: PTH110

    def kind(self, path: str, retry: bool) -> str:
        """What to do with a file.

        Files that are "unchanged", "unreadable" (as before), "forgotten" or "copies" need not be
        read; "changed" ones are at known paths but differ; all others are "new".
        """
        known, copy = self.by_path.get(path), self.copies.get(path)
        with suppress(OSError):  # if it cannot be opened, reading it will say why
            now = _now(path)
            if known is not None and same_file(known, now):
                if known.state == FORGOTTEN:
                    return "forgotten"
                if known.state == "unreadable" and not retry:
                    return "unreadable"
                again = known.state == "unreadable" or known.sound.startswith(UNREAD)
                return "changed" if again else "unchanged"
            unknown = known is None or known.state == "missing"
            if unknown and copy is not None and same_file(copy, now):
                owner = self.by_id[copy.id]
                if owner.state == FORGOTTEN:
                    return "forgotten"
                if self.has_its_file(owner) and same_file(owner, _now(owner.path)):
                    return "copies"
        return "new" if known is None else "changed"
