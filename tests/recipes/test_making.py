"""Several collections as one corpus, and the model that is made of it."""

import json
from pathlib import Path

import numpy as np
import pytest
from builtin_model import corpus as corpora
from builtin_model import making
from builtin_model.card import model_card
from builtin_model.corpus import Corpus, shared_heads
from builtin_model.vocabulary import FEATURE, shared_vocabulary
from builtin_model.volume import find_volume
from dataset_samples import write_listening

import harmonium
from harmonium import DiscriminativeRBM
from harmonium.data.datasets.loaders import HEADS
from harmonium.data.tag_names import normalise_tag
from harmonium.estimators.model_files import from_bytes, read_model
from harmonium.evaluation import auc_per_tag
from harmonium.library.learning.scores import make_curves
from harmonium.library.model.builtin import BUILTIN
from harmonium.library.model.precision import curves_from_arrays

VOCABULARY = shared_vocabulary()


def place(tag):
    return VOCABULARY.tags.index(tag)


@pytest.fixture
def shared():
    """What the networks say of one clip, in the shared vocabulary."""
    heads = np.zeros((1, 100), np.float32)
    said = {"MTT: beat": 0.5, "MTT: beats": 0.2, "MSD: rock": 0.8, "MTT: rock": 0.4}
    for head, p in {**said, "MTT: woman": 0.5, "MTT: singing": 0.5}.items():
        heads[0, HEADS.index(head)] = p
    return shared_heads(heads, VOCABULARY)[0]


def test_synonyms_of_one_network_are_joined(shared):
    assert shared[place("beats")] == pytest.approx(1 - 0.5 * 0.8)
    # who sings is a voice
    assert shared[place("voice")] == pytest.approx(0.75)
    assert shared[place("male voice")] == 0
    assert np.isnan(shared[place("gloomy")])


def test_the_networks_are_averaged(shared):
    assert shared[place("rock")] == pytest.approx(0.6)


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
        assert "traditional pop" in at

    @pytest.fixture
    def of_4q(self, tmp_path):
        """The corpus of 4Q: its tags, and its audio features."""
        (tmp_path / "listening").mkdir()
        write_listening(tmp_path / "listening")
        names = VOCABULARY.features
        rows = ["\t".join([f"MT{number}", *[value] * 7]) for number, value in enumerate("011", 1)]
        for name, lines in {
            "4q_audio_features": ["\t".join(("item", *names)), *rows],
            "4q_quadrants": ["item\tquadrant", "MT1\tQ1", "MT2\tQ2", "MT3\tQ4"],
        }.items():
            (tmp_path / "listening" / f"{name}.tsv").write_text("\n".join(lines), encoding="utf-8")
        return corpora.listening_corpus(("4q",), tmp_path).split()

    def test_audio_features_are_split_off(self, of_4q):
        tags, features = of_4q
        assert features.tags == VOCABULARY.features
        assert not set(VOCABULARY.features) & set(tags.tags)

    def test_quadrants_are_what_people_say_of_audio_features(self, of_4q):
        _, features = of_4q
        people = dict(zip(features.tags, features.Y.T.tolist(), strict=True))
        assert people["energy"] == [1, 1, 0]
        assert people["valence"] == [1, 0, 1]
        assert np.isnan(people["liveness"]).all()

    def test_values_are_what_the_networks_say_of_audio_features(self, of_4q):
        _, features = of_4q
        assert features.heads[:, 0].tolist() == [0, 1, 1]


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
    return Corpus(X, Y, heads, ("jazz", "happy", "blues", "piano"), collection, group)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.fixture(scope="module")
def made(invented):
    with pytest.MonkeyPatch.context() as patch:
        more = {"n_hidden": 10, "max_epochs": 150, "patience": None}  # two steps each
        for name, value in more.items():
            patch.setitem(making.SETTINGS, name, value)
        patch.setitem(making.TOGETHER, "max_epochs", 5)
        return making.make(invented)


class TestMaking:
    def test_no_two_folds_share_an_artist_or_a_part_of_gtzan(self, invented, made):
        folds = made.model.folds_
        assert set(folds) == {0, 1, 2, 3, 4}
        assert all(len(set(folds[invented.group == name])) == 1 for name in set(invented.group))

    def test_one_part_of_gtzan_is_halved(self, invented):
        one_part = invented.rows(invented.group != "gtzan: valid")
        groups = making.fold_groups(one_part)
        assert len(set(groups[60:])) == 2
        assert groups[:60] == one_part.group[:60].tolist()

    def test_the_report_is_of_held_out_clips(self, invented, made):
        tags = {tag["tag"]: tag for tag in made.report["tags"]}
        assert tags["jazz"]["auc"] > 0.9
        assert tags["jazz"]["learnt_from"] == ["4q"]
        y, p = invented.Y[:60, 0], made.model.held_out_[:60, 0]
        reached = p >= tags["jazz"]["threshold"]
        assert tags["jazz"]["precision"] == pytest.approx(y[reached].mean())
        assert tags["jazz"]["reached"] == reached.sum()
        written = p >= np.float32(tags["jazz"]["write_from"])
        assert tags["jazz"]["written"] == written.sum()
        assert y[written].mean() > 0.8
        assert made.report["unconfirmed"] == ["happy"]
        assert tags["happy"]["write_from"] is None
        assert tags["happy"]["threshold"] is None
        assert tags["piano"]["learnt_from"] == ["musicnn"]
        assert tags["piano"]["agreement"] > 0.9
        by_networks = invented.heads[:, 3]
        assert np.abs(made.model.held_out_[:, 3] - by_networks).mean() < 0.1
        assert made.model.recalibration_.slopes[3] == 1
        assert "auc" not in tags["piano"]
        assert 0 < made.report["calibration"]["4q"] < 0.2
        card = model_card(json.loads(json.dumps(made.report)))
        assert "| jazz | 4q | " in card
        assert "| piano | musicnn | – | (r = " in card

    def test_the_file_holds_the_members(self, invented, made):
        again = DiscriminativeRBM.from_bytes(made.to_bytes())
        assert again.tags_.tolist() == ["jazz", "happy", "blues", "piano"]
        np.testing.assert_array_equal(again._params.U, made.model._params.U)
        P = made.model.predict_proba(invented.X)
        np.testing.assert_array_equal(again.predict_proba(invented.X), P)
        assert auc_per_tag(invented.Y[:, :1], P[:, :1]).values[0] > 0.9

    def test_the_file_holds_the_curves(self, invented, made):
        curves = curves_from_arrays(from_bytes(made.to_bytes())[0])
        assert [curve.positives for curve in curves] == [*(invented.Y[:, :3] == 1).sum(axis=0), 0]


def test_a_mood_is_written_only_if_two_collections_confirm_it(invented):
    P = np.tile(np.linspace(0.99, 0.01, 90, dtype=np.float32)[:, None], (1, 2))
    collection, groups = np.array(["4q", "emotify"] * 45), np.array([f"{i}" for i in range(90)])
    Y = (np.tile(np.arange(90)[:, None], (1, 2)) < 40).astype(np.float32)
    Y[collection == "emotify", 1] = 0  # whose people call nothing sad
    nothing = np.full_like(Y, np.nan)
    corpus = Corpus(invented.X, Y, nothing, ("happy", "sad"), collection, groups)
    assert making.unconfirmed(corpus, P, make_curves(Y, P)) == ["sad"]
    here = corpus.of("4q")  # no second opinion
    own = P[::2]
    assert making.unconfirmed(here, own, make_curves(here.Y, own)) == ["happy", "sad"]


# Linear parts: audio features, and what is music.


@pytest.fixture
def features():
    """Clips whose energy is told by people, and whose liveness by the networks."""
    rng = np.random.default_rng(0)
    X = rng.normal(2, 3, size=(300, 6)).astype(np.float32)
    soft = sigmoid(X[:, [0, 1]] - 2)
    Y = np.stack([np.full(300, np.nan), X[:, 2] > 2], axis=1).astype(np.float32)
    tags, names = ("liveness", "energy"), np.full(300, "4q")
    groups = np.array([f"4q: {number}" for number in range(300)])
    return Corpus(X, Y, soft.astype(np.float32), tags, names, groups)


def test_energy_follows_people(features):
    head = making.fit_features(features)
    assert auc_per_tag(features.Y[:, 1:], head(features.X)[:, 1:]).values[0] > 0.9


def test_other_features_follow_the_networks(features):
    head = making.fit_features(features)
    np.testing.assert_allclose(head(features.X)[:, 0], features.heads[:, 0], atol=0.05)


def test_a_head_of_scaled_clips_says_the_same(features):
    X, head = features.X, making.fit_features(features)
    mean, scale = X.mean(axis=0), X.std(axis=0)
    np.testing.assert_allclose(head.scaled(mean, scale)((X - mean) / scale), head(X), atol=1e-5)


def test_held_out_features_are_close_to_the_heads(features):
    held_out = making.held_out_features(features, np.arange(300) % 3)
    assert 0 < np.abs(held_out - making.fit_features(features)(features.X)).max() < 0.3


# The same sound in other files, and features without what a change of volume changes.


@pytest.fixture
def clips():
    """Features of clips, and of the same ones softer and louder: two of many directions move."""
    rng = np.random.default_rng(0)
    X = rng.normal(3, [1, 5, 0.2, 1, 2, 1], size=(80, 6)).astype(np.float32)
    moves = np.array([[1, 5, 0, 0, 0, 0], [0, 0, 0.2, 0, -2, 0]], np.float32)
    others = [(X + rng.normal(gain, 0.5, size=(80, 2)) @ moves) for gain in (-2, 1)]
    return X, [other.astype(np.float32) for other in others]


def test_only_what_moves_with_the_volume_is_taken_out(clips):
    X, others = clips
    found = find_volume(X, others, 2)
    for other in others:
        np.testing.assert_allclose(found.taken_out(other), found.taken_out(X), atol=1e-4)
    np.testing.assert_allclose(found.taken_out(X)[:, [3, 5]], X[:, [3, 5]], atol=0.02)
    np.testing.assert_allclose(found.taken_out(found.taken_out(X)), found.taken_out(X), atol=1e-4)


def test_the_model_takes_features_as_they_are(clips, monkeypatch):
    monkeypatch.setitem(making.SETTINGS, "n_hidden", 5)
    monkeypatch.setitem(making.SETTINGS, "max_epochs", 30)
    X, others = clips
    found = find_volume(X, others, 2)
    Y = (X[:, [3, 5]] > 3).astype(np.float32)
    plain = found.taken_out(X)
    groups = np.array([f"4q: {number // 2}" for number in range(80)])
    names = np.full(80, "4q")
    corpus = Corpus(plain, Y, np.full_like(Y, np.nan), ("calm", "jazz"), names, groups, found)
    made = making.make(corpus)
    again = DiscriminativeRBM.from_bytes(made.to_bytes())
    expected = making.fit(corpus).predict_proba(plain)
    for features in (X, *others):
        np.testing.assert_allclose(again.predict_proba(features), expected, atol=1e-4)


# The shared vocabulary, and the file of the built-in model, which is in step with it.

FOLDER = Path(harmonium.__file__).parent / "library" / "builtin"


def test_the_words_of_the_vocabulary_are_normalised():
    words = [*VOCABULARY.tags, *VOCABULARY.aliases]
    assert [normalise_tag(word) for word in words] == words


def test_words_in_any_spelling_mean_one_tag():
    words = ["Hip-Hop", "rap", "RnB", "calmness", "no vocals", "polka"]
    tags = ["hip hop", "hip hop", "r&b", "calm", "instrumental", None]
    assert [VOCABULARY.tag(word) for word in words] == tags
    assert VOCABULARY.tag("Vocal") == "voice"
    assert VOCABULARY.tag("Vocal", "4q") == "traditional pop"


BUILTIN_FILE = FOLDER / "model.safetensors"


@pytest.fixture(scope="module")
def report():
    return read_model(BUILTIN_FILE)[1][BUILTIN]


def test_the_built_in_model_is_small():
    assert BUILTIN_FILE.stat().st_size <= 3_000_000


def test_the_built_in_model_loads():
    model = DiscriminativeRBM.load(BUILTIN_FILE)
    assert model.predict_proba(np.zeros((1, 400), np.float32)).shape == (1, len(model.tags_))


def test_the_report_of_the_built_in_model_gives_its_card(report):
    assert (FOLDER / "card.md").read_text(encoding="utf-8") == model_card(report)


def test_the_report_of_the_built_in_model_has_the_words_of_the_vocabulary(report):
    assert all(VOCABULARY.groups[tag["tag"]] == tag["group"] for tag in report["tags"])
    assert report["aliases"]["rap"] == "hip hop"
    features = [tag for tag in report["tags"] if tag["group"] == FEATURE]
    assert tuple(tag["tag"] for tag in features) == VOCABULARY.features


def test_the_report_of_the_built_in_model_measures_every_tag(report):
    features = [tag for tag in report["tags"] if tag["group"] == FEATURE]
    assert all(tag["threshold"] is None for tag in features)
    for tag in report["tags"]:
        assert tag in features or ("auc" in tag) != ("agreement" in tag)
        assert tag["threshold"] is None or 0 < tag["threshold"] < 1
        if tag.get("write_from") is not None:
            assert tag["auc"] > 0.5
            assert tag["written"] >= 8 or tag["write_from"] == 0.8  # fewer cannot show 80 %
