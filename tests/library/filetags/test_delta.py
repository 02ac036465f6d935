"""The delta between two files leads back to the old one, and holds little else than differs."""

import io
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harmonium.library.filetags import replace as delta

NOISE = random.Random(0).randbytes(2 * delta.WINDOW)


def way(old: bytes, new: bytes) -> tuple[delta.Steps, bytes]:
    """The steps and bytes that lead back."""
    steps, literal = delta.difference(io.BytesIO(old), io.BytesIO(new))
    back = io.BytesIO()
    delta.patch(steps, literal, io.BytesIO(new), back)
    assert back.getvalue() == old
    return steps, literal


PIECES = st.sampled_from([b"", b"\0" * 100, NOISE[:90], NOISE[500:900], b"TAG" * 30, NOISE[:33]])


@settings(deadline=None, max_examples=100)
@given(st.lists(PIECES | st.binary(max_size=80)), st.lists(PIECES | st.binary(max_size=80)))
@example([b"a"], [])
@example([], [b"a"])
def test_any_file_is_restored_from_any_other(old, new):
    steps, literal = way(b"".join(old), b"".join(new))
    assert sum(n for start, n in steps if start == delta.LITERAL) == len(literal)


@pytest.mark.parametrize("size", [delta.STRIDE - 1, delta.STRIDE, 2 * delta.STRIDE + 1])
def test_equal_files_need_no_bytes(size):
    assert way(NOISE[:size], NOISE[:size]) == (((0, size),), b"")


def test_what_moved_is_found_and_what_was_replaced_is_kept():
    old = NOISE[:1000] + b"old" + NOISE[1000:]
    new = NOISE[:1000] + b"something longer" * 100 + NOISE[1000:]
    assert len(way(old, new)[1]) < 3 + 2 * delta.WORD


def test_a_number_at_the_beginning_does_not_hide_the_rest():
    old = b"RIFF\1\1\1\1" + NOISE + b"end"
    new = b"RIFF\2\2\2\2" + NOISE + b"another end"
    assert len(way(old, new)[1]) < 4 + delta.WORD


def test_pages_that_were_numbered_anew_cost_their_numbers():
    pages = [NOISE[i : i + 4000] for i in range(0, len(NOISE), 4000)]
    old = b"head" + b"".join(b"%08d" % i + page for i, page in enumerate(pages))
    new = b"a longer head" + b"".join(b"%08d" % (i + 5555) + page for i, page in enumerate(pages))
    assert len(way(old, new)[1]) < 12 * len(pages)


def test_what_changed_places_is_found():
    old = b"<" + NOISE[:5000] + b">" + b"text" * 20
    new = b"text" * 20 + b"<" + NOISE[:5000] + b">"
    assert len(way(old, new)[1]) < 80 + 2 * delta.WORD


def test_padding_hides_nothing():
    old = bytes(2000) + NOISE[:50_000] + bytes(10)
    new = NOISE[:50_000] + bytes(4000)
    assert len(way(old, new)[1].strip(b"\0")) < 2 * delta.WORD


def test_what_is_far_larger_than_the_window_is_restored():
    old = NOISE + NOISE[::-1]
    assert way(old, NOISE[: delta.WINDOW])[0]
