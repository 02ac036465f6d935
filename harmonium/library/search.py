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

The similarity of two tracks is the mean of two cosines: of their sound vectors (`store.tracks`),
and of the probabilities of learnt tags, each standardised over the library.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.arrays import Floats, Ids, Mask, Places
from harmonium.data.tag_names import AUDIO_FEATURES, normalise_tag
from harmonium.errors import DataError, UnknownTagError, did_you_mean
from harmonium.library.store.models import STEP, StoredModel, places_in

if TYPE_CHECKING:
    from harmonium.library.snapshot import Snapshot

OPERATORS = ("AND", "OR", "NOT")
MAX_DEPTH = 100  # maximum nesting of brackets and negations
SOURCES = ("nobody", "model", "people")  # who says that a track matches
MIN_ORDERED = 500  # sort at least this many tracks of a result
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


def unknown_tag(name: str, known: Collection[str], problem: str = "") -> UnknownTagError:
    """The error for an unknown tag, with the most similar known ones."""
    hint = did_you_mean(name, known, n=3, examples=8, quote=_quoted)
    if not problem:
        problem = f"No track has the tag {_quoted(name)}, and the model does not know it."
    return UnknownTagError(problem + hint)


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
        one, other = (" AND ".join(map(_quoted, way)) for way in readings[-1])
        raise DataError(
            f"{' '.join(words)!r} can be read as {one} and as {other}. Put tags of several "
            'words in quotes, as "hip hop", or AND between tags.'
        )
    return readings[-1][0]


def _quoted(name: str) -> str:
    if re.fullmatch(r"\w+", name) and name not in OPERATORS:
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@dataclass(eq=False)
class Found:
    """Tracks and what is known about them; all (n,). They are sorted as far as needed."""

    ids: Ids
    probability: Floats | None = None  # None if the query has no tags
    sources: NDArray[np.uint8] | None = None  # places in `SOURCES`
    score: Floats | None = None  # what to order them by; None if they are in order
    similarity: Floats | None = None
    tags: dict[str, Floats] = field(default_factory=dict)  # tag of the query → its probabilities
    features: set[str] = field(default_factory=set)  # audio features to show
    people_only: list[str] = field(default_factory=list)
    n_below: int = 0  # tracks below the minimum probability
    _ordered: Places = field(default_factory=lambda: np.empty(0, np.intp), repr=False)

    def only(self, rows: Places) -> "Found":
        """Some of the tracks."""
        columns = {
            name: None if (column := getattr(self, name)) is None else column[rows]
            for name in ("ids", "probability", "sources", "score", "similarity")
        }
        tags = {name: column[rows] for name, column in self.tags.items()}
        return replace(self, **columns, tags=tags)  # type: ignore[arg-type]

    def rows(self, begin: int, end: int) -> Places:
        """Where the tracks between two places in the order are."""
        end = min(end, len(self.ids))
        if self.score is None:
            return np.arange(min(begin, end), end)
        if len(self._ordered) < end:
            self._ordered = first(self.score, max(MIN_ORDERED, 2 * end))
        return self._ordered[begin:end]

    def first(self, n: int) -> Ids:
        """The first tracks in order."""
        return self.ids[self.rows(0, n)]


def rank(
    snapshot: "Snapshot",
    model: StoredModel,
    query: Query | None,
    like: int | None = None,
    *,
    predicted: bool = False,
) -> Found:
    """What is known about all tracks that may match a query, in no order.

    With ``like``, a track, the score is the probability times the similarity to it; tracks less
    alike than chance come last. With ``predicted``, only what the model adds is found.
    """
    names, ranges = ([], {}) if query is None else (query.tags, query.ranges)
    features = {one.feature for one in ranges.values()}
    for name in features:
        feature_place(model, name)  # or an error
    agreed = snapshot.agreed(names)
    tagged, modelled = _modelled(snapshot, model, [*names, *features])
    if like is None:
        similarity = None
        strangers = [some[~places_in(tagged, some)[1]] for pair in agreed.values() for some in pair]
        ids = (
            np.unique(np.concatenate([tagged, *strangers])) if any(map(len, strangers)) else tagged
        )
    else:
        known, near = similarities(snapshot, model, like, tagged)
        ids, similarity = known[known != like], near[known != like]
    own = {name: _spread(tagged, modelled.get(name), ids) for name in names}
    masks = {name: (_mask(ids, pair.yes), ~_mask(ids, pair.no)) for name, pair in agreed.items()}
    mixed = {
        name: np.where(surely, np.float32(1), np.where(maybe, own[name], np.float32(0)))
        for name, (surely, maybe) in masks.items()
    }
    there, held = _mask(ids, tagged), {}
    for text, (feature, low, high) in ranges.items():
        values = _spread(tagged, modelled[feature], ids)
        holds = there & (low <= values) & (values <= high)
        held[text], own[text] = (holds, holds | ~there), holds.astype(np.float32)
    if query is None:
        p, certain = np.ones(len(ids), np.float32), np.zeros(len(ids), bool)
    else:
        p = query.probability((own | mixed).__getitem__)
        certain, _ = query.answered(masks | held)
    if similarity is not None:
        score = np.where(similarity > 0, p * similarity, similarity)
    else:
        score = p.copy()
        if query is not None and certain.any():  # ahead of everything uncertain
            score[certain] = 2 + query.probability(lambda name: own[name][certain])
    people_only = [name for name in names if name not in modelled]
    sources = _sources(certain, masks, there, modelled)
    if predicted:
        p = np.where(sources == SOURCES.index("model"), p, np.float32(0))
    return Found(ids, p, sources, score, similarity, mixed, features, people_only)


def _sources(
    certain: Mask, masks: Masks, tagged: Mask, modelled: Collection[str]
) -> NDArray[np.uint8]:
    """Who says that each track matches, as places in `SOURCES`, (n,)."""
    # It is the model if it has a say on a tag that people leave open.
    none = np.zeros(len(certain), bool)
    left_open = {name: ~surely & maybe for name, (surely, maybe) in masks.items()}
    by_model = tagged & sum((left_open[name] for name in masks if name in modelled), none)
    by_people = sum((~one for one in left_open.values()), none)
    if not masks:  # no tag was asked for
        by_model = tagged
    codes = np.zeros(len(certain), np.uint8)  # nobody
    codes[by_people] = SOURCES.index("people")
    codes[np.where(certain, ~by_people, by_model)] = SOURCES.index("model")
    return codes


def _modelled(
    snapshot: "Snapshot", model: StoredModel, names: list[str]
) -> tuple[Ids, dict[str, Floats]]:
    """Tracks with predictions, (n,), and the predictions for learnt tags, (n,) each."""
    # Tracks are included even if the query has no learnt tag: some may lack a tag.
    learnt = {tag: j for j, tag in enumerate(model.vocabulary) if model.learnt[j]} | model.features
    places = {name: learnt[name] for name in names if name in learnt}
    ids, P = snapshot.columns(list(places.values()) or [0])
    # a track may be too new for a word that was learnt from answers
    return ids, {name: np.nan_to_num(P[:, i]) for i, name in enumerate(places)}


def feature_place(model: StoredModel, name: str) -> int:
    """The place of an audio feature in the model's vocabulary; a DataError if it is not there."""
    if name not in model.features:
        raise DataError(
            f"The model in use does not know the audio feature {name!r}. The built-in model does: "
            "run `harmonium tag`, or `harmonium train` if the model is your own. It needs the "
            "features of musicnn (`harmonium index --extractor musicnn`)."
        )
    return model.features[name]


def _spread(ids: Ids, values: Floats | None, everyone: Ids) -> Floats:
    """The values of some tracks as a column for all tracks; 0 for the others."""
    if values is not None and (ids is everyone or np.array_equal(ids, everyone)):
        return values
    column = np.zeros(len(everyone), np.float32)
    if values is not None:
        here = np.isin(ids, everyone, assume_unique=True)
        column[np.searchsorted(everyone, ids[here])] = values[here]
    return column


def _mask(everyone: Ids, some: Ids) -> Mask:
    """Which of ``everyone`` are in ``some``, (n,); both ascending."""
    mask = np.zeros(len(everyone), bool)
    at, there = places_in(everyone, some)
    mask[at[there]] = True
    return mask


def first(score: Floats, n: int) -> Places:
    """Places of the n largest scores, largest first; ties keep their order."""
    candidates = np.arange(len(score))
    if n < len(score):
        candidates = np.flatnonzero(score >= np.partition(score, -n)[-n])
    return candidates[np.argsort(-score[candidates], kind="stable")][:n]


def similarities(
    snapshot: "Snapshot", model: StoredModel, track_id: int, tagged: Ids
) -> tuple[Ids, Floats]:
    """Tracks that can be compared with one, (n,), and their similarity, (n,) in [-1, 1].

    What people agree on about that track counts as certain. Tracks that the model has not tagged
    are compared by sound alone; ``tagged`` (m,) are the others, ascending.
    """
    ids, by_sound = snapshot.sounds.ids, snapshot.sounds.cosines(track_id)
    row = int(np.searchsorted(tagged, track_id))
    model = model.as_trained()
    if row == len(tagged) or tagged[row] != track_id or not model.learnt.any():
        return ids, by_sound
    learnt = np.flatnonzero(model.learnt)
    said = snapshot.agreed_of(track_id)
    own = np.array([said.get(model.vocabulary[j], np.nan) for j in learnt], np.float32)
    by_tags = alike(snapshot.trained_columns(learnt, tagged), row, own)
    if not np.array_equal(tagged, ids):
        place, there = places_in(tagged, ids)
        by_tags = np.where(there, by_tags[place], by_sound)
    weight = np.float32(len(learnt) / (len(learnt) + N_TAGS_LIKE_SOUND))
    return ids, (1 - weight) * by_sound + weight * by_tags


def similarity_matrix(snapshot: "Snapshot", model: StoredModel, ids: Ids) -> Floats:
    """Similarity by sound and predictions, for tracks that have vectors, (n, n) in [-1, 1]."""
    by_sound = _cosines(snapshot.sounds.at(ids).astype(np.float32))
    tagged = _modelled(snapshot, model, [])[0]
    place, there = places_in(tagged, ids)
    model = model.as_trained()
    if not there.any() or not model.learnt.any():
        return by_sound
    learnt = np.flatnonzero(model.learnt)
    Z = np.zeros((len(ids), len(learnt)), np.float32)
    for k, column in enumerate(snapshot.trained_columns(learnt, tagged)):
        if (deviation := float(column.std())) > STEP:
            Z[:, k] = (column[place] - column.mean()) / deviation
    weight = np.float32(len(learnt) / (len(learnt) + N_TAGS_LIKE_SOUND))
    both = (1 - weight) * by_sound + weight * _cosines(Z)
    return np.where(there[:, None] & there, both, by_sound)


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
