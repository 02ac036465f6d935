"""Saved searches for the tests of this folder."""

from dataclasses import replace

import pytest
import small_library


@pytest.fixture
def searches(library):
    """Saved searches; of 60 tracks, three have genres and moods in their files."""
    ids = small_library.trained(library)[1]
    tags = [
        {"genre": ["Jazz"], "mood": ["Mellow"]},
        {"genre": ["jazz", "Rock"]},
        {"mood": ["rock"]},
    ]
    for track, given in zip(library.tracks.many(ids[:3]), tags, strict=True):
        library.tracks.replace(replace(track, file_tags=given))
    library.save_search("Evening", "jazz -rock", limit=7, min_probability=0.3)
    library.save_search("A/B", "mellow OR (jazz -mellow)", limit=5)
    library.save_search("a_b", "jazz live", order="smooth", limit=4)
    library.save_search("Way", start=int(ids[0]), end=int(ids[9]), limit=5)
    return library
