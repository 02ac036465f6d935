"""A small library with a model, for the tests of learning and of teaching."""

import pytest
import small_library

from harmonium.library import Library


@pytest.fixture
def tagged(tmp_path):
    with Library.open(tmp_path / "tagged.db") as library:
        small_library.trained(library, n_tracks=90, tagged=20)
        yield library
