"""Guesses at what was meant by a misspelt name."""

from harmonium.errors import did_you_mean, nearest_names


def test_the_most_similar_names_come_first_whatever_their_capitals():
    assert nearest_names("MELOW", ["rock", "Yellow", "Mellow"], n=2) == ["Mellow", "Yellow"]


def test_the_guess_is_a_question():
    assert did_you_mean("rok", ["rock", "pop"]) == " Did you mean 'rock'?"


def test_where_nothing_is_near_there_are_examples_or_nothing():
    assert did_you_mean("xyz", ["rock", "pop"]) == ""
    assert did_you_mean("xyz", ["rock", "pop"], examples=1, quote=str) == " There are pop …."
    assert did_you_mean("xyz", [], examples=1) == ""
