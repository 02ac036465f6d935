"""What experiments take from a dataset."""

import numpy as np
import pytest
from dataset_samples import write_samples

from harmonium.data.datasets import load
from harmonium.errors import DataError
from harmonium.experiments.datasets import (
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


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    load_dataset.cache_clear()


@pytest.mark.parametrize("groups", ["item", "track", "artist"])
def test_the_generated_collection_is_grouped_as_the_recipe_says(empty_cache, groups):
    data = load_dataset(generated(groups=groups))
    names = make_collection(**OPTIONS).clips[groups].to_list()
    alike = np.equal.outer(data.groups, data.groups)
    assert (alike == np.array([[a == b for a in names] for b in names])).all()


def test_what_a_run_takes_from_the_generated_collection(empty_cache):
    data = load_dataset(generated())
    collection = make_collection(**OPTIONS)
    triples = collection.triples
    items, tags = triples.items.gather(triples.item), triples.tags.gather(triples.tag)
    said = set(zip(items, tags, strict=True))
    expected = [[(item, tag) in said for tag in data.tags] for item in collection.clips["item"]]
    assert data.Y.tolist() == np.array(expected, float).tolist()
    assert (data.Y.sum(axis=0) >= 2).all()
    assert data.X.shape == (8, 389)
    timbre, rhythm = data.features("timbre"), data.features("rhythm")
    assert np.hstack([timbre, rhythm]).tolist() == data.X.tolist()
    smoothed = data.smoothed(np.arange(6), seed=0)
    assert np.isfinite(smoothed[:6]).all()
    assert np.isnan(smoothed[6:]).all()


def test_the_svm_chooses_by_what_the_labels_go_by(tmp_path, monkeypatch):
    """Emotify's labels are shares of listeners: so are the counts, and the most are positive."""
    write_samples(tmp_path)
    monkeypatch.setenv("HARMONIUM_DATA", str(tmp_path))
    data = load("emotify")
    tags = data.tags
    shares = _counts(data, tags)
    counts = data.counts.matrix.toarray()
    np.testing.assert_allclose(shares * data.listeners[:, None], counts, rtol=1e-6)
    Y = data.labels().values
    for tag in range(len(tags)):
        positive, negative = shares[Y[:, tag] == 1, tag], shares[Y[:, tag] == 0, tag]
        assert positive.min(initial=1) > negative.max(initial=0)


def test_too_few_positives(empty_cache):
    assert all(spec.label == label for label, spec in CATALOGUE.items())
    with pytest.raises(DataError, match="No tag of 'g' has 100 positive clips"):
        load_dataset(DatasetSpec(name=GENERATED, label="g", min_positives=100, options=OPTIONS))
