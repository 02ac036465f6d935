"""The words that listeners have for what they hear.

A concept is something that is or is not true of a clip; its words are synonyms. Each word has a
familiarity: how readily it comes to people's minds, which makes some tags common and most rare.
The concepts are in concepts.toml.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Concept:
    """Something that can be said of a clip.

    Attributes
    ----------
    kind : one of ``KINDS``.
    words : the tags that mean it, with their familiarity.
    mistaken_for : concepts that people name when they hear this one and are wrong.
    instruments : the concept holds where one of these plays, and stands out as much as that does.
    """

    kind: str
    words: dict[str, float]
    mistaken_for: list[str]
    instruments: list[str] = field(default_factory=list)


_TABLES = tomllib.loads(Path(__file__).with_name("concepts.toml").read_text(encoding="utf-8"))

KINDS = tuple(_TABLES)
CONCEPTS = {
    name: Concept(kind, **table)
    for kind, tables in _TABLES.items()
    for name, table in tables.items()
}

# Every tag with its concept. A tag means one concept only.
TAGS: dict[str, str] = {word: name for name, concept in CONCEPTS.items() for word in concept.words}
