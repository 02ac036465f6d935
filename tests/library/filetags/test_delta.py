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


PAGES = [NOISE[i : i + 4000] for i in range(0, len(NOISE), 4000)]
TEXT = b"text" * 20


@pytest.mark.parametrize(
    ("old", "new", "most"),
    [
        (NOISE[:1000] + b"old" + NOISE[1000:], NOISE[:1000] + b"longer" * 300 + NOISE[1000:], 67),
        (b"RIFF\1\1\1\1" + NOISE + b"end", b"RIFF\2\2\2\2" + NOISE + b"another end", 36),
        (
            b"head" + b"".join(b"%08d" % i + page for i, page in enumerate(PAGES)),
            b"a longer head" + b"".join(b"%08d" % i + page for i, page in enumerate(PAGES, 5555)),
            12 * len(PAGES),
        ),
        (b"<" + NOISE[:5000] + b">" + TEXT, TEXT + b"<" + NOISE[:5000] + b">", 144),
        (bytes(2000) + NOISE[:50_000] + bytes(10), NOISE[:50_000] + bytes(4000), 64),
    ],
    ids=["replaced", "a number at the beginning", "renumbered pages", "swapped", "padding"],
)
def test_only_what_differs_is_kept(old, new, most):
    assert len(way(old, new)[1].strip(b"\0")) < most


def test_what_is_far_larger_than_the_window_is_restored():
    assert way(NOISE + NOISE[::-1], NOISE[: delta.WINDOW])[0]
