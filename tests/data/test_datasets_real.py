"""The real files: run with HARMONIUM_DATA naming the folder that holds them."""

import warnings

import numpy as np
import pytest

from harmonium.data import datasets
from harmonium.data.datasets.loaders import SIZES


def load(name, folder, **options):
    """The dataset, or a skip where this folder does not hold it; warnings are errors."""
    if datasets.is_found(datasets.info(name), folder) is None:
        pytest.skip(f"HARMONIUM_DATA holds no {name}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return datasets.load(name, folder, **options)


@pytest.mark.parametrize("name", datasets.names("nowhere"))
def test_sizes_are_those_that_the_list_states(data_folder, name):
    data = load(name, data_folder)
    assert len(data) == data.info.items
    assert len(data.tags) == data.info.tags
    assert (data.features is not None and data.features.shape[1]) == (data.info.features or False)
    assert (data.triples is not None and len(data.triples)) == (data.info.triples or False)


def test_majorminer(data_folder):
    data = load("majorminer", data_folder, features="all")
    assert data.features.shape == (2359, 1022)
    assert (data.tracks.n_unique(), data.artists.n_unique()) == (1501, 672)
    assert (data.counts.matrix.nnz, data.counts.matrix.data.min()) == (9087, 2)
    assert not np.isnan(data.labels().values).any()
    mfcc = load("majorminer", data_folder)
    np.testing.assert_array_equal(mfcc.features, data.features[:, :104])
    assert mfcc.feature_names.str.starts_with("mfcc_mean_cov.").all()


def test_emotify(data_folder):
    data = load("emotify", data_folder)
    assert (len(data.seen), len(data.triples.users)) == (8407, 921)
    assert (data.listeners.min(), data.listeners.max()) == (11, 59)
    genres = data.items.str.split("_").list.first()
    assert genres.value_counts()["count"].to_list() == [100] * 4
    assert data.items[100] == "rock_1"
    assert data.labels().values.mean() == pytest.approx(0.37, abs=0.005)
    assert data.labels(min_count=1).values.mean() == pytest.approx(0.85, abs=0.005)


def test_hetrec_msd(data_folder):
    data = load("hetrec-msd", data_folder)
    assert (np.asarray(data.counts.matrix.sum(axis=1)) > 0).all()
    assert data.artists.n_unique() == 977
    # All tracks of an artist have the same tags.
    _, first, artist = np.unique(data.artists, return_index=True, return_inverse=True)
    assert (data.counts.matrix != data.counts.matrix[first[artist]]).nnz == 0


def test_mulan(data_folder):
    for name, sizes in (("emotions", (391, 202)), ("yeast", (1500, 917)), ("birds", (322, 323))):
        splits = load(f"mulan:{name}", data_folder).splits
        assert (len(splits["train"]), len(splits["test"])) == sizes
    cal500 = load("mulan:cal500", data_folder)
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
    assert {len(rows) for rows in data.splits.values()} == {20}
