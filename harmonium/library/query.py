"""Questions in tags: `mellow piano -rock`, `("hip hop" OR rap) AND NOT live`.

    question := group ("OR" group)*
    group    := part (["AND"] part)*
    part     := ("NOT" | "-") part | "(" question ")" | tag

AND, OR and NOT are operators in capitals only, so that "drum and bass" stays a tag. Words side by
side are tags that must all hold, and are read as the fewest known tags: "alternative rock" is that
tag if there is one, though its words may be tags, too; "alternative AND rock" asks for both. Where
two readings have equally few tags, the question is refused and quotes decide.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium import errors
from harmonium.data.tag_names import normalise_tag
from harmonium.errors import DataError, UnknownTagError

OPERATORS = ("AND", "OR", "NOT")
DEEPEST = 100
"""Brackets and negations within one another."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Tag:
    """The tag holds."""

    name: str


@dataclass(frozen=True)
class Not:
    """The part does not hold."""

    part: "Query"


@dataclass(frozen=True)
class And:
    """All parts hold; there are at least two."""

    parts: tuple["Query", ...]


@dataclass(frozen=True)
class Or:
    """Some part holds; there are at least two."""

    parts: tuple["Query", ...]


Query = Tag | Not | And | Or


def parse(
    text: str, known: Collection[str], aliases: Mapping[str, str] = MappingProxyType({})
) -> Query:
    """The question that a text asks, in tags that are among the known (normalised) ones.

    ``aliases`` are other words for known tags; they count where the text has no other meaning.

    Raises
    ------
    DataError
        for a tag that is not known, naming near ones; for words that can be read in two ways; for
        brackets, quotes and operators that do not fit
    """
    return _Parser(_with_tags(_tokens(text), known, aliases), text).whole()


def tags_of(query: Query) -> list[str]:
    """The tags of a question, each once, in order of appearance."""
    match query:
        case Tag(name):
            return [name]
        case Not(part):
            return tags_of(part)
        case And(parts) | Or(parts):
            return list(dict.fromkeys(name for part in parts for name in tags_of(part)))


def probability(query: Query, of_tag: Callable[[str], Floats]) -> Floats:
    """p of the question for each track, (n,), from p of each tag, (n,), as if independent.

    p(a AND b) = p(a) p(b);  p(a OR b) = 1 - (1 - p(a)) (1 - p(b));  p(NOT a) = 1 - p(a)

    With p of 0 and 1 only, these are the operators of logic.
    """
    match query:
        case Tag(name):
            return of_tag(name)
        case Not(part):
            return 1 - probability(part, of_tag)
        case And(parts):
            return reduce(np.multiply, (probability(part, of_tag) for part in parts))
        case Or(parts):
            return 1 - reduce(np.multiply, (1 - probability(part, of_tag) for part in parts))


def unknown_tag(name: str, known: Collection[str]) -> UnknownTagError:
    """The error of a tag that is not known, with the nearest ones that are."""
    hint = did_you_mean(name, known)
    if name.upper() in OPERATORS:
        hint = f" If it is not to be a tag, write {name.upper()}."
    return UnknownTagError(
        f"No track has the tag {_quoted(name)}, and the model does not know it.{hint}"
    )


def did_you_mean(name: str, known: Collection[str]) -> str:
    """A hint to end a message about an unknown tag with: the nearest known ones, or else some."""
    return errors.did_you_mean(name, known, n=3, examples=8, quote=_quoted)


class _Token(NamedTuple):
    kind: str  # "word", "tag", "(", ")", "AND", "OR", "NOT" or "end"
    text: str = ""


_PIECES = re.compile(
    r"""\s+
    | (?P<bracket>[()])
    | (?P<quoted>"(?:[^"\\]|\\.)*")
    | (?P<minus>-(?=[^\s)]))
    | (?P<word>[^\s()"]+)
    | (?P<wrong>.)""",
    re.VERBOSE | re.DOTALL,
)


def _tokens(text: str) -> list[_Token]:
    found = []
    for piece in _PIECES.finditer(text):
        what = piece.group()
        if piece.lastgroup == "bracket":
            found.append(_Token(what))
        elif piece.lastgroup == "minus":
            found.append(_Token("NOT"))
        elif piece.lastgroup == "quoted":
            found.append(_Token("tag", _name(re.sub(r"\\(.)", r"\1", what[1:-1]), text)))
        elif piece.lastgroup == "word":
            found.append(_Token(what) if what in OPERATORS else _Token("word", _name(what, text)))
        elif piece.lastgroup == "wrong":
            raise DataError(f"A quotation mark of the question {text!r} has no partner.")
    return found


def _name(written: str, text: str) -> str:
    name = normalise_tag(written)
    if not name:
        raise DataError(f"{written!r} in the question {text!r} is no tag.")
    return name


def _with_tags(
    tokens: list[_Token], known: Collection[str], aliases: Mapping[str, str]
) -> list[_Token]:
    """The tokens with words, which may make up a tag together, replaced by tags."""
    result: list[_Token] = []
    run: list[str] = []
    for token in [*tokens, _Token("end")]:
        if token.kind == "word":
            run.append(token.text)
            continue
        result += [_Token("tag", name) for name in _read_run(run, known, aliases)]
        run = []
        if token.kind == "tag" and token.text not in known:
            if token.text not in aliases:
                raise unknown_tag(token.text, known)
            token = _Token("tag", aliases[token.text])
        result.append(token)
    return result


def _read_run(words: list[str], known: Collection[str], aliases: Mapping[str, str]) -> list[str]:
    """Words side by side as the fewest known tags, where there is just one way."""
    words = " ".join(words).split(" ") if words else []  # a hyphen may have made two of one
    readings: list[list[list[str]]] = [[[]]]  # of the first i words, the shortest, two at most
    for end in range(1, len(words) + 1):
        ways = [
            [*before, name]
            for start in range(end)
            if (name := " ".join(words[start:end])) in known
            for before in readings[start]
        ]
        fewest = min(map(len, ways), default=0)
        readings.append([way for way in ways if len(way) == fewest][:2])
    if not readings[-1] and aliases:
        names = _read_run(words, {*known, *aliases}, {})
        return [name if name in known else aliases[name] for name in names]
    if not readings[-1]:
        raise unknown_tag(_strange(words, readings), known)
    if len(readings[-1]) > 1:
        one, other = (" AND ".join(_quoted(name) for name in way) for way in readings[-1])
        raise DataError(
            f"{' '.join(words)!r} can be read as {one} and as {other}. Put tags of several "
            'words in quotes, as "hip hop", or AND between tags.'
        )
    return readings[-1][0]


def _strange(words: list[str], readings: list[list[list[str]]]) -> str:
    """The word at which the reading ends."""
    furthest = max(i for i, ways in enumerate(readings) if ways)
    return words[furthest] if furthest < len(words) else " ".join(words)


class _Parser:
    """Recursive descent over the tokens; the last of them is "end"."""

    def __init__(self, tokens: list[_Token], text: str) -> None:
        self._tokens, self._text, self._at, self._depth = tokens, text, 0, 0

    @property
    def _next(self) -> str:
        return self._tokens[self._at].kind

    def _take(self) -> _Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def whole(self) -> Query:
        if self._next == "end":
            raise DataError('The question is empty. Ask for tags, as in: mellow piano -"hip hop"')
        query = self._question()
        if self._next != "end":
            raise self._misfit()
        return query

    def _question(self) -> Query:
        parts = [self._group()]
        while self._next == "OR":
            self._take()
            parts.append(self._group())
        return Or(tuple(parts)) if len(parts) > 1 else parts[0]

    def _group(self) -> Query:
        parts = [self._part()]
        while self._next in ("AND", "NOT", "(", "tag"):
            if self._next == "AND":
                self._take()
            parts.append(self._part())
        return And(tuple(parts)) if len(parts) > 1 else parts[0]

    def _part(self) -> Query:
        if self._next not in ("NOT", "(", "tag"):
            raise self._misfit()
        token = self._take()
        if token.kind == "tag":
            return Tag(token.text)
        self._depth += 1
        if self._depth > DEEPEST:
            raise DataError(f"The question has more than {DEEPEST} brackets within one another.")
        if token.kind == "NOT":
            query: Query = Not(self._part())
        else:
            query = self._question()
            if self._take().kind != ")":
                raise DataError(f"A bracket of the question {self._text!r} is not closed.")
        self._depth -= 1
        return query

    def _misfit(self) -> DataError:
        found = {"end": "its end", ")": "a closing bracket"}.get(self._next, self._next)
        return DataError(
            f"The question {self._text!r} has {found} where a tag was expected. Operators stand "
            "between tags: rock AND NOT (live OR acoustic)."
        )


def _quoted(name: str) -> str:
    """A tag as it is written in a question."""
    if re.fullmatch(r"\w+", name) and name not in OPERATORS:
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
