"""docs/guide.md: its examples print what they say, and a script draws each of its pictures."""

import importlib.util
import re

import pytest
from places import DOCS

GUIDE = (DOCS / "guide.md").read_text(encoding="utf-8")


def test_the_examples_print_what_they_say(capsys):
    names: dict = {}
    for code in re.findall(r"^```python\n(.*?)^```", GUIDE, re.M | re.S):
        exec(compile(code, "docs/guide.md", "exec"), names)
        said = re.findall(r"^print\(.*\)  # (.*)$", code, re.M)
        assert capsys.readouterr().out.splitlines() == said


def test_every_picture_is_drawn_by_the_script():
    script = (DOCS / "figures" / "guide.py").read_text(encoding="utf-8")
    drawn = re.search(r"^FIGURES = \((.*)\)$", script, re.M)[1].split(", ")
    shown = re.findall(r"\]\(figures/guide/(\w+)\.png\)", GUIDE)
    kept = [path.stem for path in (DOCS / "figures" / "guide").iterdir()]
    assert sorted(shown) == sorted(drawn) == sorted(kept)


def test_formulas_need_no_script_in_the_site():
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("site_hooks", DOCS / "site_hooks.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    line = r'<p>If <span class="arithmatex">\(a &lt; b\)</span>:</p>'
    made = hooks.on_page_content(line + r'<div class="arithmatex">\[c\]</div>')
    assert "arithmatex" not in made
    assert made.count("<math") == 2
    assert made.count('display="block"') == 1
    assert "&#x0003C;" in made  # once, not "&amp;lt;"
