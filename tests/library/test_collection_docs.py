"""The example of docs/collection.md runs, and the page names every option and column."""

import inspect
import re

import pytest
from noise_files import write
from places import DOCS
from typer.models import OptionInfo

from harmonium.commands.import_ import import_
from harmonium.commands.index import index
from harmonium.data.coded_rows import USUAL_NAMES

PAGE = (DOCS / "collection.md").read_text(encoding="utf-8")


def test_the_example_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for k in range(2):
        write(tmp_path / "music" / f"{k}.flac", k, tags=["Rock"], seconds=1)
    code = next(c for c in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S) if "say" in c)
    exec(compile(code, "docs/collection.md", "exec"), {})
    said = re.findall(r"^ *print\(.*\)  # (.*)$", code, re.M)
    assert capsys.readouterr().out.splitlines() == said


@pytest.mark.parametrize("command", [index, import_])
def test_every_option_is_named(command):
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        (kind,) = parameter.annotation.__metadata__
        if isinstance(kind, OptionInfo):
            declared = [kind.default, *kind.param_decls]  # the first is taken for a default
            flags = [one for one in declared if str(one).startswith("--")]
            flag = flags[0] if flags else f"--{name.replace('_', '-')}"
            assert f"`{flag}" in PAGE or f" {flag}" in PAGE, flag


def test_every_name_of_a_column_is_listed():
    for names in USUAL_NAMES.values():
        for name in names:
            assert f"`{name}`" in PAGE
