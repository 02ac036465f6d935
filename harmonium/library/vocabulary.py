"""The vocabulary of a library (`library.tags`): tags, their kinds, spellings and other names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import sqlalchemy as sa

from harmonium.data.aliases import resolve_aliases
from harmonium.library.store.database import LibraryPart
from harmonium.library.store.schema import HIDDEN, KIND, RENAMED
from harmonium.library.store.schema import tag as tag_table

if TYPE_CHECKING:
    from harmonium.library.tags import TagDetail, TagEntry, TagMap


class Tags(LibraryPart):
    """The tags of a library (`library.tags`)."""

    def list(self) -> Sequence[TagEntry]:
        """All tags that people gave or the model has learnt, the most used first."""
        from harmonium.library.tags import list_tags

        return list_tags(self._library.snapshot())

    def detail(self, tag: str) -> TagDetail:
        """Everything known about a tag."""
        from harmonium.library.tags import tag_detail

        return tag_detail(self._library.snapshot(), tag)

    def map(self) -> TagMap:
        """A map of the tags that the model in use has learnt."""
        from harmonium.library.tags import tag_map

        return tag_map(self._library.snapshot())

    def kinds(self) -> dict[str, str]:
        """Tag → genre, mood, instrument, voice, era, sound, own, or none (not a tag)."""
        from harmonium.library.model.builtin import builtin_kinds

        tree = self._library.genres()
        genres = dict.fromkeys([*tree.parents, *tree.aliases], "genre")
        return builtin_kinds() | genres | self._library.settings.beginning_with(KIND)

    def hidden(self) -> set[str]:
        """The tags that are neither learnt nor predicted."""
        return set(self._library.settings.beginning_with(HIDDEN))

    def renamed(self) -> dict[str, str]:
        """A tag's former name → its present name."""
        return resolve_aliases(self._library.settings.beginning_with(RENAMED), normalise=False)

    def spellings(self) -> dict[str, str]:
        """Tag → how it is shown and written, if that differs from its normalised name."""
        return {**self._library.genres().spellings, **self._library.opinions.spellings()}

    def used(self) -> set[str]:
        """All tags that were ever used."""
        return {row.name for row in self._library.fetch(sa.select(tag_table.c.name))}
