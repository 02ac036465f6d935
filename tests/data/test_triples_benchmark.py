"""The benchmark runs, and its file is what it claims to be."""

import importlib.util
import sys

import polars as pl
import pytest
from places import PROJECT

from harmonium.data import read_triples

SCRIPT = PROJECT / "benchmarks" / "triples.py"


@pytest.fixture(scope="module")
def benchmark():
    pytest.importorskip("pandas")
    sys.path.append(str(SCRIPT.parent))  # as for a script that is run
    spec = importlib.util.spec_from_file_location("benchmark_triples", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(SCRIPT.parent))


def test_a_small_run(benchmark, tmp_path, capsys):
    benchmark.main(["--size", "3000", "--repeats", "1", "--folder", str(tmp_path)])
    output = capsys.readouterr().out
    assert "Harmonium / pandas" in output
    assert "GiB" in output

    frame = pl.read_csv(tmp_path / "triples-3000.csv")
    assert frame.height == 3000
    assert frame.n_unique() < 3000  # repeated rows
    triples = read_triples(tmp_path / "triples-3000.csv")
    assert len(triples) < frame.n_unique()  # rows that differ in spelling only
    assert len(triples.tags) < frame["tag"].n_unique()


def test_generated_tags_are_distinct(benchmark):
    names = [benchmark.tag_name(code) for code in range(10_000)]
    assert len(set(names)) == len(names)
    assert names[0] == "rock"
    assert len(names[-1].split()) == 3
