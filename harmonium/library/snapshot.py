"""One state of a library, as searches and the page see it; its parts are read when needed.

`Library.snapshot` keeps the latest one. When the library has changed, the next snapshot reuses what
has not: the predictions, the verdicts, the tracks, or the model. A snapshot that is used once reads
only the columns that a query needs; after showing a page, it has all of them in memory.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.arrays import Floats, Ids, Mask, Places
from harmonium.data.tag_names import AUDIO_FEATURES, builtin_tree, kind_of, normalise_tag
from harmonium.errors import DataError, UnknownTagError, did_you_mean
from harmonium.library.library import Library
from harmonium.library.paths import MAX_STOPS, pool_between, smooth_order, smoothest
from harmonium.library.search import (
    SOURCES,
    Found,
    Query,
    feature_place,
    parse,
    rank,
    similarities,
    similarity_matrix,
)
from harmonium.library.store.database import LibraryVersion, batches
from harmonium.library.store.models import NO_MODEL, Owner, packed, places_in, unpacked
from harmonium.library.store.opinions import Agreement, VerdictTable, agreed_tags
from harmonium.library.store.schema import track
from harmonium.library.store.tracks import SoundVectors, Track, track_name, update_sound_vectors
from harmonium.library.tagger import (
    PrecisionCurve,
    Tagger,
    builtin_aliases,
    no_model,
    precision_curves,
    write_thresholds,
)

T = TypeVar("T")
ORDERS = (
    *("probability", "likeness", "name", "added", "smooth"),
    *(sign + name for name in AUDIO_FEATURES for sign in ("", "-")),
)
"""By an audio feature, the highest first; with a minus, the lowest first. Smooth: the first tracks
that are found, each similar to the one before."""

N_READ = 16  # tags whose predictions are read at a time
N_RESULTS = 16  # search results to keep for more pages and for facets
N_SHOWN_TAGS = 6  # tags that are shown with a track in a list


class Question(NamedTuple):
    """A search."""

    text: str = ""  # a query, as `search.parse` reads it; empty for any track
    like: int | None = None  # the number of the track to compare others with
    order: str | None = None  # one of `ORDERS`; None: most likely first, or by name if no query
    min_probability: float = 0.0
    owner: Owner | None = None
    predicted: bool = False  # only tracks that the model adds
    name: str = ""  # words that must appear in a track's title, artist, album or file name
    features: bool = False  # all the tracks' audio features, not only those in the query and order
    start: int | None = None  # the number of a track: a path by sound from it to ``end``
    end: int | None = None
    stops: int = 20  # number of tracks in a path, a smooth order or a saved search

    @property
    def is_ordered_by_sound(self) -> bool:
        """Whether its tracks, ``stops`` of them, are chosen and ordered together."""
        return self.order == "smooth" or (self.start, self.end) != (None, None)


@dataclass(frozen=True)
class TrackTag:
    """A tag that a track has."""

    tag: str
    shown: str  # as this library spells it
    probability: float  # that the track has the tag
    source: str  # "people", "given" (with --known), "model", or "built-in"
    precision: float | None = None  # share of held-out tracks this likely that have the tag


@dataclass(frozen=True)
class Hit:
    """A track that was found."""

    track: Track
    probability: float | None  # that the track matches; None for a query without tags
    similarity: float | None  # to ``like``, or to the one before on a path: 1 the same, 0 unlike
    source: str | None
    """Who says so: "people", the "model", or "nobody", where nothing speaks against it; None where
    nothing was asked."""
    tags: dict[str, float] = field(default_factory=dict)  # tag of the query → its probability
    shown_tags: list[TrackTag] = field(default_factory=list)  # the most telling ones, on a page
    features: dict[str, float] = field(default_factory=dict)
    """Its audio features: all if asked for, else those in the query and the order."""


@dataclass(frozen=True)
class SearchResult:
    """One page of what a search found."""

    hits: list[Hit]
    total: int | None  # how many were found; None if there are more, and they were not counted
    offset: int  # how many of them come before the hits
    n_below: int  # tracks below the minimum probability; 0 if they were not counted
    people_only: list[str]  # query tags that the model has not learnt: only people count

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


@dataclass(frozen=True)
class Facet:
    """A tag, and how many tracks of a result have it."""

    tag: str
    shown: str
    kind: str
    n: int


class _part(Generic[T]):
    """A `Snapshot` property that is computed once, under the snapshot's lock.

    `functools.cached_property` has its own lock in Python 3.11. Two threads that each hold one of
    the two locks and want the other would wait forever.
    """

    def __init__(self, work: Callable[["Snapshot"], T]) -> None:
        self._work, self.__doc__ = work, work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, snapshot: "Snapshot", owner: type | None = None) -> T:
        with snapshot._lock:
            if self._name not in snapshot.__dict__:
                snapshot.__dict__[self._name] = self._work(snapshot)
            return snapshot.__dict__[self._name]


class Snapshot:
    """One state of a library; threads may share it."""

    def __init__(self, library: Library, version: LibraryVersion, model_id: int | None) -> None:
        self.library, self.version, self.model_id = library, version, model_id
        self.model = NO_MODEL if model_id is None else library.models.get(model_id, whole=False)
        self._lock = threading.RLock()
        self._results: OrderedDict[Question, Found] = OrderedDict()
        self._write_thresholds: dict[tuple[float | None, Owner | None], Floats] = {}

    @classmethod
    def after(
        cls,
        before: "Snapshot | None",
        library: Library,
        version: LibraryVersion,
        model_id: int | None,
    ) -> "Snapshot":
        """The next state; what has not changed since the last one is taken from it."""
        new = cls(library, version, model_id)
        if before is None:
            return new
        old, same_model = before.version, new._model_state == before._model_state
        predicted = (version.predictions, model_id) == (old.predictions, before.model_id)
        said = (version.change, version.opinion) == (old.change, old.opinion)
        holds = {
            "verdicts": said,
            **dict.fromkeys(("predictions", "trained"), predicted),
            **dict.fromkeys(("tagger", "curves", "_write_thresholds"), same_model),
            **dict.fromkeys(("sounds", "ids", "_by_name", "_names"), version.tracks == old.tracks),
        }
        for part, still in holds.items():
            if still and part in before.__dict__:
                new.__dict__[part] = before.__dict__[part]
        if "verdicts" in before.__dict__ and not said:
            new.__dict__["verdicts"] = before.verdicts.brought_up_to(library, old)
        return new

    @property
    def _model_state(self) -> object:
        """What depends on the model."""
        one = self.model
        learnt = [refined.digest for refined in one.refinements]
        return one.id, one.vocabulary, one.thresholds.tolist(), learnt

    verdicts = _part(lambda self: VerdictTable.read(self.library))
    """What people agree on."""
    predictions = _part(lambda self: self.library.predictions.matrix(self.model.id))
    """What the model in use says about all tracks."""
    trained = _part(lambda self: self.library.predictions.matrix(self.model.id, refined=False))
    """The same for the model as trained, without what it learnt from answers since."""
    sounds = _part(lambda self: SoundVectors.of(self.library))
    """How the tracks sound."""
    ids = _part(lambda self: self.library.tracks.ids())
    """The tracks whose files exist, ascending."""
    absent = _part(lambda self: ~np.isin(self.predictions.ids, self.ids, assume_unique=True))
    """(n,) which tracks with predictions have no file any more."""
    spellings = _part(lambda self: self.library.spellings())
    """Tag → how it is shown, if that differs from its name."""
    hidden = _part(lambda self: self.library.hidden_tags())
    """Tags that a person has hidden."""
    kinds = _part(lambda self: self.library.kinds())
    """Tag → its kind, where it is known."""

    @_part
    def tagger(self) -> Tagger | None:
        """The model in use, loaded."""
        if self.model_id is None:
            return None
        return Tagger(self.library.models.get(self.model_id), self.library)

    def needed_tagger(self) -> Tagger:
        """The model in use, or a LibraryError that says how to get one."""
        if self.tagger is None:
            raise no_model()
        return self.tagger

    @_part
    def known(self) -> set[str]:
        """Every tag that a track may have."""
        used = self.library.used_tags().union(self.model.vocabulary)
        return used - self.library.renamed_tags().keys()

    @_part
    def aliases(self) -> dict[str, str]:
        """Another word → the tag that it means: former names, genres, the model's other words."""
        now = self.library.renamed_tags()
        words = {**builtin_tree().aliases, **self.library.genres().aliases}
        words = {word: now.get(tag, tag) for word, tag in (words | builtin_aliases()).items()}
        return {word: tag for word, tag in (words | now).items() if tag in self.known}

    @_part
    def synonyms(self) -> dict[str, str]:
        """The same, without words that people use alongside the tag: those are two tags."""
        used, now = self.library.used_tags(), self.library.renamed_tags()
        return {
            word: tag
            for word, tag in self.aliases.items()
            if word in now or not {word, tag} <= used
        }

    def name(self, tag: str) -> str:
        """The name of a tag given in any spelling, or of the tag that a word means."""
        name = normalise_tag(tag)
        return name if name in self.known else self.aliases.get(name, name)

    def has_synonym(self, tag: str, tags: Iterable[str]) -> bool:
        """Whether another one of these tags means the same."""
        names = self.synonyms
        meant = names.get(tag, tag)
        return meant in [names.get(other, other) for other in tags if other != tag]

    @_part
    def places(self) -> dict[str, int]:
        """Tag → its place in the model, for learnt tags."""
        learnt = self.model.learnt
        return {tag: j for j, tag in enumerate(self.model.vocabulary) if learnt[j]}

    @_part
    def _by_name(self) -> Ids:
        """The tracks whose files exist, in the order of their names."""
        rows = self._present(track.c.path, track.c.title, track.c.artist, track.c.id)
        rows = sorted(rows, key=lambda row: track_name(*row[:3]).casefold())
        return np.array([row.id for row in rows], np.int64)

    @_part
    def _names(self) -> list[str]:
        """Title, artist, album and file name of each of `ids`, in lower case."""
        return [
            "\n".join([*(word or "" for word in words), track_name(path)]).casefold()
            for *words, path in self._present(
                track.c.title, track.c.artist, track.c.album, track.c.path
            )
        ]

    def _present(self, *columns: Any) -> Sequence[Any]:
        query = sa.select(*columns).where(track.c.state == "present").order_by(track.c.id)
        return self.library.fetch(query)

    @_part
    def reached(self) -> Mask:
        """(n_learnt, n) which tracks get each learnt tag from the model."""
        found, least = self.predictions, packed(self.model.thresholds)
        rows = np.zeros((len(self.places), len(found.ids)), bool)
        for row, j in enumerate(self.places.values() if len(found.ids) else ()):
            rows[row] = (found.steps[j] >= least[j]) & (found.steps[j] < 65535)
        return rows

    def write_thresholds(self, precision: float | None, owner: Owner | None = None) -> Floats:
        """(n_tags,) the least probability at which each tag of the model is written, as trained."""
        if self.model_id is None:
            return np.empty(0, np.float32)
        with self._lock:
            if (precision, owner) not in self._write_thresholds:
                model = self.library.models.get(self.model_id)
                self._write_thresholds[precision, owner] = write_thresholds(model, precision, owner)
            return self._write_thresholds[precision, owner]

    @_part
    def curves(self) -> list[PrecisionCurve]:
        """The precision curves of the model in use, by place; empty if it has none."""
        return precision_curves(self.library.models.get(self.model_id)) if self.model_id else []

    def write_precision(self, precision: float | None) -> dict[str, float]:
        """Tag → how often it is right above its threshold: the median estimate."""
        thresholds, found = self.write_thresholds(precision), {}
        for tag, place in self.places.items():
            for curve in self.curves[place : place + 1]:
                if (rank := curve.at(float(thresholds[place]))) is not None:
                    found[tag] = float(curve.below(0.5)[rank])
        return found

    def not_reached(self, precision: float | None) -> dict[str, float | None]:
        """Learnt tag that never reaches this precision → its best precision, as a lower bound."""
        thresholds, found = self.write_thresholds(precision), dict[str, float | None]()
        for tag, place in self.places.items():
            if place >= len(thresholds) or thresholds[place] > 1:
                bounds = [one.below() for one in self.curves[place : place + 1]]
                found[tag] = max((float(one.max()) for one in bounds if len(one)), default=None)
        return found

    def shown(self, tag: str) -> str:
        """How this library spells a tag."""
        return self.spellings.get(tag, tag)

    def kind(self, tag: str) -> str:
        """The kind of a tag: genre, mood, instrument, voice, era, sound, own, or none."""
        return kind_of(tag, self.kinds)

    def owner(self, tag: str) -> Owner:
        """Whose tag it is: learnt here, from the built-in model, or only people's."""
        if (place := self.places.get(tag)) is None:
            return "people"
        return "own" if self.model.is_own[place] else "built-in"

    def threshold(self, tag: str) -> float | None:
        """The threshold of a tag; None if the model has not learnt it."""
        place = self.places.get(tag)
        return None if place is None else float(self.model.thresholds[place])

    @property
    def _is_warm(self) -> bool:
        """Whether all predictions are in memory."""
        return "predictions" in self.__dict__

    def agreed(self, names: Sequence[str]) -> dict[str, Agreement]:
        """Tag → the tracks where people agree on it."""
        warm = "verdicts" in self.__dict__ or self._is_warm
        table = self.verdicts if warm else VerdictTable.read(self.library, names)
        return {name: table.agreement(name) for name in names}

    def agreed_of(self, track_id: int) -> dict[str, bool]:
        """Tag → whether it holds for a track, if people agree; the most mentioned first."""
        if "verdicts" in self.__dict__:
            return self.verdicts.of_track(track_id)
        opinions = self.library.opinions.triples([track_id])
        return agreed_tags(opinions, self.library.genres()).get(track_id, {})

    def columns(self, tags: Sequence[int]) -> tuple[Ids, Floats]:
        """The tracks with predictions (n,), ascending, and those of some tags (n, len(tags))."""
        if not self._is_warm:
            return self.library.predictions.columns(self.model.id, tags)
        found = self.predictions
        if not len(found.ids):
            return found.ids, np.empty((0, len(tags)), np.float32)
        return found.ids, np.stack([unpacked(found.steps[j]) for j in tags]).T  # tag by tag

    def trained_columns(self, tags: Places, ids: Ids) -> Iterable[Floats]:
        """The probabilities of tracks (n,), tag by tag, as the model was trained."""
        if self._is_warm and np.array_equal(self.trained.ids, ids):
            yield from (unpacked(self.trained.steps[j]) for j in tags.tolist())
            return
        for some in batches(tags.tolist(), N_READ):  # never all in memory
            yield from self.probabilities(ids, some, refined=False).T

    def probabilities(
        self, ids: Ids, tags: Sequence[int] | None = None, *, refined: bool = True
    ) -> Floats:
        """(len(ids), n_tags) what the model says about tracks; NaN where it says nothing."""
        if self._is_warm:
            return (self.predictions if refined else self.trained).rows(ids, tags)
        return self.library.predictions.probabilities(self.model.id, ids, tags, refined=refined)

    def features(self, ids: Ids, names: Container[str] = AUDIO_FEATURES) -> list[dict[str, float]]:
        """Audio feature → its value, for each track; empty if the model says nothing."""
        places = {name: j for name, j in self.model.features.items() if name in names}
        if not places:
            return [{} for _ in ids]
        P = self.probabilities(ids, [*places.values()])
        return [{} if np.isnan(p).any() else dict(zip(places, p.tolist(), strict=True)) for p in P]

    def search(
        self,
        question: Question,
        limit: int = 20,
        offset: int = 0,
        *,
        count: bool = True,
        shown_tags: bool = False,
    ) -> SearchResult:
        """One page of the tracks that match a query; ``shown_tags`` as in `page`.

        Without ``count``, the total is only known if it is less than a page.
        """
        self._make_comparable(question)
        with self.library.reading():
            if not (count or offset or self._is_warm or question.is_ordered_by_sound):
                found = self._ranked(question)
                hits = [
                    hit for hit in self.page(found, 0, 2 * limit) if hit.track.state == "present"
                ]
                if len(hits) > limit:
                    return SearchResult(hits[:limit], None, 0, 0, found.people_only)
            found = self.find(question)
            hits = self.page(found, offset, limit, shown_tags=shown_tags)
        return SearchResult(hits, len(found.ids), offset, found.n_below, found.people_only)

    def find(self, question: Question) -> Found:
        """All tracks that match a query; the result is cached."""
        with self._lock:
            if question in self._results:
                self._results.move_to_end(question)
                return self._results[question]
        self._make_comparable(question)
        usual = question._replace(order=None) if question.order == "smooth" else question
        found = self._ranked(usual, self._named(question.name))
        if question.is_ordered_by_sound:
            found = self._by_sound(question, found)
        with self._lock:
            self._results[question] = found
            while len(self._results) > N_RESULTS:
                self._results.popitem(last=False)
        return found

    def likely(self, text: str) -> Ids:
        """The tracks that match a query with 50 % or more; without a query, all tracks."""
        return self.find(Question(text.strip(), min_probability=0.5)).ids

    def _make_comparable(self, question: Question) -> None:
        """Make sure that all tracks have the vectors that a query compares."""
        named = [one for one in (question.like, question.start, question.end) if one is not None]
        for one in named:
            self.library.tracks.get(one)
        if named or question.is_ordered_by_sound:
            update_sound_vectors(self.library)

    def _by_sound(self, question: Question, found: Found) -> Found:
        """The path between two tracks through those found, or the first ones in a smooth order."""
        start, end, sounds = question.start, question.end, self.sounds
        model = self.model.only(question.owner)
        if not 2 <= question.stops <= MAX_STOPS:
            rule = f"A path or a smooth order must have 2 to {MAX_STOPS} tracks (-n)"
            raise DataError(f"{rule}, got {question.stops}.")
        if start is None and end is None:
            first = found.rows(0, min(question.stops, len(found.ids)))
            heard = sounds.rows(found.ids[first])  # tracks without one come last
            order = smooth_order(similarity_matrix(self, model, found.ids[first[heard]]))
            rows = np.append(first[heard][order], np.delete(first, heard))
            return replace(found.only(rows), score=None)
        if start is None or end is None or start == end or (question.like or question.order):
            raise DataError(
                "A path needs two different tracks, 'start' and 'end' (--from and --to), and no "
                "'like' or 'order'."
            )
        tagged = self.columns([0])[0]
        ids, to_start = similarities(self, model, start, tagged)
        _, to_end = similarities(self, model, end, tagged)
        inside = np.flatnonzero(np.isin(ids, found.ids) & (ids != start) & (ids != end))
        apart = float(to_start[np.searchsorted(ids, end)])
        pool = inside[pool_between(to_start[inside], to_end[inside], apart)]
        chosen = np.array([start, *ids[pool], end])
        matrix = similarity_matrix(self, model, chosen)
        matrix[0, 1:] = to_start[[*pool, np.searchsorted(ids, end)]]  # people's tags count, too
        matrix[1:-1, -1] = to_end[pool]
        path = smoothest(matrix, question.stops)
        near = np.append(np.float32(1), matrix[path[:-1], path[1:]])
        return Found(chosen[path], similarity=near, features=found.features)

    def _ranked(self, question: Question, present: Ids | None = None) -> Found:
        """The tracks among ``present`` that match a query; None: among all."""
        text, like, order = question.text.strip(), question.like, question.order
        if order is not None and order not in ORDERS:
            hint = did_you_mean(order, ORDERS, examples=len(ORDERS))
            raise DataError(f"Tracks cannot be ordered by {order!r}.{hint}")
        if order == "likeness" and like is None:
            raise DataError("To order tracks by similarity, name a track with 'like'.")
        query = None
        if text:
            try:
                query = self.parsed(text)
            except UnknownTagError:  # but it may be a title or an artist
                named = self._named(f"{text} {question.name}".replace('"', " "))
                if not len(named) or like is not None or question.predicted:
                    raise
                text, present = "", named
        if present is None and (order in ("name", "added") or question.name.strip()):
            present = self._named(question.name)
        features = {*AUDIO_FEATURES} if question.features else {(order or "").removeprefix("-")}
        if not text and like is None and not question.predicted:
            if (ordered := self._by_feature(present, order)) is not None:
                return Found(ordered[0], score=ordered[1], features=features)
            ids = self._ordered(self.ids if present is None else present, order)
            return Found(ids, features=features)
        model = self.model.only(question.owner)
        ranked = rank(self, model, query, like, predicted=question.predicted)
        assert ranked.probability is not None
        possible = ranked.probability > 0
        if present is not None:
            possible &= np.isin(ranked.ids, present, assume_unique=True)
        enough = possible & (ranked.probability >= question.min_probability)
        found = ranked.only(np.flatnonzero(enough))
        if order == "likeness":
            found.score = found.similarity
        elif order in ("name", "added"):
            rows = np.searchsorted(found.ids, self._ordered(found.ids, order))
            found = replace(found.only(rows), score=None)
        elif (ordered := self._by_feature(found.ids, order)) is not None:
            found.score = ordered[1]
        found.n_below = int(possible.sum() - enough.sum())
        found.features |= features
        if query is None:
            found.probability = None
        return found

    def parsed(self, text: str) -> Query:
        """The query that a text means; it may exclude a common tag that no track has."""
        with suppress(UnknownTagError):  # other words for tags are looked up only if needed
            return parse(text, self.known)
        try:
            return parse(text, self.known, self.aliases)
        except UnknownTagError:
            with suppress(UnknownTagError):
                query = parse(text, self.known.union(self.library.kinds()), self.aliases)
                if query.wanted() <= self.known:
                    return query
            raise

    def _named(self, text: str) -> Ids:
        """The tracks whose names have all words of a text, ascending."""
        words = text.casefold().split()
        if not words:
            return self.ids
        return self.ids[[all(word in name for word in words) for name in self._names]]

    def _ordered(self, ids: Ids, order: str | None) -> Ids:
        """Tracks (n,), given in ascending order, by name or the latest first."""
        if order == "added":
            return ids[::-1]
        if len(ids) == len(self._by_name):
            return self._by_name
        return self._by_name[np.isin(self._by_name, ids, assume_unique=True)]

    def _by_feature(self, ids: Ids | None, order: str | None) -> tuple[Ids, Floats] | None:
        """Tracks (n,), or all that have the audio feature, ordered by it, and its values, (n,)."""
        if order is None or (feature := order.removeprefix("-")) not in AUDIO_FEATURES:
            return None
        known, P = self.columns([feature_place(self.model, feature)])
        ids = known if ids is None else ids
        here = np.isin(ids, known, assume_unique=True)
        score = np.full(len(ids), -np.inf, np.float32)  # tracks without it come last
        score[here] = P[np.searchsorted(known, ids[here]), 0] * (1 if feature == order else -1)
        return ids, score

    def page(self, found: Found, offset: int, limit: int, *, shown_tags: bool = False) -> list[Hit]:
        """Some tracks of a result."""
        rows = found.rows(offset, offset + limit)
        ids = found.ids[rows]

        def part(values: NDArray[Any] | None) -> list[Any]:
            return [None] * len(ids) if values is None else values[rows].tolist()

        sources = [None if code is None else SOURCES[code] for code in part(found.sources)]
        tags = [{name: float(p[row]) for name, p in found.tags.items()} for row in rows]
        shown: list[Any] = self.shown_tags(ids) if shown_tags else [[] for _ in ids]
        values = self.features(ids, found.features)
        columns = (part(found.probability), part(found.similarity), sources, tags, shown, values)
        return [Hit(*row) for row in zip(self.library.tracks.many(ids), *columns, strict=True)]

    def shown_tags(self, ids: Ids) -> list[list[TrackTag]]:
        """The most telling tags of tracks: people's, then the model's (`Tagger.telling`)."""
        probabilities = self.predictions.rows(ids)
        places = np.array(list(self.places.values()), np.intp)
        found = []
        for number, p in zip(ids.tolist(), probabilities, strict=True):
            said = self.verdicts.of_track(number)
            has = [tag for tag, holds in said.items() if holds]
            tags = [TrackTag(tag, self.shown(tag), 1.0, "people") for tag in has[:N_SHOWN_TAGS]]
            if self.tagger is not None and len(places) and len(p):
                reached = places[p[places] >= self.model.thresholds[places]]
                for j in reached[np.argsort(-self.tagger.telling(p)[reached], kind="stable")]:
                    tag = self.model.vocabulary[j]
                    if len(tags) == N_SHOWN_TAGS:
                        break
                    if tag not in said and not self.has_synonym(tag, has):
                        tags.append(TrackTag(tag, self.shown(tag), float(p[j]), "model"))
            found.append(tags)
        return found

    def facets(self, found: Found) -> list[Facet]:
        """The tags in a result, given by people or predicted, the most common first."""
        ids = np.sort(found.ids)
        here = np.isin(self.predictions.ids, ids, assume_unique=True)
        counts = {
            tag: int(np.count_nonzero(self.reached[row] & here))
            for row, tag in enumerate(self.places)
        }
        if len(self.verdicts.tracks):
            for tag, n in self._people_add(np.isin(self.verdicts.tracks, ids)).items():
                counts[tag] = counts.get(tag, 0) + n
        best = sorted(((tag, n) for tag, n in counts.items() if n > 0), key=lambda x: (-x[1], x[0]))
        return [Facet(tag, self.shown(tag), self.kind(tag), n) for tag, n in best]

    def _people_add(self, chosen: Mask) -> dict[str, int]:
        """Tag → how many ``chosen`` rows people gave it, less those for which it was predicted."""
        table, found = self.verdicts, self.predictions
        rank_of = {tag: row for row, tag in enumerate(self.places)}
        row_of = np.array([rank_of.get(name, -1) for name in table.names], np.intp)
        tags, tracks, holds = table.tags[chosen], table.tracks[chosen], table.holds[chosen]
        guessed = np.zeros(len(tags), bool)
        if len(found.ids) and len(self.places):
            at, there = places_in(found.ids, tracks)
            modelled = (row_of[tags] >= 0) & there
            guessed = modelled & self.reached[np.maximum(row_of[tags], 0), at]
        change = np.bincount(tags, holds.astype(int) - guessed.astype(int), len(table.names))
        return {
            name: int(n)
            for name, n in zip(table.names, change, strict=True)
            if n and name not in self.hidden
        }
