"""The README's Python runs as it is written."""

import re
from pathlib import Path

import numpy as np
import pytest
from places import PROJECT

README = (PROJECT / "README.md").read_text(encoding="utf-8")
FIRST, SECOND = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_the_example_runs_and_learns_something(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(FIRST, names)
    assert (tmp_path / "model.safetensors").is_file()
    assert names["model"].score(names["X"][64:], names["Y"][64:]) > 0.55


def test_the_example_is_short():
    assert len([line for line in FIRST.splitlines() if line.strip()]) <= 16


def test_a_table_of_tags(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = ["user,item,tag", "ann,one,rock", "bob,one,Rock", "ann,two,jazz"]
    Path("tags.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    names: dict = {}
    exec(SECOND, names)
    np.testing.assert_array_equal(names["labels"], [[1, 0], [0, np.nan]])


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(((?!http)[^)]+)\)", README))))
def test_links_lead_somewhere(link):
    assert (PROJECT / link).exists()
