"""Saved searches, which search again each time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harmonium.errors import DataError, NotInLibraryError, did_you_mean
from harmonium.library.snapshot import Question, SearchResult
from harmonium.library.store.database import LibraryPart
from harmonium.library.store.failures import damaged
from harmonium.library.store.schema import SAVED
from harmonium.library.store.values import storable

if TYPE_CHECKING:
    from harmonium.library.library import Library

MAX_NAME = 200  # maximum length of a name


@dataclass(frozen=True)
class SavedSearch:
    """A search with a name."""

    name: str
    question: Question  # ``stops`` is the most tracks that it finds

    @property
    def words(self) -> str:
        """What it finds, on one line."""
        question = self.question
        parts = []
        if question.text:
            parts.append(question.text)
        if question.name:
            parts.append(f"“{question.name}”")
        if question.like:
            parts.append(f"like #{question.like}")
        if question.start:
            parts.append(f"from #{question.start} to #{question.end}")
        if question.order:
            parts.append(f"sorted by {question.order}")
        return ", ".join(parts) or "all tracks"

    def run(self, library: Library) -> SearchResult:
        """The tracks that it finds now."""
        result = library.snapshot().search(self.question, self.question.stops, count=False)
        return replace(result, hits=[hit for hit in result.hits if hit.holds])


class SavedSearches(LibraryPart):
    """The saved searches of a library. Each is a setting, so that each can be undone."""

    def list(self) -> list[SavedSearch]:
        """All saved searches, by name."""
        try:
            searches = [
                SavedSearch(name=name, question=Question(**stored))
                for name, stored in self._library.settings.beginning_with(SAVED).items()
            ]
        except TypeError as error:  # from a newer version, perhaps
            raise damaged(f"a saved search cannot be read ({error})") from None
        return sorted(searches, key=lambda search: search.name.casefold())

    def get(self, name: str) -> SavedSearch:
        """The saved search with this name, or a LibraryError."""
        searches = {search.name: search for search in self.list()}
        if name not in searches:
            hint = did_you_mean(name, searches, examples=5)
            raise NotInLibraryError(f"There is no saved search {name!r}.{hint}")
        return searches[name]

    def run(self, name: str) -> SearchResult:
        """The tracks that a saved search finds now."""
        return self.get(name).run(self._library)

    def save(self, name: str, question: Question) -> int | None:
        """Save a search, or replace the one with this name; the change, None if it is the same."""
        name = _checked(name)
        self._library.snapshot().search(question, 1)  # an invalid query is an error
        usual = Question()._asdict()
        stored = {key: x for key, x in question._asdict().items() if x != usual[key]}
        return self._library.changes.set_settings(
            "save", f"search {name!r} saved", {SAVED + name: stored}
        )

    def delete(self, name: str) -> int | None:
        """Delete a saved search; the number of the change."""
        self.get(name)
        return self._library.changes.set_settings(
            "save", f"search {name!r} deleted", {SAVED + name: None}
        )

    def rename(self, old: str, new: str) -> int | None:
        """Give a saved search another name; the number of the change."""
        self.get(old)
        new = _checked(new)
        if self._library.settings.get(SAVED + new) is not None:
            raise DataError(f"There is already a saved search {new!r}. Choose another name.")
        stored = self._library.settings.get(SAVED + old)
        return self._library.changes.set_settings(
            "save",
            f"search {old!r} renamed to {new!r}",
            {SAVED + new: stored, SAVED + old: None},
        )


def _checked(name: str) -> str:
    name = storable(name).strip()
    if not 1 <= len(name) <= MAX_NAME:
        raise DataError(f"The name of a search must have 1 to {MAX_NAME} letters, got {name!r}.")
    return name
