"""The vocabulary of the generated collection."""

import pytest
from places import DOCS

from harmonium.data import normalise_tag
from harmonium.synthetic.concepts import CONCEPTS, RULES, TAGS


def test_every_concept_has_a_rule():
    assert set(RULES) == set(CONCEPTS)


def test_a_word_means_one_concept():
    assert len(TAGS) == sum(len(concept.words) for concept in CONCEPTS.values())


def test_words_are_normalised():
    assert [normalise_tag(tag) for tag in TAGS] == list(TAGS)


@pytest.mark.parametrize("name", CONCEPTS)
def test_a_concept_is_mistaken_for_others(name):
    assert set(CONCEPTS[name].mistaken_for) <= set(CONCEPTS) - {name}


def test_the_numbers_in_the_documentation():
    page = (DOCS / "synthetic.md").read_text(encoding="utf-8")
    assert f"one rule for each of {len(CONCEPTS)} concepts" in page
    assert f"There are {len(TAGS)} tags" in page
