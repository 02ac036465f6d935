"""Updating a library from its files.

Files are distinguished by their sound. Files that have not changed are not read. The sounds of the
others are compared in this order: first files at known paths, to learn which paths no longer have
their sound; then new files, which may have been moved from there; and then files whose sound has
changed. Features are computed while more files are read, and stored a few hundred at a time: what
was stored before an interruption is not done again.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from harmonium import stopping
from harmonium.arrays import Floats
from harmonium.audio.extraction import (
    STOPPED,
    TIME_LIMIT,
    FileFeatures,
    FileProgress,
    GivenFile,
    KnownFile,
    iterate_files,
)
from harmonium.audio.extractors import (
    DEFAULT,
    Extractor,
    extractor_key,
    get_extractor,
    with_windows,
)
from harmonium.audio.folders import find_audio
from harmonium.engine import Engine, Runner
from harmonium.errors import LibraryError, readable
from harmonium.files import PathLike, absolute_path, is_below
from harmonium.library import examine
from harmonium.library.examine import UNREAD, UNSETTLED, Reader, examine_all
from harmonium.library.known_files import FileKind, KnownFiles, same_file
from harmonium.library.library import Library
from harmonium.library.sound import update_sound_vectors
from harmonium.library.store.database import batches
from harmonium.library.store.schema import EXTRACTOR, FOLDERS
from harmonium.library.store.tracks import FORGOTTEN, Track

_STORED_TOGETHER = 256  # features that are stored at once, unless they are due earlier
_STORED_SECONDS = 3.0  # when they are due; later if storing and tagging take long


@dataclass
class IndexReport:
    """The outcome of one run for each file; paths are absolute.

    Each file found is in one of the lists, or counted as unchanged; `missing` has files that were
    not found. `unlisted` has folders and links, `hidden` has folders.
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
    unlisted: dict[str, str] = field(default_factory=dict)
    """Folder, or link that leads nowhere → why it could not be searched."""
    hidden: list[str] = field(default_factory=list)  # skipped folders whose names begin with a dot
    unchanged: int = 0  # unchanged files; most were not read, some were read and are the same
    extracted: int = 0  # tracks that got features
    cached: int = 0  # how many of these features were in the cache
    tagged: int | None = None  # tracks that were tagged; None without a model for their features

    @property
    def complete(self) -> bool:
        """Whether all files that are new, changed or retried could be used."""
        return not self.unreadable and not self.unlisted

    def set_unreadable(self, path: str, reason: str) -> None:
        """Count a file as unreadable, whatever it counted as before."""
        self._uncount(path)
        self.unreadable[path] = reason

    def _uncount(self, path: str) -> None:
        for paths in (self.new, self.changed, self.retagged, self.back):
            if path in paths:
                paths.remove(path)
                return
        for pair in self.moved:
            if pair[1] == path:
                self.moved.remove(pair)
                return
        self.unchanged -= 1

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "new": self.new,
            "changed": self.changed,
            "retagged": self.retagged,
            "back": self.back,
            "missing": self.missing,
            "forgotten": self.forgotten,
            "moved": [{"from": old, "to": new} for old, new in self.moved],
            "copies": [{"path": path, "of": of} for path, of in self.copies],
            "unreadable": _with_reasons(self.unreadable),
            "still_unreadable": _with_reasons(self.still_unreadable),
            "unlisted": _with_reasons(self.unlisted),
            "hidden": self.hidden,
            "unchanged": self.unchanged,
            "extracted": self.extracted,
            "cached": self.cached,
        }


def _with_reasons(reasons: dict[str, str]) -> list[dict[str, str]]:
    return [{"path": path, "reason": reason} for path, reason in reasons.items()]


def kept_extractor(library: Library) -> str | None:
    """The name of the extractor that a library was indexed with, if any."""
    key = library.settings.get(EXTRACTOR)
    return None if key is None else key.rpartition("@")[0] or key


@stopping.stoppable
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
    chosen = _choose_extractor(library, extractor, windows)
    library.writer.settle()  # after a process that was killed while it wrote
    run = _Run(library, chosen, progress, stored)
    places = _find_files(library, paths, run.report)
    to_read = run.begin(places, retry=retry)
    # The same processes read tags and compute features; a bad file cannot hold them up.
    with Runner(examine.examine, engine=engine, jobs=jobs, time_limit=time_limit) as reader:
        files = run.files_without_features(to_read, reader)
        run.extract(files, engine=reader.engine, cache=cache)
    run.note_missing(places)
    update_sound_vectors(library)
    return run.report


def _choose_extractor(
    library: Library, named: str | Extractor | None, windows: int | None
) -> Extractor:
    """The named extractor, or the one used before; the default has ``windows`` if given."""
    chosen = named or kept_extractor(library) or ("paper" if windows else DEFAULT)
    if windows is not None and isinstance(chosen, str):
        chosen = with_windows(chosen, windows)
    return get_extractor(chosen)


class _Places(NamedTuple):
    """What was searched, and what was found there."""

    folders: list[str]
    gone: list[str]  # named places that are not there any more
    files: list[str]


def _find_files(library: Library, paths: Iterable[PathLike], report: IndexReport) -> _Places:
    """Search the named places, or else the folders of earlier runs."""
    named = [absolute_path(path) for path in paths]
    indexed = library.folders()
    places = named or indexed
    if not places:
        raise LibraryError(
            "Name a folder of music: this library has none yet. Later, without a name, all its "
            "folders are updated."
        )
    present = [place for place in places if os.path.lexists(place)]
    gone = [place for place in places if place not in present]
    files, report.unlisted, report.hidden = find_audio(present)
    if named:
        for place in gone:
            if place not in indexed and library.tracks.find(place) is None:
                raise LibraryError(f"There is no file or folder {readable(place)}.")
    else:  # perhaps on an unmounted disk
        for place in gone:
            report.unlisted[place] = "is missing. Its tracks stay as they are."
        gone = []
    folders = [place for place in present if os.path.isdir(place)]  # noqa: PTH112
    return _Places(folders=folders, gone=gone, files=files)


class _FilesToRead(NamedTuple):
    """What a run has to read, or to compute features of."""

    without_features: list[Track]  # their files have not changed
    changed: list[str]
    new: list[str]


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
        self.progress = progress
        self.stored = stored
        self.report = IndexReport()
        with library.connect() as connection:
            self.known = KnownFiles(connection)
        present = library.tracks.ids()
        with_features = library.tracks.with_features(present, extractor=self.key)
        self.lacking = set(np.setdiff1d(present, with_features).tolist())  # tracks without features
        self.other_sound: list[Track] = []  # files at known paths with another sound; decided last
        self.given: list[int] = []  # tracks whose files were given to the extraction, in order
        self.waiting: list[tuple[int, Floats]] = []  # tracks and their features, to be stored
        self.n_done = 0
        self.n_files = 0
        self.due = time.monotonic() + _STORED_SECONDS

    def begin(self, places: _Places, *, retry: bool) -> _FilesToRead:
        """Compare the files with what the library knows; returns the ones to read."""
        with self.library.begin():
            folders = {*self.library.folders(), *places.folders} - {*places.gone}
            self.library.settings.set(FOLDERS, sorted(folders))
            self.library.settings.set(EXTRACTOR, self.key)
        paths = defaultdict[FileKind, list[str]](list)
        for path in places.files:
            paths[self.known.kind(path, retry=retry)].append(path)
        self._report_copies(paths[FileKind.COPY])
        self.report.forgotten += paths[FileKind.FORGOTTEN]
        unreadable = [self.known.by_path[path].id for path in paths[FileKind.UNREADABLE]]
        for track in self.library.tracks.many(unreadable):
            self.report.still_unreadable[track.path] = track.reason or ""
        unchanged = [self.known.by_path[path] for path in paths[FileKind.UNCHANGED]]
        self._note_unchanged(unchanged)
        to_read = _FilesToRead(
            without_features=[track for track in unchanged if track.id in self.lacking],
            changed=paths[FileKind.CHANGED],
            new=paths[FileKind.NEW],
        )
        self.n_files = len(to_read.without_features) + len(to_read.changed) + len(to_read.new)
        return to_read

    def files_without_features(self, to_read: _FilesToRead, reader: Reader) -> Iterator[GivenFile]:
        """Read files and store their tracks; returns the files of tracks without features."""
        for track in to_read.without_features:
            yield self._give(track)
        changed = examine_all(to_read.changed, reader)
        yield from self._store_tracks(changed, self._decide_known_path)
        new = examine_all(to_read.new, reader)
        yield from self._store_tracks(new, self._decide_new_path)
        # Known sounds come first, so that a moved file is not taken for a changed one.
        self.other_sound.sort(key=lambda track: track.sound not in self.known.by_sound)
        self.n_files += len(self.other_sound)
        yield from self._store_tracks(self.other_sound, self._decide_other_sound)

    def extract(
        self, files: Iterator[GivenFile], *, engine: str | Engine, cache: PathLike | None
    ) -> None:
        """Compute features and store them."""
        first = next(files, None)
        if first is None:
            return  # without starting any process
        results = iterate_files(
            chain([first], files), extractor=self.extractor, engine=engine, cache=cache
        )
        try:
            for result in results:
                stopping.check()
                self._take_features(result)
                self._count()
        finally:
            with stopping.shielded():
                self._store_features()

    def note_missing(self, places: _Places) -> None:
        """Mark tracks as missing, and forget copies that are gone."""
        searched = [*places.folders, *places.gone]
        files = set(places.files)

        def was_searched(path: str) -> bool:
            is_inside = path in searched or is_below(path, searched)
            return is_inside and not is_below(path, self.report.unlisted)

        def is_gone(path: str) -> bool:
            # A file whose path is too long for the system was found, and does not seem to exist.
            return path not in files and not os.path.lexists(path)

        missing = []
        for track in self.known.by_id.values():
            if track.state in ("missing", FORGOTTEN) or not was_searched(track.path):
                continue
            if track.id in self.known.displaced or is_gone(track.path):
                missing.append(track)
        self.library.tracks.set_state([track.id for track in missing], "missing")
        self.report.missing += [track.path for track in missing]
        self.library.tracks.drop_copies(
            path for path in self.known.copies if path not in files and was_searched(path)
        )

    def _report_copies(self, paths: list[str]) -> None:
        for path in paths:
            owner = self.known.by_id[self.known.copies[path].id]
            self.report.copies.append((path, owner.path))
            self.report.known_copies.add(path)

    def _note_unchanged(self, tracks: list[Track]) -> None:
        """Count files that have not changed; those that were missing are back."""
        for track in tracks:
            if track.state == "missing":
                self.report.back.append(track.path)
            else:
                self.report.unchanged += 1
        paths = {track.path for track in tracks}
        self.library.tracks.drop_copies(self.known.copies.keys() & paths)
        returned = [track for track in tracks if track.state != "present"]
        ids = [track.id for track in returned]
        self.library.tracks.set_state(ids, "present")
        self.lacking |= self._without_features(ids)
        for track in returned:
            self.known.set_present(track)

    def _store_tracks(
        self, files: Iterable[Track], decide: Callable[[Track], Track | None]
    ) -> Iterator[GivenFile]:
        """Store what was read, some at a time; returns the files of tracks without features.

        ``decide`` takes a file and returns its track, or None if the file is not its track's own.
        """
        for batch in batches(files, examine.READ_TOGETHER):
            with self.library.begin():
                tracks = [decide(file) for file in batch]
            for track in tracks:
                if track is not None and track.id in self.lacking and track.state == "present":
                    yield self._give(track)
                else:
                    self._count()

    def _decide_known_path(self, file: Track) -> Track | None:
        """A changed file at a known path."""
        known = self.known.by_path[file.path]
        if file.reason is not None:
            if known.state == "unreadable" and same_file(known, file):  # tried once more
                self.report.still_unreadable[known.path] = file.reason
            else:
                self._set_unreadable(known, file.reason, file)
            return None
        if known.sound != file.sound:
            self.known.displaced.add(known.id)
            self.other_sound.append(file)
            return None
        if known.state == FORGOTTEN:
            self.report.forgotten.append(known.path)
            return None
        if known.state == "missing":
            self.report.back.append(known.path)
        elif _tags_of(file) != _tags_of(self.library.tracks.get(known.id)):
            self.report.retagged.append(known.path)
        else:
            self.report.unchanged += 1
        return self._replace(known, file)

    def _decide_new_path(self, file: Track) -> Track | None:
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
            self._add_copy(file, owner)
            return None
        self.report.moved.append((owner.path, file.path))
        self.known.displaced.discard(owner.id)
        return self._replace(owner, file)

    def _decide_other_sound(self, file: Track) -> Track | None:
        """A known path with another sound, once all other files are decided."""
        former = self.known.by_path.get(file.path)
        if former is None or former.state == FORGOTTEN or file.sound in self.known.by_sound:
            return self._decide_new_path(file)
        was_read = not former.sound.startswith(UNREAD)
        (self.report.changed if was_read else self.report.new).append(file.path)
        with self.library.begin():  # features and predictions are invalid
            self.library.tracks.drop_features(former.id)
            self.library.predictions.forget_tracks([former.id])
        self.known.displaced.discard(former.id)
        self.lacking.add(former.id)
        return self._replace(former, file)

    def _add(self, file: Track) -> Track:
        """Store a new track."""
        (number,) = self.library.tracks.put([file])
        added = replace(file, id=number)
        self._own(added)
        if file.reason is None:
            self.report.new.append(file.path)
            self.lacking.add(number)
        else:
            self.report.unreadable[file.path] = file.reason
        return added

    def _add_copy(self, file: Track, owner: Track) -> None:
        """Store a file with the sound of another track's file."""
        self.library.tracks.put_copy(replace(file, id=owner.id))
        self.report.copies.append((file.path, owner.path))
        known = self.known.copies.get(file.path)
        if known is not None and known.id == owner.id:
            self.report.known_copies.add(file.path)

    def _replace(self, known: Track, file: Track) -> Track:
        """Store a file as that of a known track."""
        track = replace(file, id=known.id)
        self.library.tracks.replace(track)
        self._own(track)
        if known.state != "present":
            self.lacking |= self._without_features([track.id])
        return track

    def _own(self, track: Track) -> None:
        """Note that the file is this track's, and no longer another one's copy."""
        if self.known.copies.pop(track.path, None) is not None:
            self.library.tracks.drop_copies([track.path])
        self.known.put(track)

    def _set_unreadable(self, known: Track, reason: str, file: Track | None = None) -> None:
        """Store that a track's file cannot be read; it is not tried again until it changes."""
        last_seen = file or known
        unreadable = replace(
            self.library.tracks.get(known.id),
            size=last_seen.size,
            modified=UNSETTLED if reason.startswith(STOPPED) else last_seen.modified,
            state="unreadable",
            reason=reason,
        )
        self.library.tracks.replace(unreadable)
        self.known.put(unreadable)
        self.report.unreadable[known.path] = reason

    def _without_features(self, ids: list[int]) -> set[int]:
        with_features = self.library.tracks.with_features(ids, extractor=self.key)
        return set(ids) - set(with_features.tolist())

    def _give(self, track: Track) -> GivenFile:
        """Pass a track's file to the extraction."""
        self.given.append(track.id)
        self.lacking.discard(track.id)  # not twice
        return KnownFile(track.path, bytes.fromhex(track.sound), track.size, track.modified)

    def _take_features(self, result: FileFeatures) -> None:
        """Keep a file's features until they are stored, or store why it has none."""
        track = self.known.by_id[self.given[result.position]]
        if result.vector is None:
            self.report.set_unreadable(track.path, result.reason)
            self._set_unreadable(track, result.reason)
            return
        self.waiting.append((track.id, result.vector))
        self.report.cached += result.cached
        if len(self.waiting) >= _STORED_TOGETHER or time.monotonic() >= self.due:
            began = time.monotonic()
            self._store_features()
            if self.stored is not None:
                self.stored()
            now = time.monotonic()
            self.due = now + max(_STORED_SECONDS, 10 * (now - began))

    def _store_features(self) -> None:
        if self.waiting:
            ids = [track_id for track_id, _ in self.waiting]
            X = np.stack([vector for _, vector in self.waiting])
            self.library.tracks.put_features(ids, X, extractor=self.key)
            self.report.extracted += len(ids)
            self.waiting = []

    def _count(self) -> None:
        """Report that one more file is done."""
        self.n_done += 1
        if self.progress:
            self.progress(self.n_done, self.n_files)


def _tags_of(file: Track) -> tuple[object, ...]:
    return file.title, file.artist, file.album, file.file_tags
