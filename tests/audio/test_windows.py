"""Where the windows of a sound lie."""

import pytest

from harmonium.audio.windows import SpreadWindows


@pytest.mark.parametrize(
    ("length", "firsts"),
    [
        (180, [25, 85, 145]),  # the middles of three minutes
        (30, [0, 10, 20]),
        (15, [0, 2, 5]),  # they overlap
        (10, [0]),
        (4, [0]),
    ],
)
def test_spread_windows_are_the_middles_of_equal_parts(length, firsts):
    found = SpreadWindows(3, 10)(length, None)
    assert found == [(first, min(first + 10, length)) for first in firsts]
    assert SpreadWindows(3, 10)(length + 35, 35) == [(35, min(45, length + 35))]
    assert SpreadWindows(3, 10)(None, None) == [(0, 10), (10, 20), (20, 30)]
