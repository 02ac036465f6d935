"""How much answers have helped."""

from answered import answer, column

from harmonium.library.teaching.improvement import improvement


def test_each_answer_is_guessed_from_those_before_it(tagged):
    """The answers say the contrary of the model: from the second on, that is known."""
    likely = [t for t, p in column(tagged, "jazz").items() if p > 0.6 and t > 20][:8]
    first = answer(tagged, "jazz", no=likely[:1])
    rest = answer(tagged, "jazz", no=likely[1:])
    gain = improvement(tagged)
    assert gain.n == len(likely)
    assert gain.right_before == 0
    assert gain.right_now > 0
    assert improvement(tagged, first) == (1, 0, 0)
    assert improvement(tagged, rest).n == len(likely) - 1
    assert improvement(tagged, 999) is None
    answer(tagged, "jazz", yes=[1, 2, 3], command="import")  # nobody was asked
    assert improvement(tagged).n == len(likely)
