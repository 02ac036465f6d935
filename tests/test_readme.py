"""The README's examples run as they are written."""

import re

import pytest
import small_library
from command_line import run
from noise_files import write
from places import PROJECT

README = (PROJECT / "README.md").read_text(encoding="utf-8")
LIBRARY, MODEL = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_the_library_example_runs(tmp_path, monkeypatch, capsys):
    assert len(README.splitlines()) <= 120
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "Music" / "song.flac", 1, tags=["Rock"], seconds=1)
    exec(LIBRARY, {})
    assert capsys.readouterr().out.splitlines() == [f"{tmp_path / 'Music' / 'song.flac'} 1.0"]


def test_the_model_example_learns_something(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(MODEL, names)
    assert names["model"].score(names["X"][64:], names["Y"][64:]) > 0.55


def test_the_search_of_a_library_of_genres_finds_something(library, place):
    """Its tags are genres that files have, not tags of a model that is not installed."""
    own = README.partition("With tags of your own")[2]
    (query,) = re.findall(r"^    harmonium search (.*?) +#", own, flags=re.MULTILINE)
    ids, *_ = small_library.fill(library, 4, tagged=0)
    change = small_library.new_change(library)
    for number, tag in zip(ids[:2].tolist(), ("Jazz", "Rock"), strict=True):
        library.opinions.say("files", number, [tag], change=change)
    done = run("search", *query.split(), "-L", place)
    assert done.exit_code == 0
    assert [line.split("\t")[-1] for line in done.stdout.splitlines()] == ["/music/000.ogg"]


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(((?!http)[^)]+)\)", README))))
def test_links_lead_somewhere(link):
    assert (PROJECT / link).exists()
