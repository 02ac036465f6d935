"""Several tags in one text: "Jazz; Blues", "Pop, Rock", "Jazz/Vocal/Blues".

Semicolons, bars, NUL and line breaks always separate tags. Commas and slashes do so only where it
is safe: "Jazz/Blues" is two genres, "Pop/Rock" one and "AC/DC" none. A text is parted at them
if it is not itself a known name, and if every part is

- a genre or a usual tag of the tree that comes with Harmonium,
- or a text that stands alone elsewhere,
- or a part of at least two different texts.

Ampersands, plus signs and "and" never separate tags, unless asked to. A text that stays whole may
still mean several tags: `fragments` gives these, so that nobody takes them for absent.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from harmonium.data.genre_tree import GenreTree, own_tree
from harmonium.data.normalise import normalise_tag

_SURE = re.compile(r"[;|\0\n\r]|\\\\")
_LIKELY = re.compile(r"[,/]")
_LISTED = re.compile(r"[,/;|\\]")
_JOINED = re.compile(r"[&+]| and | n |'n'", re.IGNORECASE)
_AROUND, _SLASH = re.compile(r"\s*([,/])\s*"), re.compile(r"\s*/\s*")


class Parting:
    """How texts are parted, given all texts that there are.

    Parameters
    ----------
    texts : those that there are, each as often as it is there
    known : tags that are known from elsewhere
    at : separators, each a character or several: part at these alone, whatever the parts are;
        none: part nothing; None: part where it is safe
    tree : whose names are known
    """

    def __init__(
        self,
        texts: Iterable[str],
        *,
        known: Iterable[str] = (),
        at: Sequence[str] | None = None,
        tree: GenreTree | None = None,
    ) -> None:
        self._at = None if at is None else re.compile("|".join(map(re.escape, at)) or r"(?!)")
        self._tree = own_tree() if tree is None else tree
        pieces = {piece for text in set(texts) for piece in _SURE.split(text)}
        alone = {_key(piece) for piece in pieces if not _LIKELY.search(piece)}
        wholes = {_key(piece) for piece in pieces if _LIKELY.search(piece)}
        shared = Counter(part for whole in wholes for part in set(map(_key, _LIKELY.split(whole))))
        recurring = {part for part, n in shared.items() if n > 1}
        elsewhere = {_key(name) for name in known if not _LIKELY.search(name)}
        self._known = {*alone, *recurring, *elsewhere} - {""}

    def parts(self, text: str) -> tuple[str, ...]:
        """The tags in a text as they are spelt there, each once; empty where there is none."""
        if self._at is not None:
            found = self._at.split(text)
        else:
            found = [part for piece in _SURE.split(text) for part in self._parted(piece)]
        spelt = {_key(part): " ".join(part.split()) for part in reversed(found)}
        return tuple(spelt[key] for key in dict.fromkeys(map(_key, found)) if key)

    def _parted(self, piece: str) -> list[str]:
        if not _LIKELY.search(piece):
            return [piece]
        if self._is_name(_key(piece)):
            return [_SLASH.sub("/", piece)]
        by_comma = [self._by_slash(part) for part in piece.split(",")]
        if all(parts is not None for parts in by_comma):
            return [part for parts in by_comma if parts is not None for part in parts]
        return [piece]

    def _by_slash(self, piece: str) -> list[str] | None:
        """The parts of what stands between commas; None where one of them is not known."""
        if self._is_name(_key(piece)):
            return [_SLASH.sub("/", piece)]
        parts = piece.split("/")
        return parts if all(self._is_known(_key(part)) for part in parts) else None

    def _is_name(self, key: str) -> bool:
        """Whether a text is a name as a whole, although it has a separator in it."""
        return not key or key in self._tree.compounds or self._is_known(key)

    def _is_known(self, key: str) -> bool:
        return self._tree.knows(key) or key in self._known


def fragments(tag: str) -> frozenset[str]:
    """The normalised tags that an unparted one may mean; none if it is plainly one tag."""
    listed = _LISTED.split(tag)
    parts = {normalise_tag(part) for one in listed for part in (one, *_JOINED.split(one))}
    return frozenset(parts - {"", normalise_tag(tag)})


def _key(text: str) -> str:
    """A normalised text, without space around commas and slashes."""
    return normalise_tag(_AROUND.sub(r"\1", text))
