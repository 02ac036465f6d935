"""Several tags in one text.

One text may hold several tags, such as "Jazz; Blues", "Pop, Rock" or "Jazz/Vocal/Blues".
Semicolons, bars, NUL and line breaks always separate tags. Commas and slashes do so only if it is
safe: "Jazz/Blues" is two genres, "Pop/Rock" one and "AC/DC" none. A text is split at them if it is
not itself a known name, and if every part is

- a genre or a usual tag of the built-in tree,
- or a text that stands alone elsewhere,
- or a part of at least two different texts.

Ampersands, plus signs and "and" never separate tags, unless asked to. A text that stays whole may
still mean several tags: `possible_parts` returns these, so that they do not count as absent.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from harmonium.data.genres import builtin_tree
from harmonium.data.tag_names import normalise_tag

_ALWAYS = re.compile(r"[;|\0\n\r]|\\\\")
_SOMETIMES = re.compile(r"[,/]")
_LISTED = re.compile(r"[,/;|\\]")
_JOINED = re.compile(r"[&+]| and | n |'n'", re.IGNORECASE)
_AROUND = re.compile(r"\s*([,/])\s*")
_SLASH = re.compile(r"\s*/\s*")


class TagSplitter:
    """Splits texts into tags, given all the texts and how often each occurs.

    Tags may be ``known`` from elsewhere. Texts are split only at ``separators``, whatever the parts
    are; if that is empty, nowhere; by default (None) where it is safe.
    """

    def __init__(
        self,
        texts: Iterable[str],
        *,
        known: Iterable[str] = (),
        separators: Sequence[str] | None = None,
    ) -> None:
        self._separator: re.Pattern[str] | None = None
        if separators is not None:
            self._separator = re.compile("|".join(map(re.escape, separators)) or r"(?!)")
        pieces = {piece for text in set(texts) for piece in _ALWAYS.split(text)}
        alone = {_key(piece) for piece in pieces if not _SOMETIMES.search(piece)}
        wholes = {_key(piece) for piece in pieces if _SOMETIMES.search(piece)}
        n_wholes: Counter[str] = Counter()  # in how many texts a part occurs
        for whole in wholes:
            n_wholes.update({_key(part) for part in _SOMETIMES.split(whole)})
        recurring = {part for part, n in n_wholes.items() if n > 1}
        elsewhere = {_key(name) for name in known if not _SOMETIMES.search(name)}
        self._known = {*alone, *recurring, *elsewhere} - {""}

    def split(self, text: str) -> tuple[str, ...]:
        """The tags in a text as spelt there, each once; may be empty."""
        if self._separator is not None:
            parts = self._separator.split(text)
        else:
            parts = [part for piece in _ALWAYS.split(text) for part in self._split_piece(piece)]
        spelled: dict[str, str] = {}
        for part in parts:
            key = _key(part)
            if key:
                spelled.setdefault(key, " ".join(part.split()))
        return tuple(spelled.values())

    def _split_piece(self, piece: str) -> list[str]:
        """The parts between commas and slashes; the whole text if a part is unknown."""
        if not _SOMETIMES.search(piece) or self._is_name(piece):
            return [_SLASH.sub("/", piece)]
        parts = []
        for listed in piece.split(","):
            words = listed.split("/")
            while words:
                n_words = self._longest_name(words)
                if not n_words:
                    return [piece]
                parts.append(_SLASH.sub("/", "/".join(words[:n_words])))
                words = words[n_words:]
        return parts

    def _longest_name(self, words: Sequence[str]) -> int:
        """How many words, from the first on, are a name: as many as possible; or 0.

        International/Pop/Rock has Pop/Rock in it.
        """
        for n_words in range(len(words), 0, -1):
            if self._is_name("/".join(words[:n_words])):
                return n_words
        return 0

    def _is_name(self, text: str) -> bool:
        """Whether a text as a whole is a name, although it contains a separator."""
        key = _key(text)
        tree = builtin_tree()
        return not key or key in tree.compounds or key in self._known or tree.knows(key)


def possible_parts(tag: str) -> frozenset[str]:
    """The normalised tags that an unsplit text may mean; none if it is plainly one tag."""
    parts = set()
    for listed in _LISTED.split(tag):
        for part in (listed, *_JOINED.split(listed)):
            parts.add(normalise_tag(part))
    return frozenset(parts - {"", normalise_tag(tag)})


def _key(text: str) -> str:
    """A normalised text, without space around commas and slashes."""
    return normalise_tag(_AROUND.sub(r"\1", text))
