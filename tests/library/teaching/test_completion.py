"""What follows from a track's known tags, and why a tag has its probability."""

from itertools import permutations

import numpy as np
import pytest
from small_library import trained

from harmonium.errors import DataError, UnknownTagError
from harmonium.library.model.odds import log_odds
from harmonium.library.teaching import completion
from harmonium.library.teaching.completion import complete_track, why

YES, NO = ["rock", "hip hop"], ["live"]


@pytest.fixture
def view(library):
    trained(library, tagged=30, artists=7)
    return library.snapshot()


@pytest.mark.parametrize("exact", [completion.MAX_EXACT, 1])
def test_the_parts_add_up_to_the_probability(view, monkeypatch, exact):
    monkeypatch.setattr(completion, "MAX_EXACT", exact)
    found = why(view, 40, "jazz", YES, NO, "me")
    total = np.log(found.usual / (1 - found.usual)) + found.sound["log_odds"]
    total += sum(part.log_odds for part in found.parts)
    assert 1 / (1 + np.exp(-total)) == pytest.approx(found.probability, abs=1e-6)
    completed = {one.tag: one for one in complete_track(view, 40, YES, NO, "me").tags}
    assert found.probability == pytest.approx(completed["jazz"].probability, abs=1e-4)
    assert found.sound["probability"] == pytest.approx(completed["jazz"].before, abs=1e-4)
    said = {part.tag: part.said for part in found.parts}
    assert said == {"rock": True, "hip hop": True, "live": False}


def test_a_part_is_the_mean_over_all_orders(view):
    tagger, observed = view.tagger, {"rock": 1.0, "hip hop": 1.0, "live": 0.0}
    x = view.library.tracks.features([40], extractor=tagger.extractor)[1]

    def value(tags):
        known = np.array([[observed[t] if t in tags else np.nan for t in tagger.tags]], np.float32)
        return float(log_odds(tagger.probabilities(x, known))[0, tagger.tags.index("jazz")])

    expected = dict.fromkeys(observed, 0.0)
    orders = list(permutations(observed))
    for order in orders:
        for k, tag in enumerate(order):
            expected[tag] += (value(order[: k + 1]) - value(order[:k])) / len(orders)
    found = {part.tag: part.log_odds for part in why(view, 40, "jazz", YES, NO, "me").parts}
    assert found == pytest.approx(expected, abs=1e-4)


def test_what_is_said_of_the_tag_itself_does_not_count(view):
    alone = why(view, 40, "jazz", ["rock"], [], "me")
    assert why(view, 40, "jazz", ["rock", "jazz"], [], "me") == alone
    with pytest.raises(UnknownTagError, match="no tag 'polka'"):
        why(view, 40, "polka", [], [], "me")
    with pytest.raises(DataError, match="cannot be both"):
        complete_track(view, 40, ["rock"], ["Rock"], "me")
