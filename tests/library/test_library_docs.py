"""The example of docs/library.md runs, and the page names every column."""

import re

from noise_files import write
from places import DOCS

from harmonium.data.tables import USUAL_NAMES

PAGE = (DOCS / "library.md").read_text(encoding="utf-8")


def test_the_example_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for k in range(2):
        write(tmp_path / "music" / f"{k}.flac", k, tags=["Rock"], seconds=1)
    code = next(c for c in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S) if "say" in c)
    exec(compile(code, "docs/library.md", "exec"), {})
    said = re.findall(r"^ *print\(.*\)  # (.*)$", code, re.M)
    assert capsys.readouterr().out.splitlines() == said


def test_every_name_of_a_column_is_listed():
    for names in USUAL_NAMES.values():
        for name in names:
            assert f"`{name}`" in PAGE
