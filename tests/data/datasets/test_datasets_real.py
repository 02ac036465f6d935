"""The real files: run with HARMONIUM_DATA naming the folder that holds them."""

import numpy as np
import pytest

from harmonium.data import datasets
from harmonium.data.datasets.paper_files import SIZES


def load(name, folder, **options):
    """The dataset, or a skip where this folder does not hold it."""
    if datasets.is_found(datasets.info(name), folder) is None:
        pytest.skip(f"HARMONIUM_DATA holds no {name}")
    return datasets.load(name, folder, **options)


@pytest.mark.parametrize("name", datasets.names())
def test_sizes_are_those_that_the_list_states(data_folder, name):
    data = load(name, data_folder)
    assert len(data) == data.info.items
    assert len(data.tags) == data.info.tags
    assert (data.features is not None and data.features.shape[1]) == (data.info.features or False)
    assert (data.triples is not None and len(data.triples)) == (data.info.triples or False)


def test_majorminer(data_folder):
    data = load("majorminer", data_folder, features="all")
    assert (len(data), len(data.tags)) == (2359, 40)
    assert data.features.shape == (2359, 1022)
    assert (data.tracks.n_unique(), data.artists.n_unique()) == (1501, 672)
    assert data.counts.matrix.nnz == 9087
    assert data.counts.matrix.data.min() == 2
    assert not np.isnan(data.labels().values).any()
    mfcc = load("majorminer", data_folder)
    np.testing.assert_array_equal(mfcc.features, data.features[:, :104])
    assert mfcc.feature_names.str.starts_with("mfcc_mean_cov.").all()


def test_emotify(data_folder):
    data = load("emotify", data_folder)
    assert (len(data), len(data.seen), len(data.triples)) == (400, 8407, 16184)
    assert (data.listeners.min(), data.listeners.max()) == (11, 59)
    assert data.counts.matrix.sum() == 16184
    genres = data.items.str.split("_").list.first()
    assert genres.value_counts().sort("count")["count"].to_list() == [100] * 4
    assert data.items[100] == "rock_1"
    if data.audio is not None:
        assert len(data.audio) == 400
    assert len(data.triples.users) == 921
    assert data.labels().values.mean() == pytest.approx(0.37, abs=0.005)
    assert data.labels(min_count=1).values.mean() == pytest.approx(0.85, abs=0.005)


def test_hetrec(data_folder):
    data = load("hetrec", data_folder)
    assert len(data.triples) == 186478
    assert (len(data.triples.users), len(data), len(data.tags)) == (1892, 12523, 9749)
    assert "tropicália" in data.tags.to_list()


def test_hetrec_artists_of_the_join(data_folder):
    data = load("hetrec", data_folder, joined=True)
    assert (len(data.triples), len(data)) == (43802, 985)


def test_hetrec_msd(data_folder):
    everything = load("hetrec-msd", data_folder, untagged=True)
    assert everything.features.shape == (3497, 187)
    data = load("hetrec-msd", data_folder)
    assert len(data) == 3203
    assert (np.asarray(data.counts.matrix.sum(axis=1)) > 0).all()
    assert (data.artists.n_unique(), len(data.triples)) == (977, 191173)
    # All tracks of an artist have the same tags.
    _, first, artist = np.unique(data.artists, return_index=True, return_inverse=True)
    first = first[artist]
    assert (data.counts.matrix != data.counts.matrix[first]).nnz == 0


def test_msd(data_folder):
    assert load("msd", data_folder, untagged=True).features.shape == (9999, 187)
    top = load("msd", data_folder, n_tags=50)
    assert (len(top), len(top.tags)) == (3212, 50)
    assert top.counts.matrix.data.max() == 100


def test_mulan(data_folder):
    emotions = load("mulan:emotions", data_folder)
    assert {name: len(rows) for name, rows in emotions.splits.items()} == {
        "train": 391,
        "test": 202,
    }
    yeast = load("mulan:yeast", data_folder)
    assert {name: len(rows) for name, rows in yeast.splits.items()} == {"train": 1500, "test": 917}
    cal500 = load("mulan:cal500", data_folder)
    assert (cal500.features.shape, len(cal500.tags)) == ((502, 68), 174)
    # The mean number of labels per song that the benchmark's descriptions give.
    assert cal500.labels().values.sum(axis=1).mean() == pytest.approx(26.04382, abs=1e-5)


@pytest.mark.parametrize("name", ["mturk", "majmin"])
def test_genuine_rows_of_the_paper_s_files(data_folder, tmp_path, name):
    path = data_folder / "paper-rows" / f"{name}_60rows.npz"
    if not path.is_file():
        pytest.skip(f"HARMONIUM_DATA holds no {path.name}")
    with np.load(path) as rows:
        X, Y, split = rows["X"], rows["Y"], rows["split"]
    for which in SIZES[name]:
        kept = split == which
        lines = [
            ",".join(map(str, np.flatnonzero(y)))
            + "".join(f" {i}:{v!r}" for i, v in enumerate(x.tolist(), 1))
            for x, y in zip(X[kept], Y[kept], strict=True)
        ]
        (tmp_path / f"{name}_{which}.libsvm").write_text("\n".join(lines) + "\n")
    data = datasets.load(name, tmp_path, check_sizes=False)
    order = np.concatenate([np.flatnonzero(split == which) for which in SIZES[name]])
    np.testing.assert_array_equal(data.features, X[order].astype(np.float32))
    np.testing.assert_array_equal(data.labels().values, Y[order])
    np.testing.assert_allclose(np.linalg.norm(data.features, axis=1), 1, atol=1e-6)
    assert {which: len(rows) for which, rows in data.splits.items()} == dict.fromkeys(
        SIZES[name], 20
    )
