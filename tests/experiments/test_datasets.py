"""What experiments take from a dataset."""

import numpy as np
import pytest
from dataset_samples import write_samples

from harmonium.data.datasets import load
from harmonium.errors import DataError
from harmonium.experiments.datasets import (
    _SPECS,
    CATALOGUE,
    GENERATED,
    DatasetSpec,
    _counts,
    load_dataset,
)
from harmonium.synthetic import make_collection

OPTIONS = {"n_tracks": 4, "clips_per_track": 2, "n_users": 12, "clip_seconds": 2.0}


def generated(**fields):
    return DatasetSpec(name=GENERATED, label="g", min_positives=2, options=OPTIONS, **fields)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """The user's cache, in which the generated collection is kept."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        load_dataset.cache_clear()
        yield folder


@pytest.mark.parametrize("kind", ["item", "track", "artist"])
def test_the_groups_of_the_generated_collection(cache, kind):
    data = load_dataset(generated(groups=kind))
    names = make_collection(**OPTIONS).clips[kind].to_list()
    alike = np.equal.outer(data.groups, data.groups)
    assert (alike == np.array([[a == b for a in names] for b in names])).all()


def test_the_labels_of_the_generated_collection(cache):
    data = load_dataset(generated())
    collection = make_collection(**OPTIONS)
    triples = collection.triples
    items = triples.items.gather(triples.item)
    tags = triples.tags.gather(triples.tag)
    given = set(zip(items, tags, strict=True))
    expected = [[(item, tag) in given for tag in data.tags] for item in collection.clips["item"]]
    assert data.Y.tolist() == np.array(expected, float).tolist()
    assert (data.Y.sum(axis=0) >= 2).all()


def test_the_groups_of_features(cache):
    data = load_dataset(generated())
    assert data.X.shape == (8, 389)
    parts = [data.features("timbre"), data.features("rhythm")]
    assert np.hstack(parts).tolist() == data.X.tolist()


def test_only_training_clips_are_smoothed(cache):
    smoothed = load_dataset(generated()).smoothed(np.arange(6), seed=0)
    assert np.isfinite(smoothed[:6]).all()
    assert np.isnan(smoothed[6:]).all()


SMOOTHER = {"n_hidden": 3, "max_epochs": 2}


@pytest.mark.usefixtures("cache")
def test_smoothed_tags_go_by_settings():
    data = load_dataset(generated())
    clips = np.arange(6)
    first = data.smoothed(clips, SMOOTHER, seed=0)
    of_any = data.smoothed(clips, {**SMOOTHER, "target": "any_user"}, seed=0)
    assert (of_any[clips] > first[clips]).all()


@pytest.mark.usefixtures("cache")
def test_smoothed_tags_are_kept_for_other_models(monkeypatch):
    data = load_dataset(generated())
    clips = np.arange(6)
    first = data.smoothed(clips, SMOOTHER, seed=0)
    monkeypatch.setattr("harmonium.estimators.TagSmoother.fit", None)  # nothing is trained again
    np.testing.assert_array_equal(data.smoothed(clips, SMOOTHER, seed=0), first)
    with pytest.raises(TypeError):
        data.smoothed(clips, SMOOTHER, seed=1)


@pytest.mark.usefixtures("cache")
def test_an_unknown_target_of_smoothing_is_refused():
    data = load_dataset(generated())
    with pytest.raises(DataError, match="Got 'nobody'"):
        data.smoothed(np.arange(6), {"target": "nobody"}, seed=0)


def test_a_dataset_needs_a_tag_with_enough_clips(cache):
    with pytest.raises(DataError, match="No tag of 'g' has 100 positive clips"):
        load_dataset(DatasetSpec(name=GENERATED, label="g", min_positives=100, options=OPTIONS))


def test_the_svm_chooses_by_what_the_labels_go_by(tmp_path, monkeypatch):
    """Emotify's labels are shares of listeners: so are the counts, and the most are positive."""
    write_samples(tmp_path)
    monkeypatch.setenv("HARMONIUM_DATA", str(tmp_path))
    data = load("emotify")
    shares = _counts(data, data.tags)
    counts = data.counts.matrix.toarray()
    np.testing.assert_allclose(shares * data.listeners[:, None], counts, rtol=1e-6)
    Y = data.labels().values
    for tag in range(len(data.tags)):
        positive = shares[Y[:, tag] == 1, tag]
        negative = shares[Y[:, tag] == 0, tag]
        assert positive.min(initial=1) > negative.max(initial=0)


def test_the_labels_of_the_catalogue_are_distinct():
    assert len(CATALOGUE) == len(_SPECS)
