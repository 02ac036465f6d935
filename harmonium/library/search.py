"""Queries for tags.

    query    := group ("OR" group)*
    group    := part (["AND"] part)*
    part     := ("NOT" | "-") part | "(" query ")" | tag | range
    range    := feature ":" (("<" | "<=" | ">" | ">=") number | [number] ".." [number])

as in `mellow piano -rock`, `("hip hop" OR rap) AND NOT live` or `energy:>0.7 jazz`. Operators may
be lower case unless they are part of a tag: "drum and bass" stays one. Words side by side are tags
that must all hold, and are read as the fewest known tags: "alternative rock" is that tag if it
exists, even if its words are tags, too; "alternative AND rock" asks for both. If two readings have
equally few tags, the query is refused, and quotes decide.

`searching.ranking` says which tracks match a query.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import reduce
from typing import Literal, NamedTuple

import numpy as np

from harmonium.arrays import Floats, Mask
from harmonium.data.tag_names import AUDIO_FEATURES, normalise_tag
from harmonium.errors import DataError, UnknownTagError, did_you_mean
from harmonium.library.model.tag_table import quoted, unknown_tag

OPERATORS = ("AND", "OR", "NOT")
MAX_DEPTH = 100  # maximum nesting of brackets and negations

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
        kind = tokens[-1][0]
        wrong = {"end": "its end", ")": "a closing bracket"}.get(kind, kind)
        return DataError(
            f"The query {text!r} has {wrong} where a tag was expected. Operators go "
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
    invalid = DataError(
        f"{text!r} must have numbers from 0 to 1, as in {name}:>0.7, {name}:<0.3 or "
        f"{name}:0.4..0.8."
    )
    match = _RANGE.fullmatch(text)
    if match is None:
        raise invalid
    sign, bound, least, most = match.groups("")
    if sign.startswith(">"):
        least = bound
    if sign.startswith("<"):
        most = bound
    if not least + most:
        raise invalid
    try:
        low = np.float32(least or 0)
        high = np.float32(most or 1)
    except ValueError:
        raise invalid from None
    if not 0 <= low <= high <= 1:
        raise invalid
    if sign == ">":
        low = np.nextafter(low, np.float32(2))
    if sign == "<":
        high = np.nextafter(high, np.float32(-1))
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
    tokens = []
    for piece in _PIECES.finditer(text):
        what = piece.group()
        if piece.lastgroup == "wrong":
            raise DataError(f"A quotation mark in the query {text!r} is not closed.")
        if piece.lastgroup == "minus":
            tokens.append(("NOT", ""))
        elif piece.lastgroup == "bracket" or what in OPERATORS:
            tokens.append((what, ""))
        elif piece.lastgroup is not None:
            quoted = piece.lastgroup == "quoted"
            name = normalise_tag(re.sub(r"\\(.)", r"\1", what[1:-1]) if quoted else what)
            if not name:
                raise DataError(f"{what!r} in the query {text!r} is not a tag.")
            feature, colon, bounds = name.partition(":")
            feature = aliases.get(feature, feature)
            if quoted or not colon or name in known:
                tokens.append(("tag" if quoted else "word", name))
            elif feature in AUDIO_FEATURES or re.match(r"[<>=.\d]", bounds):
                tokens.append(("range", f"{feature}:{what.partition(':')[2]}"))
                read_range(tokens[-1][1])
            else:
                tokens.append(("word", name))
    return [*tokens, ("end", "")]


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
        first, second = (" AND ".join(map(quoted, way)) for way in readings[-1])
        raise DataError(
            f"{' '.join(words)!r} can be read as {first} and as {second}. Put tags of several "
            'words in quotes, as "hip hop", or AND between tags.'
        )
    return readings[-1][0]
