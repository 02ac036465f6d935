"""Guesses at what was meant."""

from harmonium.nearest_names import did_you_mean, nearest_names


def test_the_likest_names_come_first_whatever_their_capitals():
    assert nearest_names("MELOW", ["rock", "Yellow", "Mellow"], n=2) == ["Mellow", "Yellow"]


def test_nothing_is_guessed_where_nothing_is_near():
    assert nearest_names("xyz", ["rock", "pop"]) == []
    assert did_you_mean("xyz", ["rock", "pop"]) == ""


def test_the_guess_is_a_question():
    assert did_you_mean("rok", ["rock", "pop"]) == " Did you mean 'rock'?"
