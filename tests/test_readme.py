"""The README's Python runs as it is written."""

import re
from pathlib import Path

import numpy as np
import pytest
import small_library
from command_line import run
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


def test_the_search_of_one_s_own_music_finds_something_in_a_library_of_genres(library, place):
    """Its tags are genres that files have, not words of a model that is not there."""
    own = README.partition("## With your own music")[2]
    (question,) = re.findall(r"^    harmonium search (.*?) +#", own, flags=re.MULTILINE)
    ids, *_ = small_library.fill(library, 4, tagged=0)
    change = small_library.new_change(library)
    for number, tag in zip(ids[:2].tolist(), ("Jazz", "Rock"), strict=True):
        library.opinions.say("files", number, [tag], change=change)
    done = run("search", *question.split(), "-L", place)
    assert done.exit_code == 0
    assert [line.split("\t")[-1] for line in done.stdout.splitlines()] == ["/music/000.ogg"]


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(((?!http)[^)]+)\)", README))))
def test_links_lead_somewhere(link):
    assert (PROJECT / link).exists()
