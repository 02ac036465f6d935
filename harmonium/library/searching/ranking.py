"""What is known about the tracks that a query may match, and how they are ordered.

docs/library.md says how tracks are ordered. If people leave a tag open and the model has no
probability (it has not learnt the tag, or not tagged the track), it counts as 0. A range of an
audio feature is certain: it holds or not. Tracks that match by people's tags and ranges alone are
ordered by what the model would have said.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harmonium.arrays import Floats, Ids, Mask, Places, places_of_largest
from harmonium.errors import DataError
from harmonium.library.model.tag_table import Tag, TagTable
from harmonium.library.search import Query, Range
from harmonium.library.searching.likeness import similarities
from harmonium.library.store.predictions import MISSING, Steps, places_in, unpacked
from harmonium.library.verdicts import Agreement

if TYPE_CHECKING:
    from harmonium.library.snapshot import Snapshot

SOURCES = ("nobody", "model", "people")  # who says that a track matches
NOBODY, MODEL, PEOPLE = range(3)  # their places
MATCHING_FIRST = 10.0  # what the scores of tracks that match are ahead of all others
CERTAIN_FIRST = 2.0  # what those of tracks that match by people's tags alone are ahead
NO_VALUE = -5.0  # the score of a track without the audio feature to order by
MIN_ORDERED = 500  # sort at least this many tracks of a result
MUCH = 0.5  # a track is energetic, say, from this value of the audio feature on


@dataclass(eq=False, kw_only=True)
class Ranking:
    """Tracks that match or may match, and what is known about them; all (n,).

    They are sorted as far as needed: those that match first, then the less likely ones.
    """

    ids: Ids
    holds: Mask | None = None  # which of them match; None: all
    probability: Floats | None = None  # None if the query has no tags
    sources: NDArray[np.uint8] | None = None  # places in `SOURCES`
    score: Floats | None = None  # what to order them by; None if they are in order
    similarity: Floats | None = None
    tags: dict[str, Floats] = field(default_factory=dict)  # tag of the query → its probabilities
    features: set[str] = field(default_factory=set)  # audio features to show
    people_only: list[str] = field(default_factory=list)
    n_below: int = 0  # less likely tracks, whether they are among these or not
    n_other: int = 0  # tracks that cannot match, by what people say or for want of predictions
    _ordered: Places = field(default_factory=lambda: np.empty(0, np.intp), repr=False)

    def only(self, rows: Places) -> "Ranking":
        """Some of the tracks."""
        return replace(
            self,
            ids=self.ids[rows],
            holds=_rows_of(self.holds, rows),
            probability=_rows_of(self.probability, rows),
            sources=_rows_of(self.sources, rows),
            score=_rows_of(self.score, rows),
            similarity=_rows_of(self.similarity, rows),
            tags={name: column[rows] for name, column in self.tags.items()},
            _ordered=np.empty(0, np.intp),
        )

    def rows(self, begin: int, end: int) -> Places:
        """Where the tracks between two places in the order are."""
        end = min(end, len(self.ids))
        if self.score is None:
            return np.arange(min(begin, end), end)
        if len(self._ordered) < end:
            self._ordered = places_of_largest(self.score, max(MIN_ORDERED, 2 * end))
        return self._ordered[begin:end]

    @property
    def n_matching(self) -> int:
        """How many tracks match."""
        return len(self.ids) if self.holds is None else int(self.holds.sum())

    @property
    def matching(self) -> Ids:
        """The tracks that match, in no order."""
        return self.ids if self.holds is None else self.ids[self.holds]

    def first(self, n: int) -> Ids:
        """The first tracks that match, in order."""
        return self.ids[self.rows(0, min(n, self.n_matching))]


def _rows_of(column: NDArray[Any] | None, rows: Places) -> NDArray[Any] | None:
    return None if column is None else column[rows]


@dataclass(eq=False, kw_only=True)
class Term:
    """What is known about a tag or a range of a query; all (n,)."""

    predicted: Floats  # the model's probability; 0 without one
    probability: Floats  # the same, with what people agree on
    holds: Mask  # as `Tag.holds` says
    surely: Mask  # people give it, or the value is in the range
    maybe: Mask  # people do not deny it, or the value is not known to be outside the range


def rank(
    snapshot: "Snapshot",
    table: TagTable,
    query: Query | None,
    like: int | None = None,
    *,
    predicted: bool = False,
) -> Ranking:
    """What is known about all tracks that may match a query, in no order.

    A track matches if it has the tags, as `Tag.holds` says, and its values are in the ranges. The
    score is the probability; tracks that match by people's tags and ranges alone come first. With
    ``like``, a track, the score is the probability times the similarity to it; tracks less
    alike than chance come last. With ``predicted``, only what the model adds matches.
    """
    names = [] if query is None else query.tags
    ranges = {} if query is None else query.ranges
    features = {limits.feature for limits in ranges.values()}
    columns = _columns(table, names, features)
    synonyms = {name: table.synonyms_of(name) for name in names}
    agreed = snapshot.agreed([*names, *(word for words in synonyms.values() for word in words)])
    predictions = snapshot.steps([*columns.values()] or [0])
    similarity = None
    if like is None:
        ids = _candidates(snapshot, query, agreed, predictions.ids)
    else:
        ids, similarity = similarities(snapshot, table, like, predictions.ids)
        others = ids != like
        ids = ids[others]
        similarity = similarity[others]

    rows, is_tagged = places_in(predictions.ids, ids)
    steps = {
        name: aligned(predictions.steps[place], rows, is_tagged)
        for place, name in enumerate(columns)
    }
    tags = {}
    for name in names:
        others_meaning = [agreed[word] for word in synonyms[name]]
        tags[name] = _tag_term(table[name], ids, steps.get(name), agreed[name], others_meaning)
    terms = dict(tags)
    for text, limits in ranges.items():
        terms[text] = _range_term(limits, steps[limits.feature], is_tagged)

    if query is None:
        probability = np.ones(len(ids), np.float32)
        holds = np.ones(len(ids), bool)
        certain = np.zeros(len(ids), bool)
    else:
        probability = query.probability(lambda text: terms[text].probability)
        holds = query.holds(lambda text: terms[text].holds)
        certain, _ = query.answered(
            {text: (term.surely, term.maybe) for text, term in terms.items()}
        )
    if similarity is not None:
        score = np.where(similarity > 0, probability * similarity, similarity)
    else:
        score = _score(query, terms, probability, certain)
    sources = _sources(certain, tags, is_tagged, columns)
    if predicted:
        by_model = sources == MODEL
        probability = np.where(by_model, probability, np.float32(0))
        holds = holds & by_model
    return Ranking(
        ids=ids,
        holds=holds,
        probability=probability,
        sources=sources,
        score=score,
        similarity=similarity,
        tags={name: term.probability for name, term in tags.items()},
        features=features,
        people_only=[name for name in names if name not in columns],
    )


def _columns(table: TagTable, names: Iterable[str], features: Iterable[str]) -> dict[str, int]:
    """Tag or audio feature → the column of its predictions; a DataError without the feature's."""
    columns = {name: feature_column(table, name) for name in features}
    for name in names:
        if table[name].predicted:
            columns[name] = table[name].place
        elif name in table.features:
            columns[name] = table.features[name]
    return columns


def _candidates(
    snapshot: "Snapshot", query: Query | None, agreed: Mapping[str, Agreement], tagged: Ids
) -> Ids:
    """The tracks that a query may match, ascending: those tagged, and those people speak of."""
    more = []
    if query is not None:
        more += [ids for name in query.tags for ids in agreed[name]]
        if query.excludes_only:
            more.append(snapshot.ids)
    untagged = [ids for ids in more if not places_in(tagged, ids)[1].all()]
    if not untagged:
        return tagged
    return np.unique(np.concatenate([tagged, *untagged]))


def _tag_term(
    tag: Tag, ids: Ids, steps: Steps | None, agreed: Agreement, synonyms: Sequence[Agreement]
) -> Term:
    """What is known about a tag; ``synonyms`` are the agreements on tags that mean the same."""
    yes = places_of(agreed.yes, ids)
    no = places_of(agreed.no, ids)
    instead = [places_of(other.yes, ids) for other in synonyms]
    if steps is not None and not tag.predicted:  # an audio feature
        tag = replace(tag, threshold=MUCH, hidden=False)
    holds = np.empty(len(ids), bool)
    tag.holding(steps, yes, np.concatenate([no, *instead]), out=holds)
    predicted = np.zeros(len(ids), np.float32)
    if steps is not None:
        predicted = np.nan_to_num(unpacked(steps))
    probability = predicted.copy()
    probability[no] = 0
    probability[yes] = 1
    return Term(
        predicted=predicted,
        probability=probability,
        holds=holds,
        surely=_mask(yes, len(ids)),
        maybe=~_mask(no, len(ids)),
    )


def _range_term(limits: Range, steps: Steps, is_tagged: Mask) -> Term:
    """What is known about a range of an audio feature, whose values are predictions."""
    values = np.nan_to_num(unpacked(steps))
    inside = is_tagged & (limits.low <= values) & (values <= limits.high)
    certainty = inside.astype(np.float32)
    return Term(
        predicted=certainty,
        probability=certainty,
        holds=inside,
        surely=inside,
        maybe=inside | ~is_tagged,
    )


def _score(
    query: Query | None, terms: Mapping[str, Term], probability: Floats, certain: Mask
) -> Floats:
    """The probability; what people's tags and ranges alone decide comes before, by the model's."""
    score = probability.copy()
    if query is not None and certain.any():
        predicted = query.probability(lambda text: terms[text].predicted[certain])
        score[certain] = CERTAIN_FIRST + predicted
    return score


def _sources(
    certain: Mask, tags: Mapping[str, Term], tagged: Mask, modelled: Mapping[str, int]
) -> NDArray[np.uint8]:
    """Who says that each track matches, as places in `SOURCES`, (n,)."""
    # It is the model if it has a say on a tag that people leave open.
    by_model = np.zeros(len(certain), bool)
    by_people = np.zeros(len(certain), bool)
    for name, term in tags.items():
        left_open = ~term.surely & term.maybe
        by_people |= ~left_open
        if name in modelled:
            by_model |= left_open
    by_model &= tagged
    if not tags:  # no tag was asked for
        by_model = tagged
    codes = np.full(len(certain), NOBODY, np.uint8)
    codes[by_people] = PEOPLE
    codes[np.where(certain, ~by_people, by_model)] = MODEL
    return codes


def feature_column(table: TagTable, name: str) -> int:
    """The column of an audio feature's values; a DataError if the model does not know it."""
    if name not in table.features:
        raise DataError(
            f"The model in use does not know the audio feature {name!r}. The built-in model does: "
            "run `harmonium tag`, or `harmonium train` if the model is your own. It needs the "
            "features of musicnn (`harmonium index --extractor musicnn`)."
        )
    return table.features[name]


def aligned(steps: Steps, rows: Places, known: Mask) -> Steps:
    """The stored probabilities of some tracks, (n,), in other rows; missing where unknown."""
    if len(rows) == len(steps) and known.all():
        return steps
    if not len(steps):
        return np.full(len(rows), MISSING, "<u2")
    return np.where(known, steps[rows], MISSING).astype("<u2")


def places_of(some: Ids, everyone: Ids) -> Places:
    """Where those of ``some`` that are among ``everyone`` are there; both ascending."""
    places, known = places_in(everyone, some)
    return places[known]


def _mask(places: Places, n: int) -> Mask:
    mask = np.zeros(n, bool)
    mask[places] = True
    return mask
