"""A library: the tracks of a collection, what people say about them, and what models predict.

with Library.open() as library:
    for track in library.tracks.all():
        print(track.path)
"""

import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sqlalchemy as sa

from harmonium import library as modules  # each is loaded when first used
from harmonium.data.tag_names import GenreTree, resolve_aliases
from harmonium.errors import DataError, HarmoniumError, LibraryError, NoLibraryError
from harmonium.library.store import database
from harmonium.library.store.changes import Changes
from harmonium.library.store.models import (
    CURRENT,
    Models,
    Owner,
    Predictions,
    Refinements,
    StoredModel,
)
from harmonium.library.store.opinions import Opinions
from harmonium.library.store.schema import (
    EXTRACTOR,
    FOLDERS,
    GENRES,
    HIDDEN,
    KIND,
    RENAMED,
    VERSION,
    setting,
    tag,
)
from harmonium.library.store.tracks import Track, Tracks, update_sound_vectors

if TYPE_CHECKING:
    from harmonium.engine import Engine
    from harmonium.library.answers import Completion, Doubt, Improvement, QuickReport, Said
    from harmonium.library.doctor import Health
    from harmonium.library.edits import RenamedTag
    from harmonium.library.filetags import Rules
    from harmonium.library.imports import FeatureReport, ImportReport
    from harmonium.library.index import IndexReport
    from harmonium.library.models import ModelComparison, ModelEntry
    from harmonium.library.saved import SavedSearch, WrittenPlaylist
    from harmonium.library.snapshot import Hit, Question, SearchResult, Snapshot
    from harmonium.library.store.changes import UndoReport
    from harmonium.library.tagging import TaggedFile, TaggedFiles, TagsOverTime
    from harmonium.library.tags import Relation, Suggestion, TagDetail, TagEntry, TagMap, Why
    from harmonium.library.write import WriteOutline, WritePlan, WriteReport

Progress = Callable[[int, int], None]  # called with how much is done, and how much there is
TrackName = int | str | Path | Track  # or "#NUMBER", a path, the end of a path, "artist - title"


class Library:
    """An open library; `Library.open` opens one.

    Its parts are `tracks`, `opinions` (people's tags), `changes`, `models`, `predictions`,
    `refinements` and `settings`. Threads may share a library, and processes may open the same one.
    """

    def __init__(self, engine: sa.Engine, place: str, wait: float | None = None) -> None:
        self.engine = engine
        self.place = place  # where it is, without a password
        self._connections = _Connections()
        self._wait = database.BUSY_SECONDS if wait is None else wait
        self._writing = threading.Lock()
        """Threads wait for this lock, rather than each holding a connection that readers need."""
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self.tracks = Tracks(self)  # the pieces of music
        self.opinions = Opinions(self)  # what people say about them
        self.changes = Changes(self)  # what was done, and how to undo it
        self.models = Models(self)  # the models that were trained
        self.predictions = Predictions(self)  # what the models say about the tracks
        self.refinements = Refinements(self)  # what their tags have gained from answers since
        self.settings = LibrarySettings(self)  # small things to remember

    @classmethod
    def open(
        cls, place: str | Path | None = None, *, create: bool = True, wait: float | None = None
    ) -> Self:
        """Open a library, and bring it up to date if an older version made it.

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
            engine = database.postgresql_engine(named, wait)
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
            with database.explained(named):
                file.parent.mkdir(parents=True, exist_ok=True)
                engine = database.sqlite_engine(file, wait)
        library = cls(engine, named, wait)
        try:
            library._bring_up_to_date(create)
        except BaseException:
            library.close()
            raise
        return library

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; the library can be opened again."""
        self.engine.dispose()

    def folders(self) -> list[str]:
        """The folders that were indexed, by which relative paths are found."""
        return self.settings.get(FOLDERS, [])

    def genres(self) -> GenreTree:
        """The genre tree in use (`harmonium train --genres`); empty without one."""
        return GenreTree.from_dict(self.settings.get(GENRES, {}))

    def spellings(self) -> dict[str, str]:
        """Tag → how it is shown and written, if that differs from its normalised name."""
        return {**self.genres().spellings, **self.opinions.spellings()}

    def version(self) -> database.LibraryVersion:
        """The version of the library's contents; it changes with every change."""
        with self.connect() as connection:
            return database.read_version(connection)

    def hidden_tags(self) -> set[str]:
        """The tags that are neither learnt nor predicted."""
        return set(self.settings.beginning_with(HIDDEN))

    def kinds(self) -> dict[str, str]:
        """Tag → genre, mood, instrument, voice, era, sound, own, or none (not a tag)."""
        tree = self.genres()
        genres = dict.fromkeys([*tree.parents, *tree.aliases], "genre")
        return modules.tagger.builtin_kinds() | genres | self.settings.beginning_with(KIND)

    def renamed_tags(self) -> dict[str, str]:
        """A tag's former name → its present name."""
        return resolve_aliases(self.settings.beginning_with(RENAMED), normalise=False)

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        """A connection for reading: all its queries see the state at the first one.

        Inside `begin` or `reading` in the same thread, it is their connection.
        """
        if (here := self._connections.writer or self._connections.reader) is not None:
            yield here
            return
        with database.reading(self.engine, self.place) as connection:
            yield connection

    def fetch(self, query: sa.Select[Any]) -> Sequence[Any]:
        """All rows that a query finds."""
        with self.connect() as connection:
            return connection.execute(query).all()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Everything that this thread reads inside sees one state of the library."""
        with self.connect() as connection:
            before, self._connections.reader = self._connections.reader, connection
            try:
                yield
            finally:
                self._connections.reader = before

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """A connection for writing, in one transaction: all or nothing.

        Inside another one in the same thread, it is part of that.
        """
        if self._connections.writer is not None:
            yield self._connections.writer
            return
        if not self._writing.acquire(timeout=self._wait):
            raise LibraryError(
                f"The library {self.place} is locked. Another program is still writing to it; try "
                "again when it is done."
            )
        try:
            with database.writing(self.engine, self.place) as connection:
                self._connections.writer = connection
                yield connection
        finally:
            self._connections.writer = None
            self._writing.release()

    def snapshot(self) -> "Snapshot":
        """The library as it is now, as searches and the page see it.

        It is cached; only what has changed is read again.
        """
        with self.reading():
            state = self.version(), self.settings.get(CURRENT)
            kept = self._snapshot
            if kept is not None and (kept.version, kept.model_id) == state:
                return kept
            with self._lock:
                kept = self._snapshot
                if kept is None or (kept.version, kept.model_id) != state:
                    kept = self._snapshot = modules.snapshot.Snapshot.after(kept, self, *state)
                return kept

    def track(self, named: TrackName) -> Track:
        """The track with this name; a `LibraryError` if no track or several match."""
        if isinstance(named, Track):
            return named
        if isinstance(named, int):
            return self.tracks.get(named)
        return self.tracks.resolve(str(named))

    def tracks_of(self, *named: TrackName) -> list[Track]:
        """The tracks with these names, and all tracks in these folders; each once."""
        found: dict[int, None] = {}
        for one in named:
            is_folder = isinstance(one, str | Path) and Path(one).expanduser().is_dir()
            ids = [n for n, _ in self.tracks.files_of(one)] if is_folder else [self.track(one).id]
            found |= dict.fromkeys(ids)
        return self.tracks.many([*found])

    def index(
        self,
        *paths: str | Path,
        extractor: str | None = None,
        windows: int | None = None,
        jobs: int | None = None,
        engine: "str | Engine" = "processes",
        cache: bool | str | Path = True,
        time_limit: float | None = 300,
        retry: bool = False,
        tag: bool = True,
        progress: Progress | None = None,
    ) -> "IndexReport":
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

        folder = (user_cache_folder() if cache else None) if isinstance(cache, bool) else cache
        n_tagged = [0]

        def tag_some() -> None:
            with suppress(HarmoniumError):  # `tag_new` says why at the end
                n_tagged.append(self.tag_new(learn=False) or 0)

        report = modules.index.index(
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

    def import_tags(self, path: str | Path, **options: Any) -> "ImportReport":
        """Import a table of people's tags; the options are those of `imports.import_table`."""
        return modules.imports.import_table(self, path, **options)

    def import_file_tags(
        self, fields: Iterable[str] = ("genre",), **options: Any
    ) -> "ImportReport":
        """Import the tags that files had when last indexed, as `imports.import_file_tags` does."""
        return modules.imports.import_file_tags(self, fields=fields, **options)

    def import_features(self, path: str | Path, **options: Any) -> "FeatureReport":
        """Import a table of features; the options are those of `imports.import_features`."""
        return modules.imports.import_features(self, path, **options)

    def train(
        self,
        *,
        engine: "str | Engine" = "serial",
        jobs: int | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        use: bool = True,
        first: Callable[[StoredModel], object] | None = None,
        **options: Any,
    ) -> StoredModel:
        """Learn from the tagged tracks, store the model and use it; its `report` says more.

        Parameters
        ----------
        engine, jobs : where models are fitted, and by how many processes
        progress : called with (what is being done, how much is done, how much there is)
        use : whether to use the model from now on
        first : called with a first model, which is stored after a few seconds
        options : see `TrainingOptions`
        """
        from harmonium.library.learning.train import TrainingOptions, train

        chosen = TrainingOptions(**options)
        return train(
            self, chosen, progress=progress, use=use, first=first, engine=engine, jobs=jobs
        )

    def tag(
        self,
        *paths: str | Path,
        known: str | None = None,
        sound_only: bool = False,
        owner: Owner | None = None,
        progress: Progress | None = None,
    ) -> "TaggedFiles":
        """The tags of files and folders of music, in the library or not; or of tracks by name.

        Without a model in the library, the built-in one predicts them.

        Parameters
        ----------
        known : known tags, such as "rock, guitar, -live"
        sound_only : whether to ignore people's tags when inferring the others
        owner : whose tags the model may predict: "own", "built-in", or None for both
        """
        return modules.tagging.tag_files(
            self, paths, known=known, sound_only=sound_only, owner=owner, progress=progress
        )

    def tag_all(
        self, *, again: bool = False, progress: Progress | None = None, learn: bool = True
    ) -> int:
        """Tag all tracks that the model in use has not tagged, and store that; returns how many.

        ``again`` also tags the others; ``learn`` lets the model learn from answers afterwards.
        """
        n = modules.tagger.tag_library(
            self, modules.tagger.use_builtin(self), again=again, progress=progress
        )
        self._learn(learn)
        return n

    def tag_new(self, progress: Progress | None = None, *, learn: bool = True) -> int | None:
        """Tag new tracks, and learn from answers; the number of tracks tagged.

        None if there is no model, or it needs features that the library lacks. A library without a
        model gets the built-in one, if it has the right features.
        """
        model = modules.tagger.use_builtin(self)
        if model is None or model.extractor != self.settings.get(EXTRACTOR):
            return None
        return self.tag_all(progress=progress, learn=learn)

    def tagged(self, owner: Owner | None = None) -> "Iterator[TaggedFile]":
        """All tracks that the model in use has tagged, with their stored tags."""
        return modules.tagging.stored_tags(self, owner)

    def search(
        self,
        text: str | None = None,
        *,
        like: TrackName | None = None,
        limit: int = 20,
        offset: int = 0,
        min_probability: float = 0.0,
        predicted: bool = False,
        owner: Owner | None = None,
        order: str | None = None,
        name: str = "",
        features: bool = False,
        start: TrackName | None = None,
        end: TrackName | None = None,
        progress: Progress | None = None,
    ) -> "SearchResult":
        """The tracks that match a query, are like a track, or both; the best first.

        Parameters
        ----------
        text : the query, such as ``mellow piano -rock`` or ``energy:>0.7``; see `search.parse`
        like : a track; the others are ordered by probability times similarity to it
        limit, offset : how many hits, and how many to skip before them
        min_probability : skip less likely tracks
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
            **{"like": like, "start": start, "end": end, "order": order, "name": name},
            **{"owner": owner, "min_probability": min_probability, "predicted": predicted},
            **{"features": features, "stops": limit},
        )
        if question.is_ordered_by_sound or like is not None:
            update_sound_vectors(self, progress)
        return self.snapshot().search(question, limit, offset, count=False)

    def _question(self, text: str | None, **options: Any) -> "Question":
        """What `search` and `save_search` look for; tracks may be named."""
        if options["stops"] < 1:
            raise DataError(f"'limit' must be at least 1, got {options['stops']}.")
        text = " ".join((text or "").split())
        named = {key for key in ("like", "start", "end") if options.get(key) is not None}
        if not (text or named or options.get("order") or options.get("name", "").strip()):
            raise DataError("Search for tags, for tracks like another (--like), or for both.")
        options |= {key: self.track(options[key]).id for key in named}
        return modules.snapshot.Question(text, **options)

    def save_search(
        self, title: str, text: str | None = None, *, limit: int = 100, **options: Any
    ) -> int | None:
        """Save a search under a title; the number of the change, None if it is saved already.

        The options are those of `search`, without offset, features and progress. It is searched
        again each time.
        """
        allowed = {*modules.snapshot.Question._fields} - {"text", "stops", "features"}
        if wrong := sorted(options.keys() - allowed):
            rule = f"'save_search' takes the options {', '.join(['limit', *sorted(allowed)])}"
            raise DataError(f"{rule}; got {', '.join(wrong)}.")
        return modules.saved.save(self, title, self._question(text, **options, stops=limit))

    def saved_searches(self) -> "list[SavedSearch]":
        """The saved searches; `run_search` runs one."""
        return modules.saved.saved_searches(self)

    def run_search(self, name: str) -> "SearchResult":
        """The tracks that a saved search finds now."""
        return modules.saved.saved_search(self, name).run(self)

    def rename_search(self, old: str, new: str) -> int | None:
        """Rename a saved search; the number of the change."""
        return modules.saved.rename(self, old, new)

    def delete_search(self, name: str) -> int | None:
        """Delete a saved search; the number of the change."""
        return modules.saved.delete(self, name)

    def write_playlists(self, folder: str | Path, **options: Any) -> "list[WrittenPlaylist]":
        """Write each saved search into a folder; the options are those of `saved.write_playlists`.

        ``rules`` writes .nsp for Navidrome instead of .m3u8 where its rules allow, and ``relative``
        writes paths relative to the folder; by default as last time in this folder.
        """
        path = Path(folder).expanduser()
        return [*modules.saved.write_playlists(self, path, **options)]

    def audio_features(self, track: TrackName) -> dict[str, float]:
        """The audio features of a track, such as energy, from 0 to 1; empty if none are known."""
        return self.snapshot().features(np.array([self.track(track).id]))[0]

    def similar(self, track: TrackName, limit: int = 20) -> "SearchResult":
        """The tracks most like this one."""
        return self.search(like=track, limit=limit)

    def suggest(self, *tags: str, limit: int = 10) -> "list[Suggestion]":
        """More tags for a track that has these."""
        return modules.tags.suggest(*modules.tags.tagger_and_said(self), tags, limit)

    def related(self, tag: str, limit: int = 10) -> "list[Relation]":
        """The tags that a tag makes more likely, and those that it makes less likely."""
        return modules.tags.related(*modules.tags.tagger_and_said(self), tag, limit)

    def say(
        self,
        tracks: TrackName | Sequence[TrackName],
        *tags: str,
        yes: Sequence[str] = (),
        no: Sequence[str] = (),
        unsay: Sequence[str] = (),
        person: str = "me",
        change: int | None = None,
        learn: bool = True,
    ) -> "Said":
        """Save what a person says about tracks, and learn from it.

        Parameters
        ----------
        tracks : a track, a folder of files, or several of them
        tags : tags that fit; with a minus before them, tags that do not
        yes, no : the same as two lists
        unsay : tags to withdraw opinions about
        person : whose tags they are
        change : the number of the change to add this to; by default a new one
        learn : whether the model learns from it at once
        """
        fits, misfits = modules.answers.read_said(tags)
        fits, misfits = [*fits, *yes], [*misfits, *no]
        found = self.tracks_of(*([tracks] if isinstance(tracks, TrackName) else tracks))
        said = modules.answers.say(self, found, fits, misfits, unsay, person=person, change=change)
        self._learn(learn and said.change is not None)
        return said

    def doubts(
        self, tag: str | None = None, limit: int = 20, skip: Collection[tuple[int, str]] = ()
    ) -> "list[Doubt]":
        """The questions that the model is least certain about, except (track, tag) in ``skip``."""
        return modules.answers.doubtful(self, tag, n=limit, skip=skip)

    def answer(
        self,
        track: TrackName,
        tag: str,
        fits: bool,
        *,
        person: str = "me",
        change: int | None = None,
    ) -> int:
        """Save the answer to a question of `doubts`; the number of its change.

        Answers with the same ``change`` are undone together.
        """
        return modules.answers.answer_doubt(self, self.track(track).id, tag, fits, person, change)

    def complete(
        self,
        track: TrackName,
        yes: Collection[str] = (),
        no: Collection[str] = (),
        *,
        person: str = "me",
    ) -> "Completion":
        """What all of a person's answers on a track mean for its other tags."""
        return modules.answers.complete_track(
            self.snapshot(), self.track(track).id, yes, no, person
        )

    def why(
        self,
        track: TrackName,
        tag: str,
        yes: Collection[str] = (),
        no: Collection[str] = (),
        *,
        person: str = "me",
    ) -> "Why":
        """What the sound adds to a tag's probability, and what each known tag adds."""
        return modules.tags.why(self.snapshot(), self.track(track).id, tag, yes, no, person)

    def over_time(self, track: TrackName, tag: str | None = None) -> "TagsOverTime":
        """How likely this tag, or all likely tags, are at up to thirty points in a track."""
        return modules.tagging.tags_over_time(self, self.track(track).path, tag)

    def learn(self, progress: Progress | None = None) -> "QuickReport":
        """Let the model in use learn from the answers since it was trained."""
        return modules.answers.learn_answers(self, progress)

    def _learn(self, wanted: bool) -> None:
        """Learn from what was saved, if asked to; if that fails, the next `learn` says why."""
        with suppress(HarmoniumError):
            if wanted:
                self.learn()

    def improvement(self, change: int | None = None) -> "Improvement | None":
        """How well the model predicted the last answers, or a change's, beforehand."""
        return modules.answers.improvement(self, change)

    def rename(self, old: str, new: str, *, learn: bool = True) -> "RenamedTag":
        """Rename a tag, or merge it into another."""
        renamed = modules.edits.rename_tag(self, old, new)
        self._learn(learn)
        return renamed

    def hide(self, *tags: str, learn: bool = True) -> int:
        """Hide tags, so that they are neither predicted nor learnt; the number of the change."""
        change = modules.edits.hide_tags(self, tags)
        self._learn(learn)
        return change

    def set_kind(self, *tags: str, kind: str) -> int | None:
        """Set the kind of tags, which decides where they are written; the number of the change.

        None if they had this kind. `kinds` lists the kinds of all tags.
        """
        return modules.edits.set_kind(self, tags, kind)

    def write_fields(self, fields: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """Kind of tags, or tag → the field that it is written to; ``fields`` changes some first.

        ``fields`` is saved in the library; None restores the default field.
        """
        return modules.write.write_fields(self, fields or {})

    def forget(self, *tracks: TrackName, learn: bool = True) -> int | None:
        """Remove tracks or folders of tracks; the number of the change, None if nothing changed."""
        change = modules.edits.forget(self, [one.id for one in self.tracks_of(*tracks)])
        self._learn(learn)
        return change

    def list_models(self) -> "list[ModelEntry]":
        """All models, the newest first."""
        return modules.models.list_models(self)

    def use_model(self, number: int, *, learn: bool = True) -> int | None:
        """Use a model from now on; the number of the change, None if it was in use."""
        change = modules.models.use_model(self, number)
        self._learn(learn and change is not None)
        return change

    def compare_models(self, a: int, b: int) -> "ModelComparison":
        """What changes from model a to model b."""
        return modules.models.compare_models(self, a, b)

    def tags(self) -> "list[TagEntry]":
        """All tags that people gave or the model has learnt, the most used first."""
        return modules.tags.list_tags(self.snapshot())

    def tag_detail(self, tag: str) -> "TagDetail":
        """Everything known about a tag."""
        return modules.tags.tag_detail(self.snapshot(), tag)

    def tag_map(self) -> "TagMap":
        """A map of the tags that the model in use has learnt."""
        return modules.tags.tag_map(self.snapshot())

    def plan_write(
        self,
        *tracks: TrackName,
        query: str | None = None,
        precision: float | None = 0.8,
        people: bool = True,
        predicted: bool = True,
        owner: Owner | None = None,
        rules: "Rules | Mapping[str, Any] | None" = None,
        skip: Collection[int] = (),
        progress: Progress | None = None,
    ) -> "WritePlan":
        """What writing tags to files would change; nothing is written.

        Parameters
        ----------
        tracks : tracks, and folders of files; by default all
        query : only tracks that this search finds with 50 % or more
        precision : the precision that predictions must have; None or 0: `tag`'s thresholds
        people, predicted : whether to write people's tags, and predictions
        owner : whose predictions: "own", "built-in", or None for both
        rules : how to write; a mapping is combined with the rules saved in the library
        skip : numbers of tracks to leave out
        """
        rules = self._rules(rules)
        ids, files = self.find_tracks(*tracks, query=query)
        wanted = [number for number in ids if number not in set(skip)]
        sources: dict[str, Any] = {"people": people, "predicted": predicted, "owner": owner}
        sources |= {"precision": precision or None}
        return modules.write.plan_writes(
            self, wanted, rules, only_to=files, progress=progress, **sources
        )

    def outline_write(
        self,
        query: str | None = None,
        precision: float | None = 0.8,
        rules: "Rules | Mapping[str, Any] | None" = None,
    ) -> "WriteOutline":
        """What `plan_write` would add, tag by tag, from what the library knows about the files."""
        ids, _ = self.find_tracks(query=query)
        return modules.write.outline_writes(self, ids, self._rules(rules), precision or None)

    def _rules(self, rules: "Rules | Mapping[str, Any] | None") -> "Rules":
        if isinstance(rules, modules.filetags.Rules):
            return rules
        layers = [self.settings.get(modules.write.RULES_SETTING, {}), rules or {}]
        return modules.write.library_rules(self, layers)

    def write(
        self,
        *tracks: "WritePlan | TrackName",
        dry_run: bool = False,
        progress: Progress | None = None,
        **options: Any,
    ) -> "WriteReport":
        """Write tags into files, as a plan says or as `plan_write` plans it with these arguments.

        With ``dry_run``, nothing is written; the report names the files that would be.
        """
        plan = tracks[0] if tracks and isinstance(tracks[0], modules.write.WritePlan) else None
        if plan is None:
            plan = self.plan_write(*tracks, **options)  # type: ignore[arg-type]
        if dry_run:
            return modules.write.WriteReport(
                None, [one.change.path for one in plan.files], plan.failures
            )
        return modules.write.write_planned(self, plan.files, progress=progress)

    def undo(
        self,
        change: int | None = None,
        *,
        exact: bool = True,
        progress: Progress | None = None,
        learn: bool = True,
    ) -> "UndoReport":
        """Undo a change, by default the last one: people's tags, and files to the byte."""
        number = modules.write.last_change(self).id if change is None else change
        report = modules.write.undo_change(self, number, exact=exact, progress=progress)
        self._learn(learn and bool(report.ended or report.revived or report.values_restored))
        return report

    def doctor(self, doubts: int = 20) -> "Health":
        """Problems of the library: files, tags, and probable mistakes in people's tags."""
        return modules.doctor.examine(self, doubts=doubts)

    def export(
        self, path: str | Path, tracks: "Iterable[TrackName | Hit]", owner: Owner | None = None
    ) -> None:
        """Export tracks and tags to .xml (Rekordbox) or .csv.

        The tags are those that `write` writes. A hit from `search` also has the tags that were
        searched for, if they reach the thresholds of `tag`.
        """
        Hit, snapshot = modules.snapshot.Hit, self.snapshot()
        hits = ((x.track, x.tags) if isinstance(x, Hit) else (self.track(x), {}) for x in tracks)
        ids = list(asked := {track.id: tags for track, tags in hits})
        wanted = modules.write.wanted_tags(
            self, ids, owner=owner, precision=modules.tagger.USUAL_PRECISION
        )
        features = snapshot.features(np.array(ids, np.int64))
        tagged = []
        for track, values in zip(self.tracks.many(ids), features, strict=True):
            tags = wanted.get(track.id, {})
            for name, p in asked[track.id].items():
                if p >= (snapshot.threshold(name) or 0.5):
                    tags.setdefault(name, p)
            tagged.append((track, [*map(snapshot.shown, tags)], values))
        modules.export.write_export(Path(path).expanduser(), tagged)

    def playlist(
        self, path: str | Path, tracks: Iterable[TrackName], *, relative: bool = False
    ) -> None:
        """Write tracks as a playlist, .m3u8; ``relative``: with paths relative to its folder."""
        listed = [self.track(one) for one in tracks]
        modules.export.write_playlist(Path(path).expanduser(), listed, relative=relative)

    def used_tags(self) -> set[str]:
        """All tags that were ever used."""
        return {row.name for row in self.fetch(sa.select(tag.c.name))}

    def find_tracks(
        self, *named: TrackName, query: str | None = None
    ) -> tuple[list[int], set[str] | None]:
        """The present tracks with these names or in these folders that match a query.

        Returns their numbers, ascending, and the named files; None if no names were given.
        """
        chosen, files = set(self.snapshot().ids.tolist()), None
        if named:
            found = [pair for one in named for pair in self.tracks.files_of(one)]
            chosen &= {number for number, _ in found}
            files = {path for _, path in found}
        if query is not None and query.strip():
            chosen &= set(self.snapshot().likely(query).tolist())
        return sorted(chosen), files

    def _bring_up_to_date(self, create: bool) -> None:
        with self.connect() as connection:
            version, is_empty = database.read_table_version(connection)
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
            with database.explained(self.place):
                database.use_write_ahead_log(self.engine)
        with self.begin() as connection:
            database.upgrade(connection, self.place)


class _Connections(threading.local):
    """The open connections of a thread."""

    writer: sa.Connection | None = None  # in the transaction of `begin`
    reader: sa.Connection | None = None  # of `reading`


_TYPES = {EXTRACTOR: str, CURRENT: int}  # of settings without a default


class LibrarySettings(database.LibraryPart):
    """Names with values that JSON can hold."""

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or the default."""
        with self._library.connect() as connection:
            text = connection.scalar(sa.select(setting.c.value).where(setting.c.key == key))
        value = default if text is None else database.stored_json(text)
        expected = _TYPES.get(key, object) if default is None else type(default)
        if value is not None and not isinstance(value, expected):
            raise database.damaged(f"the setting {key} is {text}")
        return value

    def beginning_with(self, prefix: str) -> dict[str, Any]:
        """The rest of each name with this prefix → its value."""
        query = sa.select(setting.c.key, setting.c.value)
        rows = self._library.fetch(query.where(setting.c.key.startswith(prefix, autoescape=True)))
        return {row.key.removeprefix(prefix): database.stored_json(row.value) for row in rows}

    def set(self, key: str, value: Any) -> None:
        """Set a name's value; None removes it."""
        rows = [] if value is None else [{"key": key, "value": json.dumps(value)}]
        with self._library.begin() as connection:
            database.replace_rows(connection, setting, rows, setting.c.key == key)


def _no_library(place: str) -> NoLibraryError:
    return NoLibraryError(
        f"There is no library at {place} yet. `harmonium index FOLDER` creates one from a folder "
        "of music; --library names one in another place."
    )
