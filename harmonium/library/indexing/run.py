"""Bringing a library up to date with the files that are there.

Files are distinguished by their sound. Files that have not changed are not read. The sounds of the
others are compared in this order: first files at known paths, so that it is known which paths no
longer have their sound; then new files, which may have been moved from there; and then files whose
sound has changed. Features are computed while further files are read, and stored some hundred at a
time: what was stored before an interruption need not be done again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from harmonium.audio.audio_files import AudioFiles, find_audio
from harmonium.audio.cache import FeatureCache
from harmonium.audio.extraction import TIME_LIMIT, FileProgress, PathLike, iterate_files
from harmonium.audio.extractors import Extractor, default_extractor, get_extractor, with_windows
from harmonium.audio.file_tasks import DigestedFile, FileFeatures
from harmonium.engine import Engine, available_cores
from harmonium.errors import LibraryError
from harmonium.files import absolute_path, readable
from harmonium.library import sound_space
from harmonium.library.indexing.examine import ExaminedFile, examine_all
from harmonium.library.indexing.file_to_track import TrackUpdater
from harmonium.library.indexing.known_files import KnownFiles, KnownTrack, SortedFiles, is_below
from harmonium.library.indexing.report import IndexReport
from harmonium.library.library import Library
from harmonium.library.store import features
from harmonium.library.store.bulk import batches
from harmonium.library.store.schema import EXTRACTOR, FOLDERS

_READ_TOGETHER = 64  # files whose tracks are stored in one transaction
_KEPT_TOGETHER = 256  # features that are


def extractor_key(extractor: str | Extractor) -> str:
    """What an extractor's features are stored by: its name, and a digest of all that matters."""
    found = get_extractor(extractor)
    return f"{found.name}@{hashlib.sha256(found.version.encode()).hexdigest()[:12]}"


def kept_extractor(library: Library) -> str | None:
    """The name of the extractor that a library was indexed with, if it was."""
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
    cache: PathLike | FeatureCache | None = None,
    progress: FileProgress | None = None,
    time_limit: float | None = TIME_LIMIT,
    retry: bool = False,
) -> IndexReport:
    """Bring a library up to date with folders and files.

    Parameters
    ----------
    library : to bring up to date
    paths : folders, searched to the bottom, and files; by default the folders of earlier runs
    extractor : as in `extract_files`; by default the one that the library was indexed with, or for
        a new library `default_extractor`
    windows : how many windows of each track are heard, for an extractor that hears one; by default
        as many as the extractor's name says
    jobs, engine, cache, time_limit : as in `extract_files`
    progress : called with (files done, files to do) now and then
    retry : whether to try unusable files again that have not changed

    Returns
    -------
    what is new, moved, changed, missing, unreadable or there twice

    Raises
    ------
    LibraryError
        where nothing was named, and nothing indexed before
    EngineError, DataError
        where the engine, the extractor or the cache cannot be used; never because of a file
    """
    named = extractor or kept_extractor(library) or default_extractor()
    if windows is not None and isinstance(named, str):
        named = with_windows(named, windows)
    chosen = get_extractor(named)
    if chosen.check:
        chosen.check()
    found = _find(library, paths)
    run = _Run(library, chosen, progress)
    todo = run.begin(found, retry)
    threads = 1 if engine == "serial" else jobs or available_cores()
    options = {"jobs": jobs, "engine": engine, "cache": cache, "time_limit": time_limit}
    run.extract(run.needing_features(todo, threads), options)
    run.note_vanished(found)
    sound_space.bring_up_to_date(library)
    return run.report


@dataclass
class _SearchedPlaces:
    """What was searched, and what was found."""

    folders: list[str]
    """Absolute; searched to the bottom."""
    gone: list[str]
    """Named, and not there any more."""
    found: AudioFiles


class _Run:
    """One run over the files."""

    def __init__(
        self, library: Library, extractor: Extractor, progress: FileProgress | None
    ) -> None:
        self.library = library
        self.extractor = extractor
        self.key = extractor_key(extractor)
        self.progress = progress
        self.report = IndexReport()
        with library.connect() as connection:
            known = KnownFiles.load(connection)
            lacking = features.without(connection, self.key)
        self.updater = TrackUpdater(library, self.key, self.report, known, lacking)
        self.given: list[KnownTrack] = []  # the track of each path that the extraction was given
        self.waiting: list[tuple[int, FileFeatures]] = []  # features to be kept
        self.done = self.total = 0

    def begin(self, search: _SearchedPlaces, retry: bool) -> SortedFiles:
        """Compare the files with what the library knows."""
        updater = self.updater
        self.report.unlisted.update(search.found.unreadable)
        self.report.hidden += search.found.hidden
        self._remember(search)
        todo = updater.known.sort(search.found.files, retry=retry)
        self.report.unchanged = sum(one.state != "missing" for one in todo.unchanged)
        self.report.copies += [(path, one.path) for path, one in todo.copies]
        self.report.known_copies |= {path for path, _ in todo.copies}
        self.report.forgotten += todo.forgotten
        reasons = self.library.tracks.many([one.id for one in todo.unreadable])
        self.report.still_unreadable |= {one.path: one.reason or "" for one in reasons}
        updater.bring_back(todo.unchanged)
        todo.unchanged = [one for one in todo.unchanged if one.id in updater.lacking]
        self.total = len(todo.unchanged) + len(todo.changed) + len(todo.new)
        return todo

    def needing_features(self, todo: SortedFiles, threads: int) -> Iterator[DigestedFile]:
        """Read files and store their tracks; those that have no features yet."""
        updater = self.updater
        for one in todo.unchanged:
            yield self._given(one)
        yield from self._stored(examine_all(todo.changed, threads=threads), updater.same_path)
        yield from self._stored(examine_all(todo.new, threads=threads), updater.new_path)
        # Sounds that are known come first: what was moved away is then not taken for changed.
        updater.altered.sort(key=lambda one: one.file.sound not in updater.known.by_sound)
        self.total += len(updater.altered)
        yield from self._stored(updater.altered, updater.altered_path)

    def extract(self, files: Iterator[DigestedFile], options: dict[str, Any]) -> None:
        """Compute features and keep them."""
        first = next(files, None)
        if first is None:
            return  # without starting any process
        results = iterate_files(chain([first], files), extractor=self.extractor, **options)
        try:
            for found in results:
                self._heard(self.given[found.position], found)
        finally:
            self._keep()

    def note_vanished(self, search: _SearchedPlaces) -> None:
        """Say which tracks are missing."""
        known, unlisted = self.updater.known, self.report.unlisted
        there, searched = set(search.found.files), [*search.folders, *search.gone]
        gone = list(known.vanished(searched, unlisted))
        self.library.tracks.set_state([one.id for one in gone], "missing")
        self.report.missing += [one.path for one in gone]
        self.updater.drop_copies(
            path
            for path in known.copies
            if path not in there and is_below(path, searched) and not is_below(path, unlisted)
        )

    def _remember(self, search: _SearchedPlaces) -> None:
        before = set(self.library.settings.get(FOLDERS, []))
        now = sorted((before | set(search.folders)) - set(search.gone))
        with self.library.begin():
            self.library.settings.set(FOLDERS, now)
            self.library.settings.set(EXTRACTOR, self.key)

    def _stored(
        self, files: Iterable[ExaminedFile], decide: Callable[[ExaminedFile], KnownTrack | None]
    ) -> Iterator[DigestedFile]:
        """Store what was read, some at a time; those that need features."""
        for batch in batches(files, _READ_TOGETHER):
            with self.library.begin():
                decided = [decide(one) for one in batch]
            for one in decided:
                if one is not None and one.id in self.updater.lacking and one.state == "present":
                    yield self._given(one)
                else:
                    self._count()

    def _given(self, one: KnownTrack) -> DigestedFile:
        """The file of a track, which goes to the extraction."""
        self.given.append(one)
        self.updater.lacking.discard(one.id)  # not twice
        return DigestedFile(one.path, bytes.fromhex(one.sound), one.seen.size, one.seen.modified)

    def _heard(self, one: KnownTrack, found: FileFeatures) -> None:
        if found.vector is None:
            self.report.give_up(one.path, found.reason or "")
            self.updater.unreadable(one, found.reason or "")
        else:
            self.waiting.append((one.id, found))
            self.report.cached += found.cached
            if len(self.waiting) >= _KEPT_TOGETHER:
                self._keep()
        self._count()

    def _keep(self) -> None:
        if self.waiting:
            ids, files = zip(*self.waiting, strict=True)
            rows = np.stack([file.vector for file in files])
            heads = np.stack([file.heads for file in files]) if self.extractor.head_names else None
            self.library.tracks.put_features(ids, rows, extractor=self.key, heads=heads)
            self.report.heard += len(ids)
            self.waiting = []

    def _count(self) -> None:
        self.done += 1
        if self.progress:
            self.progress(self.done, self.total)


def _find(library: Library, paths: Iterable[PathLike]) -> _SearchedPlaces:
    """Search what is named, or else the folders of earlier runs."""
    named = [absolute_path(path) for path in paths]
    before = library.settings.get(FOLDERS, [])
    places = named or before
    if not places:
        raise LibraryError(
            "Name a folder of music: no folder was indexed into this library yet. Later, without "
            "a name, all folders are brought up to date."
        )
    there = [place for place in places if os.path.lexists(place)]
    gone = [place for place in places if place not in there]
    found = find_audio(there)
    if named:
        for place in gone:  # it must have been there
            if place not in before and library.tracks.find(place) is None:
                raise LibraryError(f"There is no file or folder {readable(place)}.")
    else:  # perhaps on a disk that is not mounted: its tracks stay as they are
        found.unreadable |= dict.fromkeys(gone, "is not there. Its tracks stay as they are.")
        gone = []
    folders = [place for place in there if os.path.isdir(place)]  # noqa: PTH112
    return _SearchedPlaces(folders, gone, found)
