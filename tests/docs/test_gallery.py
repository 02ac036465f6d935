"""Every example of the gallery runs, and its page and notebook are made from it."""

import importlib.util
import json
import re

import pytest
from places import DOCS, PROJECT

SPEC = importlib.util.spec_from_file_location("gallery", DOCS / "gallery.py")
gallery = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(gallery)


@pytest.fixture(params=gallery.ORDER)
def example(request):
    return gallery.read_example(PROJECT / "examples" / f"{request.param}.py")


def test_every_script_is_in_the_gallery():
    scripts = {path.stem for path in gallery.EXAMPLES.glob("*.py")}
    assert scripts == set(gallery.ORDER)
    index = (gallery.PAGES / "index.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\((\w+)\.md\)\s+\|", index)
    assert linked == list(gallery.ORDER)


def test_every_file_of_the_gallery_belongs_to_an_example():
    files = [path.name for path in gallery.PAGES.iterdir() if path.name != "index.md"]
    owners = {re.sub(r"(-\d+)?\.\w+$", "", name) for name in files}
    assert owners == set(gallery.ORDER)


def test_a_page_shows_its_whole_script(example):
    page = (gallery.PAGES / f"{example.name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {example.title}\n\n{example.introduction}\n")
    position = 0
    for cell in example.cells:
        for part in gallery.page_of(cell):
            position = page.index(part, position) + len(part)
    assert page.count("```python") == len([cell for cell in example.cells if cell.code])


def test_a_notebook_is_made_from_its_script(example):
    notebook = json.loads((gallery.PAGES / f"{example.name}.ipynb").read_text(encoding="utf-8"))
    assert notebook == gallery.notebook_of(example)


@pytest.mark.filterwarnings("default")
def test_an_example_draws_its_figures(example, monkeypatch):
    monkeypatch.setenv("COLUMNS", "96")
    outputs = list(gallery.run_example(example))
    kept = list(gallery.PAGES.glob(f"{example.name}-*.png"))
    assert sum(len(output.figures) for output in outputs) == len(kept) > 0
    assert any(output.printed for output in outputs)


def test_an_error_names_the_line_of_the_script(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text('"""Broken\n\nIt fails."""\n\n# %%\n# **A fault.**\nx = 1\nx / 0\n')
    with pytest.raises(ZeroDivisionError) as raised:
        list(gallery.run_example(gallery.read_example(path)))
    assert raised.traceback[-1].lineno == 7  # counted from 0
