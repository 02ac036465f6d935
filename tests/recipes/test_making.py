"""Several collections as one corpus, and the model that is made of it."""

import json

import numpy as np
import pytest
from builtin_model import corpus as corpora
from builtin_model import making
from builtin_model.card import model_card
from builtin_model.corpus import Corpus, join, labelled, shared_heads
from builtin_model.vocabulary import shared_vocabulary
from dataset_samples import write_listening

from harmonium import DiscriminativeRBM
from harmonium.data import datasets
from harmonium.data.datasets.loaders import HEADS
from harmonium.estimators.model_files import from_bytes
from harmonium.evaluation import auc_per_tag
from harmonium.library.tagger import curves_from_arrays

VOCABULARY = shared_vocabulary()


def place(tag):
    return VOCABULARY.tags.index(tag)


class TestHeads:
    def test_synonyms_of_one_network_are_joined_and_the_networks_averaged(self):
        heads = np.zeros((1, 100), np.float32)
        said = {"MTT: beat": 0.5, "MTT: beats": 0.2, "MSD: rock": 0.8, "MTT: rock": 0.4}
        for head, p in {**said, "MTT: woman": 0.5, "MTT: singing": 0.5}.items():
            heads[0, HEADS.index(head)] = p
        shared = shared_heads(heads, VOCABULARY)[0]
        assert shared[place("beats")] == pytest.approx(1 - 0.5 * 0.8)
        assert shared[place("rock")] == pytest.approx(0.6)
        assert np.isnan(shared[place("gloomy")])
        # who sings is a voice
        assert shared[place("voice")] == pytest.approx(0.75)
        assert shared[place("male voice")] == 0


class TestCorpus:
    def test_labels_are_unknown_where_a_collection_was_not_asked(self, tmp_path, monkeypatch):
        monkeypatch.setattr(corpora, "FEWEST", 1)
        (tmp_path / "listening").mkdir()
        write_listening(tmp_path / "listening")
        both = corpora.listening_corpus(("4q", "gtzan"), tmp_path)
        assert both.X.shape == (6, 400)
        at = {tag: j for j, tag in enumerate(both.tags)}
        assert both.Y[:, at["hip hop"]].tolist() == [0, 0, 1, 0, 1, 0]
        calm, blues = both.Y[:, at["calm"]], both.Y[:, at["blues"]]
        assert calm[:3].tolist() == [0, 1, 0]
        assert np.isnan(calm[3:]).all()
        assert np.isnan(blues[:3]).all()
        assert both.targets()[0, at["blues"]] == pytest.approx(both.heads[0, at["blues"]])
        assert both.of("gtzan").group.tolist() == ["gtzan: valid", "gtzan: train", "gtzan: train"]
        assert "vocal" not in at
        assert "traditional vocal" in at

    def test_rare_tags_of_a_collection_are_left_out(self, tmp_path):
        write_listening(tmp_path)
        data = datasets.load("4q", tmp_path)
        rows = labelled(data, data.features, np.zeros((3, 100), np.float32), ["a", "b", "c"])
        assert np.isnan(rows.Y).all()
        assert "calm" not in join([rows]).tags
        assert "rock" in join([rows]).tags


@pytest.fixture(scope="module")
def invented():
    """Clips whose first features say which tags they have; the last tag only networks know."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6)).astype(np.float32)
    Y = np.full((90, 4), np.nan, np.float32)
    Y[:60, 0] = X[:60, 0] > 0
    Y[:60, 1] = np.arange(60) % 3 == 0
    Y[60:, 2] = X[60:, 1] > 0.5
    heads = np.full_like(Y, np.nan)
    heads[:, 3] = sigmoid(2 * X[:, 2])
    collection = np.array(["4q"] * 60 + ["gtzan"] * 30)
    artists = [f"4q: artist {number // 2}" for number in range(60)]
    group = np.array([*artists, *["gtzan: train", "gtzan: valid"] * 15])
    return Corpus(X, Y, heads, ("calm", "happy", "blues", "piano"), collection, group)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_three_features(corpus):
    """Probabilities that say much of the first tag, nothing of the second, and are too bold."""

    def answers(X, told):
        assert len(corpus.X) + len(X) == 90
        drive = np.stack([X[:, 0] + 0.3 * X[:, 4], X[:, 5], X[:, 1], X[:, 2]], axis=1)
        return np.where(np.isnan(told), sigmoid(4 * drive), told).astype(np.float32)

    return answers


class TestMaking:
    def test_every_clip_is_held_out_once_with_all_of_its_artist(self, invented):
        splits = making.held_out_splits(invented)
        assert sorted(np.concatenate(splits).tolist()) == list(range(90))
        for rows in splits:
            others = np.setdiff1d(np.arange(90), rows)
            assert not set(invented.group[rows]) & set(invented.group[others])

    def test_probabilities_are_corrected_and_keep_their_order(self, invented):
        said = making.judge(invented, by_three_features)
        before, after = said.uncorrected, said.corrected
        np.testing.assert_array_equal(np.argsort(before, axis=0), np.argsort(after, axis=0))
        nothing = np.full_like(invented.Y, np.nan)
        for rows in making.held_out_splits(invented):
            learnt = by_three_features(invented.rows(np.setdiff1d(np.arange(90), rows)))
            np.testing.assert_array_equal(before[rows], learnt(invented.X[rows], nothing[rows]))
        assert 0 < np.abs(said.by_others - after).max() < 0.2
        assert said.correction.slopes.max() < 1  # four times too bold
        heard = np.abs(said.uncorrected - invented.judged())[:, 3]
        assert np.abs(said.by_others - invented.judged())[:, 3].mean() < heard.mean()

    def test_the_model_and_what_is_said_about_it(self, invented, monkeypatch):
        monkeypatch.setitem(making.SETTINGS, "n_hidden", 10)
        monkeypatch.setitem(making.SETTINGS, "max_epochs", 60)
        made = making.make(invented, learn=by_three_features)
        tags = {tag["tag"]: tag for tag in made.report["tags"]}
        assert tags["calm"]["auc"] > 0.9
        assert tags["calm"]["learnt_from"] == ["4q"]
        said = making.judge(invented, by_three_features)
        y, p = invented.Y[:60, 0], said.corrected[:60, 0]
        reached = p >= tags["calm"]["threshold"]
        assert tags["calm"]["precision"] == pytest.approx(y[reached].mean())
        assert tags["calm"]["reached"] == reached.sum()
        written = p >= np.float32(tags["calm"]["write_from"])
        assert tags["calm"]["written"] == written.sum()
        assert y[written].mean() > 0.8
        assert tags["happy"]["write_from"] is None
        assert tags["happy"]["threshold"] is None
        assert tags["piano"]["learnt_from"] == ["musicnn"]
        assert tags["piano"]["agreement"] > 0.9
        assert "auc" not in tags["piano"]
        P = made.model.predict_proba(invented.X)
        assert auc_per_tag(invented.Y[:, :1], P[:, :1]).values[0] > 0.8

        before, after = made.report["calibration"]["4q"]
        assert after < before
        again = DiscriminativeRBM.from_bytes(made.to_bytes())
        np.testing.assert_array_equal(again.recalibration_.slopes, said.correction.slopes)
        curves = curves_from_arrays(from_bytes(made.to_bytes())[0])
        assert [curve.positives for curve in curves] == [*(invented.Y[:, :3] == 1).sum(axis=0), 0]
        assert again.tags_.tolist() == ["calm", "happy", "blues", "piano"]
        np.testing.assert_array_equal(again._params.U, made.model._params.U)
        card = model_card(json.loads(json.dumps(made.report)))
        assert "| calm | 4q | " in card
        assert "| piano | musicnn | – | (r = " in card
