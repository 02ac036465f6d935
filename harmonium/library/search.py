"""Queries for tags, and the tracks that match them, the most certain first.

    query    := group ("OR" group)*
    group    := part (["AND"] part)*
    part     := ("NOT" | "-") part | "(" query ")" | tag | range
    range    := feature ":" (("<" | "<=" | ">" | ">=") number | [number] ".." [number])

as in `mellow piano -rock`, `("hip hop" OR rap) AND NOT live` or `energy:>0.7 jazz`. Operators may
be lower case unless they are part of a tag: "drum and bass" stays one. Words side by side are tags
that must all hold, and are read as the fewest known tags: "alternative rock" is that tag if it
exists, even if its words are tags, too; "alternative AND rock" asks for both. If two readings have
equally few tags, the query is refused, and quotes decide.

docs/library.md says how tracks are ordered. If people leave a tag open and the model has no
probability (it has not learnt the tag, or not tagged the track), it counts as 0. A range of an
audio feature is certain: it holds or not. Tracks that match by people's tags and ranges alone are
ordered by what the model would have said.

The similarity of two tracks is the mean of two cosines: of their sound vectors (`library.sound`),
and of the probabilities of learnt tags, each standardised over the library.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.arrays import Floats, Ids, Mask, Places
from harmonium.data.tag_names import AUDIO_FEATURES, normalise_tag
from harmonium.errors import DataError, UnknownTagError, did_you_mean
from harmonium.library.model.tag_table import TagTable, quoted, unknown_tag
from harmonium.library.store.predictions import MISSING, STEP, Steps, places_in, unpacked

if TYPE_CHECKING:
    from harmonium.library.snapshot import Snapshot

OPERATORS = ("AND", "OR", "NOT")
MAX_DEPTH = 100  # maximum nesting of brackets and negations
SOURCES = ("nobody", "model", "people")  # who says that a track matches
MATCHING_FIRST = 10.0  # what the scores of tracks that match are ahead of all others
NO_VALUE = -5.0  # the score of a track without the audio feature to order by
MIN_ORDERED = 500  # sort at least this many tracks of a result
MUCH = 0.5  # a track is energetic, say, from this value of the audio feature on
N_TAGS_LIKE_SOUND = 30  # the number of learnt tags that weigh as much as the sound
ROUNDING = 1e-6  # lengths up to this count as 0

Masks = dict[str, tuple[Mask, Mask]]  # tag or range → where it certainly holds, where it may hold
_Token = tuple[str, str]  # a kind, such as "word", "range", "(", "AND" or "end", and its text


class Range(NamedTuple):
    """A range of an audio feature's values."""

    feature: str
    low: float
    high: float


class Query(NamedTuple):
    """A query: a tag, a range, or an operator and the queries that it joins."""

    operator: Literal["TAG", "RANGE", "NOT", "AND", "OR"]
    parts: tuple["Query", ...] = ()  # one for NOT, at least two for AND and OR
    tag: str = ""  # or the text of a range

    @property
    def tags(self) -> list[str]:
        """The tags of the query, each once, in order of appearance."""
        return self._texts("TAG")

    @property
    def ranges(self) -> dict[str, Range]:
        """Text → range, for the query's ranges."""
        return {text: read_range(text) for text in self._texts("RANGE")}

    def _texts(self, kind: str) -> list[str]:
        inner = [text for part in self.parts for text in part._texts(kind)]
        return [self.tag] if self.operator == kind else list(dict.fromkeys(inner))

    def wanted(self, negated: bool = False) -> set[str]:
        """The tags of the query that it does not exclude."""
        if self.operator == "TAG":
            return set() if negated else {self.tag}
        inner = negated != (self.operator == "NOT")
        return {tag for part in self.parts for tag in part.wanted(inner)}

    def probability(self, of_tag: Callable[[str], Floats]) -> Floats:
        """p of the query for each track, (n,), from p of each tag, (n,), treated as independent.

        p(a AND b) = p(a) p(b);  p(a OR b) = 1 - (1 - p(a)) (1 - p(b));  p(NOT a) = 1 - p(a)

        If all p are 0 or 1, these are the logical operators.
        """
        if self.operator in ("TAG", "RANGE"):
            return of_tag(self.tag)
        parts = (part.probability(of_tag) for part in self.parts)
        if self.operator == "AND":
            return reduce(np.multiply, parts)
        return 1 - reduce(np.multiply, (1 - p for p in parts) if self.operator == "OR" else parts)

    def holds(self, of_tag: Callable[[str], Mask]) -> Mask:
        """Which tracks match, (n,), from which have each tag or value, (n,)."""
        if self.operator in ("TAG", "RANGE"):
            return of_tag(self.tag)
        parts = [part.holds(of_tag) for part in self.parts]
        if self.operator == "NOT":
            return ~parts[0]
        return reduce(np.logical_and if self.operator == "AND" else np.logical_or, parts)

    @property
    def excludes_only(self) -> bool:
        """Whether a track matches about which nothing is known, as in -jazz."""
        return bool(self.holds(lambda _: np.zeros(1, bool))[0])

    def answered(self, masks: Masks) -> tuple[Mask, Mask]:
        """Whether it holds by people's tags and ranges alone, and whether it may, (n,) each."""
        if self.operator in ("TAG", "RANGE"):
            return masks[self.tag]
        surely, maybe = zip(*(part.answered(masks) for part in self.parts), strict=True)
        if self.operator == "NOT":
            return ~maybe[0], ~surely[0]
        combine = np.logical_and if self.operator == "AND" else np.logical_or
        return combine.reduce(surely), combine.reduce(maybe)


def parse(text: str, known: Collection[str], aliases: Mapping[str, str] = {}) -> Query:
    """The query that a text means, with known (normalised) tags.

    ``aliases`` are other words for known tags; they count if the text has no other meaning. A
    DataError names tags similar to an unknown one, words that can be read in two ways, or misplaced
    brackets, quotes and operators.
    """
    tokens = _with_tags(_tokens(text, known, aliases), known, aliases)[::-1]  # the next one is last

    def question(depth: int) -> Query:
        parts = [group(depth)]
        while tokens[-1][0] == "OR":
            tokens.pop()
            parts.append(group(depth))
        return Query("OR", tuple(parts)) if len(parts) > 1 else parts[0]

    def group(depth: int) -> Query:
        parts = [part(depth)]
        while (kind := tokens[-1][0]) in ("AND", "NOT", "(", "tag", "range"):
            if kind == "AND":
                tokens.pop()
            parts.append(part(depth))
        return Query("AND", tuple(parts)) if len(parts) > 1 else parts[0]

    def part(depth: int) -> Query:
        if tokens[-1][0] not in ("NOT", "(", "tag", "range"):
            raise misfit()
        kind, name = tokens.pop()
        if kind in ("tag", "range"):
            return Query("TAG" if kind == "tag" else "RANGE", tag=name)
        if depth == MAX_DEPTH:
            raise DataError(f"The query has more than {MAX_DEPTH} nested brackets.")
        if kind == "NOT":
            return Query("NOT", (part(depth + 1),))
        inner = question(depth + 1)
        if tokens.pop()[0] != ")":
            raise DataError(f"A bracket in the query {text!r} is not closed.")
        return inner

    def misfit() -> DataError:
        found = {"end": "its end", ")": "a closing bracket"}.get(tokens[-1][0], tokens[-1][0])
        return DataError(
            f"The query {text!r} has {found} where a tag was expected. Operators go "
            "between tags: rock AND NOT (live OR acoustic)."
        )

    if tokens[-1][0] == "end":
        raise DataError('The query is empty. Search for tags, as in: mellow piano -"hip hop"')
    whole = question(0)
    if tokens[-1][0] != "end":
        raise misfit()
    return whole


_RANGE = re.compile(r"[^:]+:(?:([<>]=?)([\d.]+)|([\d.]*?)\.\.([\d.]*))", re.ASCII)


def read_range(text: str) -> Range:
    """The range of a text such as ``energy:>0.7``, ``energy:<=0.3`` or ``energy:0.4..0.8``."""
    name = text.partition(":")[0]
    if name not in AUDIO_FEATURES:
        hint = did_you_mean(name, AUDIO_FEATURES, n=3, examples=len(AUDIO_FEATURES))
        raise UnknownTagError(f"There is no audio feature {name!r}.{hint}")
    found = _RANGE.fullmatch(text)
    sign, bound, least, most = ("", "", "", "") if found is None else found.groups("")
    try:
        low = np.float32((bound if sign[:1] == ">" else least) or 0)
        high = np.float32((bound if sign[:1] == "<" else most) or 1)
    except ValueError:
        found = None
    if found is None or not bound + least + most or not 0 <= low <= high <= 1:
        raise DataError(
            f"{text!r} must have numbers from 0 to 1, as in {name}:>0.7, {name}:<0.3 or "
            f"{name}:0.4..0.8."
        )
    low = np.nextafter(low, np.float32(2)) if sign == ">" else low
    high = np.nextafter(high, np.float32(-1)) if sign == "<" else high
    return Range(name, float(low), float(high))


_PIECES = re.compile(
    r"""\s+
    | (?P<bracket>[()])
    | (?P<quoted>"(?:[^"\\]|\\.)*")
    | (?P<minus>-(?=[^\s)]))
    | (?P<word>[^\s()"]+)
    | (?P<wrong>.)""",
    re.VERBOSE | re.DOTALL,
)


def _tokens(text: str, known: Collection[str], aliases: Mapping[str, str]) -> list[_Token]:
    found = []
    for piece in _PIECES.finditer(text):
        what = piece.group()
        if piece.lastgroup == "wrong":
            raise DataError(f"A quotation mark in the query {text!r} is not closed.")
        if piece.lastgroup == "minus":
            found.append(("NOT", ""))
        elif piece.lastgroup == "bracket" or what in OPERATORS:
            found.append((what, ""))
        elif piece.lastgroup is not None:
            quoted = piece.lastgroup == "quoted"
            name = normalise_tag(re.sub(r"\\(.)", r"\1", what[1:-1]) if quoted else what)
            if not name:
                raise DataError(f"{what!r} in the query {text!r} is not a tag.")
            feature, colon, bounds = name.partition(":")
            feature = aliases.get(feature, feature)
            if quoted or not colon or name in known:
                found.append(("tag" if quoted else "word", name))
            elif feature in AUDIO_FEATURES or re.match(r"[<>=.\d]", bounds):
                found.append(("range", f"{feature}:{what.partition(':')[2]}"))
                read_range(found[-1][1])
            else:
                found.append(("word", name))
    return [*found, ("end", "")]


def _with_tags(
    tokens: list[_Token], known: Collection[str], aliases: Mapping[str, str]
) -> list[_Token]:
    """The tokens, with words replaced by tags; several words may make up one tag."""
    result: list[_Token] = []
    run: list[str] = []
    for kind, text in tokens:
        if kind == "word":
            run += text.split(" ")  # a hyphen may have split one word
            continue
        result += [
            ("tag", name) if name in known else (name.upper(), "")
            for name in _read_run(run, known, aliases)
        ]
        run = []
        if kind == "tag" and text not in known:
            if text not in aliases:
                raise unknown_tag(text, known)
            text = aliases[text]
        result.append((kind, text))
    return result


def _read_run(words: list[str], known: Collection[str], aliases: Mapping[str, str]) -> list[str]:
    """Words side by side as the fewest known tags, if there is only one such reading."""
    readings: list[list[list[str]]] = [[[]]]  # of the first i words, the shortest, two at most
    for end in range(1, len(words) + 1):
        ways = [
            [*before, name]
            for start in range(end)
            if (name := " ".join(words[start:end])) in known or name.upper() in OPERATORS
            for before in readings[start]
        ]
        fewest = min(map(len, ways), default=0)
        readings.append([way for way in ways if len(way) == fewest][:2])
    if not readings[-1] and aliases:
        names = _read_run(words, {*known, *aliases}, {})
        return [name if name in known else aliases.get(name, name) for name in names]
    if not readings[-1]:
        furthest = max(i for i, ways in enumerate(readings) if ways)
        raise unknown_tag(words[furthest], known)
    if len(readings[-1]) > 1:
        one, other = (" AND ".join(map(quoted, way)) for way in readings[-1])
        raise DataError(
            f"{' '.join(words)!r} can be read as {one} and as {other}. Put tags of several "
            'words in quotes, as "hip hop", or AND between tags.'
        )
    return readings[-1][0]


@dataclass(eq=False, kw_only=True)
class Found:
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

    def only(self, rows: Places) -> "Found":
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
            self._ordered = first(self.score, max(MIN_ORDERED, 2 * end))
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


def rank(
    snapshot: "Snapshot",
    table: TagTable,
    query: Query | None,
    like: int | None = None,
    *,
    predicted: bool = False,
) -> Found:
    """What is known about all tracks that may match a query, in no order.

    A track matches if it has the tags, as `Tag.holds` says, and its values are in the ranges. The
    score is the probability; tracks that match by people's tags and ranges alone come first. With
    ``like``, a track, the score is the probability times the similarity to it; tracks less
    alike than chance come last. With ``predicted``, only what the model adds is found.
    """
    names = [] if query is None else query.tags
    ranges = {} if query is None else query.ranges
    features = {one.feature for one in ranges.values()}
    columns = {name: feature_column(table, name) for name in features}  # or an error
    for name in names:
        if table[name].predicted:
            columns[name] = table[name].place
        elif name in table.features:
            columns[name] = table.features[name]
    synonyms = {name: table.synonyms_of(name) for name in names}
    agreed = snapshot.agreed([*names, *(word for words in synonyms.values() for word in words)])
    predictions = snapshot.steps([*columns.values()] or [0])
    tagged = predictions.ids
    ids, similarity = tagged, None
    if like is not None:
        known, near = similarities(snapshot, table, like, tagged)
        ids, similarity = known[known != like], near[known != like]
    else:
        more = [track for name in names for track in agreed[name]]
        if query is not None and query.excludes_only:
            more.append(snapshot.ids)
        more = [some for some in more if not places_in(tagged, some)[1].all()]
        if more:
            ids = np.unique(np.concatenate([tagged, *more]))
    rows, is_tagged = places_in(tagged, ids)
    steps = {
        name: aligned(predictions.steps[place], rows, is_tagged)
        for place, name in enumerate(columns)
    }
    own = {name: np.nan_to_num(unpacked(column)) for name, column in steps.items()}
    mixed: dict[str, Floats] = {}
    masks: Masks = {}
    holding: dict[str, Mask] = {}
    for name in names:
        yes = places_of(agreed[name].yes, ids)
        no = places_of(agreed[name].no, ids)
        instead = [places_of(agreed[word].yes, ids) for word in synonyms[name]]
        tag = table[name]
        if name in columns and not tag.predicted:  # an audio feature
            tag = replace(tag, threshold=MUCH, hidden=False)
        holding[name] = np.empty(len(ids), bool)
        tag.holding(steps.get(name), yes, np.concatenate([no, *instead]), out=holding[name])
        own.setdefault(name, np.zeros(len(ids), np.float32))
        mixed[name] = own[name].copy()
        mixed[name][no], mixed[name][yes] = 0, 1
        masks[name] = (_mask(yes, len(ids)), ~_mask(no, len(ids)))
    for text, (feature, low, high) in ranges.items():
        inside = is_tagged & (low <= own[feature]) & (own[feature] <= high)
        masks[text] = (inside, inside | ~is_tagged)
        holding[text] = inside
        mixed[text] = own[text] = inside.astype(np.float32)
    if query is None:
        p = np.ones(len(ids), np.float32)
        holds, certain = np.ones(len(ids), bool), np.zeros(len(ids), bool)
    else:
        p = query.probability(mixed.__getitem__)
        holds = query.holds(holding.__getitem__)
        certain, _ = query.answered(masks)
    if similarity is not None:
        score = np.where(similarity > 0, p * similarity, similarity)
    else:
        score = p.copy()
        if query is not None and certain.any():  # ahead of everything uncertain
            score[certain] = 2 + query.probability(lambda name: own[name][certain])
    tag_masks = {name: masks[name] for name in names}
    sources = _sources(certain, tag_masks, is_tagged, columns)
    if predicted:
        by_model = sources == SOURCES.index("model")
        p, holds = np.where(by_model, p, np.float32(0)), holds & by_model
    return Found(
        ids=ids,
        holds=holds,
        probability=p,
        sources=sources,
        score=score,
        similarity=similarity,
        tags={name: mixed[name] for name in names},
        features=features,
        people_only=[name for name in names if name not in columns],
    )


def _sources(
    certain: Mask, masks: Masks, tagged: Mask, modelled: Collection[str]
) -> NDArray[np.uint8]:
    """Who says that each track matches, as places in `SOURCES`, (n,)."""
    # It is the model if it has a say on a tag that people leave open.
    by_model = np.zeros(len(certain), bool)
    by_people = np.zeros(len(certain), bool)
    for name, (surely, maybe) in masks.items():
        left_open = ~surely & maybe
        by_people |= ~left_open
        if name in modelled:
            by_model |= left_open
    by_model &= tagged
    if not masks:  # no tag was asked for
        by_model = tagged
    codes = np.zeros(len(certain), np.uint8)  # nobody
    codes[by_people] = SOURCES.index("people")
    codes[np.where(certain, ~by_people, by_model)] = SOURCES.index("model")
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


def first(score: Floats, n: int) -> Places:
    """Places of the n largest scores, largest first; ties keep their order."""
    candidates = np.arange(len(score))
    if n < len(score):
        candidates = np.flatnonzero(score >= np.partition(score, -n)[-n])
    return candidates[np.argsort(-score[candidates], kind="stable")][:n]


def similarities(
    snapshot: "Snapshot", table: TagTable, track_id: int, tagged: Ids
) -> tuple[Ids, Floats]:
    """Tracks that can be compared with one, (n,), and their similarity, (n,) in [-1, 1].

    What people agree on about that track counts as certain. Tracks that the model has not tagged
    are compared by sound alone; ``tagged`` (m,) are the others, ascending.
    """
    ids, by_sound = snapshot.sounds.ids, snapshot.sounds.cosines(track_id)
    row = int(np.searchsorted(tagged, track_id))
    learnt = table.trained
    if row == len(tagged) or tagged[row] != track_id or not learnt:
        return ids, by_sound
    said = snapshot.agreed_of(track_id)
    own = np.array([said.get(tag.name, np.nan) for tag in learnt], np.float32)
    columns = np.array([tag.place for tag in learnt], np.intp)
    by_tags = alike(snapshot.trained_columns(columns, tagged), row, own)
    if not np.array_equal(tagged, ids):
        place, known = places_in(tagged, ids)
        by_tags = np.where(known, by_tags[place], by_sound)
    weight = np.float32(len(learnt) / (len(learnt) + N_TAGS_LIKE_SOUND))
    return ids, (1 - weight) * by_sound + weight * by_tags


def similarity_matrix(snapshot: "Snapshot", table: TagTable, ids: Ids) -> Floats:
    """Similarity by sound and predictions, for tracks that have vectors, (n, n) in [-1, 1]."""
    by_sound = _cosines(snapshot.sounds.at(ids).astype(np.float32))
    tagged = snapshot.steps([0]).ids
    place, known = places_in(tagged, ids)
    learnt = table.trained
    if not known.any() or not learnt:
        return by_sound
    Z = np.zeros((len(ids), len(learnt)), np.float32)
    columns = np.array([tag.place for tag in learnt], np.intp)
    for k, column in enumerate(snapshot.trained_columns(columns, tagged)):
        if (deviation := float(column.std())) > STEP:
            Z[:, k] = (column[place] - column.mean()) / deviation
    weight = np.float32(len(learnt) / (len(learnt) + N_TAGS_LIKE_SOUND))
    both = (1 - weight) * by_sound + weight * _cosines(Z)
    return np.where(known[:, None] & known, both, by_sound)


def _cosines(X: Floats) -> Floats:
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), ROUNDING)
    return unit @ unit.T


def alike(columns: Iterable[Floats], row: int, own: Floats) -> Floats:
    """cos(z_i, z_row) with z_ij = (p_ij - mean_j) / deviation_j, for all tracks i, (n,).

    ``columns`` are the probabilities (n,) of each tag; ``own`` (n_tags,) replaces those of the row
    where it is not NaN. It works column by column, since all columns together would not fit the
    cache.
    """
    dot: Floats | float = 0.0
    squares: Floats | float = 0.0
    own_square = 0.0
    n = 0
    for column, known in zip(columns, own, strict=True):
        n = len(column)
        value = column[row] if np.isnan(known) else known
        mean = column.mean()
        apart = column - mean
        deviation = float(np.sqrt(apart @ apart / n))
        if deviation > STEP:  # anything less may be rounding in storage
            apart /= deviation
            z = float(value - mean) / deviation
            dot, squares, own_square = dot + z * apart, squares + apart * apart, own_square + z * z
    norm = np.sqrt(squares * own_square) * np.ones(n, np.float32)
    return np.divide(dot, norm, out=np.zeros(n, np.float32), where=norm > ROUNDING)
