"""The shared vocabulary: one spelling for each word."""

import pytest
from builtin_model.vocabulary import GROUPS, shared_vocabulary

from harmonium.data.datasets.loaders import HEADS
from harmonium.data.tag_names import normalise_tag

VOCABULARY = shared_vocabulary()


def test_tags_and_other_words_are_normalised_and_mean_one_thing():
    words = [*VOCABULARY.tags, *VOCABULARY.aliases]
    assert [normalise_tag(word) for word in words] == words
    assert len(set(words)) == len(words)
    assert set(VOCABULARY.aliases.values()) <= set(VOCABULARY.tags)
    assert set(VOCABULARY.groups.values()) == set(GROUPS)


@pytest.mark.parametrize(
    ("word", "tag"),
    [
        ("Hip-Hop", "hip hop"),
        ("rap", "hip hop"),
        ("RnB", "r&b"),
        ("calmness", "calm"),
        ("no vocals", "instrumental"),
        ("polka", None),
    ],
)
def test_a_word_in_any_spelling(word, tag):
    assert VOCABULARY.tag(word) == tag


def test_a_word_that_means_something_else_in_a_collection():
    assert VOCABULARY.tag("Vocal") == "voice"
    assert VOCABULARY.tag("Vocal", "4q") == "traditional vocal"


def test_the_networks_tags_all_have_a_place_and_their_eleven_voices_are_four():
    voices = {
        VOCABULARY.tag(head[5:])
        for head in HEADS
        if head.startswith("MTT") and ("voice" in head or "vocal" in head or "singing" in head)
    }
    assert voices == {"voice", "instrumental", "female voice", "male voice"}
    assert all(VOCABULARY.tag(head.split(": ")[1]) for head in HEADS)
