"""From opinions to labels, and which tags there is enough to learn from."""

import numpy as np
import pytest
from some_tracks import add_tracks, triples

from harmonium.errors import DataError
from harmonium.library.learning.examples import choose_vocabulary
from harmonium.library.store.opinions import VerdictTable, agreed_tags, judge, label_matrix

IDS = np.array([3, 5, 9])


ROCK, CROWD = ("ann", 3, "rock", 1), [(f"p{i}", 3, "jazz", 1) for i in range(9)]
VOTES = [("ann", 3, "rock", -1), ("ann", 5, "rock", 1), ("bob", 5, "rock", -1)]
VOTES += [("ann", 9, "rock", 1), ("bob", 9, "rock", 1), ("cy", 9, "rock", -1)]


@pytest.mark.parametrize(
    ("rows", "tags", "rule", "expected"),
    [
        ([ROCK, ("ann", 5, "jazz", 1)], ("rock", "jazz"), {}, [[1, 0], [0, 1], [0, 0]]),
        (VOTES, ("rock",), {}, [[0], [np.nan], [1]]),
        ([ROCK, *VOTES[3:5]], ("rock",), {"min_count": 2}, [[np.nan], [0], [1]]),
        ([*CROWD, ROCK], ("jazz", "rock"), {}, [[1, 0], [0, 0], [0, 0]]),
        ([*CROWD, ROCK], ("jazz", "rock"), {"min_share": 0}, [[1, 1], [0, 0], [0, 0]]),
    ],
    ids=["given to no track", "denied", "too few people", "one among many", "one is enough"],
)
def test_labels_of_opinions(rows, tags, rule, expected):
    Y = label_matrix(judge(triples(*rows), **rule), IDS, tags)
    np.testing.assert_array_equal(Y, expected)


@pytest.mark.parametrize("rule", [{"min_count": 0}, {"min_share": 1.5}])
def test_a_rule_that_makes_no_sense_is_refused(rule):
    with pytest.raises(DataError, match=f"'{next(iter(rule))}' must be"):
        judge(triples(("ann", 3, "rock", 1)), **rule)


def judged(**counts):
    """Tags on the first so many tracks."""
    rows = [("ann", i, tag, 1) for tag, n in counts.items() for i in range(n)]
    return judge(triples(*rows))


def test_the_vocabulary_are_the_tags_with_enough_tracks_most_used_first():
    tags, excluded = choose_vocabulary(judged(rare=9, some=10, much=40, all=95), 100)
    assert tags == ("much", "some")
    assert [(one.tag, one.missing, one.reason) for one in excluded] == [
        ("all", 5, "5 more tracks without it"),
        ("rare", 1, "1 more track with it"),
    ]


def test_with_few_tracks_fewer_examples_are_enough():
    counts = {"rare": 4, "some": 5}
    assert choose_vocabulary(judged(**counts), 30)[0] == ("some",)
    assert choose_vocabulary(judged(**counts), 30, min_examples=4)[0] == ("some", "rare")


def test_only_the_most_used_tags_are_taken():
    tags, excluded = choose_vocabulary(judged(a=12, b=11, c=10), 100, max_tags=2)
    assert tags == ("a", "b")
    assert excluded[0].reason == "only the 2 most used tags are learnt"


def test_too_few_tracks_and_too_few_tags_say_what_is_needed():
    with pytest.raises(DataError, match=r"12 tracks have both.*at least 20\. Tag 8 more"):
        choose_vocabulary(judged(a=6), 12)
    with pytest.raises(DataError, match=r"No tag has 10 tracks.*'b', which needs 2 more tracks"):
        choose_vocabulary(judged(a=7, b=8), 100)
    with pytest.raises(DataError, match="'min_examples' must be at least 2"):
        choose_vocabulary(judged(a=7), 100, min_examples=1)


def test_what_people_agree_on():
    rows = [*CROWD, ROCK, ("ann", 3, "loud", -1)]  # one of ten is too few for rock
    rows += [*VOTES[1:], ("bob", 5, "soft", 1)]  # they are undecided about rock for track 5
    found = agreed_tags(triples(*rows))
    assert found == {3: {"jazz": True, "loud": False}, 5: {"soft": True}, 9: {"rock": True}}
    assert list(found[3]) == ["jazz", "loud"]


@pytest.mark.parametrize("n_people", [3, 12], ids=["few people", "a crowd"])
def test_one_tag_of_all_tracks_is_settled_as_all_tags_of_one_are(library, n_people):
    ids = add_tracks(library, 20)
    rng = np.random.default_rng(n_people)
    rows = {
        (f"person {rng.integers(n_people)}", int(rng.choice(ids)), f"tag {rng.integers(4)}"): (
            int(rng.choice([1, 1, 1, -1]))
        )
        for _ in range(400)
    }
    frame = triples(*((*key, value) for key, value in rows.items()))
    with library.begin():
        change = library.changes.begin("import", "at random")
        library.opinions.add_triples(frame, change=change)
    expected = agreed_tags(library.opinions.triples())
    held = [tags[name] for tags in expected.values() for name in tags]
    assert True in held
    assert False in held
    names = ["tag 0", "tag 1", "tag 2", "tag 3", "never said"]
    found = VerdictTable.read(library, names)
    for name in names:
        said = found.agreement(name)
        assert said.yes.tolist() == [i for i in ids if expected.get(i, {}).get(name) is True]
        assert said.no.tolist() == [i for i in ids if expected.get(i, {}).get(name) is False]


def test_after_undoing_the_only_opinions_the_next_ones_are_read(library):
    add_tracks(library, 3)
    assert library.snapshot().verdicts.of_track(2) == {}
    for tag in ("rock", "jazz"):
        change = library.say(2, tag).change
        assert library.snapshot().verdicts.of_track(2) == {tag: True}
        library.undo(change)
        assert library.snapshot().verdicts.of_track(2) == {}
