"""Several tags in one text: "Jazz; Blues", "Pop, Rock", "Jazz/Vocal/Blues".

Semicolons, bars, NUL and line breaks always separate tags. Commas and slashes do so only where it
is safe: "Jazz/Blues" is two genres, "Pop/Rock" one and "AC/DC" none. A text is split at them if it
is not itself a known name, and if every part is

- a genre or a usual tag of the built-in tree,
- or a text that stands alone elsewhere,
- or a part of at least two different texts.

Ampersands, plus signs and "and" never separate tags, unless asked to. A text that stays whole may
still mean several tags: `possible_parts` gives these, so that nobody takes them for absent.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from harmonium.data.genre_tree import GenreTree, own_tree
from harmonium.data.normalise import normalise_tag

_ALWAYS = re.compile(r"[;|\0\n\r]|\\\\")
_SOMETIMES = re.compile(r"[,/]")
_LISTED = re.compile(r"[,/;|\\]")
_JOINED = re.compile(r"[&+]| and | n |'n'", re.IGNORECASE)
_AROUND, _SLASH = re.compile(r"\s*([,/])\s*"), re.compile(r"\s*/\s*")


class TagSplitter:
    """Splits texts into tags, given all texts that there are.

    Parameters
    ----------
    texts : all of them, each as often as it occurs
    known : tags that are known from elsewhere
    separators : split at these alone, whatever the parts are; none: split nothing; None: split
        where it is safe
    tree : whose names are known
    """

    def __init__(
        self,
        texts: Iterable[str],
        *,
        known: Iterable[str] = (),
        separators: Sequence[str] | None = None,
        tree: GenreTree | None = None,
    ) -> None:
        self._separator = (
            None
            if separators is None
            else re.compile("|".join(map(re.escape, separators)) or r"(?!)")
        )
        self._tree = own_tree() if tree is None else tree
        pieces = {piece for text in set(texts) for piece in _ALWAYS.split(text)}
        alone = {_key(piece) for piece in pieces if not _SOMETIMES.search(piece)}
        wholes = {_key(piece) for piece in pieces if _SOMETIMES.search(piece)}
        shared = Counter(part for one in wholes for part in set(map(_key, _SOMETIMES.split(one))))
        recurring = {part for part, n in shared.items() if n > 1}
        elsewhere = {_key(name) for name in known if not _SOMETIMES.search(name)}
        self._known = {*alone, *recurring, *elsewhere} - {""}

    def split(self, text: str) -> tuple[str, ...]:
        """The tags in a text as they are spelled there, each once; empty where there is none."""
        if self._separator is not None:
            found = self._separator.split(text)
        else:
            found = [part for piece in _ALWAYS.split(text) for part in self._split_piece(piece)]
        spelled = {_key(part): " ".join(part.split()) for part in reversed(found)}
        return tuple(spelled[key] for key in dict.fromkeys(map(_key, found)) if key)

    def _split_piece(self, piece: str) -> list[str]:
        if not _SOMETIMES.search(piece):
            return [piece]
        if self._is_name(piece):
            return [_SLASH.sub("/", piece)]
        by_comma = [self._split_at_slashes(part) for part in piece.split(",")]
        return [part for parts in by_comma for part in parts] if all(by_comma) else [piece]

    def _split_at_slashes(self, piece: str) -> list[str]:
        """The parts of what stands between commas; none where one of them is not known."""
        if self._is_name(piece):
            return [_SLASH.sub("/", piece)]
        parts = piece.split("/")
        return parts if all(self._is_known(_key(part)) for part in parts) else []

    def _is_name(self, text: str) -> bool:
        """Whether a text is a name as a whole, although it has a separator in it."""
        key = _key(text)
        return not key or key in self._tree.compounds or self._is_known(key)

    def _is_known(self, key: str) -> bool:
        return self._tree.knows(key) or key in self._known


def possible_parts(tag: str) -> frozenset[str]:
    """The normalised tags that a text left whole may mean; none if it is plainly one tag."""
    listed = _LISTED.split(tag)
    parts = {normalise_tag(part) for one in listed for part in (one, *_JOINED.split(one))}
    return frozenset(parts - {"", normalise_tag(tag)})


def _key(text: str) -> str:
    """A normalised text, without space around commas and slashes."""
    return normalise_tag(_AROUND.sub(r"\1", text))
