"""Invented names."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonium.synthetic.names import album_title, artist_name, track_title


@pytest.mark.parametrize("name", [artist_name, track_title, album_title])
@settings(deadline=None, max_examples=30)
@given(numbers=st.sets(st.integers(0, 100_000), min_size=2, max_size=50))
def test_names_are_different_for_different_numbers(name, numbers):
    assert len({name(number) for number in numbers}) == len(numbers)
