"""Which tags go together: how it is learnt, and the file of the package."""

import gzip

import jax
import numpy as np
import pytest
from make_words import Lists, PresentObserved, jamendo, join, learn_gains, make

from harmonium.data.tag_names import normalise_tag
from harmonium.estimators.model_files import from_bytes
from harmonium.library.model.words import WORDS_FILE, Words, words
from harmonium.logistic import log_odds, sigmoid
from harmonium.rbm.forward import mean_field

QUICK = {"members": 2, "n_hidden": 8, "max_epochs": 40, "batch_size": 50, "learning_rate": 0.03}


def lists(name, tags, kinds, Y):
    n = len(Y)
    artists = np.array([f"{name} {row // 2}" for row in range(n)])
    return Lists(name, tags, kinds, np.float32(Y), artists, np.full(n, "train"))


@pytest.fixture(scope="module")
def corpus():
    """Rock has guitars, jazz has trumpets; the second collection knows jazz and what is mellow."""
    rng = np.random.default_rng(0)
    jazz = rng.random(400) < 0.3
    flip = rng.random((3, 400)) < 0.1
    first = np.stack([jazz, ~jazz, jazz ^ flip[0], ~jazz ^ flip[1]], axis=1)
    second = np.stack([jazz, jazz ^ flip[2]], axis=1)[:200]
    kinds = ("genre", "genre", "instrument", "instrument")
    return join(
        [
            lists("first", ("jazz", "rock", "trumpet", "guitar"), kinds, first),
            lists("second", ("jazz", "mellow"), ("genre", "mood"), second),
        ]
    )


@pytest.fixture(scope="module")
def made(corpus):
    return Words.of(make(corpus, QUICK))


def asked(model, **observed):
    y = np.full((1, len(model.tags)), np.nan)
    for tag, value in observed.items():
        y[0, model.tags.index(tag)] = value
    return dict(zip(model.tags, sigmoid(model(y)[0]), strict=True))


def test_tags_that_go_together_make_each_other_likely(made):
    assert made.tags == ("jazz", "rock", "trumpet", "guitar", "mellow")
    usual = dict(zip(made.tags, made.rates, strict=True))
    given, without = asked(made, trumpet=1), asked(made, trumpet=0)
    assert usual["jazz"] == pytest.approx(0.3, abs=0.1)
    assert given["jazz"] > usual["jazz"] + 0.2 > without["jazz"] + 0.25
    assert given["rock"] < usual["rock"] - 0.2
    assert asked(made, guitar=1, rock=1)["trumpet"] < usual["trumpet"]
    # of tags that no collection has together, they cannot tell
    assert np.isnan(asked(made, trumpet=1)["mellow"])
    assert asked(made, jazz=1, trumpet=1)["mellow"] > made.rates[made.tags.index("mellow")] + 0.1


def test_the_mean_of_log_odds_tag_by_tag(made):
    y = np.full((1, 5), np.nan)
    y[0, [0, 2]] = 1
    members = [mean_field(rbm, y, steps=1)[0] for rbm in made.members]
    for j in (1, 3, 4):
        by_rbm = np.mean([log_odds(p[j]) for p in members])
        shares = [made.beside[k, j] for k in (0, 2) if not np.isnan(made.beside[k, j])]
        expected = (by_rbm + log_odds(np.mean(shares))) / 2
        assert made(y)[0, j] == pytest.approx(expected)


def test_counts_are_of_the_first_collection_that_has_both_tags(corpus):
    gains = learn_gains(corpus)
    first = corpus.parts[0].Y[:, :4]
    w = corpus.parts[0].weights()
    with_trumpet = w * first[:, 2]
    rate = (w @ first[:, 0] + 0.5) / (w.sum() + 1)
    share = (with_trumpet @ first[:, 0] + 30 * rate) / (with_trumpet.sum() + 30)
    assert gains[2, 0] == pytest.approx(log_odds(share) - log_odds(rate), abs=1e-6)


def test_jamendo_in_the_shared_spelling(tmp_path):
    (tmp_path / "jamendo").mkdir()
    rows = ["1\ta\ttrain\tgenre:rap,genre:hiphop", "2\tb\ttest\tmood:dream,instrument:synthesizer"]
    text = "\n".join(["track\tartist\tsplit\ttags", *rows])
    (tmp_path / "jamendo" / "tags.tsv.gz").write_bytes(gzip.compress(text.encode()))
    found = jamendo(tmp_path)
    assert dict(zip(found.tags, found.kinds, strict=True)) == {
        "hip hop": "genre",
        "synth": "instrument",
        "dreamy": "mood",
    }
    nan = np.nan
    np.testing.assert_array_equal(found.Y, [[1, nan, nan], [nan, 1, 1]])
    assert found.split.tolist() == ["train", "test"]


def test_training_observes_one_present_tag_or_a_few_of_one_kind():
    y = np.tile(np.float32([1, 1, 1, 0, np.nan, 1]), (2000, 1))
    gradient = PresentObserved(kinds=(0, 0, 0, 0, 1, 1), absent_too=0.0)
    _, width = gradient.noise(None, unknown=True)
    noise = np.random.default_rng(0).random((2000, width), np.float32)
    found = np.asarray(jax.jit(gradient.observed)(y, noise))
    n = found.sum(axis=1)
    assert not found[:, 3:5].any()
    assert np.mean(n == 0) == pytest.approx(0.1, abs=0.03)
    assert np.mean(n == 1) > 0.5
    assert n.max() == 4
    both_kinds = found[:, 5] & found[:, :3].any(axis=1)
    assert 0.02 < both_kinds.mean() < 0.3


def test_the_file_of_the_package_is_small():
    assert len(WORDS_FILE.read_bytes()) <= 400_000


def test_the_file_of_the_package_names_its_licence():
    assert "CC BY-NC-SA 4.0" in from_bytes(WORDS_FILE.read_bytes())[1]["licence"]
    assert "CC BY-NC-SA 4.0" in WORDS_FILE.with_name("words-LICENSE.md").read_text()


def test_the_file_of_the_package_knows_which_tags_go_together():
    model = words()
    assert [normalise_tag(tag) for tag in model.tags] == list(model.tags)
    assert asked(model, jazz=1)["saxophone"] > 4 * model.rates[model.tags.index("saxophone")]
