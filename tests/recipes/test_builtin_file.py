"""The file of the built-in model: small, whole, in step with its card and the vocabulary."""

from pathlib import Path

import numpy as np
from builtin_model.card import model_card
from builtin_model.vocabulary import shared_vocabulary

import harmonium
from harmonium import DiscriminativeRBM
from harmonium.estimators.model_files import read_model

FOLDER = Path(harmonium.__file__).parent / "library" / "builtin"


def test_it_is_at_most_a_megabyte_and_loads():
    assert (FOLDER / "model.safetensors").stat().st_size <= 1_000_000
    model = DiscriminativeRBM.load(FOLDER / "model.safetensors")
    P = model.predict_proba(np.zeros((1, 400), np.float32))
    assert P.shape == (1, len(model.tags_))


def test_its_report_names_its_tags_groups_and_scores():
    _, about = read_model(FOLDER / "model.safetensors")
    groups = shared_vocabulary().groups
    report = about["shipped"]
    assert all(groups[tag["tag"]] == tag["group"] for tag in report["tags"])
    assert report["aliases"]["rap"] == "hip hop"
    for tag in report["tags"]:
        assert ("auc" in tag) != ("agreement" in tag)
        assert tag["threshold"] is None or 0 < tag["threshold"] < 1
        if tag.get("write_from") is not None:
            assert tag["auc"] > 0.5
            assert tag["written"] >= 8  # fewer cannot show 80 %


def test_the_card_is_made_from_it():
    _, about = read_model(FOLDER / "model.safetensors")
    assert (FOLDER / "card.md").read_text(encoding="utf-8") == model_card(about["shipped"])
