"""Opening libraries: new, old, newer, foreign, and by several at once."""

import sqlite3

import pytest

from harmonium.collection import Library
from harmonium.errors import LibraryError


def test_a_new_library_is_empty_and_opens_again(place):
    with Library.open(place) as library:
        assert library.tracks.count() == 0
        library.settings.set("answer", {"of": 42})
    with Library.open(place, create=False) as library:
        assert library.settings.get("answer") == {"of": 42}
        assert library.settings.get("question", "none") == "none"
