"""A library: the tracks of a collection, what people say about them, and what models predict.

with Library.open() as library:
    for track in library.tracks.all():
        print(track.path)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sqlalchemy as sa

from harmonium.data.genres import GenreTree
from harmonium.errors import DataError, HarmoniumError, LibraryError, NoLibraryError
from harmonium.library.learning.learner import Learner
from harmonium.library.model import USUAL_PRECISION
from harmonium.library.sound import try_to_update_sound_vectors
from harmonium.library.store import database
from harmonium.library.store.changes import Changes
from harmonium.library.store.failures import explained, explained_file
from harmonium.library.store.models import CURRENT, Owner, StoredModel
from harmonium.library.store.opinions import Opinions
from harmonium.library.store.predictions import Predictions
from harmonium.library.store.refinements import Refinements
from harmonium.library.store.schema import (
    EXTRACTOR,
    FOLDERS,
    GENRES,
    VERSION,
)
from harmonium.library.store.settings import Settings
from harmonium.library.store.tracks import Track, Tracks
from harmonium.library.store.transactions import Transactions
from harmonium.library.store.upgrades import read_table_version, upgrade

if TYPE_CHECKING:
    from harmonium.engine import Engine
    from harmonium.library.doctor import Health
    from harmonium.library.edits import RenamedTag
    from harmonium.library.filetags import Rules
    from harmonium.library.imports import FeatureReport, ImportReport
    from harmonium.library.index import IndexReport
    from harmonium.library.learning.learner import QuickReport
    from harmonium.library.models import Models
    from harmonium.library.searching.playlists import WrittenPlaylist
    from harmonium.library.searching.saved import SavedSearches
    from harmonium.library.snapshot import Hit, Question, SearchResult, Snapshot
    from harmonium.library.store.changes import UndoReport
    from harmonium.library.tagging import TaggedFile, TaggedFiles, TagsOverTime
    from harmonium.library.tags import Relation, Suggestion
    from harmonium.library.teaching.completion import Completion, Why
    from harmonium.library.teaching.review import Review
    from harmonium.library.teaching.say import Said
    from harmonium.library.vocabulary import Tags
    from harmonium.library.writing.file_plans import WritePlan
    from harmonium.library.writing.writer import Writer, WriteReport


Progress = Callable[[int, int], None]  # called with how much is done, and how much there is
TrackName = int | str | Path | Track  # or "#NUMBER", a path, the end of a path, "artist - title"


class Library(Transactions):
    """An open library; `Library.open` opens one.

    Its own methods are what people do with a library; everything else is a method of its parts:
    `tracks`, `tags`, `models`, `searches`, `review`, `writer`, `changes`, `opinions` (people's
    tags), `predictions`, `refinements`, `settings` and `learner`.

    Threads may share a library, and processes may open the same one.
    """

    def __init__(self, engine: sa.Engine, place: str, wait: float | None = None) -> None:
        super().__init__(engine, place, wait)
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self.tracks = Tracks(self)  # the pieces of music
        self.opinions = Opinions(self)  # what people say about them
        self.changes = Changes(self)  # what was done, and how to undo it
        self.predictions = Predictions(self)  # what the models say about the tracks
        self.refinements = Refinements(self)  # what their tags have gained from answers since
        self.settings = Settings(self)  # small things to remember
        self.learner = Learner(self)  # keeps what is learnt from answers up to date

    @classmethod
    def open(
        cls, place: str | Path | None = None, *, create: bool = True, wait: float | None = None
    ) -> Self:
        """Open a library, and upgrade it if an older version made it.

        Parameters
        ----------
        place : a file (SQLite), or postgresql://USER@HOST/DATABASE; by default HARMONIUM_LIBRARY,
            else library.db in the user's data folder
        create : whether to create a library if there is none
        wait : seconds to wait for another process that is writing; by default two minutes

        Raises
        ------
        LibraryError
            if there is no library, it cannot be used, or a newer version of Harmonium made it
        """
        named = database.default_place() if place is None else str(place)
        if database.is_url(named):
            engine = database.postgresql_engine(named)
            named = database.shown_url(engine.url)
        else:
            file = Path(named).expanduser()
            named = str(file)
            if not file.exists() and not create:
                raise _no_library(named)
            if file.is_dir():
                raise LibraryError(
                    f"{file} is a folder. Name a file for the library, such as {file}/library.db."
                )
            with explained_file(named):
                file.parent.mkdir(parents=True, exist_ok=True)
            engine = database.sqlite_engine(file, wait)
        library = cls(engine, named, wait)
        try:
            library._upgrade(create)
        except BaseException:
            library.close()
            raise
        return library

    @cached_property
    def models(self) -> Models:
        """The models that were trained."""
        from harmonium.library.models import Models

        return Models(self)

    @cached_property
    def tags(self) -> Tags:
        """The tags: how well each is known, what they are called, and which are hidden."""
        from harmonium.library.vocabulary import Tags

        return Tags(self)

    @cached_property
    def writer(self) -> Writer:
        """Writes tags to music files."""
        from harmonium.library.writing.writer import Writer

        return Writer(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def folders(self) -> list[str]:
        """The folders that were indexed, by which relative paths are found."""
        return self.settings.get(FOLDERS, [])

    def genres(self) -> GenreTree:
        """The genre tree in use (`harmonium train --genres`); empty without one."""
        return GenreTree.from_dict(self.settings.get(GENRES, {}))

    def state(self) -> database.LibraryState:
        """The version, and the model in use."""
        with self.reading():
            return database.LibraryState(self.version(), self.settings.get(CURRENT))

    def snapshot(self) -> Snapshot:
        """The library as it is now, as searches and the page see it.

        It is cached; only what has changed is read again.
        """
        from harmonium.library.snapshot import Snapshot

        with self.reading():
            state = self.state()
            kept = self._snapshot
            if kept is not None and (kept.version, kept.model_id) == state:
                return kept
            with self._lock:
                kept = self._snapshot
                if kept is None or (kept.version, kept.model_id) != state:
                    kept = self._snapshot = Snapshot.after(kept, self, *state)
                return kept

    def track(self, named: TrackName) -> Track:
        """The track with this name; a `LibraryError` if no track or several match."""
        from harmonium.library.track_finder import find_track

        if isinstance(named, Track):
            return named
        if isinstance(named, int):
            return self.tracks.get(named)
        return find_track(self, str(named))

    def tracks_of(self, *named: TrackName) -> list[Track]:
        """The tracks with these names, and all tracks in these folders; each once."""
        from harmonium.library.track_finder import files_of

        ids: dict[int, None] = {}
        for name in named:
            if isinstance(name, str | Path) and Path(name).expanduser().is_dir():
                in_folder = [file.track_id for file in files_of(self, name)]
                ids |= dict.fromkeys(in_folder)
            else:
                ids[self.track(name).id] = None
        return self.tracks.many([*ids])

    def index(
        self,
        *paths: str | Path,
        extractor: str | None = None,
        windows: int | None = None,
        jobs: int | None = None,
        engine: str | Engine = "processes",
        cache: bool | str | Path = True,
        time_limit: float | None = 300,
        retry: bool = False,
        tag: bool = True,
        progress: Progress | None = None,
    ) -> IndexReport:
        """Scan folders of music, update the library, and tag new tracks.

        Parameters
        ----------
        paths : folders and files; by default the folders of earlier runs
        extractor, windows : what computes the features; by default as before
        jobs, engine : how many processes work, and where
        cache : whether to cache features, or the folder of the cache
        time_limit : seconds after which to give up on a file
        retry : whether to retry unreadable files that have not changed
        tag : whether to tag new tracks, some at a time while others are read, see `tag_new`
        """
        from harmonium.files import user_cache_folder
        from harmonium.library.index import index

        folder = None if isinstance(cache, bool) else cache
        if cache is True:
            folder = user_cache_folder()
        n_tagged = [0]

        def tag_some() -> None:
            with suppress(HarmoniumError), self.learner.paused():  # `tag_new` says why at the end
                n_tagged.append(self.tag_new() or 0)

        report = index(
            self,
            paths,
            extractor=extractor,
            windows=windows,
            jobs=jobs,
            engine=engine,
            cache=folder,
            time_limit=time_limit,
            retry=retry,
            progress=progress,
            stored=tag_some if tag else None,
        )
        if tag:
            rest = self.tag_new()
            report.tagged = None if rest is None else rest + sum(n_tagged)
        return report

    def import_tags(
        self,
        path: str | Path,
        *,
        item: str | int | None = None,
        artist: str | int | None = None,
        title: str | int | None = None,
        tag: str | int | None = None,
        user: str | int | None = None,
        value: str | int | None = None,
        person: str | None = None,
        default_person: str = "me",
        aliases: Mapping[str, str] | None = None,
        header: bool = True,
        delimiter: str | None = None,
        encoding: str = "utf-8",
        split: Sequence[str] | None = None,
        replace: bool = False,
        dry_run: bool = False,
    ) -> ImportReport:
        """Import a table of people's tags; `imports.import_table` explains the options."""
        from harmonium.library.imports import import_table

        with self.learner.watching():
            return import_table(
                self,
                path,
                item=item,
                artist=artist,
                title=title,
                tag=tag,
                user=user,
                value=value,
                person=person,
                default_person=default_person,
                aliases=aliases,
                header=header,
                delimiter=delimiter,
                encoding=encoding,
                split=split,
                replace=replace,
                dry_run=dry_run,
            )

    def import_file_tags(
        self,
        fields: Iterable[str] = ("genre",),
        *,
        person: str = "files",
        split: Sequence[str] | None = None,
        replace: bool = False,
        dry_run: bool = False,
    ) -> ImportReport:
        """Import the tags that files had when last indexed, as `imports.import_file_tags` does."""
        from harmonium.library.imports import import_file_tags

        with self.learner.watching():
            return import_file_tags(
                self, fields=fields, person=person, split=split, replace=replace, dry_run=dry_run
            )

    def import_features(
        self,
        path: str | Path,
        *,
        item: str | int | None = None,
        artist: str | int | None = None,
        title: str | int | None = None,
        dry_run: bool = False,
    ) -> FeatureReport:
        """Import a table of features; `imports.import_features` explains the options."""
        from harmonium.library.imports import import_features

        return import_features(self, path, item=item, artist=artist, title=title, dry_run=dry_run)

    def train(
        self,
        *,
        min_examples: int = 5,
        max_tags: int = 200,
        min_count: int = 1,
        min_share: float = 0.2,
        smooth: bool = True,
        seed: int = 0,
        genres: GenreTree | None = None,
        engine: str | Engine = "serial",
        jobs: int | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        use: bool = True,
        first: Callable[[StoredModel], object] | None = None,
    ) -> StoredModel:
        """Learn from the tagged tracks, store the model and use it; its `report` says more.

        Parameters
        ----------
        min_examples : how many tracks with a tag, and without it, the tag needs
        max_tags : only so many tags are learnt, the most used ones
        min_count : how many people must give a track a tag
        min_share : the share of a track's people who must give it the tag
        smooth : whether to try smoothed tags, if people have tagged the same tracks
        seed : the seed of everything random
        genres : the genre tree to use from now on; by default the library's
        engine, jobs : where models are fitted, and by how many processes
        progress : called with (what is being done, how much is done, how much there is)
        use : whether to use the model from now on
        first : called with a first model, which is stored after a few seconds
        """
        from harmonium.library.learning.labels import TrainingOptions
        from harmonium.library.learning.train import train

        options = TrainingOptions(
            min_examples=min_examples,
            max_tags=max_tags,
            min_count=min_count,
            min_share=min_share,
            smooth=smooth,
            seed=seed,
            genres=genres,
        )
        return train(
            self, options, progress=progress, use=use, first=first, engine=engine, jobs=jobs
        )

    def tag(
        self,
        *paths: str | Path,
        known: str | None = None,
        sound_only: bool = False,
        owner: Owner | None = None,
        progress: Progress | None = None,
    ) -> TaggedFiles:
        """The tags of files and folders of music, in the library or not; or of tracks by name.

        Without a model in the library, the built-in one predicts them.

        Parameters
        ----------
        known : known tags, such as "rock, guitar, -live"
        sound_only : whether to ignore people's tags when inferring the others
        owner : whose tags the model may predict: "own", "built-in", or None for both
        """
        from harmonium.library.tagging import tag_files

        return tag_files(
            self, paths, known=known, sound_only=sound_only, owner=owner, progress=progress
        )

    def tag_all(self, *, again: bool = False, progress: Progress | None = None) -> int:
        """Tag all tracks that the model in use has not tagged, and store that; returns how many.

        ``again`` also tags the others.
        """
        from harmonium.library.model.builtin import use_builtin
        from harmonium.library.model.tagger import tag_library

        with self.learner.watching():
            return tag_library(self, use_builtin(self), again=again, progress=progress)

    def tag_new(self, progress: Progress | None = None) -> int | None:
        """Tag new tracks, and learn from answers; the number of tracks tagged.

        None if there is no model, or it needs features that the library lacks. A library without a
        model gets the built-in one, if it has the right features.
        """
        from harmonium.library.model.builtin import use_builtin

        model = use_builtin(self)
        if model is None or model.extractor != self.settings.get(EXTRACTOR):
            return None
        return self.tag_all(progress=progress)

    def tagged(self, owner: Owner | None = None) -> Iterator[TaggedFile]:
        """All tracks that the model in use has tagged, with their stored tags."""
        from harmonium.library.tagging import stored_tags

        return stored_tags(self, owner)

    def search(
        self,
        text: str | None = None,
        *,
        like: TrackName | None = None,
        limit: int = 20,
        offset: int = 0,
        min_probability: float | None = None,
        predicted: bool = False,
        owner: Owner | None = None,
        order: str | None = None,
        name: str = "",
        features: bool = False,
        start: TrackName | None = None,
        end: TrackName | None = None,
        progress: Progress | None = None,
    ) -> SearchResult:
        """The tracks that match a query, are like a track, or both; the best first.

        Parameters
        ----------
        text : the query, such as ``mellow piano -rock`` or ``energy:>0.7``; see `search.parse`
        like : a track; the others are ordered by probability times similarity to it
        limit, offset : how many hits, and how many to skip before them
        min_probability : tracks of at least this probability match; by default, those that have
            the tags, and less likely ones follow
        predicted : whether to skip tracks that people gave these tags
        owner : whose tags the model may predict: "own", "built-in", or None for both
        order : "probability", "likeness", "name", "added", "smooth" (the best ones, each similar to
            the one before), or an audio feature such as "energy", the highest first; "-energy" the
            lowest first
        name : words that must appear in a track's title, artist, album or file name
        features : whether hits have all audio features, not only those in the query and the order
        start, end : two tracks; finds a path by sound from one to the other, with ``limit`` stops
            that match the query
        """
        question = self._question(
            text,
            like=like,
            order=order,
            min_probability=min_probability,
            owner=owner,
            predicted=predicted,
            name=name,
            features=features,
            start=start,
            end=end,
            limit=limit,
        )
        if question.is_ordered_by_sound or like is not None:
            try_to_update_sound_vectors(self, progress)
        return self.snapshot().search(question, limit, offset, count=False)

    def _question(
        self,
        text: str | None,
        *,
        like: TrackName | None,
        order: str | None,
        min_probability: float | None,
        owner: Owner | None,
        predicted: bool,
        name: str,
        start: TrackName | None,
        end: TrackName | None,
        limit: int,
        features: bool = False,
    ) -> Question:
        """What `search` and `save_search` look for; tracks may be named."""
        from harmonium.library.snapshot import Question

        if limit < 1:
            raise DataError(f"'limit' must be at least 1, got {limit}.")
        text = " ".join((text or "").split())
        names_tracks = any(track is not None for track in (like, start, end))
        if not (text or names_tracks or order or name.strip()):
            raise DataError("Search for tags, for tracks like another (--like), or for both.")
        return Question(
            text=text,
            like=None if like is None else self.track(like).id,
            order=order,
            min_probability=min_probability,
            owner=owner,
            predicted=predicted,
            name=name,
            features=features,
            start=None if start is None else self.track(start).id,
            end=None if end is None else self.track(end).id,
            stops=limit,
        )

    @cached_property
    def searches(self) -> SavedSearches:
        """The saved searches."""
        from harmonium.library.searching.saved import SavedSearches

        return SavedSearches(self)

    def save_search(
        self,
        title: str,
        text: str | None = None,
        *,
        like: TrackName | None = None,
        limit: int = 100,
        min_probability: float | None = None,
        predicted: bool = False,
        owner: Owner | None = None,
        order: str | None = None,
        name: str = "",
        start: TrackName | None = None,
        end: TrackName | None = None,
    ) -> int | None:
        """Save a search under a title; the number of the change, None if it is saved already.

        The options are those of `search`. It is searched again each time.
        """
        question = self._question(
            text,
            like=like,
            order=order,
            min_probability=min_probability,
            owner=owner,
            predicted=predicted,
            name=name,
            start=start,
            end=end,
            limit=limit,
        )
        return self.searches.save(title, question)

    def write_playlists(
        self,
        folder: str | Path,
        *,
        rules: bool | None = None,
        relative: bool | None = None,
        progress: Progress | None = None,
    ) -> list[WrittenPlaylist]:
        """Write each saved search into a folder.

        ``rules`` writes .nsp for Navidrome instead of .m3u8 where its rules allow, and ``relative``
        writes paths relative to the folder; by default as last time in this folder.
        """
        from harmonium.library.searching.playlists import write_playlists

        path = Path(folder).expanduser()
        return list(write_playlists(self, path, rules=rules, relative=relative, progress=progress))

    def audio_features(self, track: TrackName) -> dict[str, float]:
        """The audio features of a track, such as energy, from 0 to 1; empty if none are known."""
        return self.snapshot().features(np.array([self.track(track).id]))[0]

    def similar(self, track: TrackName, limit: int = 20) -> SearchResult:
        """The tracks most like this one."""
        return self.search(like=track, limit=limit)

    def suggest(self, *tags: str, limit: int = 10) -> list[Suggestion]:
        """More tags for a track that has these."""
        from harmonium.library.tags import suggest, tagger_and_said

        return suggest(*tagger_and_said(self), tags, limit)

    def related(self, tag: str, limit: int = 10) -> list[Relation]:
        """The tags that a tag makes more likely, and those that it makes less likely."""
        from harmonium.library.tags import related, tagger_and_said

        return related(*tagger_and_said(self), tag, limit)

    def say(
        self,
        tracks: TrackName | Sequence[TrackName],
        *tags: str,
        yes: Sequence[str] = (),
        no: Sequence[str] = (),
        unsay: Sequence[str] = (),
        person: str = "me",
        change: int | None = None,
    ) -> Said:
        """Save what a person says about tracks, and learn from it.

        Parameters
        ----------
        tracks : a track, a folder of files, or several of them
        tags : tags that fit; with a minus before them, tags that do not
        yes, no : the same as two lists
        unsay : tags to withdraw opinions about
        person : whose tags they are
        change : the number of the change to add this to; by default a new one
        """
        from harmonium.library.teaching import say

        accepted, rejected = say.read_said(tags)
        named = [tracks] if isinstance(tracks, TrackName) else tracks
        with self.learner.watching():
            return say.say(
                self,
                self.tracks_of(*named),
                accepted=[*accepted, *yes],
                rejected=[*rejected, *no],
                withdrawn=unsay,
                person=person,
                change=change,
            )

    @cached_property
    def review(self) -> Review:
        """What the model in use asks people, and what they answer."""
        from harmonium.library.teaching.review import Review

        return Review(self)

    def complete(
        self,
        track: TrackName,
        yes: Collection[str] = (),
        no: Collection[str] = (),
        *,
        person: str = "me",
    ) -> Completion:
        """What all of a person's answers on a track mean for its other tags."""
        from harmonium.library.teaching.completion import complete_track

        return complete_track(self.snapshot(), self.track(track).id, yes, no, person)

    def why(
        self,
        track: TrackName,
        tag: str,
        yes: Collection[str] = (),
        no: Collection[str] = (),
        *,
        person: str = "me",
    ) -> Why:
        """What the sound adds to a tag's probability, and what each known tag adds."""
        from harmonium.library.teaching.completion import why

        return why(self.snapshot(), self.track(track).id, tag, yes, no, person)

    def over_time(self, track: TrackName, tag: str | None = None) -> TagsOverTime:
        """How likely this tag, or all likely tags, are at up to thirty points in a track."""
        from harmonium.library.tagging import tags_over_time

        return tags_over_time(self, self.track(track).path, tag)

    def learn(self, progress: Progress | None = None) -> QuickReport:
        """Let the model in use learn from the answers since it was trained.

        `say`, `answer` and other changes do so by themselves, except inside `learner.paused`.
        """
        return self.learner.learn(progress)

    def rename(self, old: str, new: str) -> RenamedTag:
        """Rename a tag, or merge it into another."""
        from harmonium.library.edits import rename_tag

        with self.learner.watching():
            return rename_tag(self, old, new)

    def hide(self, *tags: str) -> int:
        """Hide tags, so that they are neither predicted nor learnt; the number of the change."""
        from harmonium.library.edits import hide_tags

        with self.learner.watching():
            return hide_tags(self, tags)

    def set_kind(self, *tags: str, kind: str) -> int | None:
        """Set the kind of tags, which decides where they are written; the number of the change.

        None if they had this kind. `kinds` lists the kinds of all tags.
        """
        from harmonium.library.edits import set_kind

        return set_kind(self, tags, kind)

    def forget(self, *tracks: TrackName) -> int | None:
        """Remove tracks or folders of tracks; the number of the change, None if nothing changed."""
        from harmonium.library.edits import forget

        forgotten = self.tracks_of(*tracks)
        with self.learner.watching():
            return forget(self, [track.id for track in forgotten])

    def write(
        self,
        *tracks: WritePlan | TrackName,
        query: str | None = None,
        precision: float | None = USUAL_PRECISION,
        people: bool = True,
        predicted: bool = True,
        owner: Owner | None = None,
        rules: Rules | Mapping[str, Any] | None = None,
        skip: Collection[int] = (),
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> WriteReport:
        """Write tags into files, as a plan says or as `writer.plan` plans it with these arguments.

        With ``dry_run``, nothing is written; the report names the files that would be.
        """
        from harmonium.library.writing.file_plans import WritePlan
        from harmonium.library.writing.writer import WriteReport

        plans = [plan for plan in tracks if isinstance(plan, WritePlan)]
        names = [name for name in tracks if not isinstance(name, WritePlan)]
        if plans:
            plan = plans[0]
        else:
            plan = self.writer.plan(
                *names,
                query=query,
                precision=precision,
                people=people,
                predicted=predicted,
                owner=owner,
                rules=rules,
                skip=skip,
            )
        if dry_run:
            paths = [file.change.path for file in plan.files]
            return WriteReport(paths=paths, failures=plan.failures)
        return self.writer.write(plan, progress=progress)

    def undo(
        self,
        change: int | None = None,
        *,
        exact: bool = True,
        progress: Progress | None = None,
    ) -> UndoReport:
        """Undo a change, by default the last one: people's tags, and files to the byte."""
        number = self.writer.last_change().id if change is None else change
        with self.learner.watching():
            return self.writer.undo(number, exact=exact, progress=progress)

    def doctor(self, doubts: int = 20) -> Health:
        """Problems of the library: files, tags, and probable mistakes in people's tags."""
        from harmonium.library.doctor import examine

        return examine(self, doubts=doubts)

    def export(
        self,
        path: str | Path,
        tracks: Iterable[TrackName | Hit],
        owner: Owner | None = None,
        *,
        raw: bool = False,
    ) -> None:
        """Export tracks and tags to .xml (Rekordbox) or .csv.

        The tags are those that `write` writes. A hit from `search` also has the tags that were
        searched for, if it has them. In a table, cells that spreadsheets
        take for formulas begin with an apostrophe, unless ``raw``.
        """
        from harmonium.library.export import export_tracks

        export_tracks(self, Path(path).expanduser(), tracks, owner=owner, raw=raw)

    def playlist(
        self, path: str | Path, tracks: Iterable[TrackName], *, relative: bool = False
    ) -> None:
        """Write tracks as a playlist, .m3u8; ``relative``: with paths relative to its folder."""
        from harmonium.library.export import write_playlist

        listed = [self.track(name) for name in tracks]
        write_playlist(Path(path).expanduser(), listed, relative=relative)

    def find_tracks(
        self, *named: TrackName, query: str | None = None
    ) -> tuple[list[int], set[str] | None]:
        """The present tracks with these names or in these folders that match a query.

        Returns their numbers, ascending, and the named files; None if no names were given.
        """
        from harmonium.library.track_finder import files_of

        chosen = set(self.snapshot().ids.tolist())
        paths = None
        if named:
            files = [file for name in named for file in files_of(self, name)]
            chosen &= {file.track_id for file in files}
            paths = {file.path for file in files}
        if query is not None and query.strip():
            chosen &= set(self.snapshot().matching(query).tolist())
        return sorted(chosen), paths

    def _upgrade(self, create: bool) -> None:
        with self.connect() as connection:
            version, is_empty = read_table_version(connection)
        if version == VERSION:
            return
        if version is None:
            if not is_empty:
                raise LibraryError(
                    f"{self.place} is another program's database. Name another place with "
                    "--library."
                )
            if not create:
                raise _no_library(self.place)
            with explained(self.place):
                database.use_write_ahead_log(self.engine)
        with self.begin() as connection:
            upgrade(connection, self.place)


def _no_library(place: str) -> NoLibraryError:
    return NoLibraryError(
        f"There is no library at {place} yet. `harmonium index FOLDER` creates one from a folder "
        "of music; --library names one in another place."
    )
