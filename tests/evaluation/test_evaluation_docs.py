"""The examples of docs/evaluation.md and of the docstrings run, and every public name is there."""

import doctest
import importlib
import pkgutil
import re

import pytest
from places import DOCS

import harmonium.evaluation as evaluation

PAGE = DOCS / "evaluation.md"


def test_the_examples_of_the_page_run(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) >= 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    # What the page says that its first example prints.
    assert names["results"]["auc"].reasons == {}
    assert names["tests"].n_better > names["tests"].n_worse
    assert capsys.readouterr().out.count("{}") >= 2


@pytest.mark.parametrize(
    "name", [module.name for module in pkgutil.iter_modules(evaluation.__path__)]
)
def test_the_examples_of_the_docstrings_run(name):
    module = importlib.import_module(f"harmonium.evaluation.{name}")
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("name", evaluation.__all__)
def test_every_public_name_is_described(name):
    assert getattr(evaluation, name).__doc__
    assert not name[0].islower() or f"`{name}" in PAGE.read_text(encoding="utf-8")
