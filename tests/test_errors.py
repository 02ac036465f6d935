"""Guesses at what was meant by a misspelt name."""

from harmonium.errors import did_you_mean, nearest_names


def test_the_nearest_names_or_else_examples():
    assert nearest_names("MELOW", ["rock", "Yellow", "Mellow"], n=2) == ["Mellow", "Yellow"]
    assert did_you_mean("rok", ["rock", "pop"]) == " Did you mean 'rock'?"
    assert did_you_mean("xyz", ["rock", "pop"]) == did_you_mean("xyz", [], examples=1) == ""
    assert did_you_mean("xyz", ["rock", "pop"], examples=1, quote=str) == " There are pop …."
