"""A dataset that is added as docs/design.md says loads, is listed, and serves experiments."""

import numpy as np
import polars as pl
import pytest

from harmonium.data import datasets
from harmonium.data.datasets.dataset import INFOS, Dataset, DatasetInfo, describe, locate
from harmonium.data.triples import Triples
from harmonium.errors import DatasetNotFoundError

INFO = DatasetInfo(
    name="toy",
    title="Toy",
    summary="Three songs.",
    files={"toy": ["tags.csv"]},
    items=3,
    citation="Nobody (2026)",
    licence="CC0",
    homepage="https://example.org",
    how_to_get="Write tags.csv into a folder toy.",
)


def load_toy(folder, *, only_rock=False):
    """The loader: triples from a CSV file; one feature per song."""
    [place] = locate(INFOS["toy"], folder)
    rows = pl.read_csv(place / "tags.csv")
    if only_rock:
        rows = rows.filter(pl.col("tag") == "rock")
    triples = Triples.from_columns(rows["user"], rows["item"], rows["tag"])
    return Dataset(
        info=INFOS["toy"],
        items=triples.items,
        counts=triples.counts(),
        features=np.ones((len(triples.items), 1), np.float32),
        triples=triples,
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The dataset's file; its facts and its loader are named among the others."""
    monkeypatch.setitem(INFOS, "toy", INFO)
    monkeypatch.setitem(datasets._LOADERS, "toy", load_toy)
    (tmp_path / "toy").mkdir()
    text = "user,item,tag\nann,one,rock\nbob,two,jazz\nann,three,rock\n"
    (tmp_path / "toy" / "tags.csv").write_text(text)
    return tmp_path


def test_it_is_listed(folder):
    assert "toy" in datasets.names(folder)
    assert datasets.info("toy").title == "Toy"


def test_it_is_loaded(folder):
    data = datasets.load("toy", folder)
    assert describe(data)["labels"] == {"positive": 3, "negative": 3, "unknown": 0}
    assert data.labels(1).tags.to_list() == ["rock"]


def test_its_options_are_the_loader_s(folder):
    assert datasets.options_of("toy") == ["only_rock"]
    assert len(datasets.load("toy", folder, only_rock=True)) == 2


def test_a_missing_file_says_how_to_get_it(folder):
    (folder / "toy" / "tags.csv").unlink()
    with pytest.raises(DatasetNotFoundError, match="Write tags"):
        datasets.load("toy", folder)
