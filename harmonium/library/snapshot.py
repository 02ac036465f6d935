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
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.arrays import Floats, Ids, Mask, Places
from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.errors import DataError, UnknownTagError, did_you_mean
from harmonium.library.library import Library
from harmonium.library.model.tag_table import LibraryTagFacts, Tag, TagTable, evidence_of
from harmonium.library.model.tagger import Tagger, no_model
from harmonium.library.search import Query, parse
from harmonium.library.searching.likeness import similarities, similarity_matrix
from harmonium.library.searching.paths import MAX_STOPS, pool_between, smooth_order, smoothest
from harmonium.library.searching.ranking import (
    MATCHING_FIRST,
    NO_VALUE,
    SOURCES,
    Ranking,
    aligned,
    feature_column,
    rank,
)
from harmonium.library.sound import SoundVectors, try_to_update_sound_vectors
from harmonium.library.store.database import LibraryVersion, batches
from harmonium.library.store.models import NO_MODEL, Owner
from harmonium.library.store.predictions import ModelPredictions, Steps, places_in, unpacked
from harmonium.library.store.schema import track as track_table
from harmonium.library.store.tracks import Track, track_name
from harmonium.library.verdicts import Agreement, VerdictTable, agreed_tags

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
    min_probability: float | None = None  # any this likely match; None: those that have the tags
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
    holds: bool  # whether it matches; less likely tracks do not
    source: str | None
    """Who says so: "people", the "model", or "nobody" if no tag excludes it; None if nothing was
    asked."""
    tags: dict[str, float] = field(default_factory=dict)  # tag of the query → its probability
    shown_tags: list[TrackTag] = field(default_factory=list)  # the most informative ones, on a page
    features: dict[str, float] = field(default_factory=dict)
    """Its audio features: all if asked for, else those in the query and the order."""


@dataclass(frozen=True)
class SearchResult:
    """One page of what a search found: tracks that match, then less likely ones."""

    hits: list[Hit]
    total: int | None  # how many match; None if there are more hits, and they were not counted
    offset: int  # how many tracks come before the hits
    n_below: int  # less likely tracks; 0 if they were not counted
    people_only: list[str]  # query tags that the model has not learnt: only people count
    n_other: int = 0
    """Tracks that cannot match, by what people say or for want of predictions; 0 if they were not
    counted."""

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


class FeatureScores(NamedTuple):
    """Tracks (n,), and the scores (n,) that order them by an audio feature."""

    ids: Ids
    score: Floats


class _part(Generic[T]):
    """A `Snapshot` property that is computed once, under the snapshot's lock.

    `functools.cached_property` has its own lock in Python 3.11. Two threads that each hold one of
    the two locks and want the other would wait forever.
    """

    def __init__(self, work: Callable[["Snapshot"], T]) -> None:
        self._work = work
        self.__doc__ = work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, snapshot: "Snapshot", owner: type | None = None) -> T:
        with snapshot._lock:
            if self._name not in snapshot.__dict__:
                snapshot.__dict__[self._name] = self._work(snapshot)
            return snapshot.__dict__[self._name]


def _opinions(version: LibraryVersion) -> tuple[int, int, int]:
    """The numbers that change with opinions."""
    return version.change, version.opinion, version.withdrawn


class Snapshot:
    """One state of a library; threads may share it."""

    def __init__(self, library: Library, version: LibraryVersion, model_id: int | None) -> None:
        self.library = library
        self.version = version
        self.model_id = model_id
        self.model = NO_MODEL if model_id is None else library.models.get(model_id, whole=False)
        self._lock = threading.RLock()
        self._results: OrderedDict[Question, Ranking] = OrderedDict()

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
        old = before.version
        same_opinions = _opinions(version) == _opinions(old)
        kept: list[str] = []
        if same_opinions:
            kept.append("verdicts")
        same_tags = new.model.vocabulary == before.model.vocabulary
        same_predictions = (version.predictions, model_id) == (old.predictions, before.model_id)
        if same_predictions and same_tags:  # the model may be newer than the version
            kept += ["predictions", "trained"]
        if new._model_state == before._model_state:
            kept.append("tagger")
        if new.model.id == before.model.id:
            kept.append("evidence")
        if version.tracks == old.tracks:
            kept += ["sounds", "ids", "_by_name", "_names"]
        for part in kept:
            if part in before.__dict__:
                new.__dict__[part] = before.__dict__[part]
        if "verdicts" in before.__dict__ and not same_opinions:
            new.__dict__["verdicts"] = before.verdicts.updated(library, old)
        return new

    @property
    def _model_state(self) -> object:
        """What depends on the model."""
        model = self.model
        digests = [refinement.digest for refinement in model.refinements]
        return model.id, tuple(model.vocabulary), model.thresholds.tobytes(), digests

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
    evidence = _part(lambda self: evidence_of(self.library, self.model))
    """What held-out tracks show about the model in use."""
    tags = _part(lambda self: TagTable(self.model, LibraryTagFacts(self.library), self.evidence))
    """The table of tags."""

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
    def _by_name(self) -> Ids:
        """The tracks whose files exist, in the order of their names."""
        rows = self._present(
            track_table.c.path, track_table.c.title, track_table.c.artist, track_table.c.id
        )
        rows = sorted(rows, key=lambda row: track_name(*row[:3]).casefold())
        return np.array([row.id for row in rows], np.int64)

    @_part
    def _names(self) -> list[str]:
        """Title, artist, album and file name of each of `ids`, in lower case."""
        return [
            "\n".join([*(word or "" for word in words), track_name(path)]).casefold()
            for *words, path in self._present(
                track_table.c.title, track_table.c.artist, track_table.c.album, track_table.c.path
            )
        ]

    def _present(self, *columns: Any) -> Sequence[Any]:
        query = (
            sa.select(*columns).where(track_table.c.state == "present").order_by(track_table.c.id)
        )
        return self.library.fetch(query)

    @_part
    def holding(self) -> "Holding":
        """Which tracks have each tag."""
        return Holding.of(self)

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

    def steps(self, columns: Sequence[int]) -> ModelPredictions:
        """What the model says about all tracks, as stored, for some columns."""
        if not self._is_warm:
            return self.library.predictions.matrix(self.model.id, columns)
        predictions = self.predictions
        if not len(predictions.ids):
            return ModelPredictions(predictions.ids, np.empty((len(columns), 0), "<u2"))
        return ModelPredictions(predictions.ids, predictions.steps[columns])

    def columns(self, tags: Sequence[int]) -> tuple[Ids, Floats]:
        """The tracks with predictions (n,), ascending, and those of some tags (n, len(tags))."""
        ids, steps = self.steps(tags)
        return ids, unpacked(steps).T

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
        columns = {name: j for name, j in self.tags.features.items() if name in names}
        if not columns:
            return [{} for _ in ids]
        values = []
        for p in self.probabilities(ids, [*columns.values()]):
            known = {} if np.isnan(p).any() else dict(zip(columns, p.tolist(), strict=True))
            values.append(known)
        return values

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
                ranking = self._ranked(question)
                page = self.page(ranking, 0, 2 * limit)
                hits = [hit for hit in page if hit.track.state == "present"]
                if len(hits) > limit:
                    return SearchResult(
                        hits=hits[:limit],
                        total=None,
                        offset=0,
                        n_below=0,
                        people_only=ranking.people_only,
                    )
            ranking = self.find(question)
            hits = self.page(ranking, offset, limit, shown_tags=shown_tags)
        return SearchResult(
            hits=hits,
            total=ranking.n_matching,
            offset=offset,
            n_below=ranking.n_below,
            people_only=ranking.people_only,
            n_other=ranking.n_other,
        )

    def find(self, question: Question) -> Ranking:
        """All tracks that match a query; the result is cached."""
        with self._lock:
            if question in self._results:
                self._results.move_to_end(question)
                return self._results[question]
        self._make_comparable(question)
        usual = question._replace(order=None) if question.order == "smooth" else question
        ranking = self._ranked(usual, self._named(question.name))
        if question.is_ordered_by_sound:
            ranking = self._by_sound(question, ranking)
        with self._lock:
            self._results[question] = ranking
            while len(self._results) > N_RESULTS:
                self._results.popitem(last=False)
        return ranking

    def matching(self, text: str) -> Ids:
        """The tracks that match a query; without a query, all tracks."""
        return self.find(Question(text.strip())).matching

    def _make_comparable(self, question: Question) -> None:
        """Make sure that all tracks have the vectors that a query compares."""
        ends = (question.like, question.start, question.end)
        named = [track for track in ends if track is not None]
        for track in named:
            self.library.tracks.get(track)
        if named or question.is_ordered_by_sound:
            try_to_update_sound_vectors(self.library)

    def _by_sound(self, question: Question, ranking: Ranking) -> Ranking:
        """Tracks that match as a path between two tracks, or in a smooth order."""
        if not 2 <= question.stops <= MAX_STOPS:
            rule = f"A path or a smooth order must have 2 to {MAX_STOPS} tracks (-n)"
            raise DataError(f"{rule}, got {question.stops}.")
        table = self.tags.only(question.owner)
        start = question.start
        end = question.end
        if start is None and end is None:
            return self._smooth_order(ranking, table, question.stops)
        if start is None or end is None or start == end or (question.like or question.order):
            raise DataError(
                "A path needs two different tracks, 'start' and 'end' (--from and --to), and no "
                "'like' or 'order'."
            )
        return self._path(ranking, table, start, end, question.stops)

    def _smooth_order(self, ranking: Ranking, table: TagTable, n_stops: int) -> Ranking:
        """The first tracks that match, each similar to the one before."""
        first = ranking.rows(0, min(n_stops, ranking.n_matching))
        heard = self.sounds.rows(ranking.ids[first])  # tracks without a vector come last
        order = smooth_order(similarity_matrix(self, table, ranking.ids[first[heard]]))
        rows = np.append(first[heard][order], np.delete(first, heard))
        return replace(ranking.only(rows), score=None)

    def _path(
        self, ranking: Ranking, table: TagTable, start: int, end: int, n_stops: int
    ) -> Ranking:
        """A path by sound from one track to another, through tracks that match."""
        tagged = self.steps([0]).ids
        ids, to_start = similarities(self, table, start, tagged)
        _, to_end = similarities(self, table, end, tagged)
        end_row = int(np.searchsorted(ids, end))
        inside = np.flatnonzero(np.isin(ids, ranking.matching) & (ids != start) & (ids != end))
        between = pool_between(to_start[inside], to_end[inside], float(to_start[end_row]))
        pool = inside[between]
        chosen = np.array([start, *ids[pool], end])
        matrix = similarity_matrix(self, table, chosen)
        matrix[0, 1:] = to_start[[*pool, end_row]]  # people's tags count, too
        matrix[1:-1, -1] = to_end[pool]
        path = smoothest(matrix, n_stops)
        to_the_one_before = np.append(np.float32(1), matrix[path[:-1], path[1:]])
        return Ranking(ids=chosen[path], similarity=to_the_one_before, features=ranking.features)

    def _ranked(self, question: Question, present: Ids | None = None) -> Ranking:
        """The tracks among ``present`` that match a query; None: among all."""
        text = question.text.strip()
        order = question.order
        _check_order(question)
        query = None
        if text:
            try:
                query = self.parsed(text)
            except UnknownTagError:  # but it may be a title or an artist
                present = self._named(f"{text} {question.name}".replace('"', " "))
                if not len(present) or question.like is not None or question.predicted:
                    raise
        if present is None and (order in ("name", "added") or question.name.strip()):
            present = self._named(question.name)
        if query is None and question.like is None and not question.predicted:
            ranking = self._without_query(present, order)
        else:
            ranking = self._in_order(self._matching(question, query, present), order)
        if question.features:
            ranking.features |= {*AUDIO_FEATURES}
        elif order is not None:
            ranking.features |= {order.removeprefix("-")} & {*AUDIO_FEATURES}
        return ranking

    def _without_query(self, present: Ids | None, order: str | None) -> Ranking:
        """All tracks among ``present``, in an order."""
        values = self._by_feature(present, order)
        if values is not None:
            return Ranking(ids=values.ids, score=values.score)
        return Ranking(ids=self._ordered(self.ids if present is None else present, order))

    def _matching(self, question: Question, query: Query | None, present: Ids | None) -> Ranking:
        """The tracks among ``present`` that may match a query or are like a track, in no order."""
        table = self.tags.only(question.owner)
        ranking = rank(self, table, query, question.like, predicted=question.predicted)
        assert ranking.probability is not None
        assert ranking.holds is not None
        possible = ranking.probability > 0
        matches = ranking.holds
        if question.min_probability is not None:
            matches = possible & (ranking.probability >= question.min_probability)
        if present is not None:
            is_present = np.isin(ranking.ids, present, assume_unique=True)
            possible = possible & is_present
            matches = matches & is_present
        if question.min_probability is None:
            chosen = ranking.only(np.flatnonzero(possible | matches))
        else:
            chosen = ranking.only(np.flatnonzero(matches))
            chosen.holds = None
        if present is not None:
            chosen.n_below = int((possible & ~matches).sum())
            chosen.n_other = len(present) - int((possible | matches).sum())
        if query is None:
            chosen.probability = None
        return chosen

    def _in_order(self, ranking: Ranking, order: str | None) -> Ranking:
        """Tracks in an order, or with the scores for it; those that match come first."""
        if order in ("name", "added"):
            rows = np.searchsorted(ranking.ids, self._ordered(ranking.ids, order))
            if ranking.holds is not None:
                rows = rows[np.argsort(~ranking.holds[rows], kind="stable")]
            return replace(ranking.only(rows), score=None)
        if order == "likeness":
            ranking.score = ranking.similarity
        values = self._by_feature(ranking.ids, order)
        if values is not None:
            ranking.score = values.score
        if ranking.holds is not None and ranking.score is not None:
            ahead = np.float32(MATCHING_FIRST) * ranking.holds.astype(np.float32)
            ranking.score = ranking.score + ahead
        return ranking

    def parsed(self, text: str) -> Query:
        """The query that a text means; it may exclude a common tag that no track has."""
        with suppress(UnknownTagError):  # other words for tags are looked up only if needed
            return parse(text, self.tags.names)
        try:
            return parse(text, self.tags.names, self.tags.aliases)
        except UnknownTagError:
            with suppress(UnknownTagError):
                names = self.tags.names.union(self.tags.facts.kinds)
                query = parse(text, names, self.tags.aliases)
                if query.wanted() <= self.tags.names:
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

    def _by_feature(self, ids: Ids | None, order: str | None) -> "FeatureScores | None":
        """The scores of tracks, or all that have the audio feature, to order them by it."""
        feature = (order or "").removeprefix("-")
        if feature not in AUDIO_FEATURES:
            return None
        known, P = self.columns([feature_column(self.tags, feature)])
        values = P[:, 0] if feature == order else -P[:, 0]
        if ids is None:
            return FeatureScores(ids=known, score=values)
        score = np.full(len(ids), NO_VALUE, np.float32)
        here = np.isin(ids, known, assume_unique=True)
        score[here] = values[np.searchsorted(known, ids[here])]
        return FeatureScores(ids=ids, score=score)

    def page(
        self, ranking: Ranking, offset: int, limit: int, *, shown_tags: bool = False
    ) -> list[Hit]:
        """Some tracks of a ranking."""
        rows = ranking.rows(offset, offset + limit)
        ids = ranking.ids[rows]
        tags = self.shown_tags(ids) if shown_tags else [[] for _ in ids]
        values = self.features(ids, ranking.features)
        hits = []
        for i, track in enumerate(self.library.tracks.many(ids)):
            row = rows[i]
            hit = Hit(
                track=track,
                probability=_value(ranking.probability, row),
                similarity=_value(ranking.similarity, row),
                holds=ranking.holds is None or bool(ranking.holds[row]),
                source=None if ranking.sources is None else SOURCES[ranking.sources[row]],
                tags={name: float(p[row]) for name, p in ranking.tags.items()},
                shown_tags=tags[i],
                features=values[i],
            )
            hits.append(hit)
        return hits

    def shown_tags(self, ids: Ids) -> list[list[TrackTag]]:
        """The first tags of tracks: people's, then the model's that tell most about each."""
        steps = self.predictions.steps_of(ids)
        return [self._shown_tags_of(id, row) for id, row in zip(ids.tolist(), steps, strict=True)]

    def _shown_tags_of(self, track_id: int, steps: Steps) -> list[TrackTag]:
        said = self.verdicts.of_track(track_id)
        shown = []
        for name, holds in said.items():
            tag = self.tags[name]
            if holds and not tag.hidden:
                shown.append(
                    TrackTag(tag=name, shown=tag.spelling, probability=1.0, source="people")
                )
        if len(shown) < N_SHOWN_TAGS:
            for tag, p in self._predicted_tags(steps):
                if tag.name not in said and self.tags.holds(tag, said, p):
                    shown.append(
                        TrackTag(tag=tag.name, shown=tag.spelling, probability=p, source="model")
                    )
                if len(shown) == N_SHOWN_TAGS:
                    break
        return shown[:N_SHOWN_TAGS]

    def _predicted_tags(self, steps: Steps) -> Iterator[tuple[Tag, float]]:
        """The tags whose threshold a track's stored probabilities (n_tags,) reach, in order."""
        if self.tagger is None or not len(steps) or not self.tags.predicted:
            return
        reached = np.flatnonzero(self.tags.reached(steps)).tolist()
        p = unpacked(steps)
        gain = self.tagger.information_gain(p)
        tags = [self.tags.predicted[row] for row in reached]
        for tag in sorted(tags, key=lambda tag: -gain[tag.place]):
            yield tag, float(p[tag.place])

    def facets(self, ranking: Ranking) -> list[Facet]:
        """The tags of the tracks that match, the most common first."""
        facets = []
        for name, n in self.holding.counts(ranking.matching).items():
            tag = self.tags[name]
            if n and not tag.hidden:
                facets.append(Facet(tag=name, shown=tag.spelling, kind=tag.kind, n=n))
        return sorted(facets, key=lambda facet: (-facet.n, facet.tag))


@dataclass(frozen=True, eq=False)
class Holding:
    """Which tracks have each tag, as `Tag.holds` says."""

    ids: Ids  # (n,) the present tracks, ascending
    predicted: tuple[str, ...]  # the tags that the model gives
    matrix: Mask  # (n_predicted, n) which tracks have them
    by_people: Mask  # (n_rows,) which rows of the verdicts give a tag to one of these tracks
    verdicts: VerdictTable

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Holding":
        """That of a state of a library."""
        ids = snapshot.ids
        verdicts = snapshot.verdicts
        table = snapshot.tags
        predicted, known = places_in(snapshot.predictions.ids, ids)
        judged, present = places_in(ids, verdicts.tracks)
        yes = verdicts.holds & present
        no = ~verdicts.holds & present
        matrix = np.empty((len(table.predicted), len(ids)), bool)
        for out, tag in zip(matrix, table.predicted, strict=True):
            rows = verdicts.rows(tag.name)
            given = rows[yes[rows]]
            denied = [rows[no[rows]]]
            for synonym in table.synonyms_of(tag.name):
                rows = verdicts.rows(synonym)
                denied.append(rows[yes[rows]])
            steps = aligned(snapshot.predictions.steps[tag.place], predicted, known)
            tag.holding(steps, judged[given], judged[np.concatenate(denied)], out=out)
        return cls(
            ids=ids,
            predicted=tuple(tag.name for tag in table.predicted),
            matrix=matrix,
            by_people=yes,
            verdicts=verdicts,
        )

    def counts(self, ids: Ids) -> dict[str, int]:
        """Tag → how many of these tracks have it."""
        ids = np.sort(ids)
        chosen = places_in(ids, self.ids)[1]
        by_people = self._count_people(places_in(ids, self.verdicts.tracks)[1])
        here = np.empty_like(chosen)
        counts = {}
        for name, holds in zip(self.predicted, self.matrix, strict=True):
            np.logical_and(holds, chosen, out=here)
            counts[name] = int(np.count_nonzero(here))
        return by_people | counts

    @cached_property
    def people(self) -> dict[str, int]:
        """Tag → how many tracks people agree have it."""
        return self._count_people(np.ones(len(self.verdicts.tracks), bool))

    @cached_property
    def all(self) -> dict[str, int]:
        """Tag → how many tracks have it."""
        predicted = np.count_nonzero(self.matrix, axis=1).tolist()
        return self.people | dict(zip(self.predicted, predicted, strict=True))

    def _count_people(self, chosen: Mask) -> dict[str, int]:
        """Tag → how many of these rows of the verdicts give it to a present track."""
        tags = self.verdicts.tags[chosen & self.by_people]
        counts = np.bincount(tags, minlength=len(self.verdicts.names)).tolist()
        return {name: n for name, n in zip(self.verdicts.names, counts, strict=True) if n}


def _check_order(question: Question) -> None:
    """Raise a DataError if tracks cannot be ordered as asked."""
    order = question.order
    if order is not None and order not in ORDERS:
        hint = did_you_mean(order, ORDERS, examples=len(ORDERS))
        raise DataError(f"Tracks cannot be ordered by {order!r}.{hint}")
    if order == "likeness" and question.like is None:
        raise DataError("To order tracks by similarity, name a track with 'like'.")


def _value(column: NDArray[Any] | None, row: int) -> float | None:
    return None if column is None else float(column[row])
