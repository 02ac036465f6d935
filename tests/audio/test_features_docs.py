"""The examples of docs/features.md and of the docstrings run; every parameter is described."""

import dataclasses
import doctest
import importlib
import pkgutil
import re

import pytest
from places import DOCS

import harmonium.audio as audio
from harmonium import AudioFeatures
from harmonium.audio import extractors

PAGE = (DOCS / "features.md").read_text(encoding="utf-8")
USE, DEFINITIONS = PAGE.split("## Definitions")


def test_the_examples_of_the_page_print_what_they_say(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(extractors, "_registered", dict(extractors._registered))
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    assert len(blocks) == 5
    code = "".join(blocks)
    exec(compile(code, "docs/features.md", "exec"), {})
    said = re.findall(r"^print\(.*\)(?:  |\n)# (.*)$", code, re.M)
    assert capsys.readouterr().out.splitlines() == said


@pytest.mark.parametrize("parameter", AudioFeatures().get_params())
def test_every_parameter_of_audio_features_is_described(parameter):
    (row,) = re.findall(rf"^\| `{parameter}` \| (.*?) \|", USE, re.M)
    assert row.strip('"') == str(AudioFeatures().get_params()[parameter])


@pytest.mark.parametrize("field", dataclasses.fields(audio.FeatureParameters), ids=lambda f: f.name)
def test_every_parameter_is_described(field):
    (row,) = [
        line
        for line in DEFINITIONS.splitlines()
        if line.startswith("|") and f"`{field.name}`" in line
    ]
    values = field.default if isinstance(field.default, tuple) else (field.default,)
    for value in values:
        assert (value if isinstance(value, str) else f"{value:g}") in row.replace("1.0 ", "1 ")


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(audio.__path__)])
def test_the_examples_of_the_docstrings_run(name, monkeypatch):
    monkeypatch.setattr(extractors, "_registered", dict(extractors._registered))
    assert doctest.testmod(importlib.import_module(f"harmonium.audio.{name}")).failed == 0
