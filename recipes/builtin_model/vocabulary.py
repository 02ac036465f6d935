"""The built-in model's vocabulary: one spelling for each tag, other words for it, and its group."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from harmonium.data.tag_names import normalise_tag
from harmonium.library.model.builtin import BUILTIN_FILE

FEATURE = "feature"  # the group of audio features, which are values, not tags
GROUPS = ("genre", "mood", "instrument", "voice", "era", "sound", FEATURE)


@dataclass(frozen=True)
class SharedVocabulary:
    """Words that several collections share."""

    groups: Mapping[str, str]
    """Tag → its group, in the order of the groups."""
    aliases: Mapping[str, str]
    """Another word → the tag that it means."""
    elsewhere: Mapping[str, Mapping[str, str]]
    """Collection → word → the tag that it means there."""

    @property
    def features(self) -> tuple[str, ...]:
        """The audio features, which are not tags but values between 0 and 1."""
        return tuple(tag for tag, group in self.groups.items() if group == FEATURE)

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags, group by group."""
        return tuple(self.groups)

    def tag(self, word: str, collection: str | None = None) -> str | None:
        """The tag that a word means, in a collection or anywhere; None if it means none."""
        name = normalise_tag(word)
        there = self.elsewhere.get(collection or "", {})
        name = there.get(name) or self.aliases.get(name, name)
        return name if name in self.groups else None


@cache
def shared_vocabulary() -> SharedVocabulary:
    """The words of vocabulary.toml."""
    text = BUILTIN_FILE.with_name("vocabulary.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    groups = {tag: group for group in GROUPS for tag in table[group]["tags"]}
    aliases = {
        word: tag
        for group in GROUPS
        for tag, words in table[group].get("also", {}).items()
        for word in words
    }
    return SharedVocabulary(groups, aliases, table["elsewhere"])
