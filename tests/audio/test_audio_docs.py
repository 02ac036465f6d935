"""The examples of docs/features.md and of the docstrings run; every parameter is described."""

import dataclasses
import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import harmonium.audio as audio

PAGE = (Path(__file__).parents[2] / "docs" / "features.md").read_text(encoding="utf-8")


def test_the_example_of_the_page_prints_what_it_says(capsys):
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    exec(compile(block, "docs/features.md", "exec"), {})
    said = re.findall(r"^print\(.*\) +# (.*)$", block, re.M)
    assert capsys.readouterr().out.splitlines() == said


@pytest.mark.parametrize("field", dataclasses.fields(audio.FeatureParameters), ids=lambda f: f.name)
def test_every_parameter_is_described(field):
    (row,) = [
        line for line in PAGE.splitlines() if line.startswith("|") and f"`{field.name}`" in line
    ]
    values = field.default if isinstance(field.default, tuple) else (field.default,)
    for value in values:
        assert (value if isinstance(value, str) else f"{value:g}") in row.replace("1.0 ", "1 ")


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(audio.__path__)])
def test_the_examples_of_the_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(f"harmonium.audio.{name}")).failed == 0


def test_every_function_of_the_page_exists():
    names = re.findall(r"`(features|spectrum|timbre|rhythm)\.(\w+)`", PAGE)
    assert len(names) >= 11
    for module, name in names:
        assert hasattr(importlib.import_module(f"harmonium.audio.{module}"), name)
