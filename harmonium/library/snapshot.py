"""A library at hand: what searching and showing tracks need of it, kept in memory.

For programs that ask again and again, as a server does. Each question sees one state of the
library. What is kept is read again when the library's version says so, and then only that part:
the predictions, the verdicts, the tracks, or the model.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from harmonium.data.genre_tree import own_tree
from harmonium.data.normalise import normalise_tag
from harmonium.data.tag_splitting import possible_parts
from harmonium.errors import DataError
from harmonium.library import sound_space
from harmonium.library.answering.likeness import AtHand
from harmonium.library.answering.query import parse
from harmonium.library.answering.refined_tagger import current_tagger
from harmonium.library.answering.search import SOURCES, aliases, first, known_tags, rank
from harmonium.library.answering.shipped_model import shipped_model
from harmonium.library.answering.stored_tagger import StoredTagger
from harmonium.library.answering.verdict_table import VerdictTable
from harmonium.library.library import Library
from harmonium.library.precision import knows_precision, thresholds_for
from harmonium.library.store.database import LibraryVersion
from harmonium.library.store.models import Owner, StoredModel
from harmonium.library.store.predictions import Steps, packed, unpacked
from harmonium.library.store.schema import track
from harmonium.library.store.tracks import Track
from harmonium.library.verdicts import Agreement

Ids = NDArray[np.int64]
T = TypeVar("T")
Floats = NDArray[np.float32]
Order = Literal["probability", "likeness", "name", "added"]

KEPT_RESULTS = 16
"""Results of searches that are kept, for their further pages and their facets."""
TELLING_TAGS = 6
"""Tags that are shown with a track in a list."""
ORDERED_AT_ONCE = 500
"""Tracks of a result that are put in order, at least."""
MOST_FACETS = 40
OTHER = "other"
"""The group of tags of which it is not known."""


class Question(NamedTuple):
    """What is looked for."""

    text: str = ""
    """A question in tags, as `query` reads it; empty for any track."""
    like: int | None = None
    """The number of a track to be like."""
    order: Order | None = None
    """By default the surest first, or by name where nothing is asked."""
    min_probability: float = 0.0
    owner: Owner | None = None
    predicted: bool = False
    """Only what the model adds."""
    name: str = ""
    """Words that a track's title, artist, album and file name must have between them."""


@dataclass(eq=False)
class Found:
    """The tracks that answer a question; all (n,). They are put in order as far as is needed."""

    ids: Ids
    """In any order, see `first`."""
    score: Floats | None
    """What they are ordered by; None where they are in order."""
    probability: Floats | None
    """None where nothing was asked for."""
    similarity: Floats | None
    sources: NDArray[np.uint8] | None
    """Places in `search.SOURCES`."""
    people_only: list[str]
    n_below: int
    _ordered: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp), repr=False)

    def rows(self, begin: int, end: int) -> NDArray[np.intp]:
        """Where the tracks from one place in the order to another are."""
        end = min(end, len(self.ids))
        if self.score is None:
            return np.arange(min(begin, end), end)
        if len(self._ordered) < end:
            self._ordered = first(self.score, max(ORDERED_AT_ONCE, 2 * end))
        return self._ordered[begin:end]

    def first(self, n: int) -> Ids:
        """The first tracks in order."""
        return self.ids[self.rows(0, n)]


@dataclass(frozen=True)
class ShownTag:
    """A tag of a track in a list."""

    tag: str
    shown: str
    """The tag as this library spells it."""
    probability: float | None
    """None if people say so."""
    source: Literal["people", "model"]


@dataclass(frozen=True)
class Hit:
    """A track that was found."""

    track: Track
    probability: float | None
    """How likely the track answers the question; None where no tags were asked for."""
    similarity: float | None
    """The cosine with the track of ``like``: 1 for the same, 0 for as unlike as any two tracks."""
    source: str | None
    """Who says so: "people", the "model", or "nobody", where nothing speaks against it; None where
    nothing was asked."""
    shown_tags: list[ShownTag] = field(default_factory=list)
    """The tags that say most of the track, on a page."""
    tags: dict[str, float] = field(default_factory=dict)
    """Tag of the question → its probability."""


@dataclass(frozen=True)
class SearchResult:
    """One page of what a search found."""

    hits: list[Hit]
    total: int
    """How many tracks were found."""
    offset: int
    """How many of them come before the hits."""
    n_below: int
    """Tracks that are less probable than was asked for."""
    people_only: list[str]
    """Tags of the question that the model has not learnt: only what people say counts."""

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


@dataclass(frozen=True)
class Facet:
    """A tag, and how many tracks of a result have it."""

    tag: str
    shown: str
    """The tag as this library spells it."""
    group: str
    n: int


@dataclass(frozen=True, eq=False)
class ModelPredictions:
    """What a model says of all tracks."""

    ids: Ids
    """(n,) ascending"""
    steps: Steps
    """(n_tags, n) as stored"""

    @cached_property
    def means(self) -> Floats:
        """(n_tags,) how usual each tag is."""
        if not len(self.ids):
            return np.zeros(len(self.steps), np.float32)
        return unpacked(np.rint(self.steps.mean(axis=1)).astype(np.uint16))

    def rows(self, ids: Ids) -> Floats:
        """(len(ids), n_tags) of some tracks; NaN where there is nothing."""
        found = np.full((len(ids), len(self.steps)), np.nan, np.float32)
        if len(self.ids):
            at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
            here = self.ids[at] == ids
            found[here] = unpacked(self.steps[:, at[here]]).T
        return found


class _part(Generic[T]):
    """A property of a `Snapshot` that is worked out once, under the view's lock.

    `functools.cached_property` has a lock of its own in Python 3.11. A thread that holds it and
    wants the view's, and one that holds the view's and wants it, would wait for each other.
    """

    def __init__(self, work: Callable[[Any], T]) -> None:
        self._work, self.__doc__ = work, work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, view: "Snapshot", owner: type | None = None) -> T:
        with view._lock:
            if self._name not in view.__dict__:
                view.__dict__[self._name] = self._work(view)
            return view.__dict__[self._name]


class Snapshot:
    """One state of a library. What is asked for is read when it is first needed."""

    def __init__(self, library: Library, version: LibraryVersion, model_id: int | None) -> None:
        self.library, self.version, self.model_id = library, version, model_id
        self.model = None if model_id is None else library.models.get(model_id, whole=False)
        self._before: Snapshot | None = None
        self._lock = threading.RLock()
        self._results: OrderedDict[Question, Found] = OrderedDict()
        self._write_thresholds: dict[float | None, Floats] = {}

    @classmethod
    def after(
        cls,
        before: "Snapshot | None",
        library: Library,
        version: LibraryVersion,
        model_id: int | None,
    ) -> "Snapshot":
        """The next state; what has not changed since the last one is taken from it."""
        view = cls(library, version, model_id)
        if before is None:
            return view
        for part in (
            "verdicts",
            "predictions",
            "trained",
            "sounds",
            "ids",
            "_by_name",
            "_names",
            "in_files",
            "tagger",
        ):
            if part in before.__dict__ and view._still_holds(part, before):
                view.__dict__[part] = before.__dict__[part]
        if view._same_model(before):
            view._write_thresholds = before._write_thresholds
        if "verdicts" in before.__dict__ and "verdicts" not in view.__dict__:
            old = before.verdicts
            view.__dict__["verdicts"] = old.brought_up_to(library, before.version)
        return view

    def _still_holds(self, part: str, before: "Snapshot") -> bool:
        new, old = self.version, before.version
        if part == "verdicts":
            return (new.change, new.opinion) == (old.change, old.opinion)
        if part in ("predictions", "trained"):
            return (new.predictions, self.model_id) == (old.predictions, before.model_id)
        if part == "tagger":
            return self._same_model(before)
        return new.tracks == old.tracks

    def _same_model(self, before: "Snapshot") -> bool:
        one, other = self.model, before.model
        if one is None or other is None or one.id != other.id:
            return one is other
        digests = ([refined.digest for refined in model.refinements] for model in (one, other))
        return (
            one.vocabulary == other.vocabulary
            and np.array_equal(one.thresholds, other.thresholds)
            and next(digests) == next(digests)
        )

    # Parts. ---------------------------------------------------------------------------------

    @_part
    def verdicts(self) -> VerdictTable:
        """What people agree on."""
        return VerdictTable.read(self.library)

    @_part
    def predictions(self) -> ModelPredictions:
        """What the model in use says of all tracks."""
        if self.model_id is None:
            return ModelPredictions(np.empty(0, np.int64), np.empty((0, 0), np.uint16))
        return ModelPredictions(*self.library.predictions.matrix(self.model_id))

    @_part
    def trained(self) -> ModelPredictions:
        """The same as the model was trained, without what it learnt from answers since."""
        if self.model is None or not self.model.id:
            return self.predictions
        return ModelPredictions(*self.library.predictions.matrix(self.model.id, refined=False))

    @_part
    def sounds(self) -> tuple[Ids, NDArray[np.int8]]:
        """How the tracks sound, as of `sound_space.all_vectors`."""
        return sound_space.all_vectors(self.library)

    @_part
    def ids(self) -> Ids:
        """The tracks whose files are there, ascending."""
        return self.library.tracks.ids()

    @_part
    def absent(self) -> NDArray[np.bool_]:
        """(n,) which tracks with predictions have no file any more."""
        return ~np.isin(self.predictions.ids, self.ids, assume_unique=True)

    @_part
    def tagger(self) -> StoredTagger | None:
        """The model in use, at work."""
        if self.model_id is None:
            return None
        return current_tagger(self.library, self.library.models.get(self.model_id))

    @_part
    def known(self) -> set[str]:
        """Every tag that a track may have."""
        return known_tags(self.library, self.model)

    @_part
    def spellings(self) -> dict[str, str]:
        """Tag → how it is shown, where that is not its name."""
        return self.library.spellings()

    @_part
    def hidden(self) -> set[str]:
        """Tags that a person has hidden."""
        return self.library.hidden_tags()

    @_part
    def places(self) -> dict[str, int]:
        """Tag → its place in the model, for those that it has learnt."""
        if self.model is None:
            return {}
        learnt = self.model.learnt
        return {tag: j for j, tag in enumerate(self.model.vocabulary) if learnt[j]}

    @_part
    def _by_name(self) -> NDArray[np.intp]:
        """Places in `ids`, in the order of the tracks' names."""
        columns = (track.c.id, track.c.artist, track.c.title, track.c.path)
        query = sa.select(*columns).where(track.c.state == "present").order_by(track.c.id)
        keys = [_key(*row[1:]) for row in self.library.fetch(query)]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.intp)

    @_part
    def _names(self) -> list[str]:
        """Title, artist, album and file name of each of `ids`, in small letters."""
        columns = (track.c.title, track.c.artist, track.c.album, track.c.path)
        query = sa.select(*columns).where(track.c.state == "present").order_by(track.c.id)
        return [
            "\n".join([*(word or "" for word in words), _file_name(path)]).casefold()
            for *words, path in self.library.fetch(query)
        ]

    @_part
    def in_files(self) -> dict[str, Ids]:
        """Tag → the tracks whose files have it, as the library knows them, ascending."""
        query = sa.select(track.c.id, track.c.file_tags).order_by(track.c.id)
        found: dict[str, list[int]] = {}
        for number, text in self.library.fetch(query.where(track.c.state == "present")):
            for tag in _tags_in(text):
                found.setdefault(tag, []).append(number)
        return {tag: np.array(ids, np.int64) for tag, ids in found.items()}

    def write_thresholds(self, precision: float | None) -> Floats:
        """(n_tags,) from which probability on the model's tags are written."""
        if self.model_id is None:
            return np.empty(0, np.float32)
        with self._lock:
            if precision not in self._write_thresholds:
                model = self.library.models.get(self.model_id).as_trained()
                if precision is None or not knows_precision(model):
                    found = model.sure().thresholds
                else:
                    found = thresholds_for(model, precision)
                self._write_thresholds[precision] = found
            return self._write_thresholds[precision]

    def shown(self, tag: str) -> str:
        """How this library spells a tag."""
        return self.spellings.get(tag, tag)

    # What a ranking reads. ------------------------------------------------------------------

    def agreed(self, names: Sequence[str]) -> dict[str, Agreement]:
        """As of `search.Reader`."""
        return {name: self.verdicts.agreement(name) for name in names}

    def columns(self, model_id: int, tags: Sequence[int]) -> tuple[Ids, Floats]:
        """As of `search.Reader`."""
        found = self.predictions
        if not len(found.ids):
            return found.ids, np.empty((0, len(tags)), np.float32)
        return found.ids, np.stack([unpacked(found.steps[j]) for j in tags]).T  # tag by tag

    @property
    def at_hand(self) -> AtHand:
        """As of `search.Reader`."""
        return AtHand(lambda: self.sounds, self._trained_columns)

    def _trained_columns(self, tags: NDArray[np.intp], ids: Ids) -> Iterator[Floats]:
        """The probabilities of tracks, tag by tag, as the model was trained."""
        found = self.trained
        at = np.searchsorted(found.ids, ids)
        same = np.array_equal(found.ids, ids)
        for j in tags.tolist():
            yield unpacked(found.steps[j] if same else found.steps[j][at])

    # Answers. -------------------------------------------------------------------------------

    def find(self, question: Question) -> Found:
        """The tracks that answer a question; asked again, it costs nothing."""
        with self._lock:
            if question in self._results:
                self._results.move_to_end(question)
                return self._results[question]
        found = self._find(question)
        with self._lock:
            self._results[question] = found
            while len(self._results) > KEPT_RESULTS:
                self._results.popitem(last=False)
        return found

    def _find(self, question: Question) -> Found:
        if question.order == "likeness" and question.like is None:
            raise DataError("To order tracks by likeness, say which track they are to be like.")
        if not question.text.strip() and question.like is None and not question.predicted:
            ordered = self._ordered(self._named(question.name), question.order)
            return Found(ordered, None, None, None, None, [], 0)
        if question.like is not None:
            self.library.tracks.get(question.like)
            sound_space.bring_up_to_date(self.library)
        model = None if self.model is None else self.model.only(question.owner)
        text = question.text.strip()
        query = parse(text, self.known, aliases(model)) if text else None
        ranking = rank(self, model, query, question.like, predicted=question.predicted)
        if ranking.ids is self.predictions.ids and not question.name.strip():
            present = ~self.absent
        else:
            present = np.isin(ranking.ids, self._named(question.name), assume_unique=True)
        possible = present & (ranking.probability > 0)
        enough = possible & (ranking.probability >= question.min_probability)
        rows = np.flatnonzero(enough)
        score: Floats | None = ranking.score
        if question.order == "likeness":
            score = ranking.similarity
        elif question.order in ("name", "added"):
            ids = self._ordered(ranking.ids[rows], question.order)
            rows, score = rows[np.searchsorted(ranking.ids[rows], ids)], None
        return Found(
            ranking.ids[rows],
            None if score is None else score[rows],
            None if query is None else ranking.probability[rows],
            None if ranking.similarity is None else ranking.similarity[rows],
            ranking.sources[rows],
            ranking.people_only,
            int(possible.sum() - enough.sum()),
        )

    def _named(self, text: str) -> Ids:
        """The tracks whose names have all words of a text, ascending."""
        words = text.casefold().split()
        if not words:
            return self.ids
        return self.ids[[all(word in name for word in words) for name in self._names]]

    def _ordered(self, ids: Ids, order: Order | None) -> Ids:
        """Tracks (n,), ascending, by name or the latest first."""
        if order == "added":
            return ids[::-1]
        by_name = self.ids[self._by_name]
        if len(ids) == len(by_name):
            return by_name
        return by_name[np.isin(by_name, ids, assume_unique=True)]

    def page(self, found: Found, offset: int, limit: int) -> list[Hit]:
        """Some tracks of a result, with their tags."""
        rows = found.rows(offset, offset + limit)
        ids = found.ids[rows]
        tracks = self.library.tracks.many(ids)
        tags = self.telling_tags(ids)

        def part(values: Floats | None) -> list[float | None]:
            return [None] * len(ids) if values is None else values[rows].tolist()

        sources: list[str | None] = [None] * len(ids)
        if found.sources is not None:
            sources = [SOURCES[code] for code in found.sources[rows]]
        columns = (part(found.probability), part(found.similarity), sources, tags)
        return [Hit(*row) for row in zip(tracks, *columns, strict=True)]

    def search(self, question: Question, limit: int = 20, offset: int = 0) -> SearchResult:
        """One page of the tracks that answer a question."""
        found = self.find(question)
        hits = self.page(found, offset, limit)
        return SearchResult(hits, len(found.ids), offset, found.n_below, found.people_only)

    def telling_tags(self, ids: Ids, most: int = TELLING_TAGS) -> list[list[ShownTag]]:
        """The tags of tracks that say most of them: people's, then the surest of the model."""
        probabilities = self.predictions.rows(ids)
        places = np.array(list(self.places.values()), np.intp)
        thresholds = None if self.model is None else self.model.thresholds
        shown = []
        for number, p in zip(ids.tolist(), probabilities, strict=True):
            said = self.verdicts.of_track(number)
            held = [tag for tag, holds in said.items() if holds][:most]
            tags = [ShownTag(tag, self.shown(tag), None, "people") for tag in held]
            if thresholds is not None and len(places) and len(p):
                reached = places[p[places] >= thresholds[places]]
                for j in reached[np.argsort(-p[reached], kind="stable")]:
                    tag = self.model.vocabulary[j]  # type: ignore[union-attr]
                    if len(tags) < most and tag not in said:
                        tags.append(ShownTag(tag, self.shown(tag), float(p[j]), "model"))
            shown.append(tags)
        return shown

    def facets(self, found: Found, most: int = MOST_FACETS) -> list[Facet]:
        """The tags that most tracks of a result have: people say so, or it is predicted."""
        ids = np.sort(found.ids)
        counts: dict[str, int] = {}
        predicted = self.predictions
        here = np.isin(predicted.ids, ids, assume_unique=True)
        reached = self.reached
        for row, tag in enumerate(self.places):
            counts[tag] = int(np.count_nonzero(reached[row] & here))
        table = self.verdicts
        if len(table.tracks):
            chosen = np.isin(table.tracks, ids)
            for tag, n in self._people_add(chosen).items():
                counts[tag] = counts.get(tag, 0) + n
        best = sorted(((tag, n) for tag, n in counts.items() if n > 0), key=lambda x: (-x[1], x[0]))
        return [Facet(tag, self.shown(tag), self.group(tag), n) for tag, n in best[:most]]

    @_part
    def reached(self) -> NDArray[np.bool_]:
        """(n_learnt, n) which tracks the model gives each tag that it has learnt."""
        found, model = self.predictions, self.model
        rows = np.zeros((len(self.places), len(found.ids)), bool)
        if model is None or not len(found.ids):
            return rows
        least = packed(model.thresholds)
        for row, j in enumerate(self.places.values()):
            rows[row] = (found.steps[j] >= least[j]) & (found.steps[j] < 65535)
        return rows

    def _people_add(self, chosen: NDArray[np.bool_]) -> dict[str, int]:
        """Tag → how many tracks have it by what people say, less those it was predicted for.

        ``chosen`` are rows of the verdicts.
        """
        table, found = self.verdicts, self.predictions
        rank_of = {tag: row for row, tag in enumerate(self.places)}
        row_of = np.array([rank_of.get(name, -1) for name in table.names], np.intp)
        tags, tracks, holds = table.tags[chosen], table.tracks[chosen], table.holds[chosen]
        guessed = np.zeros(len(tags), bool)
        if len(found.ids) and len(self.places):
            at = np.minimum(np.searchsorted(found.ids, tracks), len(found.ids) - 1)
            modelled = (row_of[tags] >= 0) & (found.ids[at] == tracks)
            guessed = modelled & self.reached[np.maximum(row_of[tags], 0), at]
        change = np.bincount(tags, holds.astype(int) - guessed.astype(int), len(table.names))
        return {
            name: int(n)
            for name, n in zip(table.names, change, strict=True)
            if n and self._countable(name)
        }

    def _countable(self, tag: str) -> bool:
        return tag not in self.hidden

    def group(self, tag: str) -> str:
        """What kind of tag it is, as far as that is known: genre, mood, instrument …, or other."""
        return tag_groups().get(tag, OTHER)


def tag_groups() -> dict[str, str]:
    """Tag → genre, mood, instrument, voice, era or sound; for the tags of which it is known."""
    if not _groups:
        tree = own_tree()
        _groups.update(dict.fromkeys([*tree.aliases, *tree.parents], "genre"))
        _groups.update({tag["tag"]: tag["group"] for tag in shipped_model().report["tags"]})
    return _groups


_groups: dict[str, str] = {}


@lru_cache(maxsize=100_000)
def _tags_in(text: str) -> tuple[str, ...]:
    """The tags of a file, whole and parted, from what the library has kept of it."""
    values = [value for some in json.loads(text).values() for value in some]
    parts = (possible_parts(value) for value in values)
    return tuple({*map(normalise_tag, values), *(part for some in parts for part in some)})


def _key(artist: str | None, title: str | None, path: str) -> str:
    """What a track is ordered by: `Track.name` in small letters."""
    if title:
        return (f"{artist} - {title}" if artist else title).casefold()
    return _file_name(path).casefold()


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def owner_of(model: StoredModel | None, place: int | None) -> Owner:
    """Whose tag it is: learnt here, of the model that came along, or only people's."""
    if model is None or place is None:
        return "people"
    return "own" if model.is_own[place] else "built-in"
