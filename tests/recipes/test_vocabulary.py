"""The shared vocabulary, and the file of the built-in model, which is in step with it."""

from pathlib import Path

import numpy as np
from builtin_model.card import model_card
from builtin_model.vocabulary import GROUPS, shared_vocabulary

import harmonium
from harmonium import DiscriminativeRBM
from harmonium.data.datasets.loaders import HEADS
from harmonium.data.tag_names import normalise_tag
from harmonium.estimators.model_files import read_model

FOLDER = Path(harmonium.__file__).parent / "library" / "builtin"
VOCABULARY = shared_vocabulary()


def test_tags_and_other_words_are_normalised_and_mean_one_thing():
    words = [*VOCABULARY.tags, *VOCABULARY.aliases]
    assert [normalise_tag(word) for word in words] == words
    assert len(set(words)) == len(words)
    assert set(VOCABULARY.aliases.values()) <= set(VOCABULARY.tags)
    assert set(VOCABULARY.groups.values()) == set(GROUPS)


def test_a_word_in_any_spelling():
    words = ["Hip-Hop", "rap", "RnB", "calmness", "no vocals", "polka"]
    tags = ["hip hop", "hip hop", "r&b", "calm", "instrumental", None]
    assert [VOCABULARY.tag(word) for word in words] == tags
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


def test_the_built_in_model_is_at_most_a_megabyte_and_loads():
    assert (FOLDER / "model.safetensors").stat().st_size <= 1_000_000
    model = DiscriminativeRBM.load(FOLDER / "model.safetensors")
    P = model.predict_proba(np.zeros((1, 400), np.float32))
    assert P.shape == (1, len(model.tags_))


def test_the_report_of_the_built_in_model_gives_its_card():
    report = read_model(FOLDER / "model.safetensors")[1]["shipped"]
    assert (FOLDER / "card.md").read_text(encoding="utf-8") == model_card(report)
    assert all(VOCABULARY.groups[tag["tag"]] == tag["group"] for tag in report["tags"])
    assert report["aliases"]["rap"] == "hip hop"
    for tag in report["tags"]:
        assert ("auc" in tag) != ("agreement" in tag)
        assert tag["threshold"] is None or 0 < tag["threshold"] < 1
        if tag.get("write_from") is not None:
            assert tag["auc"] > 0.5
            assert tag["written"] >= 8  # fewer cannot show 80 %
