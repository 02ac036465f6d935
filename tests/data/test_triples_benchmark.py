"""The benchmark runs, and its file is what it claims to be."""

import runpy

import polars as pl
import pytest
from places import PROJECT

from harmonium.data import read_triples

SCRIPT = PROJECT / "benchmarks" / "triples.py"


def test_a_small_run(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pandas")
    monkeypatch.syspath_prepend(SCRIPT.parent)  # as for a script that is run
    main = runpy.run_path(str(SCRIPT))["main"]
    main(["--size", "3000", "--repeats", "1", "--folder", str(tmp_path)])
    output = capsys.readouterr().out
    assert "Harmonium / pandas" in output
    assert "GiB" in output

    frame = pl.read_csv(tmp_path / "triples-3000.csv")
    assert frame.height == 3000
    assert frame.n_unique() < 3000  # repeated rows
    triples = read_triples(tmp_path / "triples-3000.csv")
    assert len(triples) < frame.n_unique()  # rows that differ in spelling only
    assert len(triples.tags) < frame["tag"].n_unique()
